/*
 * analyzer/ranks/match.c: operations of different ranks that are one. Called for events of operations.
 *
 * The ranks of a communicator are matched by the number that NCCL itself gives an operation, sends with receives by those
 * that the recorder gives them, so that what is not recorded puts nothing out. Hosts' clocks may differ, so the order in which records of different hosts come means nothing.
 * What is complete is evaluated in blocks, as many as the clocks need; what is not is kept while there is room.
 */
#include <stdlib.h>
#include "work.h"

/* How many instances of a communicator are evaluated at a time. Of a digest, each communicator keeps so many. */
static size_t block_of(const struct ranks *ranks, const struct rank_comm *comm)
{
	size_t n = BLOCK_OPS / (comm->n_members + 1), most = BLOCK_MOST;

	if (ranks->sample)
		most = min_u64(most, SAMPLED_OPS / (ranks->work->n_comms + 1));
	n = n > most ? most : n;
	return n < 8 ? 8 : n;
}

/* Ranks of a communicator that have not come yet may be of hosts whose clocks are behind; or were never recorded. */
#define PATIENCE 8 /* blocks */

/* So many instances wait for others of their operations: some times what threads can submit ahead of their GPUs. */
#define OPEN_MOST 4096

/* ---- instances ------------------------------------------------------------------------------- */

static struct rank_instance *instance_find(struct rank_comm *comm, const struct instance_key *key)
{
	struct rank_instance *instance;

	HASH_FIND(hh, comm->instances, key, sizeof(*key), instance);
	return instance;
}

static struct rank_instance *instance_add(struct rank_comm *comm, const struct instance_key *key)
{
	struct rank_instance *instance = xcalloc(1, sizeof(*instance));

	instance->key = *key;
	instance->comm = comm;
	instance->prev = comm->last;
	*(comm->last ? &comm->last->next : &comm->first) = instance;
	comm->last = instance;
	comm->n_open++;
	HASH_ADD(hh, comm->instances, key, sizeof(instance->key), instance);
	return instance;
}

static void instance_free(struct ranks *ranks, struct rank_instance *instance)
{
	struct rank_comm *comm = instance->comm;
	struct ranks_work *w = ranks->work;
	struct rank_op *op, *next;

	for (op = instance->ops; op; op = next) {
		next = op->next;
		if (op->expected && !op->ran)
			HASH_DEL(w->pending, op);
		comm->n_ops--;
		w->n_ops--;
		rank_op_release(op);
	}
	*(instance->prev ? &instance->prev->next : &comm->first) = instance->next;
	*(instance->next ? &instance->next->prev : &comm->last) = instance->prev;
	comm->n_open--;
	comm->n_ready -= instance->ready;
	HASH_DEL(comm->instances, instance);
	free(instance->came);
	free(instance->spread);
	free(instance);
}

static uint32_t ranks_wanted(const struct rank_instance *instance)
{
	return rank_func_is_between_two(instance->func) ? 2 : (uint32_t)instance->comm->n_members;
}

static void look_whether_ready(struct rank_instance *instance)
{
	bool ready = instance->n_done >= ranks_wanted(instance);

	instance->comm->n_ready += (size_t)ready - (size_t)instance->ready;
	instance->ready = ready;
}

