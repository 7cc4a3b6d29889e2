/*
 * analyzer/parallel/replay.c: the journals of all parts, in the order of their moments. Called by workers.c while the
 * parts are read, by one thread at a time, which alone has what belongs to the replay; and by join.c for the rest.
 */
#include <stdlib.h>
#include "parts.h"

/* ---- GPUs that are idle together -------------------------------------------------------------- */

/* NULL: it is not compared with others. */
static struct idle_gpu *gpu_of(struct parts *p, const struct part *part, uint32_t gpu)
{
	uint32_t index = gpu < part->n_gpus ? part->gpus[gpu] : IDLE_PAIRED;

	return index < IDLE_PAIRED ? &p->together[index] : NULL;
}

static void meet_gpu(struct parts *p, struct part *part)
{
	part->gpus = grow(part->gpus, part->n_gpus, sizeof(*part->gpus));
	part->gpus[part->n_gpus++] = (uint32_t)p->n_together;
	if (p->n_together < IDLE_PAIRED)
		p->together_part[p->n_together] = part;
	p->n_together++;
}

/* GPUs of one part have been compared in it. */
static void see_idle(struct parts *p, const struct part *part, const struct journal_entry *entry)
{
	struct idle_gpu *gpu = gpu_of(p, part, entry->gpu);
	struct idle_interval *interval;
	size_t i;

	if (!gpu)
		return;
	interval = idle_next_interval(gpu);
	*interval = (struct idle_interval){.begin_ns = entry->idle.begin_ns,
					   .end_ns = entry->idle.end_ns,
					   .ns = entry->idle.end_ns - entry->idle.begin_ns};
	for (i = 0; i < p->n_together && i < IDLE_PAIRED; i++) {
		uint64_t ns =
			p->together_part[i] == part ? 0 : idle_in_both(&p->together[i], interval);

		gpu->together_ns[i] += ns;
		p->together[i].together_ns[gpu - p->together] += ns;
	}
}

static void see_taken_back(struct parts *p, const struct part *part,
			   const struct journal_entry *entry)
{
	struct idle_gpu *gpu = gpu_of(p, part, entry->gpu);

	if (gpu)
		gpu->intervals[entry->idle.number % gpu->intervals_size].ns -= entry->idle.by_ns;
}

/* ---- entries ---------------------------------------------------------------------------------- */

static void replay(struct parts *p, struct part *part, const struct journal_entry *entry)
{
	struct accounting *a = &p->whole->accounts;

	switch (entry->kind) {
	case JOURNAL_REQUEST:
	case JOURNAL_SEARCH:
		kernel_overlap_replay(a, entry);
		break;
	case JOURNAL_WORST_CALL:
		worst_call_replay(&a->blame, entry->worst.thread, entry->worst.end_ns,
				  entry->worst.lost_ns,
				  (uint64_t)part->index << 40 | entry->worst.serial);
		break;
	case JOURNAL_GPU:
		meet_gpu(p, part);
		break;
	case JOURNAL_IDLE:
		see_idle(p, part, entry);
		break;
	case JOURNAL_RANK:
		reading_place.moment = entry->at;
		ranks_apply(&p->whole->ranks, entry->rank.news);
		free(entry->rank.news);
		break;
	default:
		see_taken_back(p, part, entry);
		break;
	}
}

static const struct journal_entry *next_of(const struct part *part)
{
	return &part->replayed->journal.all[part->replayed->next];
}

static void take(struct part *part)
{
	struct part_chunk *chunk = part->replayed;

	if (++chunk->next < chunk->journal.n)
		return;
	part->replayed = chunk->behind;
	free(chunk->journal.all);
	free(chunk);
}

/* ---- in the order of moments ------------------------------------------------------------------ */

static bool is_before(const struct part *a, const struct part *b)
{
	return moment_compare(&next_of(a)->at, &next_of(b)->at) < 0;
}

static void put(struct parts *p, size_t i, struct part *part)
{
	p->heap[i] = part;
	part->heap_at = i + 1;
}

/* The part belongs there, or further down. */
static void sift_down(struct parts *p, size_t i, struct part *part)
{
	size_t below;

	for (; (below = 2 * i + 1) < p->n_heap; i = below) {
		if (below + 1 < p->n_heap && is_before(p->heap[below + 1], p->heap[below]))
			below++;
		if (!is_before(p->heap[below], part))
			break;
		put(p, i, p->heap[below]);
	}
	put(p, i, part);
}

void parts_replay_add(struct parts *p, struct part *part)
{
	size_t i, above;

	if (part->heap_at || !part->replayed)
		return;
	for (i = p->n_heap++; i; i = above) {
		above = (i - 1) / 2;
		if (!is_before(part, p->heap[above]))
			break;
		put(p, i, p->heap[above]);
	}
	put(p, i, part);
}

/* The first one has another next entry, or none. */
static void settle_first(struct parts *p)
{
	struct part *part = p->heap[0], *last;

	if (part->replayed) {
		sift_down(p, 0, part);
		return;
	}
	part->heap_at = 0;
	last = p->heap[--p->n_heap];
	if (p->n_heap)
		sift_down(p, 0, last);
}

/* Until when the first one stays the first. */
static struct reading_moment limit_of(const struct parts *p, const struct reading_moment *until)
{
	struct reading_moment limit =
		until ? *until : (struct reading_moment){UINT64_MAX, UINT32_MAX};
	size_t i;

	for (i = 1; i < 3 && i < p->n_heap; i++)
		if (moment_compare(&next_of(p->heap[i])->at, &limit) < 0)
			limit = next_of(p->heap[i])->at;
	return limit;
}

size_t parts_replay(struct parts *p, const struct reading_moment *until)
{
	struct reading_moment limit;
	struct part *part;
	size_t weight = 0;

	while (p->n_heap) {
		part = p->heap[0];
		limit = limit_of(p, until);
		if (moment_compare(&next_of(part)->at, &limit) > 0)
			break;
		do {
			weight += next_of(part)->weight;
			replay(p, part, next_of(part));
			take(part);
		} while (part->replayed && moment_compare(&next_of(part)->at, &limit) <= 0);
		settle_first(p);
	}
	reading_place = (struct reading_place){0};
	return weight;
}
