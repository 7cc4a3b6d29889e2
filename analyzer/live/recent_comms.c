/*
 * analyzer/live/recent_comms.c: the collective operations that a process has submitted to each of its communicators, in their
 * order, as far as they are not known to have ended. Called by recent.c.
 *
 * Operations of one communicator run one after the other in each rank. So one that has ended says the same of all that were
 * submitted before it, and the first that has not is where the rank is.
 */
#include <stdlib.h>
#include "recent_see.h"

static struct recent_comm *comm_of(struct recent *r, uint32_t process, uint32_t number)
{
	struct recent_comm_key key = {process, number};
	struct recent_comm *comm;

	HASH_FIND(hh, r->comms, &key, sizeof(key), comm);
	if (comm)
		return comm;
	HASH_NEW(r->comms, comm, key, key);
	return comm;
}

void recent_see_comm(struct recent *r, const struct record *record)
{
	const struct spy_rec_nccl_comm *of = record_nccl_comm(record);
	struct recent_comm *comm = comm_of(r, record->process, of->comm);

	comm->known = true;
	comm->hash = of->hash;
	comm->rank = of->rank;
	comm->ranks = of->ranks;
	comm->tid = of->tid;
	comm->device = of->device;
	memcpy(comm->name, of->name, sizeof(comm->name));
	comm->name[sizeof(comm->name) - 1] = '\0';
}

static bool is_compared(const struct recent_operation *op)
{
	return !op->graph && op->func != SPY_NCCL_SEND && op->func != SPY_NCCL_RECV &&
	       op->func != SPY_NCCL_OTHER;
}

/* The operation is the work that its thread handed over last: it is no other operation's front. */
static void place_in_stream(struct recent *r, struct recent_operation *op)
{
	struct recent_work *work = recent_handed_over(r, op->thread);
	size_t n = 0;

	if (!work)
		return;
	op->stream = work->key;
	op->at = work->handed;
	if (work->other.at == work->handed)
		work->other = work->before;
	if (recent_is_outstanding(r, &work->other))
		op->fronts[n++] = work->other;
	if (recent_is_outstanding(r, &work->behind))
		op->fronts[n] = work->behind;
}

static bool has_ended(const struct recent *r, const struct recent_operation *op)
{
	const struct recent_piece piece = {.stream = op->stream, .at = op->at};

	return op->at && !recent_is_outstanding(r, &piece);
}

static void drop_first(struct recent_comm *comm, size_t n)
{
	comm->n_ops -= n;
	memmove(comm->ops, comm->ops + n, comm->n_ops * sizeof(*comm->ops));
}

/* Those that were submitted up to the last one whose stream has been waited for. */
static void drop_ended(const struct recent *r, struct recent_comm *comm)
{
	size_t i = comm->n_ops;

	while (i && !has_ended(r, &comm->ops[i - 1]))
		i--;
	drop_first(comm, i);
}

/* Where there are too many, the oldest are kept: the first that has not ended is what counts. */
static void add_op(struct recent *r, struct recent_comm *comm, const struct recent_operation *op)
{
	if (comm->n_ops == RECENT_OPS_MOST || (comm->n_ops && has_ended(r, &comm->ops[0])))
		drop_ended(r, comm);
	if (comm->n_ops == RECENT_OPS_MOST)
		return;
	comm->ops = grow(comm->ops, comm->n_ops, sizeof(*comm->ops));
	comm->ops[comm->n_ops++] = *op;
}

void recent_see_collective(struct recent *r, const struct record *record)
{
	const struct spy_rec_collective *of = record_collective(record);
	struct recent_comm *comm = comm_of(r, record->process, of->comm);
	struct recent_operation op = {
		.follows = of->flags & SPY_COLLECTIVE_RUN_FOLLOWS,
		.graph = of->flags & SPY_COLLECTIVE_GRAPH,
		.func = of->func < SPY_NCCL_FUNCS ? of->func : SPY_NCCL_OTHER,
		.bytes_each = of->bytes_each,
		.id = of->id,
		.seq = of->seq,
		.ns = record->ns,
		.count = of->count,
		.thread = record->thread,
	};

	if (!op.graph)
		place_in_stream(r, &op);
	comm->operations++;
	comm->submitted[op.func] = true;
	comm->last_seq[op.func] = op.seq;
	comm->last = op;
	if (is_compared(&op))
		add_op(r, comm, &op);
}

void recent_see_ran(struct recent *r, const struct record *record)
{
	const struct collective_ran_record ran = decode_collective_ran(record);
	struct recent_comm *comm = comm_of(r, record->process, ran.comm);
	const struct recent_operation *op;
	size_t i, j;

	for (i = 0; i < comm->n_ops && comm->ops[i].id != ran.id; i++)
		;
	if (i == comm->n_ops)
		return;
	op = &comm->ops[i];
	recent_ended(r, &(struct recent_piece){.stream = op->stream, .at = op->at});
	for (j = 0; j < RECENT_FRONTS; j++)
		recent_ended(r, &op->fronts[j]);
	drop_first(comm, i + 1);
}

const struct recent_piece *recent_in_front(const struct recent *r,
					   const struct recent_operation *op)
{
	for (size_t i = 0; i < RECENT_FRONTS; i++)
		if (recent_is_outstanding(r, &op->fronts[i]))
			return &op->fronts[i];
	return NULL;
}

/* What has ended since the last operation was submitted. */
void recent_finish_comms(struct recent *r)
{
	for (struct recent_comm *comm = r->comms; comm; comm = comm->hh.next)
		drop_ended(r, comm);
}

void recent_release_comms(struct recent *r)
{
	struct recent_comm *comm, *next;

	HASH_EMPTY (r->comms, comm, next) {
		free(comm->ops);
		free(comm);
	}
}
