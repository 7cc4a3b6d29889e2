/*
 * analyzer/lanes/report.c: finished lanes, in order and few enough, into the report. Called when all is read.
 */
#include <stdlib.h>
#include <zlib.h>
#include "lanes.h"
#include "base/median.h"

/* ---- another reading --------------------------------------------------------------------------- */

#define WINDOW_ITEMS 20000 /* about so many calls, and no more of any other kind, are in one */
#define WINDOW_LEAST_NS 1000000

/* A graph's launch is one call and thousands of operations. */
static uint64_t seen_of_commonest(const struct store *store)
{
	uint64_t n = store->calls_seen;

	for (size_t kind = 0; kind < ITEM_KIND_COUNT; kind++)
		n = max_u64(n, store->items_seen[kind]);
	return n;
}

/* Around a moment, so wide that about so many items are in it. */
static struct window window_of(const struct lanes *l, const struct moment *m)
{
	const struct model *model = &l->a->model;
	double run_ns = (double)(model->last_ns - model->first_ns);
	uint64_t width_ns =
		(uint64_t)(run_ns * WINDOW_ITEMS / (double)(seen_of_commonest(&l->store) + 1));
	uint64_t ns = m->end_ns - m->begin_ns, half_ns;

	half_ns = max_u64(width_ns, WINDOW_LEAST_NS) / 2;
	if (ns < half_ns)
		half_ns = max_u64(half_ns, ns + ns / 2);
	return (struct window){m->begin_ns - min_u64(half_ns, m->begin_ns), m->begin_ns + half_ns};
}

struct lanes *lanes_again(struct lanes *l, const struct report *report, const struct analysis *a)
{
	struct moment *moments;
	struct lanes *again = NULL;
	size_t n, i;

	if (!l->store.merged_ns && !l->store.least_ns[ITEMS_OPS])
		return NULL;
	moments = lanes_moments(l, report, &n);
	if (n) {
		again = lanes_new(a, l->symbols);
		again->store.merged_ns = l->store.merged_ns;
		memcpy(again->store.least_ns, l->store.least_ns, sizeof(l->store.least_ns));
		again->store.run_ns = l->store.run_ns;
		for (i = 0; i < n && i < WINDOWS_MOST; i++)
			again->store.windows[again->store.n_windows++] = window_of(l, &moments[i]);
	}
	free(moments);
	return again;
}

/* ---- order ------------------------------------------------------------------------------------- */

static uint32_t group_of(const struct lanes *l, const struct lane *lane)
{
	const struct ranks *ranks = &l->a->ranks;
	uint32_t trace = lane->process->trace->index;
	const struct rank *rank = ranks->by_process ? ranks->by_process[trace] : NULL;

	for (size_t i = 0; rank && i < ranks->n; i++)
		if (ranks->order[i] == rank)
			return (uint32_t)i;
	return (uint32_t)ranks->n + trace;
}

static uint64_t begin_of(const struct lane *lane)
{
	return lane->thread ? lane->thread->first_ns : lane->index;
}

static int in_order(const void *a, const void *b)
{
	const struct lane *x = *(struct lane *const *)a, *y = *(struct lane *const *)b;

	return COMPARE(x->group, y->group) ?: COMPARE(x->kind, y->kind) ?:
	       COMPARE(begin_of(x), begin_of(y)) ?: COMPARE(x->stream, y->stream);
}

static void order(struct lanes *l)
{
	for (size_t i = 0; i < l->store.n; i++)
		l->store.all[i]->group = group_of(l, l->store.all[i]);
	if (l->store.n)
		qsort(l->store.all, l->store.n, sizeof(struct lane *), in_order);
	for (size_t i = 0; i < l->store.n; i++)
		l->store.all[i]->number = (uint32_t)i;
}

/* ---- few enough -------------------------------------------------------------------------------- */

static uint8_t *packed(const void *bytes, size_t n, size_t *n_packed)
{
	uLongf size = compressBound((uLong)n);
	uint8_t *out = xcalloc(1, size);

	if (compress2(out, &size, bytes, (uLong)n, 6) != Z_OK) { /* it has room for any result */
		warn("cannot compress the timeline");
		size = 0;
	}
	*n_packed = size;
	return out;
}

static void pack(struct encoded *encoded, struct report *report)
{
	struct report_timeline *t = &report->timeline;

	free(t->json);
	free(t->items);
	t->json = packed(encoded->json, strlen(encoded->json), &t->json_bytes);
	t->items = packed(encoded->bytes, encoded->n, &t->items_bytes);
	free(encoded->json);
	free(encoded->bytes);
}

void lanes_report(struct lanes *l, struct report *report, size_t most_bytes)
{
	struct arena texts = {0};
	struct encoded encoded;
	struct moment *moments;
	size_t n, rounds;

	order(l);
	store_sort(&l->store);
	moments = lanes_moments(l, report, &n);
	for (rounds = 0; rounds < 16; rounds++) {
		encoded = lanes_encode(l, moments, n, &texts);
		pack(&encoded, report);
		if (report->timeline.json_bytes + report->timeline.items_bytes <= most_bytes)
			break;
		l->store.n_windows = rounds < 4 ? l->store.n_windows : 0;
		store_halve(&l->store);
	}
	free(moments);
	arena_release(&texts);
}
