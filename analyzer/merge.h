/*
 * analyzer/merge.h: the records of all streams of all processes, in the order of time.
 */
#ifndef CUDASPY_MERGE_H
#define CUDASPY_MERGE_H

#include "trace.h"

/* A record on its way through the pipeline. Valid until the next merge_next. */
struct record {
	const union spy_any *raw;
	struct stream *stream;
	uint64_t ns; /* its time, since the epoch */
	/* The rest is the model's: model_apply fills it. */
	struct thread *thread; /* who wrote it */
	uint32_t fn; /* of calls and counts: number in the set's functions */
	uint64_t duration_ns; /* of calls */
};

/* A stream and the time of its record in hand. */
struct merge_head {
	uint64_t ns;
	uint64_t index; /* of the stream: the lower one goes first when times are equal */
};

struct merge {
	struct merge_head *heap; /* smallest first; heap[0] was returned last */
	size_t n_heap;
	uint64_t runner_up_ns; /* no stream but heap[0] has a record older than this */
	struct stream *top; /* of heap[0]; before the first and after the last record: nothing */
	struct stream **streams; /* by index */
	struct stream nothing; /* a stream without records */
};

void merge_init(struct merge *m, struct trace_set *set);
void merge_release(struct merge *m);

/* For merge_next: heap[0] is no longer the oldest; has no more records. The latter returns false
 * when no stream has. */
void merge_sink(struct merge *m);
bool merge_drop(struct merge *m);

/* The next record; false at the end. As long as one stream's records are older than all others',
 * this is no more than a step of its reader. */
static inline bool merge_next(struct merge *m, struct record *record)
{
	struct merge_head *head = &m->heap[0];

	if (likely(reader_next(&m->top->reader))) {
		head->ns = timeline_ns(&m->top->trace->timeline, m->top->reader.time);
		if (head->ns >= m->runner_up_ns)
			merge_sink(m);
	} else if (!merge_drop(m)) {
		return false;
	}
	record->raw = m->top->reader.record;
	record->stream = m->top;
	record->ns = head->ns;
	return true;
}

#endif
