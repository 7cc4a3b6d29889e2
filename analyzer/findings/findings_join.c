/*
 * analyzer/findings/findings_join.c: the sites of all parts of a set, in the order in which they came up. Called by
 * parallel/join.c, when threads have their numbers.
 */
#include "site.h"
#include "model/join.h"

/* The table's places depend on threads' numbers. */
static void join_costs(struct thread_costs *costs)
{
	struct thread_costs old = *costs;

	*costs = (struct thread_costs){0};
	thread_costs_join(costs, &old, 1);
	thread_costs_release(&old);
}

static void join_site(struct site *site, const struct model *part)
{
	thread_set_renumber(&site->callers, part->threads);
	join_costs(&site->cost.threads);
	for (size_t i = 0; site->ranges && i < site->ranges->n; i++)
		site->ranges->all[i].name = join_name(site->ranges->all[i].name);
}

/* Claims that are open still: on calls of that thread. */
static void join_claims(const struct thread_account *c)
{
	for (size_t i = 0; c && i < c->n_open; i++)
		c->open[i].range = join_name(c->open[i].range);
}

/* struct findings, joined: sites, accounts; not: observer, last, longest_call, failures, when_long, always (while records are read). */
bool findings_join(struct findings *whole, struct findings *const *parts, struct join *join)
{
	struct creation_order order = {0};
	struct site *site;

	for (size_t i = 0; i < join->n; i++) {
		struct findings *f = parts[i];

		for (site = f->sites; site; site = site->hh.next)
			creation_order_add(&order, &site->created, i, site);
		HASH_CLEAR(hh, f->sites);
	}
	for (size_t i = 0; i < whole->accounts->n_thread_accounts; i++)
		join_claims(whole->accounts->thread_accounts[i]);
	creation_order_sort(&order);
	for (size_t i = 0; i < order.n; i++) {
		site = order.all[i].what;
		join_site(site, join->parts[order.all[i].part].model);
		HASH_ADD(hh, whole->sites, key, sizeof(site->key), site);
	}
	creation_order_release(&order);
	return HASH_COUNT(whole->sites) < SITES_MOST || join_refuse(join, "too many places");
}
