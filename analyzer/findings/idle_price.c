/*
 * analyzer/findings/idle_price.c: idle time of GPUs becomes the price of findings. Called once, by
 * finding.c, and by detectors of the whole run.
 */
#include <stdlib.h>
#include <string.h>
#include "detector.h"
#include "framework_cures.h"
#include "site.h"
#include "gpu_use.h"
#include "idle_price.h"
#include "base/median.h"
#include "text/text.h"

/* Is all about the idle time of the GPUs of a process certain that can be? False if it has none. */
static bool idle_price_known(const struct idle *idle, const struct process *process)
{
	const struct gpu_work *work = &idle->accounts->work;
	bool known = false;
	uint32_t device, gpu;

	for (device = 0; device < WORK_DEVICES; device++) {
		gpu = idle->users[work_index(work, process->trace->index, device)].gpu;
		if (gpu && !idle->gpus[gpu - 1].certain)
			return false;
		known |= gpu != 0;
	}
	return known;
}

uint64_t idle_price_left(const struct idle *idle, const struct idle_sum *sum)
{
	size_t gpu = gpu_of_sum(idle, sum);

	if (gpu >= idle->n_gpus || sum->priced_ns >= sum->ns || !idle->gpus[gpu].certain)
		return 0;
	return idle_scaled_ns(&idle->gpus[gpu], sum->ns - sum->priced_ns);
}

void idle_price_take_part(const struct idle *idle, struct finding *finding, struct idle_sum *sum,
			  double part)
{
	uint64_t ns = idle_price_left(idle, sum);

	if (!ns)
		return;
	finding->cost.idle_gpu_ns += (uint64_t)((double)ns * part);
	sum->priced_ns += (uint64_t)((double)(sum->ns - sum->priced_ns) * part);
}

void idle_price_take(const struct idle *idle, struct finding *finding,
		     const struct process *process, uint64_t causes)
{
	finding->cost.idle_gpu_known = idle_price_known(idle, process);
	for (struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		if (sum->process == process && causes >> sum->key.cause & 1)
			idle_price_take_part(idle, finding, sum, 1);
	}
}

static bool is_of(const struct idle *idle, const struct idle_sum *sum, size_t gpu,
		  const struct process *process)
{
	return sum->process == process && gpu_of_sum(idle, sum) == gpu;
}

