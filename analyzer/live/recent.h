/*
 * analyzer/live/recent.h: what the ends of a running program's streams say: who called, what was handed to GPUs, which
 * collective operations are open, who took which lock. Of large traces only the ends of the streams are
 * read; what then is not known, is not claimed.
 */
#ifndef CUDASPY_LIVE_RECENT_H
#define CUDASPY_LIVE_RECENT_H

#include "base/hash.h"
#include "model/model.h"

/* Of each stream of larger traces, besides its tail; fewer where there are many streams */
#define RECENT_PACKETS 4

/* A stream of a GPU. */
struct recent_key {
	uint64_t
		stream; /* handle; of the per-thread default stream with the thread's index, as work.h has it */
	uint32_t process, device;
};

/* Something that was handed to a stream. */
struct recent_piece {
	struct recent_key stream;
	uint64_t at; /* its number in the stream, from 1 on; 0: there is none */
	uint64_t ns, caller;
	const struct thread *thread;
	const struct stack *stack; /* NULL: none */
	uint32_t fn;
	uint32_t kernel; /* number in the process; 0: none or unknown */
};

/* What was handed to a stream; from `done` on no call has waited for it. */
struct recent_work {
	struct recent_key key;
	uint64_t handed, done; /* operations */
	uint64_t handed_ns; /* the last one */
	struct recent_piece
		last; /* a kernel, if one of those that are outstanding is; else the last */
	uint64_t
		host_caller; /* a function on the host was handed over behind it, from there; 0: none */
	/* The same of what is no collective operation's: now, and before the last operation. */
	struct recent_piece other, before;
	struct recent_piece behind; /* another stream's, which this one waits for by an event */
	UT_hash_handle hh;
};

/* A lock: who had it last. */
struct recent_lock {
	struct recent_lock_key {
		uint64_t object;
		uint64_t process;
	} key;
	uint64_t taken_ns, given_ns; /* 0: not seen */
	uint32_t taken_tid, given_tid;
	UT_hash_handle hh;
};

#define RECENT_FRONTS 2 /* of an operation: in its own stream, in one that its stream waits for */

/* A collective operation that a rank has submitted. */
struct recent_operation {
	bool follows, graph;
	uint8_t func, bytes_each;
	uint32_t id;
	uint64_t seq, ns, count;
	const struct thread *thread;
	struct recent_key stream;
	uint64_t at; /* as in recent_piece; 0 unknown */
	struct recent_piece
		fronts[RECENT_FRONTS]; /* what it has to wait for there; at is 0: nothing */
};

#define RECENT_OPS_MOST 2048 /* that have not ended, of a communicator: more than a stream holds */

/* A process's part in a communicator. */
struct recent_comm {
	struct recent_comm_key {
		uint32_t process, comm;
	} key;
	uint64_t hash;
	uint32_t rank, ranks, tid;
	uint8_t device;
	char name[32];
	bool known; /* its own record was read */
	struct recent_operation last; /* of all that it has submitted */
	bool submitted[SPY_NCCL_FUNCS]; /* one of these, the last of them with this number: */
	uint64_t last_seq[SPY_NCCL_FUNCS];
	/* Those that are not known to have ended, in the order in which they were submitted: but no sends and receives, and
	 * none that were captured into a graph. */
	struct recent_operation *ops;
	size_t n_ops;
	uint64_t operations; /* that were read of */
	UT_hash_handle hh;
};

/* A stack of a call from that return address. */
struct recent_site {
	struct recent_site_key {
		uint64_t caller, process;
	} key;
	const struct stack *stack; /* the last one */
	UT_hash_handle hh;
};

/* What NVML said last of a GPU. */
struct recent_gpu {
	struct recent_gpu_key {
		uint32_t process, device;
	} key;
	uint64_t ns;
	struct spy_rec_gpu_look look;
	UT_hash_handle hh;
};

struct recent {
	struct recent_work *works;
	struct recent_lock *locks;
	struct recent_comm *comms;
	struct recent_event *events;
	struct recent_thread *threads;
	struct recent_site *sites;
	struct recent_gpu *gpus;
	bool partly; /* not everything was read */
};

/* Reads the set's streams into model, which is new, and what is above: all of them if they have no more than so many
 * bytes, else their ends. */
void recent_read(struct recent *recent, struct model *model, uint64_t whole_bytes);
void recent_release(struct recent *recent);

/* Work of that stream of the thread's process and device; stream 0: the GPU's work that was handed over last. NULL:
 * none is outstanding. */
const struct recent_work *recent_find_work(const struct recent *recent, uint32_t process,
					   uint32_t device, uint64_t stream,
					   const struct thread *thread);

/* What was handed last to the stream with that handle, or to the stream of the event with that handle up to it, and when;
 * NULL: nothing is known of it. *ns is when it was, or when the event was recorded. */
const struct recent_work *recent_asked(const struct recent *recent, uint32_t process,
				       uint64_t object, const struct thread *thread, uint64_t *ns);

/* Operations outstanding of the process on the device, at most. */
uint64_t recent_outstanding(const struct recent *recent, uint32_t process, uint32_t device);

/* Has no call waited for it since? */
bool recent_is_outstanding(const struct recent *recent, const struct recent_piece *piece);

/* Work in front of the operation that may not have ended; NULL: none is known. */
const struct recent_piece *recent_in_front(const struct recent *recent,
					   const struct recent_operation *op);

/* What NVML has said of the GPU in the last RECENT_GPU_NS; NULL: nothing. */
#define RECENT_GPU_NS 3000000000ull
const struct spy_rec_gpu_look *recent_gpu_look(const struct recent *recent, uint32_t process,
					       uint32_t device, uint64_t now_ns);

/* The stack of the last call from there that has one; NULL: there is none. */
const struct stack *recent_stack(const struct recent *recent, uint32_t process, uint64_t caller);

/*
 * Who has the lock, of which `holder` was read at since_ns. It may have changed hands since, as far as records say so.
 * 0: unknown.
 */
uint32_t recent_holder(const struct recent *recent, uint32_t process, uint64_t object,
		       uint32_t holder, uint32_t waiter, uint64_t since_ns);

#endif
