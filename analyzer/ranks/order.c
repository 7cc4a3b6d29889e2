/*
 * analyzer/ranks/order.c: ranks that disagree about the order of their operations, and operations that some ranks wait in
 * and others have not submitted. Called for each operation, and for each communicator after the last record.
 */
#include <stdlib.h>
#include "work.h"
#include "trace/losses.h"

/*
 * Operations are known by the numbers that NCCL gives them, never by how many there were before: records may be missing,
 * in cost windows, windows, losses, deleted parts. So what ranks disagree about is said of operations that both have:
 *  - one has another size in one of them (compared when it is submitted);
 *  - two of them are in another order (compared when they are evaluated: each member with the communicator's first one);
 * and of operations that only one has, between two that both have, if nothing is missing there.
 */

/* Windows begin and end for a thread when it looks, which it does every 2 ms and at calls. */
#define WINDOW_MARGIN_NS (10 * (uint64_t)1000000)

/* Was recording of the process dormant in that time? After the last record. */
static bool was_dormant(const struct process *process, uint64_t begin_ns, uint64_t end_ns)
{
	begin_ns -= min_u64(begin_ns, WINDOW_MARGIN_NS);
	end_ns = add_capped(end_ns, WINDOW_MARGIN_NS);
	return process_dormant_ns(process, begin_ns, end_ns) ||
	       (process->dormant && process->dormant_since_ns < end_ns);
}

/* What a process's record lacks: a bit for each. */
enum lacks {
	LACKS_LOOKED = 1, /* the others are known */
	LACKS_RECORDS = 2, /* there was no room for them, or they have gone since */
	LACKS_EARLIER = 4, /* a bounded trace has not kept its first ones */
	LACKS_BYTES = 8, /* there is something else in their place */
};

static uint8_t find_lacks(const struct trace *trace)
{
	const struct losses losses = losses_sum(trace);
	const struct reader_losses *l = &losses.streams;
	uint8_t lacks = LACKS_LOOKED;

	if (losses_records(&losses, trace) || losses.streams_missing || l->packets_missing ||
	    l->unreadable_files || (trace->board.present && trace->board.head.collectives_lost))
		lacks |= LACKS_RECORDS;
	if (l->packets_dropped)
		lacks |= LACKS_EARLIER;
	if (l->unreadable_bytes || l->disordered)
		lacks |= LACKS_BYTES;
	return lacks;
}

/* After the last record. */
static bool lacks(const struct ranks *ranks, const struct process *process, uint8_t what)
{
	uint8_t *known = &ranks->work->lacks[process->trace->index];

	if (!*known)
		*known = find_lacks(process->trace);
	return *known & what;
}

/* May records of the process be missing in that time? After the last record. */
static bool may_miss(const struct ranks *ranks, const struct process *process, uint64_t begin_ns,
		     uint64_t end_ns)
{
	return lacks(ranks, process, LACKS_RECORDS | LACKS_EARLIER | LACKS_BYTES) ||
	       process->part_is_apart || was_dormant(process, begin_ns, end_ns);
}

/* The same from one of its records to its end. What a bounded trace has not kept was before. */
static bool may_miss_since(const struct ranks *ranks, const struct process *process, uint64_t ns)
{
	bool next_part = process->part_ended && process->part_ended >= process->part;

	return lacks(ranks, process, LACKS_RECORDS | LACKS_BYTES | (ns ? 0 : LACKS_EARLIER)) ||
	       next_part || was_dormant(process, ns, NUMBER_MOST);
}

struct rank_op_seen rank_seen_of(const struct rank_op *op)
{
	const struct rank_instance *instance = op->instance;

	return (struct rank_op_seen){.rank = op->member->rank->index,
				     .func = instance->func,
				     .seq = instance->key.seq,
				     .count = instance->count,
				     .bytes_each = instance->bytes_each,
				     .peer = instance->peer,
				     .ns = op->submit_begin_ns,
				     .part = op->site->sum.part,
				     .process = op->site->sum.process};
}

/* ---- disagreements ----------------------------------------------------------------------------- */

#define ODD_MOST 64 /* of a communicator: operations that one rank lacks are looked for */
#define DISAGREEMENTS_MOST 16 /* of a communicator, in case records prove to be missing */

/* Whether records are missing is known in the end. */
static void disagree(struct ranks *ranks, struct rank_comm *comm,
		     const struct rank_disagreement *about)
{
	struct ranks_work *w = ranks->work;

	if (comm->n_disagreements++ >= DISAGREEMENTS_MOST)
		return;
	w->disagreements = grow(w->disagreements, w->n_disagreements, sizeof(*w->disagreements));
	w->disagreements[w->n_disagreements] = *about;
	w->disagreements[w->n_disagreements++].hash = comm->key.hash;
}

