/*
 * analyzer/trace/listener.h: who is shown everything that happened, one by one, as the main reading learns of it: what
 * draws a timeline or exports one. Any function may be NULL. What pointers lead to is valid until the function returns.
 *
 * The order is that in which things become known, not that of their begins: a call is shown when it has returned, after
 * the calls inside of it; an idle time of a GPU when no later call can take it back; a collective operation when its
 * ranks' clocks are aligned. All times are trace time, nanoseconds, as struct record has them.
 */
#ifndef CUDASPY_LISTENER_H
#define CUDASPY_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

struct completed_call;
struct gpu_event;
struct process;
struct range_name;
struct record;
struct thread;

/* A range of the program's (NVTX) has ended, or the trace has; or a mark: then begin and end are the same. */
struct shown_range {
	const struct thread *thread; /* that began it */
	const struct range_name *name;
	uint64_t begin_ns, end_ns;
	uint32_t depth; /* others of the thread that were open around it */
	bool pushed; /* and popped: it lies within those around it. Else any thread may have ended it */
	bool mark;
	bool unended; /* it was open when the trace ended */
};

/* A GPU had nothing to do. */
struct shown_idle {
	uint32_t gpu; /* index: idle.gpus */
	uint8_t cause; /* enum idle_cause: of most of it */
	bool exact; /* by GPU times; else certainly so, and it may have been idle at other times, too */
	uint64_t begin_ns, end_ns;
	uint64_t ns; /* of that; less, where calls in between may have handed it work */
};

/* A rank's part of a collective operation. */
struct shown_collective {
	uint32_t rank; /* index: ranks.all */
	uint32_t
		last_rank; /* likewise: which came last; UINT32_MAX: all came together, or it is not known */
	uint64_t number; /* the same for all ranks of the operation, and for no other one */
	const struct process *process;
	uint8_t device; /* as the process numbers it */
	uint8_t func; /* as for name_shown_func */
	bool by_host_times; /* the GPU's timer is not known */
	uint64_t comm; /* hash of the communicator */
	uint64_t count; /* elements */
	uint64_t bytes; /* of a rank; 0 unknown */
	uint64_t submit_begin_ns, submit_end_ns;
	uint64_t begin_ns, end_ns; /* its kernel; both 0: not known */
	uint64_t wait_ns; /* of that, from its begin on, until the last one came */
};

struct listener {
	void *data;
	/* A call of the application, and where its time went. Not those that were only counted. */
	void (*on_call)(void *data, const struct record *record, const struct completed_call *call);
	/* A call inside another one, of which the record tells no more than its times. */
	void (*on_nested)(void *data, const struct record *record);
	/* SPY_EV_OUTSIDE: a wait of a thread between its calls. */
	void (*on_outside)(void *data, const struct record *record);
	/* SPY_EV_GPU_LOOK: what NVML says of a GPU. */
	void (*on_gpu_look)(void *data, const struct record *record);
	void (*on_range)(void *data, const struct shown_range *range);
	/* Where GPU times were recorded; gpu: index in idle.gpus. */
	void (*on_gpu_op)(void *data, const struct gpu_event *op, uint32_t gpu);
	void (*on_idle)(void *data, const struct shown_idle *idle);
	void (*on_collective)(void *data, const struct shown_collective *collective);
};

#endif
