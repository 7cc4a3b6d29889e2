/*
 * analyzer/merge.c: the records of all streams of all processes, in the order of time: a binary
 * heap of streams. Called by the commands' one loop.
 */
#include <stdlib.h>
#include "merge.h"

/* Without branches: which of two streams is first is a coin toss. */
static inline bool before(const struct merge_head *a, const struct merge_head *b)
{
	return (a->ns < b->ns) | ((a->ns == b->ns) & (a->index < b->index));
}

static void sift_down(struct merge *m, size_t at)
{
	struct merge_head moving = m->heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= m->n_heap)
			break;
		if (child + 1 < m->n_heap)
			child += before(&m->heap[child + 1], &m->heap[child]);
		if (!before(&m->heap[child], &moving))
			break;
		m->heap[at] = m->heap[child];
		at = child;
	}
	m->heap[at] = moving;
}

void merge_sink(struct merge *m)
{
	/* By the time this stream's turn comes again, its next records should be in the cache; with
	 * many streams the processor does not see that coming by itself. */
	__builtin_prefetch(m->top->reader.at + 128);
	sift_down(m, 0);
	m->top = m->streams[m->heap[0].index];
	m->runner_up_ns = UINT64_MAX;
	if (m->n_heap > 1)
		m->runner_up_ns = m->heap[1].ns;
	if (m->n_heap > 2 && m->heap[2].ns < m->runner_up_ns)
		m->runner_up_ns = m->heap[2].ns;
}

bool merge_drop(struct merge *m)
{
	if (m->n_heap)
		m->heap[0] = m->heap[--m->n_heap];
	if (!m->n_heap) {
		m->top = &m->nothing;
		return false;
	}
	merge_sink(m);
	return true;
}

void merge_init(struct merge *m, struct trace_set *set)
{
	size_t i;

	*m = (struct merge){.streams = set->streams};
	reader_init(&m->nothing.reader, NULL);
	m->heap = xcalloc(set->n_streams + 1, sizeof(*m->heap));
	/* heap[0] has time 0 and no record: merge_next drops it first. */
	m->top = &m->nothing;
	m->n_heap = 1;
	for (i = 0; i < set->n_streams; i++) {
		struct stream *stream = set->streams[i];

		if (reader_next(&stream->reader))
			m->heap[m->n_heap++] = (struct merge_head){
				timeline_ns(&stream->trace->timeline, stream->reader.time), i};
	}
	for (i = m->n_heap; i-- > 1;)
		sift_down(m, i);
}

void merge_release(struct merge *m)
{
	free(m->heap);
	*m = (struct merge){0};
}
