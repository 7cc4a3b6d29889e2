/*
 * analyzer/model/model_join.c: threads and names of ranges of all parts of a set, in the order in which they came up. Called
 * by parallel/join.c.
 */
#include <stdlib.h>
#include "join.h"
#include "base/median.h"

/* ---- the order in which things came up -------------------------------------------------------- */

void creation_order_add(struct creation_order *b, const struct reading_position *at, size_t part,
			void *what)
{
	b->all = grow(b->all, b->n, sizeof(*b->all));
	b->all[b->n] = (struct birth){*at, part, b->n, what};
	b->n++;
}

/* Those of one position are of one part, and were added in their order. */
static int by_position(const void *a, const void *b)
{
	const struct birth *x = a, *y = b;

	return position_compare(&x->at, &y->at) ?: COMPARE(x->number, y->number);
}

void creation_order_sort(struct creation_order *b)
{
	if (b->n)
		qsort(b->all, b->n, sizeof(*b->all), by_position);
}

void creation_order_release(struct creation_order *b)
{
	free(b->all);
	*b = (struct creation_order){0};
}

/* ---- threads ---------------------------------------------------------------------------------- */

/* Those that are to be found by their number. */
static void join_by_tid(struct model *whole, struct model *model)
{
	struct thread **all = xcalloc(HASH_COUNT(model->by_tid) + 1, sizeof(struct thread *));
	struct thread *thread, *next;
	size_t i, n = 0;

	HASH_ITER (hh, model->by_tid, thread, next)
		all[n++] = thread;
	HASH_CLEAR(hh, model->by_tid);
	for (i = 0; i < n; i++)
		HASH_ADD(hh, whole->by_tid, key, sizeof(all[i]->key), all[i]);
	free(all);
}

static bool join_threads(struct model *whole, struct model *const *parts, struct join *join)
{
	struct creation_order order = {0};

	for (size_t i = 0; i < join->n; i++) {
		struct model *model = parts[i];

		for (size_t j = 0; j < model->n_threads; j++)
			creation_order_add(&order, &model->threads[j]->created, i,
					   model->threads[j]);
		join_by_tid(whole, model);
		whole->n_stacks += model->n_stacks;
	}
	creation_order_sort(&order);
	for (size_t i = 0; i < order.n; i++) {
		struct thread *thread = order.all[i].what;

		thread->index = (uint32_t)i;
		whole->threads = grow(whole->threads, i, sizeof(struct thread *));
		whole->threads[whole->n_threads++] = thread;
	}
	join->threads_joined = true;
	creation_order_release(&order);
	return whole->n_threads < THREADS_MOST || join_refuse(join, "too many threads");
}

/* ---- names of ranges -------------------------------------------------------------------------- */

/* A name and its family, in the whole. */
struct kin {
	struct range_name *name, *family;
};

/* In the order of names: those that are new to the whole are members of their families. */
static void join_families(struct range_names *names, const struct kin *kin, size_t n)
{
	for (size_t i = 0; i < names->n; i++) {
		names->all[i]->family = NULL;
		names->all[i]->members = 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (kin[i].name->family || !kin[i].family)
			continue;
		kin[i].name->family = kin[i].family;
		kin[i].family->members++;
	}
}

static void join_many(struct model *const *parts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct range_names *names = &parts[i]->range_names;

		for (size_t j = 0; j < names->n; j++)
			names->all[j]->into->many |= names->all[j]->many;
	}
}

/* Processes' numbers stand for names of the whole. */
static void join_range_numbers(struct model *whole)
{
	for (size_t i = 0; i < whole->n_processes; i++) {
		struct range_number *range;

		for (range = whole->processes[i].ranges; range; range = range->hh.next)
			range->name = join_name(range->name);
	}
}

static bool join_names(struct range_names *whole, struct model *const *parts, struct join *join)
{
	struct creation_order order = {0};
	struct kin *kin;

	range_names_adopt_unknown(whole, &parts[0]->range_names);
	for (size_t i = 0; i < join->n; i++) {
		struct range_names *names = &parts[i]->range_names;

		names->unknown->into = whole->unknown;
		for (size_t j = 0; j < names->n; j++)
			if (names->all[j] != names->unknown)
				creation_order_add(&order, &names->all[j]->created, i,
						   names->all[j]);
	}
	creation_order_sort(&order);
	for (size_t i = 0; i < order.n; i++) {
		struct range_name *name = order.all[i].what;

		name->into = range_names_adopt(whole, &parts[order.all[i].part]->range_names, name);
	}
	kin = xcalloc(order.n + 1, sizeof(*kin));
	for (size_t i = 0; i < order.n; i++) {
		struct range_name *name = order.all[i].what;

		kin[i] = (struct kin){name->into, join_name(name->family)};
	}
	join_many(parts, join->n);
	join_families(whole, kin, order.n);
	free(kin);
	creation_order_release(&order);
	return whole->n < RANGE_NAMES_MOST || join_refuse(join, "too many names of ranges");
}

/* struct model, joined: threads, n_threads, by_tid, n_stacks, range_names, processes, n_processes; not: set, streams, n_streams,
 * bare (as it was begun), own, n_own (of a part alone), owners (the whole's in all parts), first_ns, last_ns, records
 * (model_finish finds them), complete (once all has been read). */
bool model_join(struct model *whole, struct model *const *parts, struct join *join)
{
	if (!join_threads(whole, parts, join))
		return false;
	if (!join_names(&whole->range_names, parts, join))
		return false;
	join_range_numbers(whole);
	return true;
}
