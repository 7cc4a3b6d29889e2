/*
 * analyzer/parallel/replay.c: the journals of all parts, in the order of their positions. Called by workers.c while the
 * parts are read, for each line by one thread at a time, which alone has what belongs to the replay of that line; and for
 * the rest in the end.
 */
#include <stdlib.h>
#include "parts.h"

static void replay(struct parts *p, enum part_line line, size_t number,
		   const struct journal *journal, const struct journal_entry *entry)
{
	struct analysis *a = p->whole;

	switch (line) {
#define ON_REPLAY(...) __VA_ARGS__;
#define STAGE(field, type, when, ...) \
	case PART_LINE_##field: \
		__VA_ARGS__ \
		break;
#include "findings/stages.def"
	case PART_LINES:
		break;
	}
}

static const struct journal_entry *next_of(const struct part_journal *j)
{
	return &j->replayed->journal.all[j->replayed->next];
}

/* Other threads have written the entries: what comes next in this journal is fetched while those of others are replayed. */
static void fetch_ahead(const struct part_chunk *chunk)
{
	const struct journal_entry *next = &chunk->journal.all[chunk->next];
	const struct journal_entry *end = &chunk->journal.all[chunk->journal.n];

	if (next < end && next->kind == JOURNAL_RANK)
		ranks_fetch_owned(next->rank.event);
	if (next + 1 < end && next[1].kind == JOURNAL_RANK)
		ranks_fetch(next[1].rank.event);
	if (next + 2 < end)
		__builtin_prefetch(next + 2);
}

static void take(struct part_journal *j)
{
	struct part_chunk *chunk = j->replayed;

	if (++chunk->next < chunk->journal.n) {
		fetch_ahead(chunk);
		return;
	}
	j->replayed = chunk->behind;
	if (!j->replayed)
		j->last_replayed = &j->replayed;
	journal_empty(&chunk->journal);
	chunk->next = 0;
	chunk->behind = j->emptied;
	j->emptied = chunk;
}

/* ---- in the order of positions ------------------------------------------------------------------ */

static bool is_before(const struct part_journal *a, const struct part_journal *b)
{
	return position_compare(&next_of(a)->at, &next_of(b)->at) < 0;
}

/* The journal belongs there, or further down. */
static void sift_down(struct part_heap *heap, size_t i, struct part_journal *j)
{
	size_t below;

	for (; (below = 2 * i + 1) < heap->n; i = below) {
		if (below + 1 < heap->n && is_before(heap->all[below + 1], heap->all[below]))
			below++;
		if (!is_before(heap->all[below], j))
			break;
		heap->all[i] = heap->all[below];
	}
	heap->all[i] = j;
}

static void add(struct part_heap *heap, struct part_journal *j)
{
	size_t i, above;

	for (i = heap->n++; i; i = above) {
		above = (i - 1) / 2;
		if (!is_before(j, heap->all[above]))
			break;
		heap->all[i] = heap->all[above];
	}
	heap->all[i] = j;
}

void parts_replay_take(struct parts *p, enum part_line line)
{
	for (size_t i = 0; i < p->n; i++) {
		struct part_journal *j = &p->all[i].journals[line];
		bool is_in_heap = j->replayed;

		if (!j->blank) {
			j->blank = j->emptied;
			j->emptied = NULL;
		}
		if (!j->chunks)
			continue;
		*j->last_replayed = j->chunks;
		j->last_replayed = j->last_chunk;
		j->chunks = NULL;
		j->last_chunk = &j->chunks;
		if (!is_in_heap)
			add(&p->heaps[line], j);
	}
}

/* The first one has another next entry, or none. */
static void settle_first(struct part_heap *heap)
{
	struct part_journal *last;

	if (heap->all[0]->replayed) {
		sift_down(heap, 0, heap->all[0]);
		return;
	}
	last = heap->all[--heap->n];
	if (heap->n)
		sift_down(heap, 0, last);
}

/* Until when the first one stays the first. */
static struct reading_position limit_of(const struct part_heap *heap,
					const struct reading_position *until)
{
	struct reading_position limit =
		until ? *until : (struct reading_position){UINT64_MAX, UINT32_MAX};

	for (size_t i = 1; i < 3 && i < heap->n; i++)
		if (position_compare(&next_of(heap->all[i])->at, &limit) < 0)
			limit = next_of(heap->all[i])->at;
	return limit;
}

size_t parts_replay(struct parts *p, enum part_line line, const struct reading_position *until)
{
	struct part_heap *heap = &p->heaps[line];
	struct reading_position limit;
	struct part_journal *j;
	size_t weight = 0;

	while (heap->n) {
		j = heap->all[0];
		limit = limit_of(heap, until);
		if (position_compare(&next_of(j)->at, &limit) > 0)
			break;
		do {
			weight += next_of(j)->weight;
			replay(p, line, j->part->index, &j->replayed->journal, next_of(j));
			take(j);
		} while (j->replayed && position_compare(&next_of(j)->at, &limit) <= 0);
		settle_first(heap);
	}
	reading_place = (struct reading_place){0};
	return weight;
}
