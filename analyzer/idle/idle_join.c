/*
 * analyzer/idle/idle_join.c: GPUs and what they were idle for, of all parts of a set. Called by parallel/join.c, when threads
 * have their numbers.
 */
#include <stdlib.h>
#include "replay.h"
#include "trace/groups.h"

/* ---- GPUs ------------------------------------------------------------------------------------- */

/* A GPU that two parts have met, each as its own. */
static bool is_met_twice(struct join *join, const struct idle_gpu *gpu, struct idle_gpu_name **met)
{
	const struct gpu *named = idle_named(gpu);
	const struct process *process = gpu->processes[0];
	struct idle_gpu_name *name;
	uint64_t key;

	if (!named || !named->uuid)
		return false;
	key = groups_gpu_key(process->trace, named->uuid);
	HASH_FIND(hh, *met, &key, sizeof(key), name);
	if (name) {
		join->conflict[0] = name->gpu;
		join->conflict[1] = process->trace->index;
		join->has_conflict = true;
		return true;
	}
	HASH_NEW(*met, name, key, key);
	name->gpu = process->trace->index;
	return false;
}

/* The replay knows how it compares with GPUs of other parts, the part how with its own, by its own numbers. */
static void join_own(struct idle_gpu *gpu, const struct idle_replay_part *part,
		     const struct idle_gpu *own)
{
	struct idle_gpu replayed = *gpu;

	*gpu = *own;
	memcpy(gpu->together_ns, replayed.together_ns, sizeof(gpu->together_ns));
	for (size_t j = 0; j < part->n_gpus && j < IDLE_PAIRED; j++)
		if (part->gpus[j] < IDLE_PAIRED)
			gpu->together_ns[part->gpus[j]] += own->together_ns[j];
	free(replayed.intervals);
}

/* Several parts may use it: all else the replay knows. What threads waited counts where only one has, after all: busy.c. */
static void join_shared(struct idle_gpu *gpu, const struct idle_gpu *of_part)
{
	gpu_looks_join(&gpu->looks, &of_part->looks);
	gpu->waited_ns += of_part->waited_ns;
	gpu->turns += of_part->turns;
	gpu->turns_brought += of_part->turns_brought;
	gpu->turns_across += of_part->turns_across;
	free(of_part->processes);
}

static void join_gpus_of(struct idle *whole, struct idle *idle, const struct idle_replay *r,
			 const struct idle_replay_part *part)
{
	for (size_t i = 0; i < idle->n_gpus; i++) {
		struct idle_gpu *gpu = &whole->gpus[part->gpus[i]];

		if (r->part_of[part->gpus[i]])
			join_own(gpu, part, &idle->gpus[i]);
		else
			join_shared(gpu, &idle->gpus[i]);
	}
	idle->n_gpus = 0; /* what they have is the whole's */
}

/* The replay has met all GPUs in their order. */
static bool join_gpus(struct idle *whole, struct idle *const *parts, struct join *join,
		      struct idle_replay *r)
{
	struct idle_gpu_name *met = NULL, *name, *next;
	bool twice = false;

	whole->gpus = r->idle.gpus;
	whole->n_gpus = r->idle.n_gpus;
	r->idle.gpus = NULL;
	r->idle.n_gpus = 0;
	for (size_t i = 0; i < join->n; i++)
		join_gpus_of(whole, parts[i], r, &r->parts[i]);
	idle_name_gpus(whole);
	for (size_t i = 0; i < whole->n_gpus; i++)
		twice |= is_met_twice(join, &whole->gpus[i], &met);
	HASH_EMPTY (met, name, next)
		free(name);
	return !twice || join_refuse(join, "a GPU in several parts");
}

static void join_users(struct idle *whole, const struct idle *idle, const struct join_part *part,
		       const uint32_t *gpus)
{
	whole->n_devices = (uint32_t)max_u64(whole->n_devices, idle->n_devices);

	for (size_t i = 0; i < part->n_processes; i++) {
		for (uint32_t device = 0; device < idle->n_devices; device++) {
			size_t at = work_index(&idle->accounts->work, part->processes[i], device);
			struct idle_user *user = &whole->users[at];

			if (!idle->users[at].gpu) /* of most there are none */
				continue;
			*user = idle->users[at];
			user->gpu = gpus[user->gpu - 1] + 1;
		}
		whole->recorded[part->processes[i]] = idle->recorded[part->processes[i]];
		if (idle->ops.times)
			whole->ops.times[part->processes[i]] = idle->ops.times[part->processes[i]];
	}
}

