/*
 * analyzer/findings/straggler.c: is a job held up by its ranks? The thresholds are choices: what changes from run to run by
 * itself must not name a rank.
 */
#include "model/python.h"
#include "straggler.h"
#include "rank_words.h"
#include "text/text.h"

#define STEPS_LEAST 10 /* then their time is the job's */
#define MOST_PERCENT 60 /* of all lateness, one rank's part, to name it … */
#define MOST_OF_TWO_PERCENT 70 /* … where there are two: one of them has more than the other; … */
#define OUTSTANDING_PERCENT 35 /* … or this, if no other rank has a third of what it has */
#define OUTSTANDING_TIMES 3
#define GPU_PERCENT 60 /* of a rank's lateness, its GPU's part, to blame that */
#define MORE_TIMES 1.1 /* received what the others did, to have more work than they have */
#define SAME_PERCENT 80 /* of its late operations, those with no more work than the others had */
/* Of all steps, or else operations, those in which it was last: a slow GPU is always slow */
#define ALWAYS_PERCENT 60
#define ALIKE_PERCENT \
	50 /* of the lateness, at places where all ranks compute: the rank is slower */
#define SPREAD_MOST \
	3 /* a reason of less than one of so many parts of the lateness is not the reason */
#define SEVERAL_LEAST_PART 4 /* of the job's time, that it was held up by one and another */
#define STAGES_LEAST_PART 20 /* of the job's time, that stages of equal work would save */

static uint64_t part_of(uint64_t percent, uint64_t ns)
{
	return ns / 100 * percent;
}

/* What happens once is not systematic. */
static uint64_t usual_ns(const struct rank *rank)
{
	return rank->late_ns - rank->longest_late_ns;
}

/* Of the operations of a step all but the first may find the ranks together. */
static bool is_always_last(const struct ranks *ranks, const struct rank *rank)
{
	if (ranks->steps.count >= STEPS_LEAST &&
	    rank->steps * 100 >= ranks->steps.count * ALWAYS_PERCENT)
		return true;
	return rank->last_count * 100 >= rank->timed * ALWAYS_PERCENT;
}

/* Of all that made it late but the longest. */
static bool is_by_gpu(const struct rank *rank)
{
	return rank->gpu_late_ns - rank->longest_gpu_late_ns >=
	       part_of(GPU_PERCENT, usual_ns(rank));
}

double straggler_share(const struct ranks *ranks, const struct rank *rank)
{
	double others = 0;

	for (size_t i = 0; i < ranks->n; i++) {
		if (!ranks->all[i]->exchanged_bytes)
			return 0;
		if (ranks->all[i] != rank)
			others += (double)ranks->all[i]->exchanged_bytes;
	}
	return others > 0 ? (double)rank->exchanged_bytes * (double)(ranks->n - 1) / others : 0;
}

static enum straggler_by judge_rank(const struct ranks *ranks, const struct rank *rank)
{
	if (!is_by_gpu(rank))
		return STRAGGLER_BY_HOST;
	if (straggler_share(ranks, rank) >= MORE_TIMES)
		return STRAGGLER_BY_WORK;
	return rank->gpu_late_same_work * 100 >= rank->gpu_late_count * SAME_PERCENT &&
			       is_always_last(ranks, rank)
		       ? STRAGGLER_BY_GPU
		       : STRAGGLER_BY_WORK;
}

/* Does the rank stand out among all that are late now and then? */
static bool stands_out(const struct ranks *ranks, const struct rank *rank)
{
	uint64_t percent = ranks->n > 2 ? MOST_PERCENT : MOST_OF_TWO_PERCENT;
	uint64_t second_ns = 0, sum_ns = 0;

	for (size_t i = 0; i < ranks->n; i++) {
		sum_ns += usual_ns(ranks->all[i]);
		if (ranks->all[i] != rank)
			second_ns = max_u64(second_ns, usual_ns(ranks->all[i]));
	}
	if (usual_ns(rank) >= part_of(percent, sum_ns))
		return true;
	return ranks->n > 2 && usual_ns(rank) >= part_of(OUTSTANDING_PERCENT, sum_ns) &&
	       usual_ns(rank) / OUTSTANDING_TIMES >= second_ns;
}

