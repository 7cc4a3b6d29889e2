/*
 * analyzer/ranks/reasons.c: what made the last rank late: what its submitting thread did since its operation before
 * (lanes.c), and the threads of the other ranks did not. Called for each operation that some ranks waited in.
 */
#include <stdlib.h>
#include "work.h"
#include "base/median.h"

/* ---- what the others did not ----------------------------------------------------------------- */

/* Of a part it is known how long it was in all, and when the last of it ended. */
static uint64_t most_since_met(const struct rank_op *op, const struct rank_part *part)
{
	uint64_t met_ns = op->member->met_ns;

	if (part->end_ns <= met_ns)
		return 0;
	return min_u64(part->ns, part->end_ns - met_ns);
}

void rank_reasons_see(struct rank_op *op)
{
	uint64_t passed_ns = op->submit_end_ns - min_u64(op->member->met_ns, op->submit_end_ns);
	uint64_t sum_ns = 0;

	for (uint32_t i = 0; i < op->n_parts; i++)
		sum_ns += most_since_met(op, &op->parts[i]);
	op->since_met = sum_ns > passed_ns ? (double)passed_ns / (double)sum_ns : 1;
}

uint64_t rank_part_since_met(const struct rank_op *op, const struct rank_part *part)
{
	return (uint64_t)((double)most_since_met(op, part) * op->since_met);
}

static uint32_t number_of(const struct rank_part *part, bool roughly)
{
	return roughly ? part->roughly : part->like;
}

static uint64_t time_at(const struct rank_op *op, uint32_t number, bool roughly)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < op->n_parts; i++)
		if (number_of(&op->parts[i], roughly) == number)
			sum += rank_part_since_met(op, &op->parts[i]);
	return sum;
}

struct others {
	const struct rank_op *all[OTHERS_MOST];
	size_t n;
};

/* Some of many, evenly spread, and one more than are wanted. Once for all that come late: there may be very many. */
static void choose_spread(struct rank_instance *instance)
{
	size_t every = instance->n_ops / OTHERS_MOST + 1, i = 0;
	const struct rank_op *op;

	if (instance->spread)
		return;
	instance->spread = xcalloc(OTHERS_MOST + 1, sizeof(struct rank_op *));
	for (op = instance->ops; op && instance->n_spread <= OTHERS_MOST; op = op->next)
		if (!op->first && i++ % every == 0)
			instance->spread[instance->n_spread++] = op;
}

static void choose_others(struct rank_instance *instance, const struct rank_op *last,
			  struct others *others)
{
	choose_spread(instance);
	others->n = 0;
	for (uint32_t i = 0; i < instance->n_spread && others->n < OTHERS_MOST; i++)
		if (instance->spread[i] != last)
			others->all[others->n++] = instance->spread[i];
}

static uint64_t median_time(const struct others *others, uint32_t number, bool roughly)
{
	uint64_t values[OTHERS_MOST];

	for (size_t i = 0; i < others->n; i++)
		values[i] = time_at(others->all[i], number, roughly);
	return median_u64(values, others->n);
}

/* The last one's excess, a number for each of its parts. */
struct excess {
	uint64_t ns[PARTS_MOST], sum_ns;
	bool common[PARTS_MOST]; /* the others were there, too */
};

/* The excess at lines of a place is no more than at the place. */
static void limit_place(const struct rank_op *last, const struct others *others, uint32_t first,
			struct excess *e, bool *seen)
{
	uint32_t roughly = number_of(&last->parts[first], true), i;
	uint64_t whole_ns = time_at(last, roughly, true), sum_ns = 0, most_ns;
	uint64_t others_ns = median_time(others, roughly, true);

	most_ns = whole_ns - min_u64(others_ns, whole_ns);
	for (i = first; i < last->n_parts; i++)
		if (number_of(&last->parts[i], true) == roughly) {
			sum_ns += e->ns[i];
			seen[i] = true;
			e->common[i] = others_ns > 0;
		}
	for (i = first; i < last->n_parts && sum_ns > most_ns; i++)
		if (number_of(&last->parts[i], true) == roughly)
			e->ns[i] = (uint64_t)((double)e->ns[i] * (double)most_ns / (double)sum_ns);
}

