/*
 * analyzer/trace/merge.c: the records of all streams of all processes, in the order of time: a
 * tournament of streams. Called by the commands' one loop.
 */
#include <stdlib.h>
#include "merge.h"
#include "position.h"

/* The node above a stream's leaf; 0: it is the only one. */
static size_t above(const struct merge *m, uint64_t key)
{
	return (m->n_leaves + merge_index(m, key)) / 2;
}

/* All that could be second have lost to the best one, on its way up. */
static uint64_t runner_up(const struct merge *m)
{
	uint64_t key = m->far;

	for (size_t node = above(m, m->best); node; node /= 2)
		key = min_u64(key, m->losers[node]);
	return key;
}

/* Plays all games below a node; returns the winner. */
static uint64_t play(struct merge *m, size_t node)
{
	uint64_t left, right;

	if (node >= m->n_leaves) {
		size_t index = node - m->n_leaves;

		return index < m->n_streams ? merge_key(m, m->streams[index], index)
					    : m->end | index;
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

	m->base_ns = UINT64_MAX;
	for (i = 0; i < m->n_streams; i++) {
		struct stream *stream = m->streams[i];

		if (!stream)
			continue;
		m->streams[n++] = stream;
		m->base_ns = min_u64(m->base_ns,
				     timeline_ns(&stream->trace->timeline, stream->reader.time));
	}
	m->n_streams = m->n_left = n;
	for (m->index_bits = 0; (size_t)1 << m->index_bits < n;)
		m->index_bits++;
	m->n_leaves = (size_t)1 << m->index_bits;
	m->far_since_ns = (UINT64_MAX >> m->index_bits) - 1;
	m->far = m->far_since_ns << m->index_bits;
	m->end = (m->far_since_ns + 1) << m->index_bits;
	m->runner_up = 0;
	m->best = play(m, 1);
	m->top = n ? m->streams[merge_index(m, m->best)] : &m->nothing;
}

void merge_replay(struct merge *m)
{
	uint64_t best = m->best;

	/* By the time this stream's turn comes again, its next records should be in the cache; with
	 * many streams the processor does not see that coming by itself. */
	__builtin_prefetch(m->top->reader.at + 128);
	for (size_t node = above(m, best); node; node /= 2) {
		uint64_t other = m->losers[node];

		m->losers[node] = best < other ? other : best;
		best = min_u64(best, other);
	}
	/* A stream at its end is further away than that; and it is not the best as long as there
	 * are others. */
	if (unlikely(best >= m->far) || unlikely(m->best >= m->far && m->best < m->end)) {
		begin(m);
		return;
	}
	/* The second one matters where the best one stays the best. */
	m->runner_up = unlikely(best == m->best) ? runner_up(m) : 0;
	m->best = best;
	m->top = m->streams[merge_index(m, best)];
}

bool merge_drop(struct merge *m)
{
	if (m->top != &m->nothing) {
		uint64_t index = merge_index(m, m->best);

		m->streams[index] = NULL;
		m->n_left--;
		m->best = m->end | index;
	}
	if (m->n_left <= m->n_leaves / 2)
		begin(m);
	else
		merge_replay(m);
	return m->top != &m->nothing;
}

/* Its streams have their first records in hand. */
static void make_ready(struct merge *m)
{
	m->losers = xcalloc_apart(2 * m->n_streams + 1, sizeof(*m->losers));
	begin(m);
	/* merge_next finds that it has no record, and asks for the best. */
	reader_init(&m->nothing.reader, NULL);
	m->top = &m->nothing;
}

void merge_init_streams(struct merge *m, struct stream *const *streams, size_t n, bool gpus)
{
	*m = (struct merge){.streams = xcalloc_apart(n + 1, sizeof(struct stream *))};
	for (size_t i = 0; i < n; i++) {
		/* What is wrong with its begin is said before all records. */
		reading_place.position = (struct reading_position){0, streams[i]->index + 1};
		if (reader_next(&streams[i]->reader) &&
		    (gpus || streams[i]->reader.kind != SPY_STREAM_GPU))
			m->streams[m->n_streams++] = streams[i];
	}
	make_ready(m);
}

void merge_divide(struct merge *m, struct merge *const *parts, unsigned int n,
		  const unsigned int *of)
{
	for (unsigned int k = 0; k < n; k++)
		*parts[k] = (struct merge){
			.streams = xcalloc_apart(m->n_streams + 1, sizeof(struct stream *))};
	for (size_t i = 0; i < m->n_streams; i++)
		parts[of[i]]->streams[parts[of[i]]->n_streams++] = m->streams[i];
	for (unsigned int k = 0; k < n; k++)
		make_ready(parts[k]);
	m->n_streams = m->n_left = 0;
}

void merge_init(struct merge *m, struct trace_set *set, bool gpus)
{
	merge_init_streams(m, set->streams, set->n_streams, gpus);
}

void merge_release(struct merge *m)
{
	free(m->streams);
	free(m->losers);
	*m = (struct merge){0};
}
