/*
 * analyzer/account/work.h: how much work is outstanding on the GPU, as far as the calls tell:
 * operations that were handed to a stream and that no synchronising call has waited for since. The
 * trace does not know when the GPU was done with them, so this is an upper bound: zero is certain,
 * more is not.
 */
#ifndef CUDASPY_WORK_H
#define CUDASPY_WORK_H

#include "base/hash.h"
#include "expect/signatures.h"
#include "model/model.h"

/* Without padding: it is hashed byte by byte. */
struct stream_key {
	/* handle; of the per-thread default stream STREAM_PER_THREAD + thread index << 8 */
	uint64_t stream;
	uint32_t process;
	uint32_t device;
};

struct gpu_stream;

/* When `at` operations of a stream are done, so are the first `upto` of this one: it waited for an
 * event. */
struct stream_behind {
	struct gpu_stream *stream; /* NULL: none */
	uint64_t upto, at;
	uint64_t upto_work; /* launches and copies in `upto` */
	uint64_t work; /* of the stream itself, before it waited */
};

#define STREAM_BEHIND 4

/* A capture that has begun in `stream`: it lasts as long as its number stands there. */
struct capture {
	struct gpu_stream *stream; /* NULL: none */
	uint64_t number;
};

struct gpu_stream {
	struct stream_key key;
	struct device_streams *beside; /* of its device */
	uint64_t submitted, done; /* operations so far */
	uint64_t busy_ns; /* when it was given the first of those that are outstanding */
	uint64_t work; /* of submitted, launches and copies: no events */
	const struct thread *by; /* the thread that handed over the last of them, and when */
	uint64_t handed_ns;
	/* submitted, with the last of them that the host may see something of when it is done */
	uint64_t host_visible;
	/* It was made so that it and the legacy default stream wait for each other; that they do
	 * not. Of other streams it is unknown. */
	bool blocking, non_blocking;
	bool counted; /* in legacy_use.streams */
	/* What the last wait for them found outstanding, and what was done before; when it
	 * ended. */
	uint64_t before_drain, done_before, drained_ns;
	uint64_t late; /* submitted when a submission last took longer than its own work */
	/* submitted, with the last of them that told the program how far the stream has come */
	uint64_t notified;
	struct gpu_stream *prev, *next; /* in a list of its device; prev NULL: in none yet */
	/* In others: of those whose work has been waited for at all, and of those with host-visible
	 * work. */
	struct gpu_stream *waited_prev, *waited_next, *host_visible_prev, *host_visible_next;
	struct capture capture; /* in which it takes part, as long as that lasts */
	uint64_t begun; /* number of the one that has begun in it; 0: none, or it has ended */
	struct stream_behind behind[STREAM_BEHIND]; /* its last wait for each of some others */
	struct stream_sharing
		*sharing; /* by threads (shared_streams.h); NULL: it has never changed hands */
	/* On the host (stream_functions.h); NULL: none; owned. */
	struct stream_functions *functions;
	UT_hash_handle hh;
};

#define LEGACY_STACKS 8

/*
 * Of a process and a device: how the legacy default stream and the streams that wait for it
 * (blocking) stood in each other's way. A turn is work handed to one of them while the other had
 * some outstanding.
 */
struct legacy_use {
	/* The call that handed the legacy stream its last work. */
	struct legacy_call {
		uint32_t fn;
		uint64_t return_address, ns;
		const struct stack *stack; /* NULL: none */
	} last;
	uint64_t turns;
	uint64_t first_turn, last_turn; /* by the process's submissions */
	uint64_t first_ns, last_ns; /* the same turns */
	uint64_t streams; /* blocking ones that took part */
	bool was_legacy; /* the last work was the legacy stream's */
	/* The call at whose place most of the legacy stream's part was made, if any has most. */
	struct legacy_call most;
	uint64_t votes;
	/* Of its last calls that have one: of the first ones many a program makes none again. */
	const struct stack *stacks[LEGACY_STACKS];
	size_t n_stacks; /* calls that had one */
};

/* How the host of a process may see what its GPUs have written, so far. */
struct host_view {
	bool managed, pinned; /* it has allocated such memory, or pinned some */
	bool copies; /* has copied something to the host */
};

/* Of a process and a device. There may be thousands of streams with work that no call waits for: no
 * call goes through all of them. */
struct device_streams {
	uint64_t handed_over; /* launches and copies so far */
	uint64_t handed_ns; /* when anything was handed to a stream */
	/* operations of streams that are none of those, less those that went to no stream; it
	 * wraps */
	uint64_t others;
	uint64_t done; /* operations of all streams that were waited for */
	/* Streams with work outstanding, those that are non_blocking in a list of their own; and
	 * those without, the last drained first. */
	struct gpu_stream *busy, *busy_non_blocking, *drained;
	struct gpu_stream *waited; /* those that were ever drained, the last one first */
	struct gpu_stream *host_visible; /* those with host-visible work, the last one first */
	struct stream_sharing *shared; /* streams that several threads have handed work to; owned */
};