double idle_price_withhold(const struct idle *idle, size_t gpu, const struct process *process,
			   uint64_t ns)
{
	uint64_t left_ns = 0;
	struct finding none = {0};
	struct idle_sum *sum;
	double part;

	for (sum = idle->sums.by_key; sum; sum = sum->hh.next)
		if (is_of(idle, sum, gpu, process))
			left_ns += idle_price_left(idle, sum);
	part = left_ns ? (double)min_u64(ns, left_ns) / (double)left_ns : 0;
	for (sum = idle->sums.by_key; sum; sum = sum->hh.next)
		if (is_of(idle, sum, gpu, process))
			idle_price_take_part(idle, &none, sum, part);
	return part;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* A site that a finding has, by its place; and how much more may be its price. */
struct priced {
	struct site *site;
	uint64_t in_calls_ns, behind_ns;
};

static int compare_places(const struct site_key *x, const struct site_key *y)
{
	return COMPARE(x->return_address, y->return_address) ?: COMPARE(x->process, y->process) ?:
	       COMPARE(x->fn, y->fn);
}

/* Of one place the costliest first. */
static int by_place(const void *a, const void *b)
{
	const struct site *x = ((const struct priced *)a)->site;
	const struct site *y = ((const struct priced *)b)->site;

	return compare_places(&x->key, &y->key) ?: COMPARE(y->total_ns, x->total_ns) ?:
	       COMPARE(x->key.detector, y->key.detector) ?:
	       COMPARE(x->key.variant, y->key.variant) ?: COMPARE(x->key.epoch, y->key.epoch);
}

static struct site *whole_of(struct site *site)
{
	while (site->into)
		site = site->into;
	return site;
}

static struct priced *find_priced(const struct findings *f, size_t *n)
{
	struct priced *all = xcalloc(HASH_COUNT(f->sites) + 1, sizeof(*all));

	*n = 0;
	for (struct site *site = f->sites; site; site = site->hh.next)
		if (site->count && whole_of(site)->kept)
			all[(*n)++] = (struct priced){site, site->total_ns - site->joined_total_ns,
						      site->cost.own_ns - site->joined_own_ns};
	if (*n)
		qsort(all, *n, sizeof(*all), by_place);
	return all;
}

static struct priced *first_at(struct priced *all, size_t n, const struct site_key *place)
{
	size_t low = 0, high = n, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (compare_places(&all[middle].site->key, place) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return &all[low];
}

/* ---- prices ---------------------------------------------------------------------------------- */

static bool on_a_cpu(enum idle_cause cause)
{
	return cause == IDLE_CPU || idle_runs_python(cause);
}

/* So much of the sum is the price of the sites at that place, as far as they go. */
static void charge(const struct idle *idle, struct idle_sum *sum, struct priced *all, size_t n,
		   const struct site_key *place, bool behind)
{
	struct priced *one = first_at(all, n, place);

	for (; one < all + n && !compare_places(&one->site->key, place); one++) {
		uint64_t *most = behind ? &one->behind_ns : &one->in_calls_ns;
		uint64_t left_ns = sum->ns - sum->priced_ns, ns = min_u64(left_ns, *most);

		if (behind && !detectors_row(one->site->key.detector)->idle_behind)
			continue;
		whole_of(one->site)->idle_gpu_ns +=
			idle_scaled_ns(&idle->gpus[gpu_of_sum(idle, sum)], ns);
		sum->priced_ns += ns;
		*most -= ns;
	}
}

/* The sum's longest part stands for all of them. */
static void price(const struct idle *idle, struct idle_sum *sum, struct priced *all, size_t n)
{
	const struct idle_part *part = &sum->longest;

	if (idle_in_a_call(sum->key.cause))
		charge(idle, sum, all, n,
		       &(struct site_key){.return_address = part->address,
					  .process = sum->key.process,
					  .fn = part->fn},
		       false);
	else if (on_a_cpu(sum->key.cause) && part->fn_before != NO_FUNCTION)
		charge(idle, sum, all, n,
		       &(struct site_key){.return_address = part->address_before,
					  .process = sum->key.process,
					  .fn = part->fn_before},
		       true);
}

/* ---- what libraries make ---------------------------------------------------------------------- */

/* A finding of what a library makes again and again; and how much more may be its price. */
struct making {
	struct finding *finding;
	uint64_t between_ns;
};

static struct making *find_making(struct finding *findings, size_t n, size_t *count)
{
	struct making *all = xcalloc(n + 1, sizeof(*all));

	*count = 0;
	for (size_t i = 0; i < n; i++)
		if (framework_makes(&findings[i]))
			all[(*count)++] = (struct making){&findings[i], cost_ns(&findings[i].cost)};
	return all;
}

/* The file in which both calls of a time between two were made; NULL: unknown, or two. */
static const char *library_between(const struct idle_sum *sum)
{
	const struct idle_part *part = &sum->longest;
	const struct module *before, *behind;

	if (!on_a_cpu(sum->key.cause) || part->fn == NO_FUNCTION || part->fn_before == NO_FUNCTION)
		return NULL;
	before = model_module(sum->process, part->address_before, part->at_ns);
	behind = model_module(sum->process, part->address, part->at_ns);
	return before && before == behind ? before->path : NULL;
}

/* A plan or a handle takes more than the calls in it: what its library does between two of its own calls. */
static void charge_making(const struct idle *idle, struct idle_sum *sum, struct making *all,
			  size_t n)
{
	const char *library = n ? library_between(sum) : NULL;

	for (size_t i = 0; library && i < n; i++) {
		const struct finding *f = all[i].finding;
		uint64_t ns = min_u64(sum->ns - sum->priced_ns, all[i].between_ns);

		if (f->origin.process != sum->process || strcmp(f->place.library, library) != 0)
			continue;
		f->site->idle_gpu_ns += idle_scaled_ns(&idle->gpus[gpu_of_sum(idle, sum)], ns);
		sum->priced_ns += ns;
		all[i].between_ns -= ns;
	}
}

/* ---- GPUs without time to spare --------------------------------------------------------------- */

#define SPARE_PART \
	2 /* of what threads lose: with less to spare the GPU would have ended no sooner */

static uint64_t spare_ns(const struct idle *idle, const struct idle_gpu *gpu)
{
	if (gpu->n_processes != 1)
		return UINT64_MAX;
	if (idle_gpu_is_exact(gpu))
		return gpu->certain ? gpu->idle_ns : UINT64_MAX;
	return gpu_looks_spare_ns(&gpu->looks, gpu_work_ns(idle->accounts->expect, gpu));
}

/* Without the loss its threads come to the next wait for the GPU sooner, and that is all. */
static void look_for_spare(const struct idle *idle, struct finding *finding, struct arena *texts)
{
	const struct process *process = finding->origin.process;
	uint64_t sum_ns = 0, ns;
	bool any = false;

	for (size_t i = 0; i < idle->n_gpus; i++) {
		const struct idle_gpu *gpu = &idle->gpus[i];

		if (!gpu->n_processes || gpu->processes[0] != process)
			continue;
		ns = spare_ns(idle, gpu);
		if (ns == UINT64_MAX)
			return;
		sum_ns += ns;
		any = true;
	}
	if (!any || sum_ns >= cost_ns(&finding->cost) / SPARE_PART)
		return;
	finding->remarks.maybe_harmless = true;
	finding->what = arena_printf(texts, "%s; in all its work the GPU had %s to spare at most",
				     finding->what, text_time(texts, sum_ns));
}

/* ---- waits that are none ---------------------------------------------------------------------- */

static uint64_t worked_most_ns(const struct idle *idle, const struct process *process)
{
	uint64_t sum_ns = 0;

	for (size_t i = 0; i < idle->n_gpus; i++)
		for (size_t k = 0; k < idle->gpus[i].n_processes; k++)
			if (idle->gpus[i].processes[k] == process)
				sum_ns += gpu_worked_most_ns(idle, &idle->gpus[i]);
	return sum_ns;
}

/*
 * A copy to memory that the host has not touched yet takes several times as long as the same copy to memory that it has: for page faults, and
 * not for the GPU. Of what is taken for waits no more than the GPU worked would come back in the next one.
 */
static void bound_waits(const struct idle *idle, struct finding *finding, struct arena *texts)
{
	uint64_t worked_ns = worked_most_ns(idle, finding->origin.process);
	uint64_t most_ns = worked_ns * finding->site->cost.threads.n;
	uint64_t waits_ns = finding->site->hidden_ns;
	struct cost *cost = &finding->cost;

	if (waits_ns <= most_ns + most_ns / 4 || cost->gain_high_ns >= cost_ns(cost))
		return;
	cost->gain_high_ns = min_u64(cost_ns(cost), cost->gain_high_ns + waits_ns - most_ns);
	finding->what = arena_printf(
		texts,
		"%s; but the GPU had no more than %s of such work, so that most of it is the copy itself",
		finding->what, text_time(texts, worked_ns));
}

void idle_price_sites(const struct findings *f, const struct idle *idle, struct finding *findings,
		      size_t n, struct arena *texts)
{
	struct priced *all;
	struct making *making;
	size_t i, n_priced, n_making;

	for (i = 0; i < idle->n_gpus; i++)
		idle->gpus[i].certain = !gpu_why_unknown(idle->accounts->stats, &idle->gpus[i]);
	for (i = 0; i < n; i++)
		findings[i].site->kept = true;
	all = find_priced(f, &n_priced);
	making = find_making(findings, n, &n_making);
	for (struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		if (idle_price_left(idle, sum))
			price(idle, sum, all, n_priced);
		if (idle_price_left(idle, sum))
			charge_making(idle, sum, making, n_making);
	}
	free(making);
	free(all);
	for (i = 0; i < n; i++) {
		struct cost *cost = &findings[i].cost;

		cost->idle_gpu_known = idle_price_known(idle, findings[i].origin.process);
		cost->idle_gpu_ns = findings[i].site->idle_gpu_ns;
		if (findings[i].detector->free_behind_work && !(uint64_t)cost->others_ns)
			look_for_spare(idle, &findings[i], texts);
		if (findings[i].detector->waits_bounded)
			bound_waits(idle, &findings[i], texts);
	}
}