static void find_excess(const struct rank_op *last, const struct others *others, struct excess *e)
{
	bool seen[PARTS_MOST] = {false};

	*e = (struct excess){.sum_ns = 0};
	for (uint32_t i = 0; i < last->n_parts; i++) {
		uint32_t like = number_of(&last->parts[i], false);
		uint64_t ns = rank_part_since_met(last, &last->parts[i]);

		e->ns[i] = ns - min_u64(median_time(others, like, false), ns);
	}
	for (uint32_t i = 0; i < last->n_parts; i++)
		if (!seen[i])
			limit_place(last, others, i, e, seen);
	for (uint32_t i = 0; i < last->n_parts; i++)
		e->sum_ns += e->ns[i];
}

/* ---- charging -------------------------------------------------------------------------------- */

struct charging {
	struct ranks *ranks;
	const struct rank_op *last;
	struct idle_part *largest;
	uint64_t *largest_ns;
	uint64_t gpu_ns, host_ns; /* charged: its GPU's work; what its thread did */
	struct idle_part host; /* the most of host_ns */
	uint64_t host_most_ns;
};

static void copy_holder(struct idle_sum *sum, const struct rank_place *of, uint64_t ns)
{
	if (!of->holder || !of->any_time || ns < sum->longest_ns)
		return;
	if (!sum->holder)
		sum->holder = xcalloc(1, sizeof(*sum->holder));
	*sum->holder = *of->holder;
}

static void charge(struct charging *c, const struct idle_part *part, const struct rank_place *of,
		   uint64_t ns)
{
	const struct rank_member *member = c->last->member;
	struct idle_sum *sum;

	if (!ns)
		return;
	sum = idle_sums_add(&c->ranks->idle->sums, idle_owner_rank(member->rank->index),
			    member->process, part, ns);
	if (of)
		copy_holder(sum, of, ns);
	if (part->cause == IDLE_GPU_WORK)
		c->gpu_ns += ns;
	if (ns <= *c->largest_ns)
		return;
	*c->largest_ns = ns;
	*c->largest = *part;
}

static void charge_host(struct charging *c, const struct idle_part *part,
			const struct rank_place *of, uint64_t ns)
{
	charge(c, part, of, ns);
	if (part->cause == IDLE_UNEXPLAINED)
		return;
	c->host_ns += ns;
	if (ns <= c->host_most_ns)
		return;
	c->host_most_ns = ns;
	c->host = *part;
}

/*
 * How much of the GPU's lateness is what its thread made it late by before. Where nothing waits for a collective, a GPU
 * that has come late stays behind, though it takes no longer for its work than the others. What it was late by before
 * its thread made it late, it is late by itself. What was once made up for does not come back.
 */
static uint64_t lag_of(const struct rank_lag *lag, uint64_t gpu_ns)
{
	if (!lag->known)
		return 0;
	return min_u64(gpu_ns - min_u64(lag->gpu_ns, gpu_ns), lag->host_ns);
}

static bool is_gpu(const struct rank_reason *reason)
{
	return reason->part.cause == IDLE_GPU_WORK;
}

static void charge_gpu(struct charging *c, const struct rank_reasons *reasons)
{
	struct rank_lag *lag = &c->last->member->lag;
	uint64_t gpu_ns = 0, left_ns, lag_ns;

	for (uint32_t i = 0; i < reasons->n; i++)
		gpu_ns += is_gpu(&reasons->all[i]) ? reasons->all[i].ns : 0;
	left_ns = lag_ns = lag_of(lag, gpu_ns);
	for (uint32_t i = 0; i < reasons->n; i++) {
		const struct rank_reason *reason = &reasons->all[i];
		uint64_t ns = min_u64(reason->ns, left_ns);

		if (!is_gpu(reason))
			continue;
		left_ns -= ns;
		charge(c, &lag->cause, NULL, ns);
		charge(c, &reason->part, reason->of, reason->ns - ns);
	}
	if (c->host_most_ns > lag_ns)
		lag->cause = c->host;
	lag->host_ns = lag_ns + c->host_ns;
	if (!lag->known || !lag->host_ns)
		lag->gpu_ns = c->gpu_ns;
	else if (!lag_ns) /* it was late by itself, beside its thread */
		lag->gpu_ns = max_u64(lag->gpu_ns, c->gpu_ns);
	lag->known = true;
}

