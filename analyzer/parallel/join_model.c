/*
 * analyzer/parallel/join_model.c: threads and names of ranges of all parts, in the order in which they came up; and the
 * classes of calls. Called by join.c.
 */
#include <stdlib.h>
#include "parts.h"

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

static bool join_threads(struct parts *p)
{
	struct model *whole = &p->whole->model;
	struct births order = {0};
	size_t i, j;

	for (i = 0; i < p->n; i++) {
		struct model *model = &p->all[i].a.model;

		for (j = 0; j < model->n_threads; j++)
			births_add(&order, &model->threads[j]->born, i, model->threads[j]);
		join_by_tid(whole, model);
		whole->n_stacks += model->n_stacks;
	}
	births_sort(&order);
	for (i = 0; i < order.n; i++) {
		struct thread *thread = order.all[i].what;

		thread->index = (uint32_t)i;
		whole->threads = grow(whole->threads, i, sizeof(struct thread *));
		whole->threads[whole->n_threads++] = thread;
	}
	p->threads_joined = true;
	births_release(&order);
	return whole->n_threads < THREADS_MOST || parts_refuse(p, "too many threads");
}

/* ---- names of ranges -------------------------------------------------------------------------- */

/* A name and its family, in the whole. */
struct kin {
	struct range_name *name, *family;
};

/* In the order of names: those that are new to the whole are members of their families. */
static void join_families(struct range_names *names, const struct kin *kin, size_t n)
{
	size_t i;

	for (i = 0; i < names->n; i++) {
		names->all[i]->family = NULL;
		names->all[i]->members = 0;
	}
	for (i = 0; i < n; i++) {
		if (kin[i].name->family || !kin[i].family)
			continue;
		kin[i].name->family = kin[i].family;
		kin[i].family->members++;
	}
}

static void join_many(struct parts *p)
{
	size_t i, j;

	for (i = 0; i < p->n; i++) {
		const struct range_names *names = &p->all[i].a.model.range_names;

		for (j = 0; j < names->n; j++)
			names->all[j]->into->many |= names->all[j]->many;
	}
}

/* Processes' numbers stand for names of the whole. */
static void join_range_numbers(struct parts *p)
{
	struct model *whole = &p->whole->model;
	size_t i;

	for (i = 0; i < whole->n_processes; i++) {
		struct range_number *range;

		for (range = whole->processes[i].ranges; range; range = range->hh.next)
			range->name = join_name(range->name);
	}
}

static bool join_names(struct parts *p)
{
	struct range_names *whole = &p->whole->model.range_names;
	struct births order = {0};
	struct kin *kin;
	size_t i, j;

	range_names_adopt_unknown(whole, &p->all[0].a.model.range_names);
	for (i = 0; i < p->n; i++) {
		struct range_names *names = &p->all[i].a.model.range_names;

		names->unknown->into = whole->unknown;
		for (j = 0; j < names->n; j++)
			if (names->all[j] != names->unknown)
				births_add(&order, &names->all[j]->born, i, names->all[j]);
	}
	births_sort(&order);
	for (i = 0; i < order.n; i++) {
		struct range_name *name = order.all[i].what;

		name->into = range_names_adopt(
			whole, &p->all[order.all[i].part].a.model.range_names, name);
	}
	kin = xcalloc(order.n + 1, sizeof(*kin));
	for (i = 0; i < order.n; i++) {
		struct range_name *name = order.all[i].what;

		kin[i] = (struct kin){name->into, join_name(name->family)};
	}
	join_many(p);
	join_families(whole, kin, order.n);
	join_range_numbers(p);
	free(kin);
	births_release(&order);
	return whole->n < RANGE_NAMES_MOST || parts_refuse(p, "too many names of ranges");
}

bool join_model(struct parts *p)
{
	return join_threads(p) && join_names(p);
}

/* ---- classes ---------------------------------------------------------------------------------- */

/* What a new class costs was told from the others that there were; in the whole there may be more. */
static bool same_cost(const struct call_class *x, const struct call_class *y)
{
	return x->source == y->source && x->bounded == y->bounded &&
	       x->expected_ns == y->expected_ns && x->spread_ns == y->spread_ns &&
	       x->most_ns == y->most_ns && x->samples == y->samples &&
	       x->rested_ns == y->rested_ns && x->kernel_ns == y->kernel_ns;
}

static void join_calls_of_class(struct call_class *sum, const struct call_class *more)
{
	sum->calls += more->calls;
	sum->total_ns += more->total_ns;
}

bool join_expect(struct parts *p)
{
	struct expect *whole = &p->whole->expect;
	struct births order = {0};
	bool same = true;
	size_t i, j;

	for (i = 0; i < p->n; i++) {
		struct expect *e = &p->all[i].a.expect;

		for (j = 0; j < e->n_classes; j++)
			if (j < e->n_copied)
				join_calls_of_class(whole->classes[j], e->classes[j]);
			else
				births_add(&order, &e->classes[j]->born, i, e->classes[j]);
	}
	births_sort(&order);
	for (i = 0; i < order.n; i++) {
		const struct call_class *class = order.all[i].what;
		struct call_class *sum = expect_class_of_key(whole, &class->key);

		same &= same_cost(sum, class);
		join_calls_of_class(sum, class);
	}
	births_release(&order);
	return same || parts_refuse(p, "calls of a kind whose cost comes from others of the set");
}
