/*
 * analyzer/ranks/evaluate.c: who came last to an operation, and how long the others waited in it for that. Called for
 * each operation of a block when the clocks of its ranks are aligned.
 */
#include <stdlib.h>
#include "sample.h"
#include "work.h"

#define ERROR_LEAST_NS 1000 /* timers of GPUs count in steps of up to a microsecond */

/* ---- groups ---------------------------------------------------------------------------------- */

static void begin_group(struct rank_group_sum *group, const struct rank_comm *comm)
{
	const struct group_key *key = &group->key;

	group->sum = (struct rank_group){.hash = key->hash,
					 .comm_name = comm->name,
					 .comm_ranks = comm->ranks,
					 .graphs = key->graphs,
					 .func = (uint8_t)key->func,
					 .count = key->count,
					 .bytes = key->bytes_each && key->count < NUMBER_MOST / 256
							  ? key->count * key->bytes_each
							  : 0};
}

struct rank_group_sum *rank_group_get(struct ranks *ranks, const struct rank_instance *instance)
{
	const struct rank_comm *comm = instance->comm;
	struct ranks_work *w = ranks->work;
	struct group_key key = {comm->key.hash,  comm->key.job,      comm->key.graphs,
				instance->count, instance->key.func, instance->bytes_each};
	struct rank_group_sum *group;

	HASH_FIND(hh, w->groups, &key, sizeof(key), group);
	if (!group && HASH_COUNT(w->groups) >= RANK_GROUPS_MOST / 2) {
		key.count = key.bytes_each = 0;
		HASH_FIND(hh, w->groups, &key, sizeof(key), group);
	}
	if (!group && HASH_COUNT(w->groups) >= RANK_GROUPS_MOST - 1) {
		key.hash = key.job = key.func = 0;
		HASH_FIND(hh, w->groups, &key, sizeof(key), group);
	}
	if (!group) {
		HASH_NEW(w->groups, group, key, key);
		begin_group(group, comm);
	}
	return group;
}

/* ---- who waits for whom ---------------------------------------------------------------------- */

/* Ranks that the data comes from, which the others wait for; and whether a rank waits at all. */
static bool gives(const struct rank_instance *instance, const struct rank_op *op)
{
	bool root = (int64_t)op->member->number == (int64_t)instance->peer;

	switch (instance->func) {
	case SPY_NCCL_BROADCAST:
	case SPY_NCCL_SCATTER:
		return root;
	case SPY_NCCL_REDUCE:
	case SPY_NCCL_GATHER:
		return !root;
	default:
		return true;
	}
}

static bool takes(const struct rank_instance *instance, const struct rank_op *op)
{
	bool one_way = !gives(instance, op);
	uint8_t func = instance->func;

	return one_way || !(func == SPY_NCCL_BROADCAST || func == SPY_NCCL_SCATTER ||
			    func == SPY_NCCL_REDUCE || func == SPY_NCCL_GATHER);
}

/* An all-to-all is a collective, whatever NCCL makes it of. */
static bool is_message(const struct rank_instance *instance)
{
	return rank_func_is_between_two(instance->func) && !instance->ops->exchange;
}

/* Of a message in an all-to-all the others wait for who sends it, not for who receives it. */
static bool may_be_last(const struct rank_instance *instance, const struct rank_op *op)
{
	return !op->exchange || op->member->number == instance->key.from;
}

static size_t count_aligned(const struct rank_instance *instance)
{
	size_t n = 0;

	for (const struct rank_op *op = instance->ops; op; op = op->next)
		n += op->aligned;
	return n;
}

static bool any_ran(const struct rank_instance *instance)
{
	size_t n = 0;

	for (const struct rank_op *op = instance->ops; op; op = op->next)
		n += op->ran;
	return n > 1;
}

/* Of those that give, who came last; NULL: nobody is known. */
static struct rank_op *last_of(const struct rank_instance *instance)
{
	struct rank_op *op, *last = NULL;

	for (op = instance->ops; op; op = op->next)
		if (op->aligned && gives(instance, op) &&
		    (!last || op->arrival_ns > last->arrival_ns))
			last = op;
	return last;
}

static uint64_t error_between(const struct rank_op *a, const struct rank_op *b)
{
	return max_u64(ERROR_LEAST_NS, max_u64(a->member->fit.error_ns, b->member->fit.error_ns));
}

/* A send ends before its receive begins where the data fit into NCCL's buffers: then it has not waited. */
static bool went_ahead(const struct rank_op *op, const struct rank_op *last)
{
	return rank_func_is_between_two(op->instance->func) &&
	       op->left_ns + (int64_t)error_between(op, last) < last->arrival_ns;
}

