/*
 * analyzer/idle/replay.c: the journals of all parts of a set, as far as they are about GPUs. Called by parallel/replay.c.
 */
#include <stdlib.h>
#include "replay.h"

static struct idle_gpu *gpu_of(struct idle_replay *r, size_t part, uint32_t gpu)
{
	return &r->idle.gpus[r->parts[part].gpus[gpu]];
}

/* Only what compares it with others is known of a GPU that is a part's own. */
static uint32_t meet_own(struct idle *idle)
{
	idle->gpus = grow(idle->gpus, idle->n_gpus, sizeof(*idle->gpus));
	idle->gpus[idle->n_gpus] = (struct idle_gpu){0};
	return (uint32_t)idle->n_gpus++;
}

static void meet_gpu(struct idle_replay *r, size_t number, const struct journal_entry *entry)
{
	struct idle_replay_part *part = &r->parts[number];
	size_t before = r->idle.n_gpus;
	uint32_t gpu = entry->user.uuid ? idle_meet(&r->idle, entry->user.process, entry->device,
						    entry->user.uuid) -
						  1
					: meet_own(&r->idle);

	if (r->idle.n_gpus > before) {
		r->part_of = grow(r->part_of, before, sizeof(*r->part_of));
		r->part_of[gpu] = entry->user.uuid ? 0 : number + 1;
	}
	if (entry->gpu < part->n_gpus) /* another process of the part uses it */
		return;
	part->gpus = grow(part->gpus, part->n_gpus, sizeof(*part->gpus));
	part->gpus[part->n_gpus++] = gpu;
}

static void see_gpu_event(struct idle_replay *r, size_t part, const struct journal *journal,
			  const struct journal_entry *entry)
{
	const void *pieces = entry->event.n_pieces ? journal->stored + entry->event.at : NULL;
	const struct idle_activity activity = {.pieces = pieces,
					       .n_pieces = entry->event.n_pieces,
					       .range = entry->event.range,
					       .ranges = &r->parts[part].ranges};

	idle_apply(&r->idle, gpu_of(r, part, entry->gpu),
		   &(struct idle_event){.process = entry->event.process,
					.begin_ns = entry->event.begin_ns,
					.ns = entry->at.ns,
					.submits = entry->event.submits,
					.dormant = entry->event.dormant,
					.busier = entry->event.busier,
					.activity = &activity});
	if (entry->event.holds)
		(void)idle_pieces_hold(pieces, activity.n_pieces, -1);
}

/* GPUs of one part have been compared in it. */
static void see_idle(struct idle_replay *r, size_t part, const struct journal_entry *entry)
{
	struct idle *idle = &r->idle;
	size_t number = r->parts[part].gpus[entry->gpu], i;
	struct idle_gpu *gpu = &idle->gpus[number];
	struct idle_interval *interval;

	if (number >= IDLE_PAIRED)
		return;
	interval = idle_next_interval(gpu);
	*interval = (struct idle_interval){.begin_ns = entry->idle.begin_ns,
					   .end_ns = entry->idle.end_ns,
					   .ns = entry->idle.end_ns - entry->idle.begin_ns};
	for (i = 0; i < idle->n_gpus && i < IDLE_PAIRED; i++) {
		uint64_t ns =
			r->part_of[i] == part + 1 ? 0 : idle_in_both(&idle->gpus[i], interval);

		gpu->together_ns[i] += ns;
		idle->gpus[i].together_ns[number] += ns;
	}
}

static void see_taken_back(struct idle_replay *r, size_t part, const struct journal_entry *entry)
{
	struct idle_gpu *gpu = gpu_of(r, part, entry->gpu);

	if (r->parts[part].gpus[entry->gpu] < IDLE_PAIRED)
		gpu->intervals[entry->idle.number % gpu->intervals_size].ns -= entry->idle.by_ns;
}

void idle_replay(struct idle_replay *r, size_t part, const struct journal *journal,
		 const struct journal_entry *entry)
{
	if (entry->kind == JOURNAL_GPU || entry->kind == JOURNAL_GPU_EVENT)
		reading_place.position = entry->at;
	if (entry->kind == JOURNAL_GPU)
		meet_gpu(r, part, entry);
	else if (entry->kind == JOURNAL_GPU_EVENT)
		see_gpu_event(r, part, journal, entry);
	else if (entry->kind == JOURNAL_IDLE)
		see_idle(r, part, entry);
	else
		see_taken_back(r, part, entry);
}

void idle_replay_init(struct idle_replay *r, struct accounting *accounts, size_t n_parts)
{
	*r = (struct idle_replay){.n = n_parts};
	r->parts = xcalloc(n_parts + 1, sizeof(*r->parts));
	idle_init(&r->idle, accounts);
	r->idle.sums.holds = true;
}

void idle_replay_release(struct idle_replay *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->parts[i].gpus);
		free(r->parts[i].ranges.ns);
	}
	idle_release(&r->idle);
	free(r->part_of);
	free(r->parts);
	*r = (struct idle_replay){0};
}
