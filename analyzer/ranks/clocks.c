/*
 * analyzer/ranks/clocks.c: the timers of GPUs against each other, and against the clock of their hosts. Called for each
 * block of operations before these are evaluated.
 *
 * Each GPU's timer has an offset and a drift of its own. An operation in which all ranks get something of all others ends
 * on all of them within some microseconds. So the difference of its ends is the timers' difference, and what many of them
 * do not agree upon is the error. Sends and receives bound it. Against the host's clock there are bounds only: no kernel begins before its launch, nor
 * after somebody saw that it had. A launch is near its kernel's begin only where the thread is not ahead of its GPU, which may be
 * once in many blocks: bounds hold from block to block. Ranks of one host that have nothing better are aligned by its clock.
 */
#include <math.h>
#include <stdlib.h>
#include "work.h"
#include "base/median.h"

#define SLOPE_LEAST 8 /* pairs, for a slope */
#define SLOPE_MOST 1e-3 /* more is no drift of a clock */
#define ERROR_MOST_NS 20e6 /* ends that lie further apart are no ends of one operation */
#define DRIFT_LATER 5e-6 /* a fit of another time is off by so much more */
#define HOST_DRIFT 20e-6 /* and bounds against a host's clock */

bool rank_func_is_symmetric(uint8_t func)
{
	return func == SPY_NCCL_ALL_REDUCE || func == SPY_NCCL_ALL_GATHER ||
	       func == SPY_NCCL_REDUCE_SCATTER || func == SPY_NCCL_ALL_TO_ALL;
}

static int64_t aligned(const struct clock_fit *fit, uint64_t ns)
{
	double later = (double)(int64_t)(ns - fit->at_ns);

	return (int64_t)ns + fit->offset_ns + (fit->slope != 0 ? llround(fit->slope * later) : 0);
}

/* ---- a line through pairs -------------------------------------------------------------------- */

/* Relative to the first pair. */
struct pair {
	double at, difference;
};

static int by_at(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return COMPARE(x->at, y->at);
}

static double median_of_half(const struct pair *pairs, size_t n, bool at, double *values)
{
	for (size_t i = 0; i < n; i++)
		values[i] = at ? pairs[i].at : pairs[i].difference;
	return median_double(values, n);
}

/* From the medians of the halves. The pairs are in order. */
static double slope_of(const struct pair *pairs, size_t n, double *values)
{
	const struct pair *second = &pairs[n - n / 2];
	double span, rise;

	if (n < SLOPE_LEAST)
		return 0;
	span = median_of_half(second, n / 2, true, values) -
	       median_of_half(pairs, n / 2, true, values);
	rise = median_of_half(second, n / 2, false, values) -
	       median_of_half(pairs, n / 2, false, values);
	return span > 0 && fabs(rise) <= SLOPE_MOST * span ? rise / span : 0;
}

/* free_line: offset and slope are looked for; else they are 0, and only the error is. Offset relative to the first pair. */
static void fit_line(struct pair *pairs, size_t n, bool free_line, double *offset, double *slope,
		     double *error)
{
	double *values = xcalloc(n, sizeof(*values));

	qsort(pairs, n, sizeof(*pairs), by_at);
	*offset = *slope = 0;
	if (free_line) {
		*slope = slope_of(pairs, n, values);
		for (size_t i = 0; i < n; i++)
			values[i] = pairs[i].difference - *slope * pairs[i].at;
		*offset = median_double(values, n);
	}
	for (size_t i = 0; i < n; i++)
		values[i] = fabs(pairs[i].difference - *slope * pairs[i].at - *offset);
	*error = most_double(values, n);
	free(values);
}

/* ---- of a block ------------------------------------------------------------------------------ */

static struct rank_op *op_of(const struct rank_instance *instance, const struct rank_member *member)
{
	struct rank_op *op = instance->ops;

	while (op && op->member != member)
		op = op->next;
	return op;
}

/* Who has most operations in the block; of several the lowest rank. */
static struct rank_member *reference_of(struct rank_comm *comm, struct rank_instance *const *block,
					size_t n)
{
	struct rank_member *best = NULL;

	for (size_t i = 0; i < comm->n_members; i++)
		comm->members[i]->n_block = 0;
	for (size_t i = 0; i < n; i++)
		for (const struct rank_op *op = block[i]->ops; op; op = op->next)
			op->member->n_block += op->ran && rank_func_is_symmetric(block[i]->func);
	for (size_t i = 0; i < comm->n_members; i++) {
		struct rank_member *member = comm->members[i];

		if (!best || member->n_block > best->n_block ||
		    (member->n_block == best->n_block && member->number < best->number))
			best = member;
	}
	return best;
}