static bool is_surely_late(const struct rank *rank, uint64_t job_ns)
{
	return rank_late_is_significant(usual_ns(rank), job_ns) &&
	       rank_late_is_significant(rank->sure_ns - rank->longest_sure_ns, job_ns);
}

/* What no other rank does is no noise: the same of that alone. */
static bool stands_out_unshared(const struct ranks *ranks, const struct rank *rank)
{
	uint64_t sum_ns = 0;

	for (size_t i = 0; i < ranks->n; i++)
		sum_ns += ranks->all[i]->unshared.ns;
	return rank->unshared.ns >= part_of(MOST_OF_TWO_PERCENT, sum_ns);
}

static const struct rank *most_unshared(const struct ranks *ranks)
{
	const struct rank *most = ranks->all[0];

	for (size_t i = 1; i < ranks->n; i++)
		if (ranks->all[i]->unshared.ns > most->unshared.ns)
			most = ranks->all[i];
	return most;
}

/* Of waits that run beside a GPU's own work nobody knows: the most that they may have cost; UINT64_MAX: unknown. */
static uint64_t most_exposed_ns(const struct ranks *ranks)
{
	uint64_t most_ns = 0;

	for (size_t i = 0; i < ranks->n; i++) {
		if (!ranks->all[i]->exposed_known)
			return UINT64_MAX;
		most_ns = max_u64(most_ns, ranks->all[i]->exposed_ns);
	}
	return most_ns;
}

/* Steps leave out what a program does before and behind them. Whole ones alone may be fewer than those that were waited in:
 * cost windows hide where others end, and the rank that they are counted by may end early. */
static uint64_t without_outside(const struct rank_steps *steps, uint64_t job_ns)
{
	if (steps->count < STEPS_LEAST)
		return job_ns;
	if (steps->outside_ns == UINT64_MAX)
		return min_u64(job_ns, steps->total_ns);
	return job_ns - min_u64(steps->outside_ns, job_ns);
}

/* Of all lines of its function. */
static uint64_t function_ns(const struct idle *idle, const struct idle_sum *reason)
{
	uint64_t ns = 0;

	if (!reason->key.code)
		return reason->ns;
	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next)
		if (sum->key.owner == reason->key.owner && sum->key.cause == reason->key.cause &&
		    sum->key.process == reason->key.process && sum->key.code == reason->key.code)
			ns += sum->ns;
	return ns;
}

static struct straggler_reason find_largest(const struct idle *idle, const struct rank *rank)
{
	struct straggler_reason most = {.sum = NULL};
	uint64_t ns;

	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		if (sum->key.owner != idle_owner_rank(rank->index) ||
		    sum->key.cause == IDLE_GPU_WORK)
			continue;
		ns = function_ns(idle, sum);
		if (ns < most.ns || (ns == most.ns && most.sum && sum->ns <= most.sum->ns))
			continue;
		most.sum = sum;
		most.ns = ns;
	}
	return most;
}

static bool is_computing(const struct straggler_reason *largest)
{
	enum idle_cause cause = largest->sum->key.cause;

	return cause == IDLE_PYTHON || cause == IDLE_CPU;
}

struct straggler_reason straggler_reason(const struct idle *idle, const struct rank *rank)
{
	struct straggler_reason reason = find_largest(idle, rank);

