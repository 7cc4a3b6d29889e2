/*
 * analyzer/findings/cost_share.c: how large a part of a thread's time something cost. Called by
 * findings, detectors and the gate after the last record; costs are added while records go by.
 */
#include <stdlib.h>
#include "cost_share.h"
#include "account/account.h"

/* Of its process's time: a thread that was there for less counts as that. */
#define SHORT_LIVED_PART 10

/* ---- costs ---------------------------------------------------------------------------------- */

static struct thread_cost *place_of(const struct thread_costs *costs, const struct thread *thread)
{
	size_t i = thread->index;

	for (;; i++) {
		struct thread_cost *cost = &costs->all[i & (costs->n_places - 1)];

		if (!cost->thread || cost->thread == thread)
			return cost;
	}
}

static void make_room(struct thread_costs *costs)
{
	struct thread_costs old = *costs;

	if (2 * old.n < old.n_places)
		return;
	costs->n_places = old.n_places ? 2 * old.n_places : 2;
	costs->all = xcalloc(costs->n_places, sizeof(*costs->all));
	for (size_t i = 0; i < old.n_places; i++)
		if (old.all[i].thread)
			*place_of(costs, old.all[i].thread) = old.all[i];
	free(old.all);
}

void thread_costs_add(struct thread_costs *costs, const struct thread *thread, double ns,
		      double working_ns)
{
	struct thread_cost *cost;

	make_room(costs);
	cost = place_of(costs, thread);
	costs->n += !cost->thread;
	cost->thread = thread;
	cost->ns += ns;
	cost->working_ns += working_ns;
}

void thread_costs_join(struct thread_costs *sum, const struct thread_costs *more, double factor)
{
	for (size_t i = 0; i < more->n_places; i++) {
		const struct thread_cost *cost = &more->all[i];

		if (cost->thread)
			thread_costs_add(sum, cost->thread, factor * cost->ns,
					 factor * cost->working_ns);
	}
}

void thread_costs_release(struct thread_costs *costs)
{
	free(costs->all);
	*costs = (struct thread_costs){0};
}

/* ---- shares --------------------------------------------------------------------------------- */

/* Of a thread's time, or its process's, that part which lies in the phase of the process. */
static uint64_t working_ns(const struct expect *expect, const struct process *process,
			   uint64_t begin_ns, uint64_t end_ns)
{
	const struct phase *phase = &expect->phases.all[process->trace->index];
	uint64_t begin = begin_ns > phase->begin_ns ? begin_ns : phase->begin_ns;
	uint64_t end = min_u64(end_ns, phase->end_ns);

	return end - min_u64(begin, end) - process_dormant_ns(process, begin, end);
}

static struct cost_share share_of(const struct thread *thread, enum cost_share_whole whole,
				  double cost_ns, uint64_t own_ns, uint64_t process_ns)
{
	uint64_t least_ns = process_ns / SHORT_LIVED_PART;
	uint64_t ns = own_ns > least_ns ? own_ns : least_ns;

	return (struct cost_share){.share = ns ? cost_ns / (double)ns : 0,
				   .whole = whole,
				   .thread = thread,
				   .cost_ns = (uint64_t)cost_ns,
				   .whole_ns = ns};
}

static struct cost_share of_working_time(const struct expect *expect,
					 const struct thread_cost *cost)
{
	const struct process *process = cost->thread->process;
	bool found = expect->phases.all[process->trace->index].found;
	uint64_t end_ns = min_u64(cost->thread->exited_ns, process->last_ns);
	uint64_t here_ns = working_ns(expect, process, cost->thread->first_ns, end_ns);

	return share_of(cost->thread, found ? COST_SHARE_WORKING : COST_SHARE_THREAD,
			cost->working_ns, here_ns - min_u64(here_ns, cost->thread->away_ns),
			working_ns(expect, process, process->first_ns, process->last_ns));
}

static struct cost_share of_whole_time(const struct thread_cost *cost)
{
	const struct process *process = cost->thread->process;

	return share_of(cost->thread, COST_SHARE_THREAD, cost->ns, thread_lived_ns(cost->thread),
			process->last_ns - min_u64(process->first_ns, process->last_ns));
}

static bool costs_more(const struct thread_cost *x, double ns, const struct thread_cost *y,
		       double than_ns)
{
	return !y || ns > than_ns || (ns == than_ns && x->thread->index < y->thread->index);
}

/* The larger share; the first one if they are the same. */
static struct cost_share larger(struct cost_share x, struct cost_share y)
{
	return y.share > x.share ? y : x;
}

static uint64_t working_run_ns(const struct accounting *a)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < a->model->n_threads; i++) {
		const struct thread *thread = a->model->threads[i];

		if (a->stats->threads[i].count)
			ns += working_ns(a->expect, thread->process, thread->first_ns,
					 min_u64(thread->exited_ns, thread->process->last_ns));
	}
	return ns;
}

struct cost_share cost_share_working(const struct accounting *a, const struct thread_costs *costs)
{
	const struct thread_cost *most = NULL;
	struct cost_share cost_share = {.whole = COST_SHARE_WORKING},
			  all = {.whole = COST_SHARE_ALL};
	double ns = 0;

	for (size_t i = 0; i < costs->n_places; i++) {
		const struct thread_cost *cost = &costs->all[i];

		if (!cost->thread)
			continue;
		ns += cost->working_ns;
		if (costs_more(cost, cost->working_ns, most, most ? most->working_ns : 0))
			most = cost;
	}
	if (most)
		cost_share = of_working_time(a->expect, most);
	all.whole_ns = working_run_ns(a);
	all.cost_ns = (uint64_t)ns;
	all.share = all.whole_ns ? ns / (double)all.whole_ns : 0;
	cost_share = larger(cost_share, all);
	cost_share.share = cost_share.share > 1 ? 1 : cost_share.share;
	return cost_share;
}

struct cost_share cost_share_of(const struct accounting *a, const struct thread_costs *costs,
				uint64_t all_ns)
{
	const struct thread_cost *most = NULL, *most_working = NULL;
	uint64_t run_ns = a->stats->run_ns;
	struct cost_share cost_share = {.whole = COST_SHARE_WORKING};

	for (size_t i = 0; i < costs->n_places; i++) {
		const struct thread_cost *cost = &costs->all[i];

		if (!cost->thread)
			continue;
		if (costs_more(cost, cost->ns, most, most ? most->ns : 0))
			most = cost;
		if (costs_more(cost, cost->working_ns, most_working,
			       most_working ? most_working->working_ns : 0))
			most_working = cost;
	}
	if (most)
		cost_share = larger(of_working_time(a->expect, most_working), of_whole_time(most));
	cost_share =
		larger(cost_share,
		       (struct cost_share){.share = run_ns ? (double)all_ns / (double)run_ns : 0,
					   .whole = COST_SHARE_ALL,
					   .cost_ns = all_ns,
					   .whole_ns = run_ns});
	cost_share.share = cost_share.share > 1 ? 1 : cost_share.share;
	return cost_share;
}