void rank_order_see(struct ranks *ranks, const struct rank_instance *instance,
		    const struct rank_op_seen *seen)
{
	const struct rank_op *other =
		instance->ops ? instance->ops->next : NULL; /* its own is first */

	if (ranks->from_digests || !other ||
	    (seen->count == instance->count && seen->bytes_each == instance->bytes_each &&
	     seen->peer == instance->peer))
		return;
	disagree(ranks, instance->comm,
		 &(struct rank_disagreement){
			 .kind = RANK_ANOTHER_SIZE, .a = rank_seen_of(other), .b = *seen});
}

static bool has_come(const struct rank_instance *instance, const struct rank_member *member)
{
	uint32_t word = member->index / 64;

	return word < instance->n_came && instance->came[word] >> member->index % 64 & 1;
}

/* An operation of `has` since that time, and before that one, to which the other has not come, as NCCL numbers them. False:
 * it is not known. */
static bool find_odd(const struct rank_member *has, const struct rank_member *other,
		     uint64_t since_ns, const struct rank_op *before, struct rank_op_seen *odd)
{
	const struct rank_instance *instance;
	const struct rank_op *op;

	for (instance = has->comm->first; instance; instance = instance->next) {
		if (rank_func_is_between_two(instance->func) || has_come(instance, other) ||
		    other->next_seq[instance->func] > instance->key.seq)
			continue;
		for (op = instance->ops; op && op->member != has; op = op->next)
			;
		if (op && op->submit_begin_ns >= since_ns && op->ordinal < before->ordinal) {
			*odd = rank_seen_of(op);
			return true;
		}
	}
	*odd = has->odd;
	return has->has_odd && odd->ns >= since_ns && odd->ns <= before->submit_begin_ns &&
	       other->next_seq[odd->func] <= odd->seq;
}

/* Operations of both since the last one that both have: as many, or one has some that the other has not. */
static void compare_counts(struct ranks *ranks, const struct rank_member *member,
			   const struct rank_op *first, const struct rank_op *op)
{
	const struct rank_pair *last = &member->pair;
	uint64_t more = first->ordinal - last->first_ordinal, own = op->ordinal - last->ordinal;
	const struct rank_op *has = more > own ? first : op, *lacks = more > own ? op : first;
	struct rank_op_seen odd;

	if (more == own || first->holes != last->first_holes || op->holes != last->holes ||
	    member->comm->n_odd++ >= ODD_MOST ||
	    !find_odd(has->member, lacks->member, last->ns[has == op], has, &odd))
		return;
	disagree(ranks, member->comm,
		 &(struct rank_disagreement){
			 .kind = RANK_ONE_MORE,
			 .a = odd,
			 .b = rank_seen_of(lacks),
			 .begin_ns = {last->ns[0], last->ns[1]},
			 .end_ns = {first->submit_end_ns, op->submit_end_ns},
			 .processes = {first->member->process, member->process}});
}

/* Of both members there is this operation and the one before: in the same order? */
static void compare(struct ranks *ranks, struct rank_member *member, const struct rank_op *first,
		    const struct rank_op *op)
{
	struct rank_pair *last = &member->pair;
	bool behind = first->ordinal > last->first_ordinal;
	struct rank_op_seen now = rank_seen_of(behind ? op : first);

	if (!last->known) {
	} else if (behind != (op->ordinal > last->ordinal)) {
		disagree(ranks, member->comm,
			 &(struct rank_disagreement){
				 .kind = RANK_ANOTHER_ORDER, .a = last->seen[!behind], .b = now});
	} else if (behind) {
		compare_counts(ranks, member, first, op);
	}
	*last = (struct rank_pair){.known = true,
				   .first_ordinal = first->ordinal,
				   .ordinal = op->ordinal,
				   .first_holes = first->holes,
				   .holes = op->holes,
				   .ns = {first->submit_begin_ns, op->submit_begin_ns},
				   .seen = {rank_seen_of(first), rank_seen_of(op)}};
}

