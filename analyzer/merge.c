/*
 * analyzer/merge.c: the records of all streams of all processes, in the order of time: a tournament
 * of streams. Called by the commands' one loop.
 */
#include <stdlib.h>
#include "merge.h"

/* Beside its index, of a stream without a record: it comes behind all that have one, even one at the end
 * of time. */
#define AT_END ((uint64_t)1 << 32)

/* The node above a stream's leaf; 0: it is the only one. */
static size_t above(const struct merge *m, unsigned __int128 head)
{
	return (m->n_leaves + ((uint64_t)head & (AT_END - 1))) / 2;
}

/* All who could be second have lost to the best one, on its way up. */
static inline uint64_t find_runner_up(const struct merge *m)
{
	uint64_t least_ns = UINT64_MAX;
	size_t node;

	for (node = above(m, m->best); node; node /= 2) {
		uint64_t ns = (uint64_t)(m->losers[node] >> 64);

		least_ns = ns < least_ns ? ns : least_ns;
	}
	return least_ns;
}

void merge_replay(struct merge *m)
{
	unsigned __int128 best = m->best;
	size_t node;

	/* By the time this stream's turn comes again, its next records should be in the cache; with
	 * many streams the processor does not see that coming by itself. */
	__builtin_prefetch(m->top->reader.at + 128);
	for (node = above(m, best); node; node /= 2) {
		unsigned __int128 other = m->losers[node];

		m->losers[node] = other < best ? best : other;
		best = other < best ? other : best;
	}
	/* Only who wins twice may be at the beginning of a row of records. */
	m->runner_up_ns = (uint64_t)best == (uint64_t)m->best ? find_runner_up(m) : 0;
	m->best = best;
	m->top = (uint64_t)best < AT_END ? m->streams[(uint64_t)best] : &m->nothing;
}

bool merge_drop(struct merge *m)
{
	if (m->top != &m->nothing)
		m->best = merge_head(UINT64_MAX, AT_END | (uint64_t)m->best);
	merge_replay(m);
	return m->top != &m->nothing;
}

static unsigned __int128 first_head(struct stream *stream)
{
	if (!reader_next(&stream->reader))
		return merge_head(UINT64_MAX, AT_END | stream->index);
	return merge_head(timeline_ns(&stream->trace->timeline, stream->reader.time),
			  stream->index);
}

/* Plays all games below a node; returns who won them. */
static unsigned __int128 play(struct merge *m, size_t node)
{
	unsigned __int128 left, right;

	if (node >= m->n_leaves) {
		size_t index = node - m->n_leaves;

		return index < m->n_streams ? first_head(m->streams[index])
					    : merge_head(UINT64_MAX, AT_END | index);
	}
	left = play(m, 2 * node);
	right = play(m, 2 * node + 1);
	m->losers[node] = left < right ? right : left;
	return left < right ? left : right;
}

void merge_init(struct merge *m, struct trace_set *set)
{
	*m = (struct merge){.streams = set->streams, .n_streams = set->n_streams, .n_leaves = 1};
	while (m->n_leaves < m->n_streams)
		m->n_leaves *= 2;
	m->losers = xcalloc(m->n_leaves, sizeof(*m->losers));
	m->best = play(m, 1);
	/* merge_next finds that it has no record, and asks for the best. */
	reader_init(&m->nothing.reader, NULL);
	m->top = &m->nothing;
}

void merge_release(struct merge *m)
{
	free(m->losers);
	*m = (struct merge){0};
}
