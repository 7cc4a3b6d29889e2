/*
 * analyzer/trace/merge.c: the records of all streams of all processes, in the order of time: a tournament
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

static struct stream *stream_of(struct merge *m, unsigned __int128 head)
{
	return (uint64_t)head < AT_END ? m->streams[(uint64_t)head] : &m->nothing;
}

/* All who could be second have lost to the best one, on its way up. */
static uint64_t runner_up_ns(const struct merge *m)
{
	uint64_t ns = UINT64_MAX;
	size_t node;

	for (node = above(m, m->best); node; node /= 2)
		ns = least(ns, (uint64_t)(m->losers[node] >> 64));
	return ns;
}

void merge_replay(struct merge *m)
{
	unsigned __int128 best = m->best;
	uint64_t before = (uint64_t)best;
	size_t node;

	/* By the time this stream's turn comes again, its next records should be in the cache; with
	 * many streams the processor does not see that coming by itself. */
	__builtin_prefetch(m->top->reader.at + 128);
	for (node = above(m, best); node; node /= 2) {
		unsigned __int128 other = m->losers[node];
		bool older = other < best;

		m->losers[node] = older ? best : other;
		best = older ? other : best;
	}
	m->best = best;
	m->top = stream_of(m, best);
	/* Who is second matters where the best one goes on being the best. */
	m->runner_up_ns = (uint64_t)best == before ? runner_up_ns(m) : 0;
}

/* Plays all games below a node; returns who won them. */
static unsigned __int128 play(struct merge *m, size_t node)
{
	unsigned __int128 left, right;

	if (node >= m->n_leaves) {
		uint64_t index = node - m->n_leaves;
		const struct stream *stream;

		if (index >= m->n_streams)
			return merge_head(UINT64_MAX, AT_END | index);
		stream = m->streams[index];
		return merge_head(timeline_ns(&stream->trace->timeline, stream->reader.time),
				  index);
	}
	left = play(m, 2 * node);
	right = play(m, 2 * node + 1);
	m->losers[node] = left < right ? right : left;
	return left < right ? left : right;
}

/* The tournament begins anew, with the streams that have records. */
static void begin(struct merge *m)
{
	size_t i, n = 0;

	for (i = 0; i < m->n_streams; i++)
		if (m->streams[i])
			m->streams[n++] = m->streams[i];
	m->n_streams = m->n_left = n;
	for (m->n_leaves = 1; m->n_leaves < n;)
		m->n_leaves *= 2;
	m->best = play(m, 1);
	m->runner_up_ns = 0;
	m->top = stream_of(m, m->best);
}

bool merge_drop(struct merge *m)
{
	if (m->top != &m->nothing) {
		m->streams[(uint64_t)m->best] = NULL;
		m->n_left--;
		m->best = merge_head(UINT64_MAX, AT_END | (uint64_t)m->best);
	}
	if (m->n_left <= m->n_leaves / 2)
		begin(m);
	else
		merge_replay(m);
	return m->top != &m->nothing;
}

void merge_init(struct merge *m, struct trace_set *set)
{
	size_t i;

	*m = (struct merge){.streams = xcalloc(set->n_streams + 1, sizeof(struct stream *))};
	for (i = 0; i < set->n_streams; i++)
		if (reader_next(&set->streams[i]->reader))
			m->streams[m->n_streams++] = set->streams[i];
	m->losers = xcalloc(2 * m->n_streams + 1, sizeof(*m->losers));
	begin(m);
	/* merge_next finds that it has no record, and asks for the best. */
	reader_init(&m->nothing.reader, NULL);
	m->top = &m->nothing;
}

void merge_release(struct merge *m)
{
	free(m->streams);
	free(m->losers);
	*m = (struct merge){0};
}