	if (!reason.sum)
		return reason;
	if (!is_computing(&reason))
		reason.kind = STRAGGLER_EXCESS;
	else if (rank->unshared.alike_ns >= part_of(ALIKE_PERCENT, rank->late_ns))
		reason.kind = STRAGGLER_ALIKE;
	else if (reason.ns < rank->late_ns / SPREAD_MOST)
		reason.kind = STRAGGLER_SPREAD;
	if (rank->unshared.most &&
	    (reason.kind != STRAGGLER_EXCESS || rank->unshared.excess_ns <= rank->unshared.ns))
		reason = (struct straggler_reason){rank->unshared.most, rank->unshared.ns,
						   STRAGGLER_UNSHARED};
	return reason;
}

/* Ranks may be late in turn, and one of them still do what the others do not, again and again. */
static void find_unshared(const struct ranks *ranks, struct straggler *h)
{
	const struct rank *rank = most_unshared(ranks);
	uint64_t once_ns = min_u64(rank->longest_late_ns, rank->unshared.ns);

	if (!rank_late_is_significant(rank->unshared.ns - once_ns, h->job_ns) ||
	    !stands_out_unshared(ranks, rank) || !is_surely_late(rank, h->job_ns) ||
	    straggler_reason(ranks->idle, rank).kind != STRAGGLER_UNSHARED)
		return;
	h->rank = rank;
	h->mostly = true;
	h->by = STRAGGLER_BY_HOST;
}

bool straggler_stages(const struct ranks *ranks, struct straggler *h)
{
	uint64_t messages_ns = 0, sum_ns = 0;

	for (size_t i = 0; i < ranks->n; i++) {
		const struct rank *rank = ranks->all[i];

		if (!rank->messages)
			continue;
		messages_ns += rank->messages_wait_ns;
		sum_ns += rank->wait_ns;
		if (!h->n_stages++ || rank->wait_ns < h->rank->wait_ns)
			h->rank = rank;
	}
	h->stages = h->n_stages > 1 && messages_ns > ranks->wait_ns / 2;
	if (h->stages) {
		h->waits_ns = h->rank->wait_ns;
		h->more_ns = sum_ns - h->n_stages * h->waits_ns;
	}
	return h->stages;
}

/* The same work, divided evenly, would take all of them so much less. */
static uint64_t saved_by_even(const struct straggler *h)
{
	return h->more_ns / h->n_stages;
}

/* The same, at least: a rank may also wait outside of all operations. Its GPU certainly worked for so long, the others' at most. */
static uint64_t saved_for_sure(const struct ranks *ranks, const struct straggler *h)
{
	uint64_t sum_ns = h->rank->work_ns, mean_ns;

	for (size_t i = 0; i < ranks->n; i++)
		if (ranks->all[i]->messages && ranks->all[i] != h->rank)
			sum_ns += h->job_ns - min_u64(ranks->all[i]->wait_ns, h->job_ns);
	mean_ns = sum_ns / h->n_stages;
	return h->rank->work_ns - min_u64(mean_ns, h->rank->work_ns);
}

static bool is_worth_it(const struct straggler *h, uint64_t saved_ns)
{
	uint64_t usual = saved_ns - min_u64(h->rank->longest_late_ns, saved_ns);

	return rank_late_is_significant(usual, h->job_ns) &&
	       saved_ns >= h->job_ns / STAGES_LEAST_PART;
}

static void judge_stages(const struct ranks *ranks, struct straggler *h)
{
	if (!is_worth_it(h, saved_by_even(h)))
		return;
	if (!is_by_gpu(h->rank))
		h->by = STRAGGLER_BY_HOST;
	else if (is_worth_it(h, saved_for_sure(ranks, h)))
		h->by = STRAGGLER_BY_WORK;
	h->mostly = h->by != STRAGGLER_NONE;
}

struct straggler straggler_find(const struct ranks *ranks)
{
	struct straggler h = {
		.late_ns = ranks->late_ns, .wait_ns = ranks->wait_ns, .steps = &ranks->steps};
	uint64_t gpu_late_ns = 0;
	bool outstanding;

