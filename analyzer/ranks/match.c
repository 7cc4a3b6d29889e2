/*
 * analyzer/ranks/match.c: operations of different ranks that are one. Called for each record of an operation.
 *
 * The ranks of a communicator are matched by the number that NCCL itself gives an operation, sends with receives by how
 * many there were before. Hosts' clocks may differ, so the order in which records of different hosts come means nothing.
 * What is complete is evaluated in blocks, as many as the clocks need; what is not is kept while there is room.
 */
#include <stdlib.h>
#include "work.h"

/* How many instances of a communicator are evaluated at a time. */
static size_t block_of(const struct rank_comm *comm)
{
	size_t n = BLOCK_OPS / (comm->n_members + 1);

	return n < 8 ? 8 : n > BLOCK_MOST ? BLOCK_MOST : n;
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
		free(op);
	}
	*(instance->prev ? &instance->prev->next : &comm->first) = instance->next;
	*(instance->next ? &instance->next->prev : &comm->last) = instance->prev;
	comm->n_open--;
	comm->n_ready -= instance->ready;
	HASH_DEL(comm->instances, instance);
	free(instance->came);
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

void rank_comm_grew(struct rank_comm *comm)
{
	struct rank_instance *instance;

	for (instance = comm->first; instance; instance = instance->next)
		look_whether_ready(instance);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The oldest n, those that are ready or all; they are gone then. */
static void evaluate_block(struct ranks *ranks, struct rank_comm *comm, size_t n, bool all)
{
	struct rank_instance **block = xcalloc(n + 1, sizeof(struct rank_instance *)), *instance;
	size_t i, got = 0;

	for (instance = comm->first; instance && got < n; instance = instance->next)
		if (all || instance->ready)
			block[got++] = instance;
	rank_clocks_fit(ranks, comm, block, got);
	for (i = 0; i < got; i++) {
		rank_evaluate(ranks, block[i]);
		instance_free(ranks, block[i]);
	}
	free(block);
}

/* Are all ranks of the communicator known? */
static bool is_whole(const struct rank_comm *comm)
{
	return comm->ranks && comm->n_members >= comm->ranks;
}

static void evaluate_some(struct ranks *ranks, struct rank_comm *comm)
{
	size_t block = block_of(comm);

	while (comm->n_ready >= (is_whole(comm) ? block : PATIENCE * block))
		evaluate_block(ranks, comm, block, false);
	while (comm->n_open > OPEN_MOST)
		evaluate_block(ranks, comm, block, true);
	if (ranks->work->n_ops >= OPS_MOST)
		evaluate_block(ranks, comm, comm->n_open / 2 + 1, true);
}

void rank_comm_close(struct ranks *ranks, struct rank_comm *comm)
{
	while (comm->first)
		evaluate_block(ranks, comm, block_of(comm), true);
}

void rank_comm_free(struct ranks *ranks, struct rank_comm *comm)
{
	size_t i;

	while (comm->first)
		instance_free(ranks, comm->first);
	for (i = 0; i < comm->n_members; i++)
		free(comm->members[i]);
	free(comm->members);
	free(comm->ordinals);
	free(comm);
}

/* ---- which operation ------------------------------------------------------------------------- */

bool rank_func_is_between_two(uint8_t func)
{
	return func == SPY_NCCL_SEND || func == SPY_NCCL_RECV;
}

/* How many there were before, of that kind and to that rank; false: too many kinds. */
static bool count_pairing(struct ranks_work *w, const struct rank_member *member, uint32_t peer,
			  bool receives, uint64_t *n)
{
	const struct pairing_key key = {(uintptr_t)member, peer, receives};
	struct rank_pairing *pairing;

	HASH_FIND(hh, w->pairings, &key, sizeof(key), pairing);
	if (!pairing && HASH_COUNT(w->pairings) >= PAIRINGS_MOST)
		return false;
	if (!pairing) {
		pairing = xcalloc(1, sizeof(*pairing));
		pairing->key = key;
		HASH_ADD(hh, w->pairings, key, sizeof(pairing->key), pairing);
	}
	*n = pairing->n++;
	return true;
}

/* False: it cannot be followed. */
static bool key_of(struct ranks *ranks, const struct rank_member *member,
		   const struct spy_rec_collective *raw, struct instance_key *key)
{
	*key = (struct instance_key){.func = raw->func, .seq = raw->seq};
	if (!rank_func_is_between_two(raw->func))
		return true;
	if (raw->peer < 0)
		return false;
	key->func = SPY_NCCL_SEND;
	key->from = raw->func == SPY_NCCL_SEND ? member->number : (uint32_t)raw->peer;
	key->to = raw->func == SPY_NCCL_SEND ? (uint32_t)raw->peer : member->number;
	return count_pairing(ranks->work, member, (uint32_t)raw->peer, raw->func == SPY_NCCL_RECV,
			     &key->seq);
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
					  const struct spy_rec_collective *raw)
{
	struct rank_instance *instance = instance_find(comm, key);

	if (instance)
		return instance;
	instance = instance_add(comm, key);
	instance->func = raw->func;
	instance->count = min_u64(raw->count, NUMBER_MOST);
	instance->bytes_each = raw->bytes_each;
	instance->peer = raw->peer;
	return instance;
}

/* ---- submitted ------------------------------------------------------------------------------- */

#define BEHIND_MOST 4 /* calls that a library may make between the launch and the record */

/* The last of the thread's calls that submitted work; NULL: the record is not behind one. */
static const struct completed_call *launch_of(const struct ranks *ranks,
					      const struct thread_account *c)
{
	const struct functions *functions = &ranks->idle->accounts->model->set->functions;
	uint64_t known = c ? min_u64(c->ring.n, c->ring.size) : 0, i;

	for (i = 1; i <= known && i <= BEHIND_MOST; i++) {
		const struct completed_call *call = completed_call_at(&c->ring, c->ring.n - i);

		if (spy_contract_submits(functions->all[call->fn].contract))
			return call;
	}
	return NULL;
}

static uint64_t handed_over(const struct ranks *ranks, const struct rank_member *member)
{
	const struct gpu_work *work = &ranks->idle->accounts->work;
	const struct device_streams *d =
		&work->devices[work_index(work, member->process->trace->index, member->device)];

	return d->handed_over + d->others;
}

static uint64_t key_of_op(const struct record *record, uint32_t id)
{
	return (uint64_t)record->process << 32 | id;
}

/* From now on SPY_EV_COLLECTIVE_RAN finds it. An older one of the same number never ran, as far as is known. */
static void expect_run(struct ranks *ranks, struct rank_op *op, const struct record *record)
{
	struct ranks_work *w = ranks->work;
	struct rank_op *older;

	op->key = key_of_op(record, record->raw->collective.id);
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

static struct rank_op *op_add(struct ranks *ranks, struct rank_instance *instance,
			      struct rank_member *member, const struct record *record)
{
	const struct thread_account *c = thread_account_of(ranks->idle->accounts, record->thread);
	const struct completed_call *launch = launch_of(ranks, c);
	struct rank_lane *lane = rank_lane_get(ranks, record->thread);
	struct rank_part parts[PARTS_MOST];
	uint32_t n_parts = lane ? rank_lane_take(ranks, lane, parts) : 0;
	struct rank_op *op;
	uint64_t handed;

	op = xcalloc(1, sizeof(*op) + n_parts * sizeof(*op->parts));
	op->instance = instance;
	op->member = member;
	op->next = instance->ops;
	instance->ops = op;
	instance->n_ops++;
	op->launched = launch != NULL;
	op->first = true;
	op->submit_begin_ns = launch ? launch->begin_ns : record->ns;
	op->submit_end_ns = launch ? launch->end_ns : record->ns;
	op->n_parts = n_parts;
	if (lane) {
		memcpy(op->parts, parts, n_parts * sizeof(*op->parts));
		handed = handed_over(ranks, member);
		op->first = !lane->submitted_ns;
		op->gpu_operations = handed - min_u64(lane->handed_over, handed);
		lane->handed_over = handed;
		lane->submitted_ns = op->submit_begin_ns;
		if (lane->launches && launch)
			lane->launches[lane->n_launches++ % LAUNCHES_MOST] =
				(struct rank_launch){launch->begin_ns, launch->end_ns};
	}
	instance->comm->n_ops++;
	ranks->work->n_ops++;
	return op;
}

/* What the operation is, for those who disagree. */
static struct rank_op_seen seen_of(const struct rank_op *op, const struct record *record)
{
	const struct spy_rec_collective *raw = &record->raw->collective;

	return (struct rank_op_seen){.rank = op->member->rank->index,
				     .func = raw->func,
				     .seq = raw->seq,
				     .count = min_u64(raw->count, NUMBER_MOST),
				     .bytes_each = raw->bytes_each,
				     .peer = raw->peer,
				     .ns = op->submit_begin_ns,
				     .part = op->site->sum.part,
				     .process = op->site->sum.process};
}

static struct rank_member *member_of(const struct ranks_work *w, const struct record *record,
				     uint32_t comm)
{
	const struct member_key key = {record->process, comm};
	struct rank_member *member;

	HASH_FIND(hh, w->members, &key, sizeof(key), member);
	return member;
}

/* What the group knows of where such operations are submitted stands in for a stack. */
static struct rank_site_sum *site_of(struct ranks *ranks, const struct rank_instance *instance,
				     const struct record *record)
{
	struct rank_group_sum *group = rank_group_get(ranks, instance);
	const struct thread_account *c = thread_account_of(ranks->idle->accounts, record->thread);
	bool has_stack;
	struct rank_site_sum *site = rank_site_find(ranks, record, launch_of(ranks, c), &has_stack);

	if (has_stack)
		group->site = site;
	return group->site ?: site;
}

static void see_rank(struct rank_member *member, const struct rank_op *op,
		     const struct record *record)
{
	struct rank *rank = member->rank;

	rank->operations++;
	rank->process = member->process;
	rank->device = (uint8_t)member->device;
	if (!rank->first_ns)
		rank->first_ns = op->submit_begin_ns;
	rank->last_ns = max_u64(rank->last_ns, record->ns);
}

void rank_see_collective(struct ranks *ranks, const struct record *record)
{
	const struct spy_rec_collective *raw = &record->raw->collective;
	struct rank_member *member = member_of(ranks->work, record, raw->comm);
	struct rank_instance *instance;
	struct instance_key key;
	struct rank_op_seen seen;
	struct rank_op *op;

	if (!member || raw->func >= SPY_NCCL_FUNCS || !key_of(ranks, member, raw, &key)) {
		ranks->lost++;
		return;
	}
	if (raw->flags & SPY_COLLECTIVE_GRAPH) {
		ranks->captured++;
		return;
	}
	instance = instance_get(member->comm, &key, raw);
	if (!take_member(instance, member)) {
		ranks->lost++;
		return;
	}
	op = op_add(ranks, instance, member, record);
	op->site = site_of(ranks, instance, record);
	seen = seen_of(op, record);
	see_rank(member, op, record);
	op->in_a_row = member->has_last && member->last.func == raw->func && !op->first &&
		       op->gpu_operations <= 1;
	if (!rank_func_is_between_two(raw->func))
		rank_order_see(ranks, member, instance, &seen);
	member->last = seen;
	member->has_last = true;
	rank_steps_see(ranks, op, record);
	op->followed = raw->flags & SPY_COLLECTIVE_RUN_FOLLOWS;
	if (op->followed) {
		expect_run(ranks, op, record);
	} else {
		instance->n_done++;
		look_whether_ready(instance);
	}
	evaluate_some(ranks, member->comm);
}

/* ---- and ran --------------------------------------------------------------------------------- */

#define GPU_TIME_MOST (UINT64_MAX >> 2) /* of nanoseconds since whatever: more is damage */

void rank_see_ran(struct ranks *ranks, const struct record *record)
{
	const struct spy_rec_collective_ran *raw = &record->raw->collective_ran;
	const struct timeline *timeline = &record->stream->trace->timeline;
	struct ranks_work *w = ranks->work;
	uint64_t key = key_of_op(record, raw->id);
	struct rank_op *op;

	HASH_FIND(hh, w->pending, &key, sizeof(key), op);
	if (!op) {
		ranks->lost++;
		return;
	}
	HASH_DEL(w->pending, op);
	op->expected = false;
	op->instance->n_done++;
	op->ran_ns = record->ns;
	op->seen_ns = min_u64(timeline_ns(timeline, raw->seen), record->ns);
	op->by_host_times = !raw->begin_ns;
	op->begin_ns = op->by_host_times ? op->seen_ns : raw->begin_ns;
	op->end_ns = op->by_host_times ? op->ran_ns : raw->end_ns;
	op->ran = op->begin_ns <= op->end_ns && op->end_ns <= GPU_TIME_MOST;
	ranks->lost += !op->ran;
	look_whether_ready(op->instance);
	evaluate_some(ranks, op->member->comm);
}
