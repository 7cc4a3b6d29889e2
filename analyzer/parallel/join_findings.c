/*
 * analyzer/parallel/join_findings.c: the sites of all parts, in the order in which they came up; what they know of idle
 * GPUs, and of ranks. Called by join.c, when threads have their numbers.
 */
#include <stdlib.h>
#include "parts.h"

/* ---- sites ------------------------------------------------------------------------------------ */

/* The table's places depend on threads' numbers. */
static void join_costs(struct thread_costs *costs)
{
	struct thread_costs old = *costs;

	*costs = (struct thread_costs){0};
	thread_costs_join(costs, &old, 1);
	thread_costs_release(&old);
}

static void join_site(struct site *site, const struct part *part)
{
	size_t i;

	join_threads_of(&site->callers, part);
	join_costs(&site->cost.threads);
	for (i = 0; site->ranges && i < site->ranges->n; i++)
		site->ranges->all[i].name = join_name(site->ranges->all[i].name);
}

bool join_findings(struct parts *p)
{
	struct findings *whole = &p->whole->findings;
	struct births order = {0};
	struct site *site;
	size_t i;

	for (i = 0; i < p->n; i++) {
		struct findings *f = &p->all[i].a.findings;

		for (site = f->sites; site; site = site->hh.next)
			births_add(&order, &site->born, i, site);
		HASH_CLEAR(hh, f->sites);
	}
	births_sort(&order);
	for (i = 0; i < order.n; i++) {
		site = order.all[i].what;
		join_site(site, &p->all[order.all[i].part]);
		HASH_ADD(hh, whole->sites, key, sizeof(site->key), site);
	}
	births_release(&order);
	return HASH_COUNT(whole->sites) < SITES_MOST || parts_refuse(p, "too many places");
}

/* ---- ranks ------------------------------------------------------------------------------------ */

/* The replay has evaluated them. */
bool join_ranks(struct parts *p)
{
	struct ranks *whole = &p->whole->ranks;
	size_t i;

	for (i = 0; i < p->n; i++)
		ranks_join(whole, &p->all[i].a.ranks, p->all[i].processes, p->all[i].n_processes);
	ranks_joined(whole);
	return true;
}
