/*
 * analyzer/trace/merge.h: the records of all streams of all processes, in the order of time.
 */
#ifndef CUDASPY_MERGE_H
#define CUDASPY_MERGE_H

#include "record.h"

/*
 * A tournament: the streams are the leaves of a binary tree, and of two the one with the older
 * record goes up. A node keeps the one that lost there, so that only the way up from a stream's
 * leaf is played again when it has a new record. All ways are equally long, and which of two is
 * older is no branch.
 *
 * A stream in it is one number, its key: the time of its record in hand since base_ns, and below
 * that, in index_bits, its index among the streams, the lower one being first when times are equal.
 * Times for which there is no room there are far, and all the same. Where it would matter the
 * tournament begins anew, with a base_ns of that time.
 */
struct merge {
	uint64_t best; /* the winner: the stream whose record was returned last */
	uint64_t runner_up; /* no other stream has a lower key; not more than far */
	uint64_t *losers; /* nodes 1 to n_leaves - 1; below node i are 2 i and 2 i + 1 */
	size_t n_leaves; /* 1 << index_bits; leaf i is node n_leaves + i */
	unsigned int index_bits;
	uint64_t base_ns, far_since_ns;
	uint64_t far,
		end; /* first keys of what is far, and of streams that have no record any more */
	bool ahead; /* the next record has been found already */
	struct stream *top; /* of best; before the first and after the last record: nothing */
	struct stream **streams; /* those that take part, in the set's order; owned */
	size_t n_streams, n_left; /* left: those that have records still */
	struct stream nothing; /* a stream without records */
};

/* gpus: with the streams of GPU times, which gpu_ops.h reads otherwise. */
void merge_init(struct merge *m, struct trace_set *set, bool gpus);

/* The same for some of the set's streams, in its order. */
void merge_init_streams(struct merge *m, struct stream *const *streams, size_t n, bool gpus);
void merge_release(struct merge *m);

/* Before the first merge_next: its streams become those of n others, stream i that of parts[of[i]]. It has none any more. */
void merge_divide(struct merge *m, struct merge *const *parts, unsigned int n,
		  const unsigned int *of);

/* For merge_next: m->best has a new record; has none any more. The latter returns false when no
 * stream has. */
void merge_replay(struct merge *m);
bool merge_drop(struct merge *m);

static inline uint64_t merge_index(const struct merge *m, uint64_t key)
{
	return key & (m->n_leaves - 1);
}

/* Also of a time before base_ns: that is far, too. */
static inline uint64_t merge_key(const struct merge *m, const struct stream *stream, uint64_t index)
{
	uint64_t ns = timeline_ns(&stream->trace->timeline, stream->reader.time);

	return min_u64(ns - m->base_ns, m->far_since_ns) << m->index_bits | index;
}

/* The best stream has its next record in hand. As long as one stream's records are older than all
 * others', it stays the best. */
static inline void merge_go_on(struct merge *m)
{
	m->best = merge_key(m, m->top, merge_index(m, m->best));
	if (m->best >= m->runner_up)
		merge_replay(m);
}

/*
 * For work with the record that was returned last, which stays valid: finds the next one, if that
 * is no more than a step, so that the processor need not wait for it then.
 */
static inline void merge_look_ahead(struct merge *m)
{
	struct reader *r = &m->top->reader;

	m->ahead = !reader_has_expanded(r) && reader_step(r);
	if (m->ahead)
		merge_go_on(m);
}

/* The next record; false at the end. */
static inline bool merge_next(struct merge *m, struct record *record)
{
	if (likely(m->ahead))
		m->ahead = false;
	else if (reader_next(&m->top->reader))
		merge_go_on(m);
	else if (!merge_drop(m))
		return false;
	record_set(record, m->top->reader.record);
	record->stream = m->top;
	record->process = m->top->trace->index;
	record->tid = m->top->reader.tid;
	record->ns = m->base_ns + (m->best >> m->index_bits);
	return true;
}

#endif
