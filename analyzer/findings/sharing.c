/*
 * analyzer/findings/sharing.c: which processes used which GPU, when, and with which others. Called
 * by the report and by the detectors after the last record.
 */
#include <stdlib.h>
#include <string.h>
#include "sharing.h"
#include "base/median.h"

static bool is_client(const struct process *process, const struct gpu *gpu)
{
	if (gpu->client == SPY_CLIENT_UNKNOWN)
		return process->mps.ns && *process->mps.directory && process->mps.server;
	return gpu->client == SPY_CLIENT_YES;
}

/* By GPU, then by when they began. */
static int by_gpu(const void *a, const void *b)
{
	const struct tenant *x = a, *y = b;

	return strcmp(x->gpu->uuid, y->gpu->uuid) ?: COMPARE(x->use->first_ns, y->use->first_ns) ?:
	       COMPARE(x->process, y->process);
}

struct tenant *tenants_find(const struct callstats *stats, size_t *n_tenants)
{
	struct tenant *tenants = NULL;
	size_t i, j, n = 0;

	for (i = 0; i < stats->model->n_processes; i++) {
		const struct process *process = &stats->model->processes[i];

		for (j = 0; j < process->n_gpus; j++) {
			const struct gpu *gpu = &process->gpus[j];
			const struct device_use *use =
				&stats->uses[callstats_index(stats, i, gpu->device)];

			if (gpu->device >= SPY_DEVICE_NONE || !use->first_ns || !*gpu->uuid)
				continue;
			tenants = grow(tenants, n, sizeof(*tenants));
			tenants[n++] = (struct tenant){process, gpu, use, is_client(process, gpu)};
		}
	}
	if (n)
		qsort(tenants, n, sizeof(*tenants), by_gpu);
	*n_tenants = n;
	return tenants;
}

size_t tenants_of_gpu(const struct tenant *tenants, size_t n, size_t begin)
{
	size_t end = begin;

	while (end < n && !strcmp(tenants[begin].gpu->uuid, tenants[end].gpu->uuid))
		end++;
	return end;
}

bool tenants_overlap(const struct tenant *a, const struct tenant *b)
{
	return a->use->first_ns < b->use->last_ns && b->use->first_ns < a->use->last_ns &&
	       a->process != b->process;
}

bool tenants_together(const struct tenant *a, const struct tenant *b)
{
	const struct mps *x = &a->process->mps, *y = &b->process->mps;

	if (!a->client || !b->client)
		return false;
	if (x->server && y->server)
		return x->server == y->server;
	return x->ns && y->ns && !strcmp(x->directory, y->directory);
}

uint64_t tenant_shared_ns(const struct tenant *self, const struct tenant *tenants, size_t n)
{
	uint64_t covered_ns = self->use->first_ns, shared_ns = 0;

	for (size_t i = 0; i < n && tenants[i].use->first_ns < self->use->last_ns; i++) {
		uint64_t begin = tenants[i].use->first_ns, end = tenants[i].use->last_ns;

		if (!tenants_overlap(self, &tenants[i]))
			continue;
		if (begin < covered_ns)
			begin = covered_ns;
		if (end > self->use->last_ns)
			end = self->use->last_ns;
		if (end <= begin)
			continue;
		shared_ns += end - begin;
		covered_ns = end;
	}
	return shared_ns;
}

/* ---- waits for another user's server --------------------------------------------------------- */

/* The first call on any GPU has returned: the process has a context. 0: never. */
static uint64_t first_context_ns(const struct callstats *stats, size_t process)
{
	const struct device_use *use;
	uint64_t ns = 0;

	for (uint32_t device = 0; device < CALLSTATS_DEVICES; device++) {
		use = &stats->uses[callstats_index(stats, process, device)];
		if (use->first_ns && (!ns || use->first_end_ns < ns))
			ns = use->first_end_ns;
	}
	return ns;
}

/* Until when it waited: until cuInit returned, if it failed or the server was its user's by then;
 * else until it had a context; else it waits still. */
static uint64_t waited_until(const struct callstats *stats, const struct process *process)
{
	uint64_t context_ns = first_context_ns(stats, process->trace->index);

	if (process->mps.ns && !mps_of_another(&process->mps))
		return process->mps.ns;
	if (!process->mps.ns && process->init_ns)
		return process->init_ns;
	return context_ns > process->mps_before.ns ? context_ns : stats->model->last_ns;
}

/* An idle server of another user makes way in less, when its successor is not waited for. */
#define TURN_LEAST_NS 10000000

uint64_t sharing_turn_ns(const struct callstats *stats, const struct process *process)
{
	struct mps_server server;
	uint64_t until_ns;

	if (!model_mps_in_the_way(stats->model, process, NULL, &server))
		return 0;
	until_ns = waited_until(stats, process);
	return until_ns >= process->mps_before.ns + TURN_LEAST_NS
		       ? until_ns - process->mps_before.ns
		       : 0;
}
