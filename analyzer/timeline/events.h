/*
 * analyzer/timeline/events.h: what happened, as slices, arrows and counters: between the main reading (trace/listener.h) and the
 * formats of timelines (sink.h; analyzer/export/). It keeps nothing that grows with the records: of a thread, what is inside its call in
 * progress; of locks, the waits that may still turn out to overlap.
 */
#ifndef CUDASPY_TIMELINE_EVENTS_H
#define CUDASPY_TIMELINE_EVENTS_H

#include "tracks.h"
#include "lanes/lanes.h"
#include "trace/listener.h"

struct events;

/* All arguments must live as long. events_free. */
struct events *events_new(const struct timeline_source *source, const struct sink *sink);

const struct listener *events_listener(struct events *e);

/* After the last record: shows what is left. */
void events_finish(struct events *e);
void events_free(struct events *e);

/* A name by its number; what is not UTF-8 in it is as the program wrote it. Numbers are below events_names. */
const char *events_name(const struct events *e, uint32_t number);

/* ---- for the files of this folder --------------------------------------------------------------- */

#define PENDING_ARGUMENTS 6

/* A slice that has to wait for the call it is in, or that comes behind it. */
struct pending {
	uint64_t begin_ns, end_ns, flow;
	uint32_t name;
	uint8_t category, depth, n;
	struct slice_argument arguments[PENDING_ARGUMENTS];
};

/* From a wait to the call in which this thread had the lock, which has not returned yet; times are those of records. */
struct pending_arrow {
	const struct thread *waiter;
	uint64_t begin_ns, end_ns;
	uint32_t fn; /* the holder's call */
};

/* Of a thread. */
struct pending_slices {
	struct pending *all;
	size_t n, room;
	struct pending_arrow *arrows;
	size_t n_arrows;
};

/* Numbers of names of small enums, + 1. */
struct name_cache {
	uint32_t known[32];
};

/* A lock's queue, or that of all locks of a process. */
struct wait_edge {
	uint64_t ns;
	struct track *lock, *process;
	int32_t change;
};

#define WAIT_EDGES 16384

struct stream_counter {
	struct stream_key key; /* account/work.h */
	struct track *track;
	UT_hash_handle hh;
};

struct counters {
	uint64_t step_ns;
	/* A binary heap by time. */
	struct wait_edge *edges;
	size_t n_edges;
	uint64_t written_ns; /* until then, queues are told */
	struct track **locks; /* by index */
	size_t n_locks;
	struct track **waiting; /* by process: its threads that wait for locks */
	struct track **devices; /* by work_index */
	size_t n_devices;
	struct track **looks; /* by work_index and what it is of that GPU */
	size_t n_looks;
	struct stream_counter *streams, *last_stream;
};

/* Numbers of "L1 (heap)", "wait for L1 (heap)"; 0: not asked for yet. */
struct lock_names {
	uint32_t lock, wait;
};

/* The longest call of a finding; times since the recording's begin. */
struct finding_moment {
	const struct thread *thread; /* of the first reading */
	uint64_t begin_ns, end_ns;
	size_t row;
};

struct events {
	struct timeline_source source;
	const struct sink *sink;
	struct listener listener;
	struct tracks tracks;
	struct labels labels;
	uint64_t zero_ns, flows;
	struct pending_slices *pending; /* by thread */
	size_t n_pending;
	struct pending_slices order; /* of a call and all in it, while they are written */
	uint64_t *open_ends; /* likewise: of those that are open */
	size_t open_room;
	uint32_t **kernels; /* by process and number: names + 1 */
	uint32_t *range_names; /* by index: names + 1 */
	size_t n_range_names;
	struct lock_names *locks; /* by index */
	size_t n_locks;
	struct name_cache memory_kinds, memory_ops, directions, waits, causes, gpu_ops, functions;
	/* The parts of a collective operation, until all are there. */
	struct shown_collective *parts;
	size_t n_parts;
	struct finding_moment *findings; /* by their ends */
	size_t n_findings, findings_shown;
	struct counters counters;
};

/* Times since the recording's begin. */
static inline uint64_t events_since(const struct events *e, uint64_t ns)
{
	return ns - min_u64(e->zero_ns, ns);
}

/* So much of what began then is cut: before the first record. */
static inline uint64_t events_before(const struct events *e, uint64_t begin_ns)
{
	return e->zero_ns - min_u64(e->zero_ns, begin_ns);
}

uint32_t events_cached(struct events *e, struct name_cache *cache, unsigned int value,
		       const char *(*name)(unsigned int value));
uint32_t events_thread_name(struct events *e, const struct thread *thread);
uint32_t events_kernel(struct events *e, uint32_t process, uint32_t kernel);

/* A slice of a track with rows; times since the recording's begin. */
void events_put(struct events *e, struct slice *slice);

/* One end of an arrow, in that track. */
void events_flow(struct events *e, struct track *track, uint64_t ns, uint64_t flow, bool ends);

/* calls.c: the listener's functions for what threads do. */
void events_on_call(void *data, const struct record *record, const struct completed_call *call);
void events_on_nested(void *data, const struct record *record);
void events_on_outside(void *data, const struct record *record);
void events_finish_threads(struct events *e);

/* findings.c: of the report; those that end until then are shown. */
void events_take_findings(struct events *e);
void events_show_findings(struct events *e, uint64_t until_ns);

/* counters.c */
void counters_init(struct counters *c, const struct model *known);
void counters_see_wait(struct events *e, const struct process *process, const struct lock *lock,
		       uint64_t begin_ns, uint64_t end_ns);
void counters_see_call(struct events *e, const struct record *record);
void counters_see_gpu(void *data, const struct record *record); /* on_gpu_look */
void counters_finish(struct events *e);
void counters_release(struct counters *c);

#endif