/* Once for all members that have joined since the last time. */
static void look_again(struct rank_comm *comm)
{
	if (!comm->grew)
		return;
	comm->grew = false;
	for (struct rank_instance *instance = comm->first; instance; instance = instance->next)
		look_whether_ready(instance);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The end of its last operation, by the reference's timer; unknown: that of the one before. */
static int64_t left_of(const struct rank_instance *instance, int64_t before_ns)
{
	int64_t left_ns = INT64_MIN;

	for (const struct rank_op *op = instance->ops; op; op = op->next) {
		int64_t ns = op->one_of_several ? op->arrival_ns : op->left_ns;

		if (op->aligned && ns > left_ns)
			left_ns = ns;
	}
	return left_ns == INT64_MIN ? before_ns : left_ns;
}

/*
 * Collectives come in the order in which all ranks have them. A rank may submit many sends ahead of the receives; then a rank has
 * its receives in the order in which they end.
 */
static void put_in_order(struct rank_instance **block, size_t n)
{
	for (size_t i = 0; i < n; i++)
		block[i]->left_ns = left_of(block[i], i ? block[i - 1]->left_ns : INT64_MIN);
	for (size_t i = 1; i < n; i++) {
		struct rank_instance *instance = block[i];
		size_t at = i;

		for (; at && block[at - 1]->left_ns > instance->left_ns; at--)
			block[at] = block[at - 1];
		block[at] = instance;
	}
}

/* The oldest n, those that are ready or all; they are gone then. */
static void evaluate_block(struct ranks *ranks, struct rank_comm *comm, size_t n, bool all)
{
	struct rank_instance **block = xcalloc(n + 1, sizeof(struct rank_instance *)), *instance;
	size_t i, got = 0;
	bool messages = false;

	for (instance = comm->first; instance && got < n; instance = instance->next)
		if (all || instance->ready) {
			block[got++] = instance;
			messages |= rank_func_is_between_two(instance->func);
		}
	rank_clocks_fit(ranks, comm, block, got);
	if (messages)
		put_in_order(block, got);
	for (i = 0; i < got; i++) {
		rank_evaluate(ranks, block[i]);
		instance_free(ranks, block[i]);
	}
	free(block);
}

/* Are all ranks of the communicator known that will come? In a digest it is one. */
static bool is_whole(const struct ranks *ranks, const struct rank_comm *comm)
{
	return ranks->sample || (comm->ranks && comm->n_members >= comm->ranks);
}

static void evaluate_some(struct ranks *ranks, struct rank_comm *comm)
{
	size_t block = block_of(ranks, comm);

	/* From digests each comes as a whole, in the order of time; the last one is coming. */
	if (ranks->from_digests) {
		while (comm->n_open > block)
			evaluate_block(ranks, comm, block, true);
		return;
	}
	look_again(comm);
	while (comm->n_ready >= (is_whole(ranks, comm) ? block : PATIENCE * block))
		evaluate_block(ranks, comm, block, false);
	while (comm->n_open > OPEN_MOST)
		evaluate_block(ranks, comm, block, true);
	if (ranks->work->n_ops >= OPS_MOST)
		evaluate_block(ranks, comm, comm->n_open / 2 + 1, true);
}

void rank_comm_close(struct ranks *ranks, struct rank_comm *comm)
{
	while (comm->first)
		evaluate_block(ranks, comm, block_of(ranks, comm), true);
	rank_evaluate_end(comm);
}

void rank_comm_free(struct ranks *ranks, struct rank_comm *comm)
{
	while (comm->first)
		instance_free(ranks, comm->first);
	HASH_CLEAR(by_number, comm->by_number);
	for (size_t i = 0; i < comm->n_members; i++) {
		rank_op_release(comm->members[i]->message);
		free(comm->members[i]);
	}
	free(comm->members);
	free(comm);
}

/* ---- which operation ------------------------------------------------------------------------- */

bool rank_func_is_between_two(uint8_t func)
{
	return func == SPY_NCCL_SEND || func == SPY_NCCL_RECV;
}

/* False: it cannot be followed. */
static bool key_of(const struct rank_member *member, const struct spy_rec_collective *operation,
		   struct instance_key *key)
{
	*key = (struct instance_key){.func = operation->func, .seq = operation->seq};
	if (!rank_func_is_between_two(operation->func))
		return true;
	if (operation->peer < 0 || !operation->seq)
		return false;
	key->func = SPY_NCCL_SEND;
	key->from = operation->func == SPY_NCCL_SEND ? member->number : (uint32_t)operation->peer;
	key->to = operation->func == SPY_NCCL_SEND ? (uint32_t)operation->peer : member->number;
	return true;
}

/* False: it has come before. */
static bool take_member(struct rank_instance *instance, const struct rank_member *member)
{
	uint64_t bit = (uint64_t)1 << member->index % 64;
	uint32_t words = instance->n_came, word = member->index / 64;

	if (word >= words) {
		instance->came = xrealloc(instance->came, word + 1, sizeof(*instance->came));
		memset(&instance->came[words], 0, (word + 1 - words) * sizeof(*instance->came));
		instance->n_came = word + 1;
	}
	if (instance->came[word] & bit)
		return false;
	instance->came[word] |= bit;
	return true;
}

static struct rank_instance *instance_get(struct rank_comm *comm, const struct instance_key *key,
					  const struct spy_rec_collective *operation)
{
	struct rank_instance *instance = instance_find(comm, key);

	if (instance)
		return instance;
	instance = instance_add(comm, key);
	instance->func = operation->func;
	instance->count = min_u64(operation->count, NUMBER_MOST);
	instance->bytes_each = operation->bytes_each;
	instance->peer = operation->peer;
	return instance;
}

/* ---- submitted ------------------------------------------------------------------------------- */

static uint64_t key_of_op(const struct process *process, uint32_t id, bool graph)
{
	return (uint64_t)graph << 63 | (uint64_t)process->trace->index << 32 | id;
}

/* From now on SPY_EV_COLLECTIVE_RAN finds it. An older one of the same number never ran, as far as is known. */
static void expect_run(struct ranks *ranks, struct rank_op *op, uint32_t id)
{
	struct ranks_work *w = ranks->work;
	struct rank_op *older;

	op->key = key_of_op(op->member->process, id, op->member->comm->key.graphs);
	HASH_FIND(hh, w->pending, &op->key, sizeof(op->key), older);
	if (older) {
		HASH_DEL(w->pending, older);
		older->expected = false;
		older->instance->n_done++;
		look_whether_ready(older->instance);
	}
	op->expected = true;
	HASH_ADD(hh, w->pending, key, sizeof(op->key), op);
}

static void op_add(struct ranks *ranks, struct rank_instance *instance, struct rank_member *member,
		   struct rank_op *op)
{
	for (uint32_t i = 0; i < op->n_parts; i++) {
		op->parts[i].like = op->parts[i].place->like;
		op->parts[i].roughly = op->parts[i].place->roughly;
	}
	op->instance = instance;
	op->member = member;
	op->next = instance->ops;
	instance->ops = op;
	instance->n_ops++;
	instance->comm->n_ops++;
	ranks->work->n_ops++;
}

/* As this rank has it, for those who disagree. */
static struct rank_op_seen seen_as(const struct rank_op *op,
				   const struct spy_rec_collective *operation)
{
	struct rank_op_seen seen = rank_seen_of(op);

	seen.func = operation->func;
	seen.count = min_u64(operation->count, NUMBER_MOST);
	seen.bytes_each = operation->bytes_each;
	seen.peer = operation->peer;
	return seen;
}

static struct rank_member *member_of(const struct ranks_work *w, const struct process *process,
				     uint32_t comm)
{
	const struct member_key key = {process->trace->index, comm};
	struct rank_member *member;

	HASH_FIND(hh, w->members, &key, sizeof(key), member);
	return member;
}

/* What the group knows of where such operations are submitted stands in for a stack. */
static struct rank_site_sum *site_of(struct ranks *ranks, const struct rank_instance *instance,
				     const struct rank_submitted_event *event,
				     struct rank_site_sum *site)
{
	struct rank_group_sum *group = rank_group_get(ranks, instance);

	if (event->site.has_stack)
		group->site = site;
	return group->site ?: site;
}

static void see_rank(struct rank_member *member, const struct rank_op *op, uint64_t ns)
{
	struct rank *rank = member->rank;

	rank->operations++;
	rank->process = member->process;
	rank->device = (uint8_t)member->device;
	if (!rank->first_ns)
		rank->first_ns = op->submit_begin_ns;
	rank->last_ns = max_u64(rank->last_ns, ns);
}

/*
 * A kernel with several messages: what NCCL says of each of them is how long one part of it took, and that of a receive
 * may be the send beside it (measured: NCCL 2.28.9, a receive of 56 MiB beside a send of 8 MiB). What the thread and the GPU did
 * before is with the first of them.
 */
static void follow(struct rank_op *op, struct rank_op *before)
{
	struct rank_op *lead = before->lead ?: before;

	before->one_of_several = op->one_of_several = true;
	op->lead = rank_op_hold(lead);
	op->parts = lead->parts;
	op->n_parts = lead->n_parts;
	op->gpu_operations = lead->gpu_operations;
	op->continues = lead->continues;
	op->first = lead->first;
}

/* A message to itself is a copy within its GPU: it tells an all-to-all, of which it is the first one. */
static bool is_to_itself(const struct rank_member *member,
			 const struct spy_rec_collective *operation)
{
	return rank_func_is_between_two(operation->func) && operation->peer >= 0 &&
	       (uint32_t)operation->peer == member->number;
}

static void see_message(struct rank_member *member, struct rank_op *op,
			const struct spy_rec_collective *operation)
{
	uint64_t count = min_u64(operation->count, NUMBER_MOST / 256);

	if (member->message && member->message->launched && op->launched &&
	    member->message->submit_begin_ns == op->submit_begin_ns)
		follow(op, member->message);
	rank_op_release(member->message);
	member->message = rank_op_hold(op);
	op->exchange = op->launched &&
		       (is_to_itself(member, operation) || (op->lead && op->lead->exchange));
	if (op->exchange && operation->func == SPY_NCCL_RECV)
		member->rank->exchanged_bytes += count * operation->bytes_each;
}

/* It has a number among the others, but no times. */
static void see_captured(struct ranks *ranks, struct rank_member *member,
			 const struct spy_rec_collective *operation)
{
	uint64_t *next = &member->next_seq[operation->func];

	ranks->captured++;
	ranks->work->captured_follow += operation->flags & SPY_COLLECTIVE_RUN_FOLLOWS ? 1 : 0;
	if (!rank_func_is_between_two(operation->func))
		*next = max_u64(*next, operation->seq + 1);
}

/* False: the operation cannot be followed. */
static bool take_submitted(struct ranks *ranks, const struct rank_submitted_event *event,
			   struct rank_member *member, struct rank_site_sum *site)
{
	const struct spy_rec_collective *operation = &event->operation;
	struct rank_op *op = event->op;
	struct rank_instance *instance;
	struct instance_key key;
	struct rank_op_seen seen;

	if (!member || !key_of(member, operation, &key))
		return false;
	if (!op) {
		see_captured(ranks, member, operation);
		return true;
	}
	if (is_to_itself(member,
			 operation)) { /* it waits for none, and NCCL does not say when it ran */
		see_message(member, op, operation);
		rank_op_release(op);
		return true;
	}
	instance = instance_get(member->comm, &key, operation);
	if (!take_member(instance, member))
		return false;
	if (rank_func_is_between_two(operation->func))
		see_message(member, op, operation);
	op_add(ranks, instance, member, op);
	op->site = site_of(ranks, instance, event, site);
	seen = seen_as(op, operation);
	see_rank(member, op, event->ns);
	op->in_a_row = !event->graph && member->has_last && member->last.func == operation->func &&
		       !op->first && op->gpu_operations <= 1;
	if (!event->graph && !rank_func_is_between_two(operation->func)) {
		op->ordinal = member->ordinal++;
		member->rank->skips += member->next_seq[operation->func] &&
				       operation->seq > member->next_seq[operation->func];
		member->next_seq[operation->func] =
			max_u64(member->next_seq[operation->func], operation->seq + 1);
		member->seq_ns[operation->func] = seen.ns;
		rank_order_see(ranks, instance, &seen);
	}
	if (member->has_last)
		member->longest_ns =
			max_u64(member->longest_ns, seen.ns - min_u64(member->last.ns, seen.ns));
	member->last = seen;
	member->has_last = true;
	op->holes += member->rank->skips;
	rank_steps_see(ranks, op, event);
	op->followed = operation->flags & SPY_COLLECTIVE_RUN_FOLLOWS;
	if (op->followed) {
		expect_run(ranks, op, operation->id);
	} else {
		instance->n_done++;
		look_whether_ready(instance);
	}
	evaluate_some(ranks, member->comm);
	return true;
}

void rank_apply_submitted(struct ranks *ranks, const struct rank_submitted_event *event)
{
	const struct process *process = event->head.process;
	struct rank_member *member = member_of(ranks->work, process, event->operation.comm);
	struct rank_site_sum *site = NULL;

	if (member && event->graph)
		member = rank_graph_member(ranks, member);
	ranks->any = ranks->submits[process->trace->index] = true;
	if (event->op) /* it may be told but once */
		site = rank_site_get(ranks, process, &event->site, event->operation.func);
	if (take_submitted(ranks, event, member, site))
		return;
	ranks->lost++;
	free(event->op);
}

/* ---- and ran --------------------------------------------------------------------------------- */

#define GPU_TIME_MOST (UINT64_MAX >> 2) /* of nanoseconds since whatever: more is damage */

/*
 * The kernels of a communicator run in the order in which they were launched. Where some are of messages to itself, NCCL gives
 * collectives the times of kernels long before (measured: 2.28.9).
 */
static bool is_of_another(const struct rank_op *op)
{
	struct rank_member *member = op->member;

	if (op->submit_begin_ns > member->begun_launch_ns && op->begin_ns <= member->begun_ns)
		return true;
	if (op->submit_begin_ns >= member->begun_launch_ns) {
		member->begun_launch_ns = op->submit_begin_ns;
		member->begun_ns = op->begin_ns;
	}
	return false;
}

static void see_end(struct rank_op *op)
{
	const struct rank_member *member = op->member, *before = member->rank->ended_as;
	struct rank *rank = member->rank;

	if (before && before->comm != member->comm && before->process == member->process)
		op->met_before_ns = rank->ended_ns;
	rank->ended_ns = op->end_ns;
	rank->ended_as = member;
}

void rank_apply_ran(struct ranks *ranks, const struct rank_ran_event *event)
{
	uint64_t key = key_of_op(event->head.process, event->id, event->graph);
	struct ranks_work *w = ranks->work;
	struct rank_op *op;

	HASH_FIND(hh, w->pending, &key, sizeof(key), op);
	if (!op) {
		if (w->captured_follow) /* its times are those of another one */
			w->captured_follow--;
		else
			ranks->lost++;
		return;
	}
	HASH_DEL(w->pending, op);
	op->expected = false;
	op->instance->n_done++;
	op->ran_ns = event->ran_ns;
	op->seen_ns = event->seen_ns;
	op->by_host_times = event->by_host_times;
	op->begin_ns = event->begin_ns;
	op->end_ns = event->end_ns;
	op->ran = op->begin_ns <= op->end_ns && op->end_ns <= GPU_TIME_MOST;
	ranks->lost += !op->ran && !event->graph;
	if (op->ran && !event->graph && !op->by_host_times && is_of_another(op)) {
		op->ran = op->followed = false;
		look_whether_ready(op->instance);
		return;
	}
	if (op->ran && !event->graph && !rank_func_is_between_two(op->instance->func))
		op->member->ran_ordinal_1 = max_u64(op->member->ran_ordinal_1, op->ordinal + 1);
	if (op->ran && !event->graph)
		see_end(op);
	look_whether_ready(op->instance);
	evaluate_some(ranks, op->member->comm);
}