/* All pairs of the block at once: of an instance, the reference's end with each other one. */
struct block_pairs {
	struct pair *all;
	size_t n;
	int64_t first_difference;
	uint64_t first_at_ns;
	bool by_host_times;
};

static void add_pair(struct block_pairs *p, const struct rank_op *op,
		     const struct rank_op *reference)
{
	int64_t difference = (int64_t)(reference->end_ns - op->end_ns);

	if (op->by_host_times != reference->by_host_times)
		return;
	if (!p->n) {
		p->first_difference = difference;
		p->first_at_ns = op->end_ns;
		p->by_host_times = op->by_host_times;
	}
	if (op->by_host_times != p->by_host_times)
		return;
	p->all = grow(p->all, p->n, sizeof(*p->all));
	p->all[p->n++] = (struct pair){(double)(int64_t)(op->end_ns - p->first_at_ns),
				       (double)(difference - p->first_difference)};
}

static void fit_member(const struct ranks *ranks, struct rank_member *member, struct block_pairs *p,
		       const struct rank_member *reference)
{
	bool one_clock = member->process->trace->host == reference->process->trace->host;
	double offset, slope, error;

	/* Hosts' clocks have been compared where there are traces. */
	if (!p->n || (p->by_host_times && !one_clock && !ranks->from_digests))
		return;
	if (p->by_host_times && one_clock) {
		for (size_t i = 0; i < p->n; i++)
			p->all[i].difference += (double)p->first_difference;
		p->first_difference = 0;
	}
	fit_line(p->all, p->n, !p->by_host_times || !one_clock, &offset, &slope, &error);
	if (error > ERROR_MOST_NS)
		return;
	member->fit = (struct clock_fit){.known = true,
					 .offset_ns = p->first_difference + llround(offset),
					 .slope = slope,
					 .at_ns = p->first_at_ns,
					 .error_ns = (uint64_t)llround(error)};
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void lower(struct clock_bounds *b, int64_t least_ns)
{
	if (!b->has_least || least_ns > b->least_ns)
		b->least_ns = least_ns;
	b->has_least = true;
}

static void upper(struct clock_bounds *b, int64_t most_ns)
{
	if (!b->has_most || most_ns < b->most_ns)
		b->most_ns = most_ns;
	b->has_most = true;
}

/* Bounds of one time hold at another one, but for the drift. */
static void carry(struct clock_bounds *b, uint64_t at_ns, double drift)
{
	double later = fabs((double)(int64_t)(at_ns - b->at_ns));
	int64_t drift_ns = llround(later * drift);

	if (b->has_least)
		b->least_ns -= drift_ns;
	if (b->has_most)
		b->most_ns += drift_ns;
	b->at_ns = at_ns;
}

static int64_t between(const struct clock_bounds *b)
{
	return b->least_ns + (b->most_ns - b->least_ns) / 2;
}

/* Where drift has made them cross, what lies between is the error all the same. */
static uint64_t left_open(const struct clock_bounds *b)
{
	return (uint64_t)llabs(b->most_ns - b->least_ns) / 2;
}

/* ---- sends and receives ---------------------------------------------------------------------- */

/*
 * No receive ends before its send: the last of the data comes from there. A send may end long before its receive has begun, where
 * the data fit into NCCL's buffers. So a rank's receives bound its timer's offset from below and its sends from above,
 * closely where the receiver has waited for the data. Of several messages in one kernel the ends are not known.
 */
static void bound_by_message(struct rank_member *reference, const struct rank_op *op,
			     const struct rank_op *other)
{
	struct rank_messages *m = &op->member->messages;
	int64_t offset_ns = aligned(&other->member->fit, other->end_ns) - (int64_t)op->end_ns;

	if (m->reference != reference)
		*m = (struct rank_messages){.reference = reference};
	if (!m->since_ns)
		m->since_ns = op->end_ns;
	carry(&m->bounds, op->end_ns, DRIFT_LATER);
	if (op->member->number == op->instance->key.from)
		upper(&m->bounds, offset_ns);
	else
		lower(&m->bounds, offset_ns);
}

/* Between a rank whose timer is fitted and one whose timer is not. */
static void see_message(struct rank_member *reference, const struct rank_instance *message)
{
	const struct rank_op *a = message->ops, *b = a ? a->next : NULL;

	if (!rank_func_is_between_two(message->func) || !b || !a->ran || !b->ran ||
	    a->by_host_times || b->by_host_times || a->one_of_several || b->one_of_several ||
	    a->member->fitted == b->member->fitted)
		return;
	if (b->member->fitted)
		bound_by_message(reference, a, b);
	else
		bound_by_message(reference, b, a);
}

/* The fit is for all of the block, the bounds are for its end. */
static bool fit_by_bounds(struct rank_member *member)
{
	const struct rank_messages *m = &member->messages;
	const struct clock_bounds *b = &m->bounds;
	double span = (double)(b->at_ns - min_u64(m->since_ns, b->at_ns));
	uint64_t error_ns;

	if (member->fitted || !m->since_ns || !b->has_least || !b->has_most)
		return false;
	error_ns = left_open(b) + (uint64_t)(span * DRIFT_LATER);
	if ((double)error_ns > ERROR_MOST_NS)
		return false;
	member->fit = (struct clock_fit){
		.known = true, .offset_ns = between(b), .at_ns = b->at_ns, .error_ns = error_ns};
	member->fitted = true;
	return true;
}

/* From rank to rank, as a pipeline's stages are a chain. */
static void fit_by_messages(struct ranks *ranks, struct rank_comm *comm,
			    struct rank_member *reference, struct rank_instance *const *block,
			    size_t n)
{
	bool again = true, any = false;

	for (size_t i = 0; i < comm->n_members; i++)
		comm->members[i]->messages.since_ns = 0;
	while (again) {
		again = false;
		for (size_t i = 0; i < n; i++)
			see_message(reference, block[i]);
		for (size_t i = 0; i < comm->n_members; i++)
			again |= fit_by_bounds(comm->members[i]);
		any |= again;
	}
	for (size_t i = 0; i < n && any; i++)
		ranks->align_messages +=
			rank_func_is_between_two(block[i]->func) && block[i]->n_ops == 2;
}

/* ---- the host's clock ------------------------------------------------------------------------ */

static void bound(struct clock_bounds *b, const struct rank_op *op)
{
	if (!op->ran || op->by_host_times || !op->seen_ns)
		return;
	carry(b, op->end_ns, HOST_DRIFT);
	if (op->launched)
		lower(b, (int64_t)(op->submit_begin_ns - op->begin_ns));
	upper(b, (int64_t)(op->seen_ns - op->begin_ns));
	upper(b, (int64_t)(op->ran_ns - op->end_ns));
}

static void conclude(struct rank_member *member)
{
	const struct clock_bounds *b = &member->timer->host;

	member->has_host = b->has_least && b->has_most;
	if (!member->has_host)
		return;
	member->host_offset_ns = between(b);
	member->host_error_ns = left_open(b);
}

static void fit_hosts(struct rank_comm *comm, struct rank_instance *const *block, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (const struct rank_op *op = block[i]->ops; op; op = op->next)
			bound(&op->member->timer->host, op);
	for (size_t i = 0; i < comm->n_members; i++)
		conclude(comm->members[i]);
}

/* Of ranks of one host: by way of its clock. For a block that tells nothing, and none has before. */
static void fit_by_host(struct rank_comm *comm, struct rank_member *reference, uint64_t at_ns)
{
	bool any = false;

	for (size_t i = 0; i < comm->n_members && reference->has_host; i++) {
		struct rank_member *member = comm->members[i];
		uint64_t error_ns = member->host_error_ns + reference->host_error_ns;

		if (member == reference || !member->has_host || (double)error_ns > ERROR_MOST_NS ||
		    member->process->trace->host != reference->process->trace->host)
			continue;
		member->fit = (struct clock_fit){.known = true,
						 .offset_ns = member->host_offset_ns -
							      reference->host_offset_ns,
						 .at_ns = at_ns,
						 .error_ns = error_ns};
		any = true;
	}
	reference->fit.known = any;
}

/* The fit of the last block, or of another communicator with the same ranks: for a block that tells nothing. */
static bool borrow(struct rank_comm *comm, uint64_t end_ns)
{
	const struct rank_comm *of = NULL;
	size_t known = 0;

	for (size_t i = 0; i < comm->n_members && !of; i++)
		of = comm->members[i]->timer->comm;
	for (size_t i = 0; of && i < comm->n_members; i++) {
		struct rank_member *member = comm->members[i];
		const struct rank_timer *timer = member->timer;
		double later =
			timer->fit.at_ns ? fabs((double)(int64_t)(end_ns - timer->fit.at_ns)) : 0;

		if (timer->comm != of || later * DRIFT_LATER > ERROR_MOST_NS)
			continue;
		member->fit = timer->fit;
		member->fit.error_ns += (uint64_t)(later * DRIFT_LATER);
		known++;
	}
	return known > 1;
}

static void lend(struct rank_comm *comm)
{
	for (size_t i = 0; i < comm->n_members; i++) {
		struct rank_member *member = comm->members[i];
		struct rank_timer *timer = member->timer;

		/* That of the communicator with most ranks holds. */
		if (!member->fit.known || (timer->comm && timer->comm != comm &&
					   timer->comm->n_members > comm->n_members))
			continue;
		timer->comm = comm;
		timer->fit = member->fit;
	}
}

/* NULL: nothing of the block has times of a GPU. */
static const struct rank_op *last_timed(struct rank_instance *const *block, size_t n)
{
	while (n-- > 0)
		for (const struct rank_op *op = block[n]->ops; op; op = op->next)
			if (op->ran && !op->by_host_times)
				return op;
	return NULL;
}

static void fit_timers(struct ranks *ranks, struct rank_comm *comm,
		       struct rank_instance *const *block, size_t n)
{
	struct rank_member *reference = reference_of(comm, block, n);
	struct block_pairs *pairs = xcalloc(comm->n_members + 1, sizeof(*pairs));
	const struct rank_op *last;
	size_t i, fitted = 0;

	for (i = 0; i < comm->n_members; i++) {
		comm->members[i]->fit = (struct clock_fit){0};
		comm->members[i]->fitted = false;
		comm->members[i]->n_block = i; /* its place in pairs */
	}
	for (i = 0; i < n; i++) {
		const struct rank_op *of_reference = op_of(block[i], reference), *op;

		if (!rank_func_is_symmetric(block[i]->func) || !of_reference || !of_reference->ran)
			continue;
		ranks->align_operations += !comm->key.graphs;
		for (op = block[i]->ops; op; op = op->next)
			if (op != of_reference && op->ran)
				add_pair(&pairs[op->member->n_block], op, of_reference);
	}
	for (i = 0; i < comm->n_members; i++) {
		struct rank_member *member = comm->members[i];

		fit_member(ranks, member, &pairs[i], reference);
		member->fitted = member->fit.known && pairs[i].n >= SLOPE_LEAST;
		member->n_block = pairs[i].n;
		free(pairs[i].all);
	}
	free(pairs);
	reference->fit = (struct clock_fit){.known = true};
	reference->fitted = true;
	fit_by_messages(ranks, comm, reference, block, n);
	for (i = 0; i < comm->n_members; i++)
		fitted += comm->members[i]->fit.known;
	if (fitted < 2) {
		reference->fit.known = false;
		last = last_timed(block, n);
		if (last && !borrow(comm, last->end_ns))
			fit_by_host(comm, reference, last->end_ns);
		return;
	}
	lend(comm);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void align(struct rank_op *op)
{
	const struct clock_fit *fit = &op->member->fit;

	op->aligned = op->ran && fit->known;
	if (!op->aligned)
		return;
	op->arrival_ns = aligned(fit, op->begin_ns);
	op->left_ns = aligned(fit, op->end_ns);
}

void rank_clocks_fit(struct ranks *ranks, struct rank_comm *comm,
		     struct rank_instance *const *block, size_t n)
{
	fit_hosts(comm, block, n);
	fit_timers(ranks, comm, block, n);
	for (size_t i = 0; i < n; i++)
		for (struct rank_op *op = block[i]->ops; op; op = op->next)
			align(op);
	for (size_t i = 0; i < comm->n_members; i++) {
		const struct rank_member *member = comm->members[i];
		struct rank *rank = member->rank;

		if (member->fit.known && !comm->key.graphs)
			rank->align_error_ns = max_u64(rank->align_error_ns, member->fit.error_ns);
		if (member->has_host)
			rank->host_error_ns = max_u64(rank->host_error_ns, member->host_error_ns);
	}
}
