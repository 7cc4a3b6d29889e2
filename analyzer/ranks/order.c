/*
 * analyzer/ranks/order.c: ranks that disagree about the order of their operations, and operations that some ranks wait in
 * and others have not submitted. Called for each operation, and for each communicator after the last record.
 */
#include <stdlib.h>
#include "work.h"

static uint64_t signature_of(const struct rank_instance *instance, const struct rank_op_seen *seen)
{
	uint64_t what = (uint64_t)seen->func << 8 | seen->bytes_each;

	return hash_mix(hash_mix(seen->count + 1) ^ what ^
			(uint64_t)(uint32_t)instance->peer << 32) |
	       1;
}

/* Records are missing: what there is cannot be numbered. */
static bool has_losses(const struct trace *trace)
{
	size_t i;

	for (i = 0; i < trace->n_streams; i++) {
		const struct reader_losses *l = &trace->streams[i]->reader.losses;

		if (l->packets_dropped || l->packets_missing || l->discarded || l->unreadable_bytes)
			return true;
	}
	return trace->board.present && trace->board.head.lost;
}

/* The first one of the communicator. Whether records are missing is known in the end. */
static void disagree(struct ranks_work *w, struct rank_comm *comm, const struct rank_ordinal *first,
		     const struct rank_op_seen *seen)
{
	comm->disagrees = true;
	w->disagreements = grow(w->disagreements, w->n_disagreements, sizeof(*w->disagreements));
	w->disagreements[w->n_disagreements++] = (struct rank_disagreement){
		.hash = comm->key.hash, .ordinal = first->ordinal, .a = first->seen, .b = *seen};
}

void rank_order_see(struct ranks *ranks, struct rank_member *member,
		    const struct rank_instance *instance, const struct rank_op_seen *seen)
{
	struct rank_comm *comm = member->comm;
	uint64_t ordinal = member->ordinal++, signature = signature_of(instance, seen);
	struct rank_ordinal *at;

	if (comm->disagrees)
		return;
	if (!comm->ordinals)
		comm->ordinals = xcalloc(ORDINALS_MOST, sizeof(*comm->ordinals));
	at = &comm->ordinals[ordinal % ORDINALS_MOST];
	if (ordinal >= comm->n_ordinals) {
		*at = (struct rank_ordinal){ordinal, signature, *seen};
		comm->n_ordinals = ordinal + 1;
	} else if (at->ordinal == ordinal && at->signature != signature) {
		disagree(ranks->work, comm, at, seen);
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

void rank_disagreement_find(struct ranks *ranks)
{
	const struct ranks_work *w = ranks->work;
	uint64_t count = 0;
	size_t i;

	for (i = 0; i < w->n_disagreements; i++) {
		const struct rank_disagreement *d = &w->disagreements[i];

		if (has_losses(d->a.process->trace) || has_losses(d->b.process->trace))
			continue;
		if (!count++)
			ranks->disagreement = *d;
	}
	ranks->disagreement.count = count;
}

static bool has_come(const struct rank_instance *instance, const struct rank_member *member)
{
	uint32_t word = member->index / 64;

	return word < instance->n_came && instance->came[word] >> member->index % 64 & 1;
}

/* Does it take part at all? */
static bool belongs(const struct rank_instance *instance, const struct rank_member *member)
{
	return !rank_func_is_between_two(instance->func) || member->number == instance->key.from ||
	       member->number == instance->key.to;
}

static const struct rank_op *waiting_of(const struct rank_instance *instance, uint32_t *n)
{
	const struct rank_op *op, *first = NULL;

	*n = 0;
	for (op = instance->ops; op; op = op->next) {
		if (op->ran)
			return NULL; /* who was there could go on */
		*n += op->expected;
		if (op->expected && (!first || op->member->number < first->member->number))
			first = op;
	}
	return first;
}

static struct rank_op_seen seen_of(const struct rank_instance *instance, const struct rank_op *op)
{
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

static bool find_missing(struct ranks *ranks, const struct rank_comm *comm,
			 const struct rank_instance *instance)
{
	struct rank_missing *missing = &ranks->missing[ranks->n_missing];
	const struct rank_member *first = NULL;
	uint32_t n_missing = 0, n_waiting;
	const struct rank_op *waiting = waiting_of(instance, &n_waiting);
	size_t i;

	for (i = 0; waiting && i < comm->n_members; i++) {
		const struct rank_member *member = comm->members[i];

		if (!belongs(instance, member) || has_come(instance, member))
			continue;
		n_missing++;
		if (!first || member->number < first->number)
			first = member;
	}
	if (!first)
		return false;
	*missing = (struct rank_missing){.hash = comm->key.hash,
					 .waiting = seen_of(instance, waiting),
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

	if (ranks->n_missing >= RANK_MISSING_MOST)
		return;
	while (instance && !find_missing(ranks, comm, instance))
		instance = instance->next;
}