/* Of a process: the device that it gave work last, and whether that came in order behind what it had given another one. */
struct device_turn {
	const struct device_streams *device; /* NULL: none yet */
	uint64_t begun; /* handed_over, when the device's turn began */
	uint64_t before; /* work of the turn before it, another device's */
	bool in_order; /* it comes behind all of that device's work: by events, or because that was done */
	uint64_t n; /* turns so far */
	uint64_t beside; /* of all turns: work that need not have come behind another device's */
};

#define WORK_DEVICES 256
#define STREAMS_MOST (1u << 19) /* are distinguished; more are one for each GPU */

struct gpu_work {
	struct gpu_stream *by_key;
	struct event_mark *events; /* where in its stream an event was recorded */
	uint64_t n_captures; /* so many have begun; the last one's number */
	uint64_t *n_capturing; /* by process: so many of them have not ended */
	struct device_streams *devices; /* by work_index */
	struct legacy_use *legacy; /* likewise */
	size_t n_processes;
	uint32_t n_devices; /* 1 + the highest one that has a stream */
	uint64_t *submissions; /* by process: launches and copies so far */
	uint64_t
		*first_work_ns; /* by process: when the first of them was handed over; 0: not yet */
	struct host_view *views; /* by process */
	struct device_turn *turns; /* by process */
	bool handed; /* the call seen last has handed something to a GPU: work, or an event */
	/* Of what the wait between calls seen last found done: by work_index; NULL: nothing is known to be. */
	struct device_streams *found_done;
};

/* Of a process and a device. Device by device: so what thousands of processes have on their few
 * devices lies together, and takes no memory for all those that they have not. */
static inline size_t work_index(const struct gpu_work *w, size_t process, uint32_t device)
{
	return device * w->n_processes + process;
}

void work_init(struct gpu_work *w, const struct model *model);
void work_release(struct gpu_work *w);

/* Operations outstanding in the call's stream when it began, of which no function on the host has
 * told the program. 0 for a call without a stream. last: of the thread, the stream it used last;
 * NULL at first. */
uint64_t work_queued(struct gpu_work *w, struct gpu_stream **last, const struct record *record);

/*
 * A submission to a stream with so much outstanding took so much longer than its own work: because
 * there was no room? Then its neighbours wait, too, or it waits for long, with about as much
 * outstanding as there is room for; one late call among many is something else. To be asked once
 * for each late submission.
 */
bool work_queue_was_full(struct gpu_stream *stream, uint64_t queued, uint64_t excess_ns);

/* Operations outstanding of those the call may wait for (gpu_waits), when it began: at most; 0 is
 * certain. UINT64_MAX: unknown. */
uint64_t work_awaited(struct gpu_work *w, struct gpu_stream **last, const struct record *record,
		      const struct gpu_waits *waits);

/* Operations outstanding on the call's device when it began, in all streams: at most. */
uint64_t work_outstanding(struct gpu_work *w, const struct record *record);

/* Will nothing be left to do, on the call's device nor for its thread on another one, when what the
 * call waits for is done? Not certainly: what was handed over and not waited for counts, unless it
 * is little and was long ago. */
bool work_ends(struct gpu_work *w, struct gpu_stream **last, const struct record *record,
	       const struct gpu_waits *waits);

/* Will the host see something that was outstanding on the call's device: by copies, by functions
 * that run on the host, by graphs, whose content is unknown, or by other libraries? */
bool work_host_visible(struct gpu_work *w, const struct record *record);

/* Launches and copies that the record's process has handed to that device. */
uint64_t work_handed_over(const struct gpu_work *w, const struct record *record, uint8_t device);

/* Began a call of the process then before any work had been handed to a GPU? To be asked when it is
 * over. */
static inline bool work_starting(const struct gpu_work *w, size_t process, uint64_t begin_ns)
{
	return !w->submissions[process] || begin_ns < w->first_work_ns[process];
}

/* Waits the call for all that was handed to that stream of that device until then? The stream as
 * its own thread's records have it. */
bool work_covers(struct gpu_work *w, const struct record *record, const struct gpu_waits *waits,
		 uint64_t stream, uint8_t device, uint64_t ns);

/* Was nothing handed to the call's device while it lasted? only: the stream that alone had work
 * outstanding when it began, as its own thread's records have it; 0: several had, or none. */
bool work_nothing_submitted(struct gpu_work *w, const struct record *record, uint64_t *only);

/* Was anything outstanding on the call's device when it began? */
bool work_on_device(struct gpu_work *w, const struct record *record);

/* The call has returned: what it handed over, what it waited for. True: it handed work to the
 * GPU. */
bool work_see(struct gpu_work *w, struct gpu_stream **last, const struct record *record,
	      const struct call_signature *signature);

/* A wait between calls (SPY_EV_OUTSIDE). Where a thread asked for work until that was done (cudaEventQuery, cudaStreamQuery),
 * it waited for it as by a synchronisation: w->found_done. */
void work_see_outside(struct gpu_work *w, const struct record *record);

#endif