	for (size_t i = 0; i < ranks->n; i++) {
		const struct rank *rank = ranks->all[i];

		h.job_ns =
			max_u64(h.job_ns, rank->last_ns - min_u64(rank->first_ns, rank->last_ns));
		gpu_late_ns += rank->gpu_late_ns;
		if (rank->late_ns && (!h.rank || usual_ns(rank) > usual_ns(h.rank)))
			h.rank = rank;
	}
	h.job_ns = without_outside(&ranks->steps, h.job_ns);
	if (ranks->part > 0) /* what is late is of that part, too */
		h.job_ns = (uint64_t)((double)h.job_ns * ranks->part);
	if (!h.rank || !rank_late_is_significant(h.late_ns, h.job_ns) ||
	    !rank_late_is_significant(most_exposed_ns(ranks), h.job_ns))
		return h;
	if (straggler_stages(ranks, &h)) {
		judge_stages(ranks, &h);
		return h;
	}
	outstanding = stands_out(ranks, h.rank);
	h.mostly = outstanding && is_surely_late(h.rank, h.job_ns) &&
		   rank_parts_systematic(&ranks->parts, h.rank->index, ranks->n);
	/* One that stands out, but not systematically, had a bad time: that is neither "mostly" nor "now one and now another". */
	if (h.mostly) {
		h.by = judge_rank(ranks, h.rank);
		if (h.by == STRAGGLER_BY_WORK &&
		    !rank_late_is_significant(usual_ns(h.rank) / ranks->n, h.job_ns))
			h.by = STRAGGLER_NONE; /* work that is divided evenly saves no more */
	} else if (!outstanding &&
		   h.late_ns - h.rank->longest_late_ns >= h.job_ns / SEVERAL_LEAST_PART &&
		   gpu_late_ns >= part_of(GPU_PERCENT, h.late_ns))
		h.by = STRAGGLER_BY_WORK;
	else
		find_unshared(ranks, &h);
	return h;
}

const struct idle_part *straggler_part(const struct idle *idle, const struct idle_sum *reason)
{
	const struct idle_sum *sum, *best = NULL;

	if (python_frame(reason->longest.stack))
		return &reason->longest;
	for (sum = idle->sums.by_key; sum; sum = sum->hh.next)
		if (sum->key.owner == reason->key.owner && sum->key.cause == reason->key.cause &&
		    sum->key.address == reason->key.address && sum->key.code &&
		    (!best || sum->ns > best->ns))
			best = sum;
	return best ? &best->longest : &reason->longest;
}

static uint64_t paid_by_all(const struct ranks *ranks)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < ranks->n; i++)
		ns += ranks->all[i]->paid_ns;
	return ns;
}

/* At least. Where all ranks are, one that is slower here and there may be due to others that wait in turn, and their own calls
 * take time, too. */
static uint64_t least_gain_ns(const struct rank *rank, const struct straggler_reason *reason)
{
	uint64_t ns = min_u64(min_u64(rank->held_ns, rank->late_ns), rank->sure_ns);

	if (!reason->sum || reason->kind == STRAGGLER_EXCESS)
		return ns;
	return reason->kind == STRAGGLER_UNSHARED ? min_u64(reason->ns, ns) : 0;
}

/* What of the others' waits is the price of a finding: their GPUs had nothing else to do. */
static void price_of_rank(const struct ranks *ranks, struct finding *finding,
			  const struct rank *rank)
{
	struct straggler_reason reason = straggler_reason(ranks->idle, rank);

	finding->cost.gain_low_ns = least_gain_ns(rank, &reason);
	finding->cost.idle_gpu_ns = rank->paid_ns;
	if (reason.sum && reason.sum->longest.thread)
		thread_costs_add(&finding->cost.threads, reason.sum->longest.thread,
				 (double)rank->late_ns, (double)rank->late_ns);
}