/* ---- sums ------------------------------------------------------------------------------------- */

static uint64_t join_owner(const struct join_part *part, const uint32_t *gpus, uint64_t owner)
{
	switch (owner >> 32) {
	case 0:
		return idle_owner_thread(part->model->threads[owner]);
	case 1:
		return idle_owner_gpu(gpus[(uint32_t)owner]);
	case 2:
		return idle_owner_exact(gpus[(uint32_t)owner]);
	default: /* of a rank: the whole's */
		return owner;
	}
}

static void take_sums(struct creation_order *order, struct idle_sums *sums, size_t part)
{
	for (struct idle_sum *sum = sums->by_key; sum; sum = sum->hh.next)
		creation_order_add(order, &sum->created, part, sum);
	HASH_CLEAR(hh, sums->by_key);
}

/* Of one record: first those of the GPU, which the replay has if other parts use it, too; then those of the thread; then
 * those of ranks, which are another replay's. */
static bool join_sums(struct idle_sums *whole, struct idle *const *parts, struct join *join,
		      struct idle_replay *r)
{
	struct creation_order order = {0};
	struct idle_sum *sum;

	take_sums(&order, &r->idle.sums, join->n);
	for (size_t i = 0; i < join->n; i++)
		take_sums(&order, &parts[i]->sums, i);
	take_sums(&order, whole, join->n);
	creation_order_sort(&order);
	for (size_t i = 0; i < order.n; i++) {
		size_t part = order.all[i].part;

		sum = order.all[i].what;
		if (part < join->n)
			sum->key.owner =
				join_owner(&join->parts[part], r->parts[part].gpus, sum->key.owner);
		HASH_ADD(hh, whole->by_key, key, sizeof(sum->key), sum);
	}
	creation_order_release(&order);
	return HASH_COUNT(whole->by_key) < IDLE_SUMS_MOST ||
	       join_refuse(join, "too many causes of idle time");
}

/* ---- threads, ranges -------------------------------------------------------------------------- */

static void join_host_threads(struct host_threads *whole, struct host_threads *threads,
			      const struct model *part)
{
	size_t i, at;

	for (i = 0; i < threads->n; i++) {
		at = part->threads[i]->index;
		while (whole->n <= at) {
			whole->all = grow(whole->all, whole->n, sizeof(*whole->all));
			whole->all[whole->n++] = NULL;
		}
		whole->all[at] = threads->all[i];
	}
	threads->n = 0;
}

static void join_ranges(struct idle *whole, const struct model *part,
			const struct idle_ranges *ranges)
{
	const struct range_names *names = &part->range_names;

	for (size_t i = 0; i < ranges->n; i++)
		*idle_of_range(&whole->ranges, names->all[i]->into) += ranges->ns[i];
}

/* struct idle, joined: gpus, n_gpus, names, users, n_devices, threads, sums, samples, in_c, ops, recorded, profilers, ranges; not: accounts,
 * is_collective, collectives (the whole's), due_ns, pieces, gil_held_at (while records are read), journal, elsewhere, n_elsewhere (of a
 * part), shared, n_shared, shared_known (found when they are asked for). */
bool idle_join(struct idle *whole, struct idle *const *parts, struct join *join,
	       struct idle_replay *r)
{
	if (!whole->ops.times)
		whole->ops =
			(struct gpu_ops){.times = xcalloc(whole->accounts->model->n_processes + 1,
							  sizeof(*whole->ops.times)),
					 .n_processes = whole->accounts->model->n_processes};
	if (!join_gpus(whole, parts, join, r))
		return false;
	for (size_t i = 0; i < join->n; i++) {
		const struct join_part *part = &join->parts[i];

		join_users(whole, parts[i], part, r->parts[i].gpus);
		samples_join(&whole->samples, &parts[i]->samples, part->model);
		in_c_join(&whole->in_c, &parts[i]->in_c);
		join_host_threads(&whole->threads, &parts[i]->threads, part->model);
		for (size_t j = 0; j < part->n_processes; j++)
			whole->profilers[part->processes[j]] =
				parts[i]->profilers[part->processes[j]];
		join_ranges(whole, part->model, &parts[i]->ranges);
		join_ranges(whole, part->model, &r->parts[i].ranges);
	}
	return join_sums(&whole->sums, parts, join, r);
}
