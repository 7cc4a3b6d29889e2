/*
 * analyzer/parallel/replay.c: the journals of all parts, in the order of their moments. Called by workers.c while the
 * parts are read, for each line by one thread at a time, which alone has what belongs to the replay of that line; and for
 * the rest in the end.
 */
#include <stdlib.h>
#include "parts.h"

/* ---- GPUs ------------------------------------------------------------------------------------- */

static struct idle_gpu *gpu_of(struct parts *p, const struct part *part, uint32_t gpu)
{
	return &p->idle.gpus[part->gpus[gpu]];
}

/* Only what compares it with others is known of a GPU that is a part's own. */
static uint32_t meet_own(struct parts *p)
{
	struct idle *idle = &p->idle;

	idle->gpus = grow(idle->gpus, idle->n_gpus, sizeof(*idle->gpus));
	idle->gpus[idle->n_gpus] = (struct idle_gpu){0};
	return (uint32_t)idle->n_gpus++;
}

static void meet_gpu(struct parts *p, struct part *part, const struct journal_entry *entry)
{
	size_t before = p->idle.n_gpus;
	uint32_t gpu = entry->user.uuid ? idle_meet(&p->idle, entry->user.process, entry->device,
						    entry->user.uuid) -
						  1
					: meet_own(p);

	if (p->idle.n_gpus > before) {
		p->gpu_parts = grow(p->gpu_parts, before, sizeof(*p->gpu_parts));
		p->gpu_parts[gpu] = entry->user.uuid ? NULL : part;
	}
	if (entry->gpu < part->n_gpus) /* another process of the part uses it */
		return;
	part->gpus = grow(part->gpus, part->n_gpus, sizeof(*part->gpus));
	part->gpus[part->n_gpus++] = gpu;
}

static void see_gpu_news(struct parts *p, struct part *part, const struct journal *journal,
			 const struct journal_entry *entry)
{
	const void *pieces = entry->news.n_pieces ? journal->stored + entry->news.at : NULL;
	const struct idle_told told = {.pieces = pieces,
				       .n_pieces = entry->news.n_pieces,
				       .range = entry->news.range,
				       .ranges = &part->ranges};

	idle_apply(&p->idle, gpu_of(p, part, entry->gpu),
		   &(struct idle_news){.process = entry->news.process,
				       .begin_ns = entry->news.begin_ns,
				       .ns = entry->at.ns,
				       .submits = entry->news.submits,
				       .dormant = entry->news.dormant,
				       .busier = entry->news.busier,
				       .told = &told});
	if (entry->news.holds)
		(void)idle_pieces_hold(pieces, told.n_pieces, -1);
}

/* GPUs of one part have been compared in it. */
static void see_idle(struct parts *p, const struct part *part, const struct journal_entry *entry)
{
	struct idle *idle = &p->idle;
	size_t number = part->gpus[entry->gpu], i;
	struct idle_gpu *gpu = &idle->gpus[number];
	struct idle_interval *interval;

	if (number >= IDLE_PAIRED)
		return;
	interval = idle_next_interval(gpu);
	*interval = (struct idle_interval){.begin_ns = entry->idle.begin_ns,
					   .end_ns = entry->idle.end_ns,
					   .ns = entry->idle.end_ns - entry->idle.begin_ns};
	for (i = 0; i < idle->n_gpus && i < IDLE_PAIRED; i++) {
		uint64_t ns = p->gpu_parts[i] == part ? 0 : idle_in_both(&idle->gpus[i], interval);

		gpu->together_ns[i] += ns;
		idle->gpus[i].together_ns[number] += ns;
	}
}

static void see_taken_back(struct parts *p, const struct part *part,
			   const struct journal_entry *entry)
{
	struct idle_gpu *gpu = gpu_of(p, part, entry->gpu);

	if (part->gpus[entry->gpu] < IDLE_PAIRED)
		gpu->intervals[entry->idle.number % gpu->intervals_size].ns -= entry->idle.by_ns;
}

/* ---- entries ---------------------------------------------------------------------------------- */

static void replay(struct parts *p, struct part *part, const struct journal *journal,
		   const struct journal_entry *entry)
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
		reading_place.moment = entry->at;
		meet_gpu(p, part, entry);
		break;
	case JOURNAL_GPU_NEWS:
		reading_place.moment = entry->at;
		see_gpu_news(p, part, journal, entry);
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
		ranks_fetch_owned(next->rank.news);
	if (next + 1 < end && next[1].kind == JOURNAL_RANK)
		ranks_fetch(next[1].rank.news);
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

/* ---- in the order of moments ------------------------------------------------------------------ */

static bool is_before(const struct part_journal *a, const struct part_journal *b)
{
	return moment_compare(&next_of(a)->at, &next_of(b)->at) < 0;
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
	size_t i;

	for (i = 0; i < p->n; i++) {
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
static struct reading_moment limit_of(const struct part_heap *heap,
				      const struct reading_moment *until)
{
	struct reading_moment limit =
		until ? *until : (struct reading_moment){UINT64_MAX, UINT32_MAX};
	size_t i;

	for (i = 1; i < 3 && i < heap->n; i++)
		if (moment_compare(&next_of(heap->all[i])->at, &limit) < 0)
			limit = next_of(heap->all[i])->at;
	return limit;
}

size_t parts_replay(struct parts *p, enum part_line line, const struct reading_moment *until)
{
	struct part_heap *heap = &p->heaps[line];
	struct reading_moment limit;
	struct part_journal *j;
	size_t weight = 0;

	while (heap->n) {
		j = heap->all[0];
		limit = limit_of(heap, until);
		if (moment_compare(&next_of(j)->at, &limit) > 0)
			break;
		do {
			weight += next_of(j)->weight;
			replay(p, j->part, &j->replayed->journal, next_of(j));
			take(j);
		} while (j->replayed && moment_compare(&next_of(j)->at, &limit) <= 0);
		settle_first(heap);
	}
	reading_place = (struct reading_place){0};
	return weight;
}
