/*
 * analyzer/model/gpu_ops.h: what GPUs did, in the order in which operations began: the streams of GPU times
 * (trace_format.h, SPY_STREAM_GPU) of all processes. CUPTI brings its records late and in no order, so each stream is
 * read ahead of the others, as far as a later record may still be of an earlier time: how far that is, the first reading
 * finds out.
 *
 * Processes that use the same GPU have one queue. What is in other queues has nothing to do with it: so an operation comes
 * at the same moment whatever else is read with it.
 */
#ifndef CUDASPY_GPU_OPS_H
#define CUDASPY_GPU_OPS_H

#include "trace/position.h"
#include "trace/trace.h"

enum gpu_event_kind {
	GPU_EVENT_OP,
	GPU_EVENT_ON, /* from here on, the process's operations are recorded */
	GPU_EVENT_OFF, /* no more */
};

/* Times are nanoseconds since the epoch, as those of all records. */
struct gpu_event {
	uint64_t begin_ns; /* their order; of ON and OFF when that was */
	/* The rest is an operation's. */
	uint64_t end_ns; /* no less than begin_ns */
	uint64_t submit_begin_ns, submit_end_ns; /* the driver's call; 0: unknown */
	uint64_t amount; /* bytes; of a kernel its blocks */
	uint32_t process; /* index of its trace; of ON and OFF, too */
	uint32_t tid; /* thread that submitted it; 0 unknown */
	uint32_t correlation;
	uint32_t stream, context; /* CUPTI's numbers */
	uint32_t kernel; /* number in its process, 0 unknown or no kernel */
	uint16_t event; /* enum gpu_event_kind */
	uint8_t kind; /* enum spy_gpu_op_kind */
	uint8_t direction; /* of a copy: enum spy_direction */
	uint8_t device; /* as its process numbers them */
};

/* What is to be said of a process's GPU times. */
struct gpu_times {
	uint64_t ops, damaged; /* operations; those whose times cannot be */
	uint64_t dropped; /* records that CUPTI lost */
	uint64_t late; /* operations that came too late to be put in order */
	uint64_t unfinished; /* those that CUPTI had to bring before they ended */
	uint64_t clocks; /* comparisons of CUPTI's clock with the trace's */
	uint64_t error_ns; /* the worst of them */
	int64_t first_offset_ns,
		last_offset_ns; /* trace's less CUPTI's, at the first and last one */
	uint32_t
		state; /* enum spy_gpu_state: the last one that is not ON or OFF; SPY_GPU_ON: none */
	char text[113]; /* of that one */
};

/* Are operations missing? */
static inline bool gpu_times_lost(const struct gpu_times *times)
{
	/* At each end of a window there may be as many as a GPU has in hand; more than a few of all are none of that. */
	return times->dropped || times->damaged || times->late ||
	       times->unfinished > 1024 + times->ops / 20;
}

struct gpu_ops_queue;

struct gpu_ops {
	struct gpu_ops_queue *queues; /* a binary heap by what is due next; owned */
	size_t n_queues;
	struct gpu_times *times; /* by process */
	size_t n_processes;
};

/* The first reading, of a stream of GPU times whose first record is in hand: to its end. */
void gpu_ops_measure(struct stream *stream, struct trace_use *use);

/* The streams, of the set, have their first record in hand (merge_init); those of GPUs are read on here. */
void gpu_ops_init(struct gpu_ops *ops, const struct trace_set *set, struct stream *const *streams,
		  size_t n);
void gpu_ops_release(struct gpu_ops *ops);

/* The next one, which stays valid until gpu_ops_take; NULL: no more. due_ns: when the host's records have come so far, those
 * of who may have kept it waiting have been seen. position: when that is, and in which order of several. */
const struct gpu_event *gpu_ops_next(const struct gpu_ops *ops, uint64_t *due_ns,
				     struct reading_position *position);
void gpu_ops_take(struct gpu_ops *ops);

#endif
