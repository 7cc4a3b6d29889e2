/*
 * analyzer/parallel/join_idle.c: GPUs and what they were idle for, of all parts. Called by join.c, when threads have their
 * numbers.
 */
#include <stdlib.h>
#include "parts.h"

/* ---- GPUs ------------------------------------------------------------------------------------- */

/* A GPU that two parts have met: their processes should have been in one. */
static bool is_met_twice(struct parts *p, const struct idle_gpu *gpu, struct idle_gpu_name **met)
{
	const struct gpu *named = idle_named(gpu);
	const struct process *process = gpu->processes[0];
	struct idle_gpu_name *name;
	uint64_t key;

	if (!named || !named->uuid)
		return false;
	key = hash_key(named->uuid, strlen(named->uuid)) | (uint64_t)process->trace->host->index
								   << 32;
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

/* GPUs in the order in which they were met; numbers: of each part, the whole's number of each of its GPUs. */
static bool join_gpus(struct parts *p, uint32_t **numbers)
{
	struct idle *whole = &p->whole->idle;
	struct idle_gpu_name *met = NULL, *name, *next;
	struct births order = {0};
	bool twice = false;
	size_t i, j;

	for (i = 0; i < p->n; i++) {
		struct idle *idle = &p->all[i].a.idle;

		numbers[i] = xcalloc(idle->n_gpus + 1, sizeof(**numbers));
		for (j = 0; j < idle->n_gpus; j++)
			births_add(&order, &idle->gpus[j].born, i, &idle->gpus[j]);
	}
	births_sort(&order);
	for (i = 0; i < order.n; i++) {
		struct idle_gpu *gpu = order.all[i].what;
		struct idle *idle = &p->all[order.all[i].part].a.idle;

		twice |= is_met_twice(p, gpu, &met);
		numbers[order.all[i].part][gpu - idle->gpus] = (uint32_t)i;
		whole->gpus = grow(whole->gpus, i, sizeof(*whole->gpus));
		whole->gpus[whole->n_gpus++] = *gpu;
	}
	for (i = 0; i < p->n; i++) /* what they have is the whole's */
		p->all[i].a.idle.n_gpus = 0;
	HASH_EMPTY (met, name, next)
		free(name);
	births_release(&order);
	return !twice || parts_refuse(p, "a GPU in several parts");
}

/* Those of one part it has compared itself, by its own numbers. */
static void join_together(struct parts *p, const uint32_t *numbers, size_t n)
{
	struct idle *whole = &p->whole->idle;
	uint64_t own[IDLE_PAIRED];
	size_t i, j;

	for (i = 0; i < n; i++) {
		struct idle_gpu *gpu = &whole->gpus[numbers[i]];

		memcpy(own, gpu->together_ns, sizeof(own));
		memset(gpu->together_ns, 0, sizeof(gpu->together_ns));
		for (j = 0; j < n && j < IDLE_PAIRED; j++)
			if (i < IDLE_PAIRED && numbers[i] < IDLE_PAIRED && numbers[j] < IDLE_PAIRED)
				gpu->together_ns[numbers[j]] = own[j];
	}
}

static void join_users(struct idle *whole, const struct part *part, const uint32_t *numbers)
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
			user->gpu = numbers[user->gpu - 1] + 1;
		}
		whole->recorded[part->processes[i]] = idle->recorded[part->processes[i]];
		if (idle->ops.times)
			whole->ops.times[part->processes[i]] = idle->ops.times[part->processes[i]];
	}
}

/* ---- sums ------------------------------------------------------------------------------------- */

static uint64_t join_owner(const struct part *part, const uint32_t *numbers, uint64_t owner)
{
	switch (owner >> 32) {
	case 0:
		return idle_owner_thread(part->a.model.threads[owner]);
	case 1:
		return idle_owner_gpu(numbers[(uint32_t)owner]);
	case 2:
		return idle_owner_exact(numbers[(uint32_t)owner]);
	default: /* of a rank: the whole's */
		return owner;
	}
}

static bool join_sums(struct parts *p, uint32_t *const *numbers)
{
	struct idle_sums *whole = &p->whole->idle.sums;
	struct births order = {0};
	struct idle_sum *sum;
	size_t i;

	for (i = 0; i < p->n; i++) {
		struct idle_sums *sums = &p->all[i].a.idle.sums;

		for (sum = sums->by_key; sum; sum = sum->hh.next)
			births_add(&order, &sum->born, i, sum);
		HASH_CLEAR(hh, sums->by_key);
	}
	/* The replay's, of ranks: of one record they come behind those of the part that has it. */
	for (sum = whole->by_key; sum; sum = sum->hh.next)
		births_add(&order, &sum->born, p->n, sum);
	HASH_CLEAR(hh, whole->by_key);
	births_sort(&order);
	for (i = 0; i < order.n; i++) {
		size_t part = order.all[i].part;

		sum = order.all[i].what;
		if (part < p->n)
			sum->key.owner = join_owner(&p->all[part], numbers[part], sum->key.owner);
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

static void join_range_times(struct idle *whole, const struct part *part)
{
	const struct range_names *names = &part->a.model.range_names;
	size_t i, at;

	for (i = 0; i < part->a.idle.n_ranges; i++) {
		at = names->all[i]->into->index;
		while (whole->n_ranges <= at) {
			whole->range_ns =
				grow(whole->range_ns, whole->n_ranges, sizeof(*whole->range_ns));
			whole->range_ns[whole->n_ranges++] = 0;
		}
		whole->range_ns[at] += part->a.idle.range_ns[i];
	}
}

bool join_idle(struct parts *p)
{
	struct idle *whole = &p->whole->idle;
	uint32_t **numbers = xcalloc(p->n + 1, sizeof(uint32_t *));
	size_t *n_gpus = xcalloc(p->n + 1, sizeof(*n_gpus)), i, j;
	bool fine;

	if (!whole->ops.times)
		whole->ops =
			(struct gpu_ops){.times = xcalloc(whole->accounts->model->n_processes + 1,
							  sizeof(*whole->ops.times)),
					 .n_processes = whole->accounts->model->n_processes};
	for (i = 0; i < p->n; i++)
		n_gpus[i] = p->all[i].a.idle.n_gpus;
	fine = join_gpus(p, numbers);
	for (i = 0; fine && i < p->n; i++) {
		join_together(p, numbers[i], n_gpus[i]);
		join_users(whole, &p->all[i], numbers[i]);
		join_host_threads(&whole->threads, &p->all[i]);
		join_range_times(whole, &p->all[i]);
	}
	for (i = 0; fine && i < whole->n_gpus && i < IDLE_PAIRED; i++)
		for (j = 0; j < IDLE_PAIRED; j++)
			whole->gpus[i].together_ns[j] += p->together[i].together_ns[j];
	fine = fine && join_sums(p, numbers);
	for (i = 0; i < p->n; i++)
		free(numbers[i]);
	free(numbers);
	free(n_gpus);
	return fine;
}
