/*
 * analyzer/parallel/join_idle.c: GPUs and what they were idle for, of all parts. Called by join.c, when threads have their
 * numbers.
 */
#include <stdlib.h>
#include "parts.h"

/* ---- GPUs ------------------------------------------------------------------------------------- */

/* A GPU that two parts have met, each as its own. */
static bool is_met_twice(struct parts *p, const struct idle_gpu *gpu, struct idle_gpu_name **met)
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
		p->conflict[0] = name->gpu;
		p->conflict[1] = process->trace->index;
		p->has_conflict = true;
		return true;
	}
	name = xcalloc(1, sizeof(*name));
	name->key = key;
	name->gpu = process->trace->index;
	HASH_ADD(hh, *met, key, sizeof(name->key), name);
	return false;
}

/* The replay knows how it compares with GPUs of other parts, the part how with its own, by its own numbers. */
static void join_own(struct idle_gpu *gpu, const struct part *part, const struct idle_gpu *own)
{
	struct idle_gpu replayed = *gpu;
	size_t j;

	*gpu = *own;
	memcpy(gpu->together_ns, replayed.together_ns, sizeof(gpu->together_ns));
	for (j = 0; j < part->n_gpus && j < IDLE_PAIRED; j++)
		if (part->gpus[j] < IDLE_PAIRED)
			gpu->together_ns[part->gpus[j]] += own->together_ns[j];
	free(replayed.intervals);
}

/* Several parts may use it: all else the replay knows. What threads waited counts where only one has, after all: busy.c. */
static void join_shared(struct idle_gpu *gpu, const struct idle_gpu *of_part)
{
	gpu->waited_ns += of_part->waited_ns;
	gpu->turns += of_part->turns;
	gpu->turns_brought += of_part->turns_brought;
	gpu->turns_across += of_part->turns_across;
	free(of_part->processes);
}

static void join_gpus_of(struct parts *p, struct part *part)
{
	struct idle *whole = &p->whole->idle, *idle = &part->a.idle;
	size_t i;

	for (i = 0; i < idle->n_gpus; i++) {
		struct idle_gpu *gpu = &whole->gpus[part->gpus[i]];

		if (p->gpu_parts[part->gpus[i]])
			join_own(gpu, part, &idle->gpus[i]);
		else
			join_shared(gpu, &idle->gpus[i]);
	}
	idle->n_gpus = 0; /* what they have is the whole's */
}

/* The replay has met all GPUs in their order. */
static bool join_gpus(struct parts *p)
{
	struct idle *whole = &p->whole->idle;
	struct idle_gpu_name *met = NULL, *name, *next;
	bool twice = false;
	size_t i;

	whole->gpus = p->idle.gpus;
	whole->n_gpus = p->idle.n_gpus;
	p->idle.gpus = NULL;
	p->idle.n_gpus = 0;
	for (i = 0; i < p->n; i++)
		join_gpus_of(p, &p->all[i]);
	idle_name_gpus(whole);
	for (i = 0; i < whole->n_gpus; i++)
		twice |= is_met_twice(p, &whole->gpus[i], &met);
	HASH_EMPTY (met, name, next)
		free(name);
	return !twice || parts_refuse(p, "a GPU in several parts");
}

static void join_users(struct idle *whole, const struct part *part)
{
	const struct idle *idle = &part->a.idle;
	size_t i;
	uint32_t device;

	whole->n_devices = (uint32_t)max_u64(whole->n_devices, idle->n_devices);

	for (i = 0; i < part->n_processes; i++) {
		for (device = 0; device < idle->n_devices; device++) {
			size_t at = work_index(&part->a.accounts.work, part->processes[i], device);
			struct idle_user *user = &whole->users[at];

			if (!idle->users[at].gpu) /* of most there are none */
				continue;
			*user = idle->users[at];
			user->gpu = part->gpus[user->gpu - 1] + 1;
		}
		whole->recorded[part->processes[i]] = idle->recorded[part->processes[i]];
		if (idle->ops.times)
			whole->ops.times[part->processes[i]] = idle->ops.times[part->processes[i]];
	}
}

/* ---- sums ------------------------------------------------------------------------------------- */

static uint64_t join_owner(const struct part *part, uint64_t owner)
{
	switch (owner >> 32) {
	case 0:
		return idle_owner_thread(part->a.model.threads[owner]);
	case 1:
		return idle_owner_gpu(part->gpus[(uint32_t)owner]);
	case 2:
		return idle_owner_exact(part->gpus[(uint32_t)owner]);
	default: /* of a rank: the whole's */
		return owner;
	}
}

static void take_sums(struct births *order, struct idle_sums *sums, size_t part)
{
	struct idle_sum *sum;

	for (sum = sums->by_key; sum; sum = sum->hh.next)
		births_add(order, &sum->born, part, sum);
	HASH_CLEAR(hh, sums->by_key);
}

/* Of one record: first those of the GPU, which the replay has if other parts use it, too; then those of the thread; then
 * those of ranks, which are another replay's. */
static bool join_sums(struct parts *p)
{
	struct idle_sums *whole = &p->whole->idle.sums;
	struct births order = {0};
	struct idle_sum *sum;
	size_t i;

	take_sums(&order, &p->idle.sums, p->n);
	for (i = 0; i < p->n; i++)
		take_sums(&order, &p->all[i].a.idle.sums, i);
	take_sums(&order, whole, p->n);
	births_sort(&order);
	for (i = 0; i < order.n; i++) {
		size_t part = order.all[i].part;

		sum = order.all[i].what;
		if (part < p->n)
			sum->key.owner = join_owner(&p->all[part], sum->key.owner);
		HASH_ADD(hh, whole->by_key, key, sizeof(sum->key), sum);
	}
	births_release(&order);
	return HASH_COUNT(whole->by_key) < IDLE_SUMS_MOST ||
	       parts_refuse(p, "too many causes of idle time");
}

/* ---- threads, ranges -------------------------------------------------------------------------- */

static void join_host_threads(struct host_threads *whole, struct part *part)
{
	struct host_threads *threads = &part->a.idle.threads;
	size_t i, at;

	for (i = 0; i < threads->n; i++) {
		if (!threads->all[i])
			continue;
		at = part->a.model.threads[i]->index;
		while (whole->n <= at) {
			whole->all = grow(whole->all, whole->n, sizeof(*whole->all));
			whole->all[whole->n++] = NULL;
		}
		whole->all[at] = threads->all[i];
	}
	threads->n = 0;
}

static void join_ranges(struct idle *whole, const struct part *part,
			const struct idle_ranges *ranges)
{
	const struct range_names *names = &part->a.model.range_names;
	size_t i;

	for (i = 0; i < ranges->n; i++)
		*idle_of_range(&whole->ranges, names->all[i]->into) += ranges->ns[i];
}

bool join_idle(struct parts *p)
{
	struct idle *whole = &p->whole->idle;
	size_t i;

	if (!whole->ops.times)
		whole->ops =
			(struct gpu_ops){.times = xcalloc(whole->accounts->model->n_processes + 1,
							  sizeof(*whole->ops.times)),
					 .n_processes = whole->accounts->model->n_processes};
	if (!join_gpus(p))
		return false;
	for (i = 0; i < p->n; i++) {
		join_users(whole, &p->all[i]);
		join_host_threads(&whole->threads, &p->all[i]);
		join_ranges(whole, &p->all[i], &p->all[i].a.idle.ranges);
		join_ranges(whole, &p->all[i], &p->all[i].ranges);
	}
	return join_sums(p);
}