void rank_reasons_in_time(const struct rank_op *op)
{
	op->member->lag = (struct rank_lag){.known = true};
	if (!op->continues)
		op->member->slower = 0;
}

/* With as many operations as the others had, its GPU was late by so much. */
static void see_slower(const struct rank_op *op, bool same_work, uint64_t gpu_ns)
{
	struct rank_member *member = op->member;
	uint64_t own_ns = op->begin_ns - min_u64(member->ended_ns, op->begin_ns);

	if (op->continues)
		return;
	member->slower = 0;
	if (same_work && member->ended_ns && own_ns)
		member->slower = (double)min_u64(gpu_ns, own_ns) / (double)own_ns;
}

/* Did the thread wait there for its own GPU because the program asked for it, or because that has too much to do? */
bool rank_waits_for_own_gpu(const struct ranks *ranks, const struct idle_part *part, bool common)
{
	if (part->cause == IDLE_GPU_QUERY)
		return common;
	if (part->cause != IDLE_CUDA_WAIT || part->fn == NO_FUNCTION)
		return false;
	switch (ranks->idle->accounts->model->set->functions.all[part->fn].contract) {
	case SPY_CONTRACT_STREAM:
	case SPY_CONTRACT_EVENT:
	case SPY_CONTRACT_DEVICE:
	case SPY_CONTRACT_COPY_SYNC:
	case SPY_CONTRACT_COPY_ASYNC:
	case SPY_CONTRACT_COPY_BATCH:
		return common;
	case SPY_CONTRACT_SUBMIT:
	case SPY_CONTRACT_LAUNCH:
		return true;
	default:
		return false;
	}
}

/* What begins no later than so long after its submission was on the way; what begins later waited for its GPU. */
#define ON_THE_WAY_NS 50000

uint64_t rank_op_queued(const struct rank_op *op)
{
	const struct rank_member *member = op->member;
	uint64_t begin_ns = op->begin_ns, since_ns = op->submit_end_ns;

	if (!op->by_host_times && (!member->has_host || !op->launched))
		return 0;
	if (!op->by_host_times) {
		begin_ns += (uint64_t)member->host_offset_ns;
		since_ns += member->host_error_ns;
	}
	return begin_ns > since_ns + ON_THE_WAY_NS ? begin_ns - since_ns : 0;
}

static uint64_t median_work(const struct others *others)
{
	uint64_t values[OTHERS_MOST];

	for (size_t i = 0; i < others->n; i++)
		values[i] = others->all[i]->gpu_operations;
	return median_u64(values, others->n);
}

#define ABOUT_AS_MANY 20 /* they differ by no more than one of so many */

static bool has_same_work(const struct rank_op *op, const struct others *others)
{
	uint64_t own = op->gpu_operations, theirs = median_work(others);
	uint64_t more = own > theirs ? own - theirs : theirs - own;

	return others->n && more * ABOUT_AS_MANY <= theirs;
}

static void see_gpu_late(struct rank *rank, const struct rank_reasons *reasons, uint64_t ns,
			 uint64_t late_ns)
{
	rank->gpu_late_ns += ns;
	if (late_ns == rank->longest_late_ns)
		rank->longest_gpu_late_ns = ns;
	if (2 * ns <= late_ns)
		return;
	rank->gpu_late_count++;
	rank->gpu_late_same_work += reasons->same_work;
}

static void add_reason(struct rank_reasons *reasons, const struct idle_part *part,
		       const struct rank_place *of, uint64_t ns)
{
	if (ns)
		reasons->all[reasons->n++] = (struct rank_reason){*part, of, ns};
}

static void add_parts(struct rank_reasons *reasons, const struct ranks *ranks,
		      const struct rank_op *op, const struct excess *e, uint64_t *left_ns)
{
	double scale = e->sum_ns > *left_ns ? (double)*left_ns / (double)e->sum_ns : 1.0;

	for (uint32_t i = 0; i < op->n_parts; i++) {
		const struct rank_place *place = op->parts[i].place;
		struct idle_part part = place->longest;
		uint64_t ns = min_u64((uint64_t)((double)e->ns[i] * scale), *left_ns);

		*left_ns -= ns;
		if (rank_waits_for_own_gpu(ranks, &part, e->common[i]))
			part.cause = IDLE_GPU_WORK;
		add_reason(reasons, &part, place, ns);
	}
}

