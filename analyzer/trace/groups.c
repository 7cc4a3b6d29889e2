/*
 * analyzer/trace/groups.c: which processes have to be read together. Called before the records are read in the order of
 * time.
 */
#include <stdlib.h>
#include "groups.h"
#include "base/median.h"

void groups_init(struct groups *g, size_t n)
{
	*g = (struct groups){.with = xcalloc(n, sizeof(*g->with)), .n = n};
	for (uint32_t i = 0; i < n; i++)
		g->with[i] = i;
}

void groups_copy(struct groups *g, const struct groups *of)
{
	*g = (struct groups){.with = xcalloc(of->n, sizeof(*g->with)), .n = of->n};
	memcpy(g->with, of->with, of->n * sizeof(*g->with));
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

uint64_t groups_gpu_key(const struct trace *trace, const char *uuid)
{
	return (uint64_t)trace->host->index << 32 | hash_key(uuid, strlen(uuid));
}

int groups_by_key(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return COMPARE(*x, *y);
}

/* A GPU that a process works with. */
struct used_gpu {
	uint64_t key; /* its host and uuid */
	uint32_t process;
};

static int by_use(const void *a, const void *b)
{
	const struct used_gpu *x = a, *y = b;

	return groups_by_key(&x->key, &y->key) ?: COMPARE(x->process, y->process);
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

/* All such GPUs, in the order of their keys. */
static struct used_gpu *find_used(const struct trace_set *set, bool timed, size_t *n)
{
	struct used_gpu *all = NULL;

	*n = 0;
	for (size_t i = 0; i < set->n_traces; i++) {
		const struct trace *trace = set->traces[i];

		for (size_t j = 0; j < trace->use.n_gpus; j++) {
			if (!works_with(&trace->use, trace->use.gpus[j].device, timed))
				continue;
			all = grow(all, *n, sizeof(*all));
			all[(*n)++] = (struct used_gpu){(uint64_t)trace->host->index << 32 |
								trace->use.gpus[j].uuid,
							(uint32_t)i};
		}
	}
	if (*n)
		qsort(all, *n, sizeof(*all), by_use);
	return all;
}

static size_t end_of_gpu(const struct used_gpu *all, size_t n, size_t begin)
{
	size_t end = begin;

	while (end < n && all[end].key == all[begin].key)
		end++;
	return end;
}

static void unite(struct groups *g, const struct used_gpu *all, size_t n)
{
	for (size_t i = 1; i < n; i++)
		groups_unite(g, all[i].process, all[i - 1].process);
}

static bool any_has_times(const struct trace_set *set, const struct used_gpu *all, size_t n)
{
	size_t i = 0;

	while (i < n && !set->traces[all[i].process]->use.gpu_times)
		i++;
	return i < n;
}

/* some: only GPUs of which a process has GPU times. */
static void unite_by_gpu(struct groups *g, const struct trace_set *set, bool timed, bool some)
{
	size_t n, begin, end;
	struct used_gpu *all = find_used(set, timed, &n);

	for (begin = 0; begin < n; begin = end) {
		end = end_of_gpu(all, n, begin);
		if (!some || any_has_times(set, &all[begin], end - begin))
			unite(g, &all[begin], end - begin);
	}
	free(all);
}

void groups_by_use(struct groups *g, const struct trace_set *set)
{
	unite_by_gpu(g, set, false, false);
}

void groups_by_timed_use(struct groups *g, const struct trace_set *set)
{
	unite_by_gpu(g, set, false, true);
}

void groups_by_gpu_times(struct groups *g, const struct trace_set *set)
{
	unite_by_gpu(g, set, true, false);
}

uint64_t *groups_elsewhere(const struct trace_set *set, const uint32_t *part_of, size_t *n)
{
	size_t n_used, begin, end, i;
	struct used_gpu *all = find_used(set, false, &n_used);
	uint64_t *keys = NULL;

	*n = 0;
	for (begin = 0; begin < n_used; begin = end) {
		end = end_of_gpu(all, n_used, begin);
		for (i = begin; i < end && part_of[all[i].process] == part_of[all[begin].process];)
			i++;
		if (i == end)
			continue;
		keys = grow(keys, *n, sizeof(*keys));
		keys[(*n)++] = all[begin].key;
	}
	free(all);
	return keys;
}
