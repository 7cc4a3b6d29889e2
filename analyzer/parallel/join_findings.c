/*
 * analyzer/parallel/join_findings.c: the sites of all parts, in the order in which they came up; what they know of idle
 * GPUs, and of ranks. Called by join.c, when threads have their numbers.
 */
#include <stdlib.h>
#include "parts.h"
#include "ranks/work.h"

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

static bool has_ranks(const struct ranks *ranks)
{
	return ranks->any || ranks->lost || (ranks->work && ranks->work->n_members);
}

static void join_lanes(struct ranks_work *w)
{
	struct rank_lane **all = w->lanes;
	size_t n = w->n_lanes, i;

	w->lanes = NULL;
	w->n_lanes = 0;
	for (i = 0; i < n; i++) {
		if (!all[i])
			continue;
		while (w->n_lanes <= all[i]->thread->index) {
			w->lanes = grow(w->lanes, w->n_lanes, sizeof(struct rank_lane *));
			w->lanes[w->n_lanes++] = NULL;
		}
		w->lanes[all[i]->thread->index] = all[i];
	}
	free(all);
}

/* All collective operations were in one part. */
static void take_ranks(struct analysis *whole, struct ranks *ranks)
{
	ranks_release(&whole->ranks);
	whole->ranks = *ranks;
	*ranks = (struct ranks){0};
	whole->ranks.idle = &whole->idle;
	whole->idle.collectives = &whole->ranks;
	join_lanes(whole->ranks.work);
}

bool join_ranks(struct parts *p)
{
	struct analysis *whole = p->whole;
	struct part *owner = NULL;
	size_t i, j;

	for (i = 0; i < p->n; i++) {
		if (!has_ranks(&p->all[i].a.ranks))
			continue;
		if (owner) {
			p->conflict[0] = owner->processes[0];
			p->conflict[1] = p->all[i].processes[0];
			p->has_conflict = true;
			return parts_refuse(p, "collective operations in several parts");
		}
		owner = &p->all[i];
	}
	if (owner)
		take_ranks(whole, &owner->a.ranks);
	for (i = 0; i < p->n; i++) {
		const struct part *part = &p->all[i];

		for (j = 0; part != owner && j < part->n_processes; j++)
			whole->ranks.states[part->processes[j]] =
				part->a.ranks.states[part->processes[j]];
	}
	return true;
}