void rank_order_compare(struct ranks *ranks, const struct rank_instance *instance)
{
	const struct rank_comm *comm = instance->comm;
	const struct rank_op *op, *first = NULL;

	if (ranks->from_digests || rank_func_is_between_two(instance->func))
		return;
	for (op = instance->ops; op; op = op->next)
		if (!op->member->index)
			first = op;
	for (op = instance->ops; op; op = op->next) {
		if (instance->n_ops < comm->n_members) {
			op->member->odd = rank_seen_of(op);
			op->member->has_odd = true;
		}
		if (first && op != first)
			compare(ranks, op->member, first, op);
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool holds(const struct ranks *ranks, const struct rank_disagreement *d)
{
	if (lacks(ranks, ranks->all[d->a.rank]->process, LACKS_BYTES) ||
	    lacks(ranks, ranks->all[d->b.rank]->process, LACKS_BYTES))
		return false;
	return d->kind != RANK_ONE_MORE ||
	       (!may_miss(ranks, d->processes[0], d->begin_ns[0], d->end_ns[0]) &&
		!may_miss(ranks, d->processes[1], d->begin_ns[1], d->end_ns[1]));
}

void rank_disagreement_find(struct ranks *ranks)
{
	const struct ranks_work *w = ranks->work;
	uint64_t count = 0;

	for (size_t i = 0; i < w->n_disagreements; i++) {
		if (!holds(ranks, &w->disagreements[i]))
			continue;
		if (!count++)
			ranks->disagreement = w->disagreements[i];
	}
	ranks->disagreement.count = count;
}

/* Does it take part at all? */
static bool belongs(const struct rank_instance *instance, const struct rank_member *member)
{
	return !rank_func_is_between_two(instance->func) || member->number == instance->key.from ||
	       member->number == instance->key.to;
}

/* Its record of when the operation ended may be what is missing; or later ones have ended, so it has. */
static bool may_have_run(const struct ranks *ranks, const struct rank_op *op)
{
	return op->member->ran_ordinal_1 > op->ordinal ||
	       may_miss_since(ranks, op->member->process, op->submit_begin_ns);
}

static const struct rank_op *waiting_of(const struct ranks *ranks,
					const struct rank_instance *instance, uint32_t *n)
{
	const struct rank_op *op, *first = NULL;

	*n = 0;
	for (op = instance->ops; op; op = op->next) {
		if (op->ran)
			return NULL; /* who was there could go on */
		if (!op->expected || may_have_run(ranks, op))
			continue;
		++*n;
		if (!first || op->member->number < first->member->number)
			first = op;
	}
	return first;
}

/* Has it submitted a later one of the function, or may the record of this one be missing? */
static bool may_have_come(const struct ranks *ranks, const struct rank_instance *instance,
			  const struct rank_member *member)
{
	return member->next_seq[instance->func] > instance->key.seq ||
	       may_miss_since(ranks, member->process, member->seq_ns[instance->func]);
}

/* A job that is ended from outside ends between two operations. */
#define WAITED_LEAST_NS 1000000000

/* Would it have come? Its process has ended, or it or the one that waits went on for longer than it ever took from an
 * operation to the next. */
static bool had_time(const struct rank_member *member, const struct rank_op *waiting)
{
	const struct process *own = member->process, *other = waiting->member->process;

	return (own->trace->board.present && own->trace->board.head.ended) ||
	       max_u64(own->last_ns, other->last_ns) >
		       add_capped(waiting->submit_end_ns,
				  max_u64(WAITED_LEAST_NS, 2 * member->longest_ns));
}

static bool find_missing(struct ranks *ranks, const struct rank_comm *comm,
			 const struct rank_instance *instance)
{
	struct rank_missing *missing = &ranks->missing[ranks->n_missing];
	const struct rank_member *first = NULL;
	uint32_t n_missing = 0, n_waiting;
	const struct rank_op *waiting = waiting_of(ranks, instance, &n_waiting);

	for (size_t i = 0; waiting && i < comm->n_members; i++) {
		const struct rank_member *member = comm->members[i];

		if (!belongs(instance, member) || has_come(instance, member) ||
		    may_have_come(ranks, instance, member) || !had_time(member, waiting))
			continue;
		n_missing++;
		if (!first || member->number < first->number)
			first = member;
	}
	if (!first)
		return false;
	*missing = (struct rank_missing){.hash = comm->key.hash,
					 .waiting = rank_seen_of(waiting),
					 .n_waiting = n_waiting,
					 .n_missing = n_missing,
					 .missing = first->rank->index,
					 .has_last = first->has_last,
					 .last = first->last};
	ranks->n_missing++;
	return true;
}

void rank_missing_find(struct ranks *ranks, const struct rank_comm *comm)
{
	const struct rank_instance *instance = comm->first;

	if (ranks->n_missing >= RANK_MISSING_MOST || comm->key.graphs)
		return;
	while (instance && !find_missing(ranks, comm, instance))
		instance = instance->next;
}
