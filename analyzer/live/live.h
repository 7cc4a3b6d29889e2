/*
 * analyzer/live/live.h: what running programs are doing now: the picture that `ps`, `top` and `snapshot` show.
 *
 * It is put together from the boards of their traces, looked at twice, from the ends of their streams, and from what the
 * system says of their threads. A program is not stopped and changes meanwhile: a thread whose board is not the same at
 * both looks has gone on, and is not said to hang.
 */
#ifndef CUDASPY_LIVE_H
#define CUDASPY_LIVE_H

#include "processes.h"
#include "recent.h"

/* What a thread is doing. */
enum live_doing {
	LIVE_GOES_ON, /* calls came and went between the two looks */
	LIVE_LOCK, /* waits for a lock */
	LIVE_JOIN, /* for the end of a thread */
	LIVE_GPU, /* for a GPU */
	LIVE_MODULE, /* in the kernel module */
	LIVE_WAIT, /* for something else */
	LIVE_CALL, /* in a call, and waits for nothing that a probe sees */
	LIVE_BETWEEN, /* between two calls, likewise */
	LIVE_UNSEEN, /* recording is dormant: it may be in any call, or in none */
	LIVE_NO_CUDA, /* a thread that makes no CUDA calls: of it nothing but its state is known */
	LIVE_GONE, /* is named as a holder, and is not there */
	LIVE_DOINGS
};

struct live_thread {
	struct live_process *process;
	uint32_t tid; /* as the process numbers it */
	uint32_t slot; /* 0: of a thread without CUDA calls */
	pid_t os_tid; /* 0: it is not there, or on another machine */
	struct os_thread os;
	const struct thread *model; /* NULL: the streams do not name it */
	enum live_doing doing;
	/* The call it is in; the one inside of it that was begun last, the same if there is none. */
	bool in_call;
	uint32_t fn, inner_fn; /* numbers in the set's functions */
	uint64_t call_ns; /* for so long; UNKNOWN_NS */
	uint64_t call_caller, call_stream;
	uint8_t device; /* SPY_DEVICE_NONE unknown */
	/* What it waits for, in the call or between two. */
	bool waits, outside;
	uint8_t wait_kind; /* enum spy_wait_kind */
	uint64_t wait_object, wait_caller, wait_ns;
	uint64_t wait_since_ns; /* since the epoch */
	uint32_t holder_tid; /* 0 unknown */
	struct live_thread *holder; /* NULL unknown */
	/* Of the chain that begins here: the last thread of it. In a cycle: itself. */
	struct live_thread *root;
	uint32_t cycle; /* number of the cycle it is in, from 1 on; 0: none */
	uint32_t mark; /* for live_link */
	uint32_t waiters; /* threads that wait for a lock, and whose chains lead here */
	uint64_t calls; /* records of calls so far */
};

struct live_process {
	struct trace *trace;
	uint32_t index; /* of the trace in the set */
	const struct recorded *recorded; /* NULL: not on this machine, or not to be looked at */
	bool here; /* it runs on this machine */
	struct board before; /* the first look */
	struct live_thread **threads; /* by slot, those without CUDA calls last */
	size_t n_threads;
	uint64_t calls, counted; /* between the two looks */
	uint64_t apart_ns; /* the looks */
	uint64_t now; /* of the second look, by the trace's clock (cycles) */
	uint64_t started_ns; /* since the epoch; 0 unknown */
};

/* What threads spent time in between the two looks, by samples of their boards. */
struct live_cost {
	struct live_cost_key {
		uint64_t object; /* of a lock; else 0 */
		uint32_t process; /* index of the trace */
		uint32_t fn; /* the call, number in the set's functions; LIVE_BETWEEN_CALLS */
		uint32_t holder; /* thread, 0 unknown or none */
		uint32_t
			kind; /* enum spy_wait_kind + 1 of a lock, or of a wait between calls; 0: in the call */
	} key;
	uint64_t ns; /* of all threads together */
	UT_hash_handle hh;
};

#define LIVE_BETWEEN_CALLS UINT32_MAX

struct live {
	struct trace_set set;
	struct model model;
	struct recent recent;
	struct live_process *processes; /* those that may be running */
	size_t n_processes, n_ended; /* the latter: traces named whose processes have ended */
	struct live_thread **threads; /* of all */
	size_t n_threads;
	uint32_t n_cycles;
	struct live_cost *costs;
	uint64_t began_ns, sampled_ns; /* the first look, the last sample; since the epoch */
	bool open; /* set and model are */
};

struct live_options {
	const struct recorded_list *recorded; /* those of this machine */
	uint64_t apart_ns; /* between the two looks */
	uint64_t
		whole_bytes; /* traces are read as a whole up to this size; 0: streams are left out */
};

/* Looks at the traces in those directories. 0; -ENOENT: there is nothing there; -ESRCH: nothing of it is running.
 * live_release in all cases. */
int live_look(struct live *live, const char *const *dirs, size_t n_dirs,
	      const struct live_options *options);

/* The same in steps: the first look; samples, as many as there is time for; the second look. */
int live_begin(struct live *live, const char *const *dirs, size_t n_dirs,
	       const struct live_options *options);
void live_sample(struct live *live);
void live_end(struct live *live, const struct live_options *options);
void live_release(struct live *live);

/* How long ago that was, by the trace's clock; UNKNOWN_NS: when is 0. */
uint64_t live_ago_ns(const struct live_process *process, uint64_t when);

#endif
