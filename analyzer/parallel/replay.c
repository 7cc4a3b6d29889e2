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
	return part->replayed ? &part->replayed->journal.all[part->replayed->next] : NULL;
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

/* The part whose next entry is the oldest; *limit: until when it stays so. */
static struct part *oldest(struct parts *p, struct reading_moment *limit)
{
	struct part *first = NULL;
	size_t i;

	*limit = (struct reading_moment){UINT64_MAX, UINT32_MAX};
	for (i = 0; i < p->n; i++) {
		const struct journal_entry *entry = next_of(&p->all[i]);

		if (!entry)
			continue;
		if (first && moment_compare(&entry->at, &next_of(first)->at) >= 0) {
			if (moment_compare(&entry->at, limit) < 0)
				*limit = entry->at;
			continue;
		}
		if (first)
			*limit = next_of(first)->at;
		first = &p->all[i];
	}
	return first;
}

size_t parts_replay(struct parts *p, const struct reading_moment *until)
{
	const struct journal_entry *entry;
	struct reading_moment limit;
	struct part *part;
	size_t weight = 0;

	while ((part = oldest(p, &limit))) {
		if (until && moment_compare(&next_of(part)->at, until) > 0)
			break;
		do {
			weight += next_of(part)->weight;
			replay(p, part, next_of(part));
			take(part);
		} while ((entry = next_of(part)) && moment_compare(&entry->at, &limit) < 0 &&
			 (!until || moment_compare(&entry->at, until) <= 0));
	}
	reading_place = (struct reading_place){0};
	return weight;
}