/*
 * Of several messages in one kernel the ends are not known: a receive ends no earlier than its send begins. Whether a send waits is
 * not known.
 */
static void find_end(const struct rank_instance *instance, struct rank_op *op,
		     const struct rank_op *last)
{
	bool receives = op->member->number == instance->key.to;

	if (!op->one_of_several || !op->aligned || !receives || last->arrival_ns <= op->left_ns)
		return;
	op->end_ns += (uint64_t)(last->arrival_ns - op->left_ns);
	op->left_ns = last->arrival_ns;
}

static bool may_wait(const struct rank_instance *instance, const struct rank_op *op)
{
	bool sends = op->one_of_several && op->member->number != instance->key.to;

	return takes(instance, op) && !sends;
}

/* How long it waited for the last one; 0: no longer than clocks can tell. */
static uint64_t wait_for(const struct rank_instance *instance, const struct rank_op *op,
			 const struct rank_op *last)
{
	int64_t wait_ns = last->arrival_ns - op->arrival_ns;

	if (op == last || !may_wait(instance, op) || wait_ns <= 0 || went_ahead(op, last) ||
	    (uint64_t)wait_ns <= error_between(op, last))
		return 0;
	return min_u64((uint64_t)wait_ns, op->end_ns - op->begin_ns);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* What of [begin, begin + ns) is not in the sum yet: operations in one launch wait at the same time. */
static uint64_t take_new(uint64_t *until_ns, uint64_t begin_ns, uint64_t ns)
{
	uint64_t end_ns = begin_ns + ns, from_ns = max_u64(begin_ns, *until_ns);

	if (from_ns >= end_ns)
		return 0;
	*until_ns = end_ns;
	return end_ns - from_ns;
}

static void add_waited_for(struct ranks *ranks, struct rank *rank, const struct rank *last,
			   uint64_t ns)
{
	if (!rank->waited_for_ns && !ranks->from_digests)
		rank->waited_for_ns = xcalloc(RANKS_MOST, sizeof(*rank->waited_for_ns));
	if (rank->waited_for_ns)
		rank->waited_for_ns[last->index] += ns;
	rank->wait_ns += ns;
	ranks->wait_ns += ns;
}

struct evaluated {
	struct rank_op *last; /* NULL: nobody */
	const struct rank_op *first; /* who waited longest for it; NULL: nobody */
	uint64_t wait_ns, late_ns, held_ns;
	double paid; /* of the wait, that part */
	bool working;
};

/* The waits of all; before and behind the working phase they are the start's and the end's. */
static void add_waits(struct ranks *ranks, const struct rank_instance *instance,
		      struct evaluated *e)
{
	for (struct rank_op *op = instance->ops; e->last && op; op = op->next) {
		uint64_t ns;

		find_end(instance, op, e->last);
		ns = op->aligned ? wait_for(instance, op, e->last) : 0;

		op->wait_ns = take_new(&op->member->waited_until_ns, op->begin_ns, ns);
		if (!op->wait_ns || op->member->rank == e->last->member->rank)
			continue;
		if (op->wait_ns > e->late_ns) {
			e->late_ns = op->wait_ns;
			e->first = op;
		}
		e->wait_ns += op->wait_ns;
		if (e->working && is_message(instance))
			op->member->rank->messages_wait_ns += op->wait_ns;
		if (e->working)
			add_waited_for(ranks, op->member->rank, e->last->member->rank, op->wait_ns);
		else
			op->member->rank->start_wait_ns += op->wait_ns;
	}
	if (!e->late_ns)
		e->last = NULL;
}

/* Until the last but one came. */
static uint64_t held_by(const struct rank_instance *instance, const struct rank_op *last,
			uint64_t late_ns)
{
	int64_t second_ns = INT64_MIN;

	for (const struct rank_op *op = instance->ops; op; op = op->next)
		if (op != last && op->aligned && op->arrival_ns > second_ns)
			second_ns = op->arrival_ns;
	return second_ns >= last->arrival_ns
		       ? 0
		       : min_u64((uint64_t)(last->arrival_ns - second_ns), late_ns);
}

/*
 * Of the time that others waited for the last one, what is paid. Where nothing has waited for the operation before, that
 * rank was behind already, and the others' own work went on beside the wait: then only what it has fallen back further
 * counts. It is no less than what it is behind by now; nor, if its GPU takes longer for the same work, than what it has fallen back by
 * that since the operation before.
 */
static void find_paid(struct evaluated *e)
{
	struct rank_member *member = e->last->member;
	uint64_t all_ns = e->late_ns, since_ns, back_ns;

	if (!e->last->continues && member->paid_ns != e->last->submit_begin_ns)
		member->behind_ns = 0;
	member->paid_ns = e->last->submit_begin_ns;
	since_ns = e->last->begin_ns - min_u64(member->ended_ns, e->last->begin_ns);
	back_ns = (uint64_t)(e->last->continues ? member->slower * (double)since_ns : 0);
	e->late_ns -= min_u64(member->behind_ns, all_ns);
	e->late_ns = max_u64(e->late_ns, min_u64(back_ns, all_ns));
	member->behind_ns += e->late_ns;
	e->held_ns = min_u64(e->held_ns, e->late_ns);
	e->paid = (double)e->late_ns / (double)all_ns;
}

#define BEHIND_NS 50000 /* from the end of an operation to the begin of one that waited for it */

/* Did it begin as soon as the operation before had ended? Then its rank would have come earlier, had that not waited. */
static bool came_behind(const struct rank_op *op)
{
	return op->continues &&
	       op->begin_ns - min_u64(op->member->ended_ns, op->begin_ns) < BEHIND_NS;
}

/* Those behind which something waits: what is late there, certainly holds it up. */
static void see_end_of_row(struct rank_comm *comm)
{
	struct rank *rank = comm->row_last;

	if (!rank)
		return;
	rank->sure_ns += comm->row_late_ns;
	rank->longest_sure_ns = max_u64(rank->longest_sure_ns, comm->row_late_ns);
	comm->row_last = NULL;
}

/* late_ns: the longest wait in it. */
static void see_in_row(const struct rank_instance *instance, const struct evaluated *e,
		       uint64_t late_ns)
{
	if (!instance->ops->continues)
		see_end_of_row(instance->comm);
	instance->comm->row_last = e->last && e->working ? e->last->member->rank : NULL;
	instance->comm->row_late_ns = late_ns;
	if (e->last && came_behind(e->first))
		instance->comm->row_late_ns = max_u64(late_ns, e->last->member->behind_ns);
}

void rank_evaluate_end(struct rank_comm *comm)
{
	see_end_of_row(comm);
}

static void add_times(const struct rank_instance *instance, const struct evaluated *e)
{
	for (struct rank_op *op = instance->ops; op; op = op->next) {
		struct rank_member *member = op->member;
		struct rank *rank = member->rank;

		if (op->ran && e->working && member->ended_ns &&
		    rank_func_is_between_two(instance->func))
			rank->work_ns +=
				min_u64(op->begin_ns - min_u64(member->ended_ns, op->begin_ns),
					rank_op_queued(op));
		if (op->ran && !member->comm->key.graphs) {
			if (e->working)
				rank->in_collectives_ns +=
					take_new(&member->busy_until_ns, op->begin_ns,
						 op->end_ns - op->begin_ns);
			rank->by_host_times |= op->by_host_times;
		} else if (e->working) { /* of a graph these are not all that it did */
			rank->in_collectives_ns += op->wait_ns;
		}
		rank->timed += op->aligned && !op->aside && may_be_last(instance, op);
		rank->messages += is_message(instance);
	}
}

static void add_share(struct rank_share **shares, size_t *n, const struct evaluated *e)
{
	struct rank_share *share;

	if (!e->last)
		return;
	share = rank_share_of(shares, n, e->last->member->rank);
	share->count++;
	share->ns += e->wait_ns;
}

/* From the last arrival to the first end; 0: not known. */
static uint64_t transfer_of(const struct rank_instance *instance)
{
	int64_t arrival_ns = INT64_MIN, left_ns = INT64_MAX;

	for (const struct rank_op *op = instance->ops; op; op = op->next) {
		if (op->one_of_several)
			return 0;
		if (!op->aligned)
			continue;
		if (op->arrival_ns > arrival_ns)
			arrival_ns = op->arrival_ns;
		if (op->left_ns < left_ns)
			left_ns = op->left_ns;
	}
	return left_ns > arrival_ns ? (uint64_t)(left_ns - arrival_ns) : 0;
}

static const struct rank_op *first_rank_of(const struct rank_instance *instance)
{
	const struct rank_op *op, *first = instance->ops;

	for (op = instance->ops; op; op = op->next)
		if (op->member->number < first->member->number)
			first = op;
	return first;
}

static void add_to_places(struct ranks *ranks, const struct rank_instance *instance,
			  const struct evaluated *e)
{
	struct rank_group_sum *group = rank_group_get(ranks, instance);
	const struct rank_op *first = first_rank_of(instance);
	struct rank_site *site = &first->site->sum;

	group->sum.operations++;
	group->sum.wait_ns += e->wait_ns;
	group->sum.late_ns += e->late_ns;
	group->sum.transfer_ns += transfer_of(instance);
	group->sum.in_a_row += first->in_a_row;
	group->sum.nobody += !e->last;
	add_share(&group->sum.last, &group->sum.n_last, e);
	site->operations++;
	site->wait_ns += e->wait_ns;
	site->late_ns += e->late_ns;
	add_share(&site->last, &site->n_last, e);
}

/*
 * Ranks that meet in several communicators wait in all of them for one that is late: a pair's first operation, and behind it that of all
 * ranks, are late for the same time. What it did since the first one is all that it is late for in the other; and no time counts
 * twice. (Launches of graphs have times of the host.)
 */
static void take_late(const struct rank_instance *instance, struct evaluated *e)
{
	const struct rank_op *last = e->last;
	struct rank *rank = last->member->rank;
	uint64_t end_ns = last->begin_ns;

	if (!e->late_ns || instance->comm->key.graphs)
		return;
	if (rank->late_process != last->member->process) /* it was started again */
		rank->late.n = 0;
	rank->late_process = last->member->process;
	e->late_ns = min_u64(e->late_ns, end_ns - min_u64(last->met_before_ns, end_ns));
	e->late_ns = rank_spans_take(&rank->late, end_ns - e->late_ns, end_ns);
	e->held_ns = min_u64(e->held_ns, e->late_ns);
}

static void add_to_last(struct ranks *ranks, struct rank_instance *instance,
			const struct evaluated *e, struct rank_step_part *step)
{
	struct rank *rank = e->last->member->rank;

	rank->last_count++;
	rank->caused_ns += e->wait_ns;
	rank->paid_ns += (uint64_t)((double)e->wait_ns * e->paid);
	rank->late_ns += e->late_ns;
	rank->longest_late_ns = max_u64(rank->longest_late_ns, e->late_ns);
	rank->held_ns += e->held_ns;
	ranks->caused_ns += e->wait_ns;
	ranks->late_ns += e->late_ns;
	step->last = rank;
	step->process = e->last->member->process;
	rank_reasons_charge(ranks, instance, e->last, e->late_ns, &step->cause, &step->cause_ns);
}

/* ---- the listener ------------------------------------------------------------------------------ */

static void show_op(const struct listener *listener, const struct rank_instance *instance,
		    const struct rank_op *op, const struct rank *last)
{
	const struct rank_member *member = op->member;
	bool timed = op->ran && (op->by_host_times || member->has_host);
	uint64_t offset_ns = op->by_host_times ? 0 : (uint64_t)member->host_offset_ns;

	listener->on_collective(
		listener->data,
		&(struct shown_collective){
			.rank = member->rank->index,
			.last_rank = last ? last->index : UINT32_MAX,
			.number = instance->number,
			.process = member->process,
			.device = (uint8_t)member->device,
			.func = instance->comm->key.graphs ? SPY_NCCL_FUNCS : instance->func,
			.by_host_times = op->by_host_times,
			.comm = instance->comm->key.hash,
			.count = instance->count,
			.bytes = instance->bytes_each && instance->count < NUMBER_MOST / 256
					 ? instance->count * instance->bytes_each
					 : 0,
			.submit_begin_ns = op->submit_begin_ns,
			.submit_end_ns = op->submit_end_ns,
			.begin_ns = timed ? op->begin_ns + offset_ns : 0,
			.end_ns = timed ? op->end_ns + offset_ns : 0,
			.wait_ns = timed ? op->wait_ns : 0});
}

static void show(struct ranks *ranks, struct rank_instance *instance, const struct rank_op *last_op)
{
	const struct rank *last = last_op ? last_op->member->rank : NULL;
	const struct listener *listener = ranks->idle->accounts->listener;

	if (ranks->on_evaluated)
		ranks->on_evaluated(ranks->data, instance, last_op);
	if (!listener || !listener->on_collective)
		return;
	instance->number = ranks->work->n_shown++;
	for (const struct rank_op *op = instance->ops; op; op = op->next)
		show_op(listener, instance, op, last);
}

/* ---- an operation ---------------------------------------------------------------------------- */

/* When the ranks were together before an operation; another message of its kernel is not before it. */
static void find_met(const struct rank_op *op)
{
	struct rank_member *member = op->member;

	if (member->met_launch_ns != op->submit_begin_ns)
		member->met_ns = member->met_after_ns;
}

/* When the ranks were together last, by its GPU's timer and on the clock of its host. */
static void set_met(const struct rank_instance *instance)
{
	for (const struct rank_op *op = instance->ops; op; op = op->next) {
		struct rank_member *member = op->member;
		uint64_t end_ns = op->end_ns;

		if (op->ran)
			member->ended_ns = max_u64(member->ended_ns, op->end_ns);
		if (!op->ran || (!op->by_host_times && !member->has_host))
			continue;
		if (!op->by_host_times)
			end_ns += (uint64_t)member->host_offset_ns - member->host_error_ns;
		member->met_after_ns = end_ns > op->ran_ns ? op->ran_ns : end_ns;
		member->met_launch_ns = op->submit_begin_ns;
	}
}

static bool is_working(const struct ranks *ranks, const struct rank_instance *instance)
{
	for (const struct rank_op *op = instance->ops; op; op = op->next)
		if (op->aligned &&
		    (op->aside || !rank_working(ranks, op->member->process, op->submit_begin_ns)))
			return false;
	return true;
}

/* When the step's reference submitted it, and when it began for the first rank, by the reference's own timer. */
static void find_begin(const struct rank_instance *instance, struct rank_step_part *step)
{
	const struct rank_op *op, *reference = NULL;
	int64_t first_ns = INT64_MAX;

	for (op = instance->ops; op; op = op->next) {
		if (op->reference)
			reference = op;
		if (op->aligned && op->arrival_ns < first_ns)
			first_ns = op->arrival_ns;
	}
	if (!reference)
		return;
	step->begin_ns = reference->submit_end_ns;
	step->by_host_times = reference->by_host_times;
	if (reference->ran)
		step->first_ns = reference->begin_ns;
	if (reference->aligned)
		step->first_ns -= (uint64_t)(reference->arrival_ns - first_ns);
}

static bool any_followed(const struct rank_instance *instance)
{
	const struct rank_op *op = instance->ops;

	while (op && !op->followed)
		op = op->next;
	return op;
}

static void count_out(struct ranks *ranks, const struct rank_instance *instance)
{
	if (instance->comm->key.graphs) /* they are counted as captured */
		return;
	if (instance->comm->n_members == 1)
		ranks->alone++;
	else if (any_ran(instance))
		ranks->unaligned++;
	else if (any_followed(instance))
		ranks->incomplete++;
	else
		ranks->untimed++;
}

void rank_evaluate(struct ranks *ranks, struct rank_instance *instance)
{
	struct evaluated e = {.last = NULL, .paid = 1};
	struct rank_step_part step = {.last = NULL};
	uint64_t late_ns;

	for (struct rank_op *op = instance->ops; op; op = op->next) {
		find_met(op);
		rank_reasons_see(op);
	}
	e.working = is_working(ranks, instance);
	if (!instance->comm->key.graphs) {
		rank_order_compare(ranks, instance);
		rank_sample_see(ranks, instance);
	}
	if (count_aligned(instance) < 2) {
		count_out(ranks, instance);
		add_times(instance, &e);
		show(ranks, instance, NULL);
		set_met(instance);
		return;
	}
	ranks->matched++;
	ranks->graphs += instance->comm->key.graphs;
	find_begin(instance, &step);
	e.last = last_of(instance);
	add_waits(ranks, instance, &e);
	add_times(instance, &e);
	late_ns = e.late_ns;
	if (e.last) {
		e.held_ns = held_by(instance, e.last, e.late_ns);
		find_paid(&e);
	}
	see_in_row(instance, &e, late_ns);
	show(ranks, instance, e.last);
	if (e.last && !e.working) {
		e.last->member->rank->start_caused_ns += e.wait_ns;
		e.wait_ns = e.late_ns = 0;
		e.last = NULL;
	}
	add_to_places(ranks, instance, &e);
	if (e.working) {
		rank_parts_next(&ranks->parts);
		if (!is_message(instance)) /* of pipelines each has its own code */
			rank_unshared_see(instance);
	}
	if (e.last) { /* systematic is what each communicator sees */
		rank_parts_add(&ranks->parts, e.last->member->rank->index, e.late_ns);
		take_late(instance, &e);
		add_to_last(ranks, instance, &e, &step);
	}
	for (const struct rank_op *op = instance->ops; op; op = op->next)
		if (op != e.last)
			rank_reasons_in_time(op);
	step.wait_ns = e.wait_ns;
	step.late_ns = e.late_ns;
	rank_steps_add(ranks, instance, &step);
	set_met(instance);
}