/* Work that is divided evenly makes the last rank faster by no more than the mean of all waits, and the others slower. */
static void price_of_even_work(const struct ranks *ranks, struct cost *cost)
{
	cost->gain_high_ns = min_u64(cost->gain_high_ns, cost->idle_gpu_ns / ranks->n);
	cost->gain_low_ns = min_u64(cost->gain_low_ns, cost->gain_high_ns);
}

static void price_of_stages(const struct straggler *h, struct cost *cost)
{
	cost->own_ns = h->more_ns / (h->n_stages - 1);
	cost->gain_low_ns = 0;
	cost->gain_high_ns = saved_by_even(h);
	cost->idle_gpu_ns = h->more_ns;
}

static void straggler_price(const struct ranks *ranks, struct finding *finding,
			    const struct straggler *h)
{
	const struct rank *rank = h->mostly ? h->rank : NULL; /* NULL: all of them */

	finding_set_cost(finding, rank ? rank->late_ns : ranks->late_ns);
	finding->cost.idle_gpu_known = true;
	if (rank)
		price_of_rank(ranks, finding, rank);
	else
		finding->cost.idle_gpu_ns = paid_by_all(ranks);
	if (h->stages)
		price_of_stages(h, &finding->cost);
	else if (h->by == STRAGGLER_BY_WORK)
		price_of_even_work(ranks, &finding->cost);
}

struct finding *straggler_finding(const struct detector *detector, const struct ranks *ranks,
				  const struct straggler *h, struct found *found)
{
	struct finding *finding = detector_add(detector, found);

	finding->origin.process = h->rank->process;
	finding->count = h->rank->last_count;
	straggler_price(ranks, finding, h);
	return finding;
}

/* "rank 1 (GPU 1) holds the other ranks up: each of them waited 12.8 s longer than it did, mostly in sends and receives, 60 % of
 * 21.42 s, …" */
static const char *stage_words(struct arena *texts, const struct straggler *h)
{
	uint64_t each_ns = h->more_ns / (h->n_stages - 1);

	return arena_printf(
		texts,
		"%s holds the other ranks up: each of them waited %s longer than it did%s, mostly "
		"in sends and receives, %s of %s; the %s that it waited itself are what the "
		"schedule costs where all have as much to do (the bubble of a pipeline)",
		text_rank_where(texts, h->rank), text_time(texts, each_ns),
		h->n_stages > 2 ? " on average" : "",
		text_percent(texts, (double)each_ns, (double)h->job_ns),
		text_time(texts, h->job_ns), text_time(texts, h->waits_ns));
}

/* Of the slow steps that are kept, those in which it was the last one for most of the time: the most. */
static bool makes_steps_slow(const struct rank_steps *steps, const struct rank *rank)
{
	size_t own = 0;

	for (size_t i = 0; i < steps->n_slow; i++)
		own += steps->slow[i].last == rank->index &&
		       2 * steps->slow[i].last_ns > steps->slow[i].ns;
	return 2 * own > steps->n_slow;
}

/* ", most of it in each 10th step"; empty: not in certain steps */
static const char *when_words(struct arena *texts, const struct rank_steps *steps,
			      const struct rank *rank)
{
	if (!steps->slow_every || !makes_steps_slow(steps, rank) ||
	    2 * steps->slow_more_ns < rank->late_ns)
		return "";
	return arena_printf(texts, ", most of it in each %s step",
			    text_ordinal(texts, steps->slow_every));
}

const char *straggler_words(struct arena *texts, const struct straggler *h)
{
	if (h->stages)
		return stage_words(texts, h);
	return arena_printf(
		texts,
		"%s holds the other ranks up: it came last to %llu of %s, and the others "
		"waited %s for it, %s of %s%s",
		text_rank_where(texts, h->rank), (unsigned long long)h->rank->last_count,
		text_count(texts, h->rank->timed, "collective"), text_time(texts, h->rank->late_ns),
		text_percent(texts, (double)h->rank->late_ns, (double)h->job_ns),
		text_time(texts, h->job_ns), when_words(texts, h->steps, h->rank));
}
