/*
 * analyzer/trace/groups.c: which processes have to be read together. Called before the records are read in the order of
 * time.
 */
#include <stdlib.h>
#include "groups.h"

void groups_init(struct groups *g, size_t n)
{
	uint32_t i;

	*g = (struct groups){.with = xcalloc(n, sizeof(*g->with)), .n = n};
	for (i = 0; i < n; i++)
		g->with[i] = i;
}

void groups_release(struct groups *g)
{
	free(g->with);
	*g = (struct groups){0};
}

uint32_t groups_find(struct groups *g, uint32_t a)
{
	while (g->with[a] != a)
		a = g->with[a] = g->with[g->with[a]];
	return a;
}

/* The older process stands for all. */
void groups_unite(struct groups *g, uint32_t a, uint32_t b)
{
	a = groups_find(g, a);
	b = groups_find(g, b);
	g->with[a > b ? a : b] = a < b ? a : b;
}

/* ---- what the first reading has seen ---------------------------------------------------------- */

/* A GPU that a process works with. */
struct used_gpu {
	uint64_t key; /* its host and uuid */
	uint32_t process;
};

static int by_key(const void *a, const void *b)
{
	const struct used_gpu *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

static bool has_bit(const uint64_t bits[4], uint16_t device)
{
	return device < 256 && bits[device / 64] >> device % 64 & 1;
}

/* timed: only those of which GPU times are recorded. */
static bool works_with(const struct trace_use *use, uint16_t device, bool timed)
{
	return has_bit(use->timed, device) || (!timed && has_bit(use->devices, device));
}

/* Processes that work with the same GPU of a host. */
static void unite_by_gpu(struct groups *g, const struct trace_set *set, bool timed)
{
	struct used_gpu *all = NULL;
	size_t i, j, n = 0;

	for (i = 0; i < set->n_traces; i++) {
		const struct trace *trace = set->traces[i];

		for (j = 0; j < trace->use.n_gpus; j++) {
			if (!works_with(&trace->use, trace->use.gpus[j].device, timed))
				continue;
			all = grow(all, n, sizeof(*all));
			all[n++] = (struct used_gpu){(uint64_t)trace->host->index << 32 |
							     trace->use.gpus[j].uuid,
						     (uint32_t)i};
		}
	}
	if (n)
		qsort(all, n, sizeof(*all), by_key);
	for (i = 1; i < n; i++)
		if (all[i].key == all[i - 1].key)
			groups_unite(g, all[i].process, all[i - 1].process);
	free(all);
}

void groups_by_use(struct groups *g, const struct trace_set *set)
{
	unite_by_gpu(g, set, false);
}

void groups_by_gpu_times(struct groups *g, const struct trace_set *set)
{
	unite_by_gpu(g, set, true);
}