/* Is the thread preparing and submitting work then? More of it takes longer, while the GPU is at it. */
static bool submits(const struct rank_part *part)
{
	enum idle_cause cause = part->place->longest.cause;

	return cause == IDLE_LAUNCH || cause == IDLE_PYTHON || cause == IDLE_CPU;
}

static bool has_other_work(const struct rank_op *op, const struct others *others)
{
	return rank_func_is_between_two(op->instance->func) ||
	       (others->n && !has_same_work(op, others) &&
		op->gpu_operations > median_work(others));
}

/*
 * Of the lateness, what its GPU's work made, where that had been given other work than the others': while an operation waits for its
 * GPU, the GPU works, however long its thread took to submit that work. What the thread did besides comes first. Loses e's parts
 * of submitting that are not needed.
 */
static uint64_t take_work(const struct rank_op *op, uint64_t late_ns, struct excess *e)
{
	uint64_t submitting_ns = 0, rest_ns, work_ns, most_ns;

	for (uint32_t i = 0; i < op->n_parts; i++)
		submitting_ns += submits(&op->parts[i]) ? e->ns[i] : 0;
	rest_ns = min_u64(e->sum_ns - submitting_ns, late_ns);
	work_ns = min_u64(rank_op_queued(op), late_ns - rest_ns);
	most_ns = late_ns - rest_ns - work_ns;
	for (uint32_t i = 0; i < op->n_parts && submitting_ns > most_ns; i++) {
		uint64_t ns = e->ns[i];

		if (!submits(&op->parts[i]))
			continue;
		e->ns[i] = (uint64_t)((double)ns * (double)most_ns / (double)submitting_ns);
		e->sum_ns -= ns - e->ns[i];
	}
	return work_ns;
}

void rank_reasons_find(const struct ranks *ranks, struct rank_instance *instance,
		       const struct rank_op *op, uint64_t late_ns, struct rank_reasons *reasons)
{
	struct idle_part bare = {.cause = rank_op_queued(op) ? IDLE_GPU_WORK : IDLE_UNEXPLAINED,
				 .fn = NO_FUNCTION,
				 .fn_before = NO_FUNCTION,
				 .at_ns = op->submit_begin_ns};
	uint64_t left_ns, work_ns;
	struct others others;
	struct excess e = {.sum_ns = 0};

	reasons->n = 0;
	choose_others(instance, op, &others);
	if (others.n && !op->first)
		find_excess(op, &others, &e);
	work_ns = has_other_work(op, &others) ? take_work(op, late_ns, &e) : 0;
	left_ns = late_ns - work_ns;
	add_parts(reasons, ranks, op, &e, &left_ns);
	reasons->rounding_ns = left_ns * 100 <= late_ns && left_ns < late_ns ? left_ns : 0;
	add_reason(reasons, &bare, NULL, work_ns + left_ns - reasons->rounding_ns);
	reasons->same_work = has_same_work(op, &others);
}

void rank_reasons_charge(struct ranks *ranks, struct rank_instance *instance,
			 const struct rank_op *last, uint64_t late_ns, struct idle_part *largest,
			 uint64_t *largest_ns)
{
	struct charging c = {
		.ranks = ranks, .last = last, .largest = largest, .largest_ns = largest_ns};
	struct rank_reasons reasons;

	*largest_ns = 0;
	rank_reasons_find(ranks, instance, last, late_ns, &reasons);
	for (uint32_t i = 0; i < reasons.n; i++)
		if (!is_gpu(&reasons.all[i]))
			charge_host(&c, &reasons.all[i].part, reasons.all[i].of, reasons.all[i].ns);
	charge_gpu(&c, &reasons);
	charge(&c, largest, NULL, reasons.rounding_ns);
	see_gpu_late(last->member->rank, &reasons, c.gpu_ns, late_ns);
	see_slower(last, reasons.same_work, c.gpu_ns);
}
