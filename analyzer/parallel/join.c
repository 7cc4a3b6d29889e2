/*
 * analyzer/parallel/join.c: the parts of a set become one analysis. Called by jobs.c when all have been read.
 */
#include <stdlib.h>
#include "base/redact.h"
#include "parts.h"

/* ---- the order in which things came up -------------------------------------------------------- */

void births_add(struct births *b, const struct reading_moment *at, size_t part, void *what)
{
	b->all = grow(b->all, b->n, sizeof(*b->all));
	b->all[b->n] = (struct birth){*at, part, b->n, what};
	b->n++;
}

/* Those of one moment are of one part, and were added in their order. */
static int by_moment(const void *a, const void *b)
{
	const struct birth *x = a, *y = b;

	return moment_compare(&x->at, &y->at)
		       ?: (x->number < y->number ? -1 : x->number > y->number);
}

void births_sort(struct births *b)
{
	if (b->n)
		qsort(b->all, b->n, sizeof(*b->all), by_moment);
}

void births_release(struct births *b)
{
	free(b->all);
	*b = (struct births){0};
}

void join_threads_of(struct thread_set *set, const struct part *part)
{
	struct thread_set old = *set;
	uint32_t i;

	*set = (struct thread_set){0};
	for (i = 0; i < old.n_places; i++)
		if (old.members[i])
			thread_set_add(set, part->a.model.threads[old.members[i] - 1]);
	thread_set_release(&old);
}

/* ---- what needs no order ---------------------------------------------------------------------- */

static void join_filtering(struct parts *p)
{
	struct filtering *f = &p->whole->filtering;
	size_t i, kind;

	for (i = 0; i < p->n; i++) {
		const struct filtering *part = &p->all[i].a.filtering;

		for (kind = 0; kind < FILTER_KINDS; kind++) {
			f->outside[kind].calls += part->outside[kind].calls;
			f->outside[kind].ns += part->outside[kind].ns;
		}
		f->left_out.calls += part->left_out.calls;
		f->left_out.ns += part->left_out.ns;
		f->counted = add_capped(f->counted, part->counted);
	}
}

static void join_stats_of(struct callstats *s, const struct part *part)
{
	const struct callstats *more = &part->a.stats;
	size_t i, j;

	/* What a part has not touched is not touched here: it would all come into memory. */
	for (i = 0; i < more->n_functions; i++) {
		if (!more->called[i])
			continue;
		s->called[i] = true;
		calls_add(&s->direct[i], &more->direct[i]);
		calls_add(&s->nested[i], &more->nested[i]);
		s->counted[i] = add_capped(s->counted[i], more->counted[i]);
	}
	for (i = 0; i < part->a.model.n_threads && i < more->n_threads; i++)
		s->threads[part->a.model.threads[i]->index] = more->threads[i];
	for (j = 0; j < CALLSTATS_DEVICES; j++)
		for (i = 0; more->used[j] && i < part->n_processes; i++) {
			size_t at = callstats_index(s, part->processes[i], (uint32_t)j);

			s->used[j] = true;
			s->devices[at] = more->devices[at];
			s->uses[at] = more->uses[at];
		}
	s->all.counted = add_capped(s->all.counted, more->all.counted);
	for (i = 0; i < part->n_processes; i++)
		s->trials[part->processes[i]] = more->trials[part->processes[i]];
	s->answers += more->answers;
	callstats_join_failed(s, &more->last_failed);
}

static void join_stats(struct parts *p)
{
	struct analysis *whole = p->whole;
	size_t i;

	callstats_grow(&whole->stats, &whole->model);
	for (i = 0; i < p->n; i++)
		join_stats_of(&whole->stats, &p->all[i]);
}

static bool join_cost(struct parts *p)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (!cost_join(&p->whole->cost, &p->all[i].a.cost))
			return parts_refuse(p, "too many cost windows");
	return true;
}

/* ---- warnings --------------------------------------------------------------------------------- */

static void print_warnings(const struct parts *p)
{
	struct births order = {0};
	size_t i, j;

	for (i = 0; i < p->n; i++)
		for (j = 0; j < p->all[i].n_warnings; j++)
			births_add(&order, &p->all[i].warnings[j].at, i,
				   p->all[i].warnings[j].text);
	births_sort(&order);
	for (i = 0; i < order.n; i++)
		warn("%s", (const char *)order.all[i].what);
	births_release(&order);
}

/* ---- all of it -------------------------------------------------------------------------------- */

bool parts_join(struct parts *p)
{
	if (redact_is_full())
		parts_refuse(p, "more users or folders than --redact keeps");
	if (p->refused || !join_model(p))
		return false;
	join_stats(p);
	join_filtering(p);
	if (p->whole->accounted &&
	    !(join_expect(p) && join_accounts(p) && join_blame(p) && join_findings(p) &&
	      join_cost(p) && join_idle(p) && join_ranks(p)))
		return false;
	print_warnings(p);
	return true;
}
