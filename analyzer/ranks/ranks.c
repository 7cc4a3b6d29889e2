/*
 * analyzer/ranks/ranks.c: which process is which rank, the communicators, and what becomes of all sums in the end. Called
 * by the main reading.
 */
#include <stdlib.h>
#include "sample.h"
#include "work.h"
#include "model/join.h"
#include "base/median.h"

/* ---- identity -------------------------------------------------------------------------------- */

static struct rank *rank_add(struct ranks *ranks)
{
	struct rank *rank = xcalloc(1, sizeof(*rank));

	rank->index = (uint32_t)ranks->n;
	rank->local_rank = -1;
	rank->device = SPY_DEVICE_NONE;
	ranks->all = grow(ranks->all, ranks->n, sizeof(struct rank *));
	ranks->all[ranks->n++] = rank;
	return rank;
}

/* The rank of that key, made if it is new. NULL: too many. Takes the key. */
static struct rank *rank_of_key(struct ranks *ranks, char *key, bool *is_new)
{
	struct ranks_work *w = ranks->work;
	struct rank_identity *identity;

	*is_new = false;
	HASH_FIND_STR(w->identities, key, identity);
	if (identity || (ranks->n >= RANKS_MOST && !ranks->from_digests)) {
		free(key);
		return identity ? identity->rank : NULL;
	}
	*is_new = true;
	identity = xcalloc(1, sizeof(*identity));
	identity->key = key;
	identity->rank = rank_add(ranks);
	HASH_ADD_KEYPTR(hh, w->identities, identity->key, strlen(key), identity);
	return identity->rank;
}

static void add_process(struct rank *rank, const struct process *process)
{
	if (rank->n_processes && rank->processes[rank->n_processes - 1] == process)
		return;
	rank->processes = grow(rank->processes, rank->n_processes, sizeof(struct process *));
	rank->processes[rank->n_processes++] = process;
	if (!rank->operations)
		rank->process = process;
}

/* As a launcher said it. */
static void find_launched(struct ranks *ranks, const struct process *process)
{
	const struct metadata *m = &process->trace->metadata;
	struct rank *rank;
	bool is_new;

	if (!m->has_rank || m->world_size == 1) /* alone, or one process with several GPUs */
		return;
	rank = rank_of_key(ranks, xasprintf("%s\n%u", m->job ?: "", m->rank), &is_new);
	if (!rank) {
		ranks->lost++;
		return;
	}
	rank->from_launcher = ranks->from_launcher = true;
	rank->number = m->rank;
	rank->local_rank = m->local_rank;
	rank->world_size = (uint32_t)max_u64(rank->world_size, m->world_size);
	rank->restarts = (uint32_t)max_u64(rank->restarts, m->restarts);
	rank->job = m->job;
	ranks->world_size = (uint32_t)max_u64(ranks->world_size, m->world_size);
	ranks->by_process[process->trace->index] = rank;
	add_process(rank, process);
}

/* No launcher said it: it is a rank for each GPU of a process. The communicator with most ranks numbers them. */
static struct rank *rank_of_member(struct ranks *ranks, const struct process *process,
				   const struct spy_rec_nccl_comm *of)
{
	size_t index = process->trace->index;
	struct rank *rank = ranks->by_process[index];
	bool is_new;

	if (rank && rank->from_launcher)
		return rank;
	rank = rank_of_key(ranks, xasprintf("%zu %u", index, of->device), &is_new);
	if (!rank)
		return NULL;
	add_process(rank, process);
	if (!ranks->by_process[index])
		ranks->by_process[index] = rank;
	if (is_new || of->ranks > rank->world_size) {
		rank->number = of->rank;
		rank->world_size = of->ranks;
	}
	if (!ranks->from_launcher)
		ranks->world_size = (uint32_t)max_u64(ranks->world_size, of->ranks);
	return rank;
}

struct rank_share *rank_share_of(struct rank_share **shares, size_t *n, const struct rank *rank)
{
	while (*n <= rank->index) {
		*shares = grow(*shares, *n, sizeof(**shares));
		(*shares)[(*n)++] = (struct rank_share){0};
	}
	return &(*shares)[rank->index];
}

bool rank_working(const struct ranks *ranks, const struct process *process, uint64_t ns)
{
	return ranks->from_digests ||
	       phase_has(&ranks->idle->accounts->expect->phases, process->trace->index, ns);
}

/* ---- communicators --------------------------------------------------------------------------- */

static struct rank_comm *comm_add(struct ranks *ranks, const struct comm_key *key,
				  struct rank_comm *older)
{
	struct ranks_work *w = ranks->work;
	struct rank_comm *comm;

	if (w->n_comms >= COMMS_MOST)
		return NULL;
	comm = xcalloc(1, sizeof(*comm));
	comm->key = *key;
	if (older)
		HASH_DEL(w->comms, older);
	HASH_ADD(hh, w->comms, key, sizeof(comm->key), comm);
	w->all_comms = grow(w->all_comms, w->n_comms, sizeof(struct rank_comm *));
	w->all_comms[w->n_comms++] = comm;
	return comm;
}

static bool has_number(const struct rank_comm *comm, uint32_t number)
{
	const struct rank_member *member;

	HASH_FIND(by_number, comm->by_number, &number, sizeof(number), member);
	return member;
}

/* The communicator of that hash. One whose rank is there already was before: the job has started again. */
static struct rank_comm *comm_get(struct ranks *ranks, const struct process *process,
				  const struct spy_rec_nccl_comm *of, bool graphs)
{
	const char *job = process->trace->metadata.job;
	const struct comm_key key = {of->hash, job ? hash_key(job, strlen(job)) : 0, graphs};
	struct rank_comm *comm, *older;

	HASH_FIND(hh, ranks->work->comms, &key, sizeof(key), older);
	if (older && !has_number(older, of->rank))
		return older;
	comm = comm_add(ranks, &key, older);
	if (!comm)
		return NULL;
	memcpy(comm->name, of->name, sizeof(of->name));
	comm->ranks = of->ranks;
	return comm;
}

static struct rank_timer *timer_get(struct ranks_work *w, uint32_t process, uint32_t device)
{
	const struct timer_key key = {process, device};
	struct rank_timer *timer;

	HASH_FIND(hh, w->timers, &key, sizeof(key), timer);
	if (timer)
		return timer;
	HASH_NEW(w->timers, timer, key, key);
	return timer;
}

#define HOST_TIMER UINT32_MAX /* instead of a device: that of its host */

static struct rank_member *member_new(struct ranks *ranks, const struct process *process,
				      struct rank_comm *comm, struct rank *rank,
				      const struct spy_rec_nccl_comm *of)
{
	struct ranks_work *w = ranks->work;
	struct rank_member *member = xcalloc(1, sizeof(*member));

	member->key = (struct member_key){(uint32_t)process->trace->index, of->comm};
	member->comm = comm;
	member->rank = rank;
	member->process = process;
	member->timer =
		timer_get(w, member->key.process, comm->key.graphs ? HOST_TIMER : of->device);
	member->number = of->rank;
	member->device = of->device == SPY_DEVICE_NONE ? 0 : of->device;
	member->index = (uint32_t)comm->n_members;
	comm->members = grow(comm->members, comm->n_members, sizeof(struct rank_member *));
	comm->members[comm->n_members++] = member;
	HASH_ADD(by_number, comm->by_number, number, sizeof(member->number), member);
	w->n_members++;
	comm->grew = true;
	return member;
}

/* A process may use a number again, for a later communicator. */
static void add_member(struct ranks *ranks, const struct process *process, struct rank_comm *comm,
		       struct rank *rank, const struct spy_rec_nccl_comm *of)
{
	struct rank_member *member = member_new(ranks, process, comm, rank, of), *older;

	HASH_REPLACE(hh, ranks->work->members, key, sizeof(member->key), member, older);
	(void)older; /* its communicator has it still */
}

struct rank_member *rank_graph_member(struct ranks *ranks, struct rank_member *member)
{
	struct spy_rec_nccl_comm of = {.comm = member->key.comm,
				       .hash = member->comm->key.hash,
				       .rank = member->number,
				       .ranks = member->comm->ranks,
				       .device = (uint8_t)member->device};
	struct rank_comm *comm;

	if (member->graph || ranks->work->n_members >= MEMBERS_MOST)
		return member->graph;
	memcpy(of.name, member->comm->name, sizeof(of.name));
	comm = comm_get(ranks, member->process, &of, true);
	if (comm)
		member->graph = member_new(ranks, member->process, comm, member->rank, &of);
	return member->graph;
}

void rank_apply_comm(struct ranks *ranks, const struct rank_comm_event *event)
{
	const struct spy_rec_nccl_comm *of = &event->comm;
	const struct process *process = event->head.process;
	struct rank_comm *comm;
	struct rank *rank;

	if (ranks->work->n_members >= MEMBERS_MOST) {
		ranks->lost++;
		return;
	}
	rank = rank_of_member(ranks, process, of);
	comm = rank ? comm_get(ranks, process, of, false) : NULL;
	if (comm)
		add_member(ranks, process, comm, rank, of);
	else
		ranks->lost++;
}

static void see_state(struct ranks *ranks, const struct record *record)
{
	const struct spy_rec_nccl_state *seen = record_nccl_state(record);
	struct rank_state *state = &ranks->states[record->process];

	state->seen = true;
	state->state = seen->state;
	memcpy(state->text, seen->text, sizeof(seen->text));
}

void ranks_see_nccl(struct ranks *ranks, const struct record *record)
{
	switch (record->event) {
	case SPY_EV_NCCL_COMM:
		rank_capture_comm(ranks, record);
		break;
	case SPY_EV_COLLECTIVE:
		rank_capture_collective(ranks, record);
		break;
	case SPY_EV_COLLECTIVE_RAN:
		rank_capture_ran(ranks, record);
		break;
	default:
		see_state(ranks, record);
	}
}

/* ---- begin and end --------------------------------------------------------------------------- */

void ranks_init(struct ranks *ranks, struct idle *idle, bool apart)
{
	const struct model *model = idle->accounts->model;

	*ranks = (struct ranks){.idle = idle, .n_states = model->n_processes};
	ranks->work = xcalloc(1, sizeof(*ranks->work));
	idle->is_collective = rank_is_collective;
	idle->collectives = ranks;
	ranks->work->lacks = xcalloc(model->n_processes + 1, sizeof(*ranks->work->lacks));
	ranks->work->feeders = xcalloc(model->n_processes + 1, sizeof(*ranks->work->feeders));
	ranks->work->graphs = xcalloc(model->n_processes + 1, sizeof(*ranks->work->graphs));
	ranks->states = xcalloc(model->n_processes + 1, sizeof(*ranks->states));
	ranks->submits = xcalloc(model->n_processes + 1, sizeof(*ranks->submits));
	ranks->by_process = xcalloc(model->n_processes + 1, sizeof(struct rank *));
	for (size_t i = 0; !apart && i < model->n_processes; i++)
		find_launched(ranks, &model->processes[i]);
}

static int by_number(const void *a, const void *b)
{
	const struct rank *x = *(const struct rank *const *)a, *y = *(const struct rank *const *)b;

	return strcmp(x->job ?: "", y->job ?: "") ?: COMPARE(x->number, y->number) ?:
	       COMPARE(x->index, y->index);
}

static int by_late_group(const void *a, const void *b)
{
	const struct rank_group *x = a, *y = b;

	return COMPARE(y->late_ns, x->late_ns) ?: COMPARE(x->hash, y->hash) ?:
	       COMPARE(x->func, y->func) ?: COMPARE(x->bytes, y->bytes);
}

static int by_late_site(const void *a, const void *b)
{
	const struct rank_site *x = a, *y = b;

	return COMPARE(y->late_ns, x->late_ns) ?: COMPARE(y->operations, x->operations) ?:
	       COMPARE(x->part.address, y->part.address);
}

static void collect_groups(struct ranks *ranks)
{
	const struct rank_group_sum *group;

	for (group = ranks->work->groups; group; group = group->hh.next) {
		if (!group->sum.operations)
			continue;
		ranks->groups = grow(ranks->groups, ranks->n_groups, sizeof(*ranks->groups));
		ranks->groups[ranks->n_groups++] = group->sum;
	}
	if (ranks->n_groups)
		qsort(ranks->groups, ranks->n_groups, sizeof(*ranks->groups), by_late_group);
}

static void collect_sites(struct ranks *ranks)
{
	for (const struct rank_site_sum *site = ranks->work->sites; site; site = site->hh.next) {
		if (!site->sum.operations)
			continue;
		ranks->sites = grow(ranks->sites, ranks->n_sites, sizeof(*ranks->sites));
		ranks->sites[ranks->n_sites++] = site->sum;
	}
	if (ranks->n_sites)
		qsort(ranks->sites, ranks->n_sites, sizeof(*ranks->sites), by_late_site);
}

static void put_in_order(struct ranks *ranks)
{
	ranks->order = xcalloc(ranks->n + 1, sizeof(struct rank *));
	for (size_t i = 0; i < ranks->n; i++)
		ranks->order[i] = ranks->all[i];
	qsort(ranks->order, ranks->n, sizeof(struct rank *), by_number);
}

/* How its GPU's time was divided between its collective operations and all else. */
static void find_exposed(struct ranks *ranks, struct rank *rank)
{
	const struct idle_gpu *gpu;

	if (!rank->operations || rank->device == SPY_DEVICE_NONE)
		return;
	gpu = idle_gpu_of(ranks->idle, rank->process, rank->device);
	rank->exposed_known = idle_gpu_is_exact(gpu);
	if (!rank->exposed_known)
		return;
	rank->collective_ns = gpu->exact.collective_ns;
	rank->exposed_ns = gpu->exact.exposed_ns;
	rank->own_ns = gpu->exact.busy_ns - min_u64(gpu->exact.exposed_ns, gpu->exact.busy_ns);
	rank->own_operations = gpu->exact.operations - gpu->exact.collectives;
}

void ranks_close(struct ranks *ranks)
{
	struct ranks_work *w = ranks->work;

	for (size_t i = 0; i < w->n_comms; i++) {
		if (!ranks->from_digests)
			rank_missing_find(ranks, w->all_comms[i]);
		rank_comm_close(ranks, w->all_comms[i]);
	}
	for (size_t i = 0; i < ranks->n; i++)
		ranks->align_error_ns =
			max_u64(ranks->align_error_ns, ranks->all[i]->align_error_ns);
}

void ranks_finish(struct ranks *ranks)
{
	ranks_close(ranks);
	for (size_t i = 0; i < ranks->n; i++) {
		struct rank *rank = ranks->all[i];

		if (!rank->waited_for_ns)
			rank->waited_for_ns = xcalloc(RANKS_MOST, sizeof(*rank->waited_for_ns));
		ranks->host_error_ns = max_u64(ranks->host_error_ns, rank->host_error_ns);
		ranks->by_host_times |= rank->by_host_times;
		find_exposed(ranks, rank);
	}
	rank_disagreement_find(ranks);
	put_in_order(ranks);
	rank_steps_finish(ranks);
	rank_unshared_finish(ranks);
	collect_groups(ranks);
	collect_sites(ranks);
}

static size_t part_of_seen(const struct rank_op_seen *seen,
			   size_t (*see)(const struct idle_part *part))
{
	return seen->process ? see(&seen->part) : 0;
}

static size_t parts_of_comm(const struct rank_comm *comm,
			    size_t (*see)(const struct idle_part *part))
{
	size_t i, n = 0;

	for (i = 0; i < comm->n_members; i++) {
		const struct rank_member *member = comm->members[i];

		n += part_of_seen(&member->last, see) + part_of_seen(&member->odd, see) +
		     part_of_seen(&member->pair.seen[0], see) +
		     part_of_seen(&member->pair.seen[1], see);
	}
	return n;
}

size_t ranks_parts(const struct ranks *ranks, size_t (*see)(const struct idle_part *part))
{
	const struct ranks_work *w = ranks->work;
	size_t i, n = 0;

	if (!w)
		return 0;
	n = rank_lane_places_parts(w, see) + rank_places_parts(w, see);
	for (const struct rank_site_sum *site = w->sites; site; site = site->hh.next)
		n += see(&site->sum.part);
	for (i = 0; i < w->n_comms; i++)
		n += parts_of_comm(w->all_comms[i], see);
	for (i = 0; i < ranks->n; i++)
		n += rank_samples_parts(ranks->all[i]->samples, see);
	for (i = 0; i < w->n_disagreements; i++)
		n += part_of_seen(&w->disagreements[i].a, see) +
		     part_of_seen(&w->disagreements[i].b, see);
	return n + rank_steps_parts(w, see);
}

/* ---- parts of a set -------------------------------------------------------------------------- */

const char *ranks_refused(const struct ranks *ranks)
{
	return ranks->work->refused;
}

/* struct ranks, joined: lost, states; not: sample, idle (the whole's), any, submits, from_launcher, by_process, n_states (as it was
 * begun), journal (of a part), from_digests, part, on_evaluated, data (of a job from digests), all, n, order, world_size,
 * groups, n_groups, sites, n_sites, steps, disagreement, missing, n_missing, matched, incomplete, unaligned, alone, untimed,
 * captured, graphs, align_operations, align_messages, align_error_ns, host_error_ns, by_host_times, wait_ns, late_ns, caused_ns, parts, spent,
 * work (of the replay). */
/* The replay has evaluated them. */
void ranks_join(struct ranks *ranks, struct ranks *const *parts, const struct join *join)
{
	for (size_t i = 0; i < join->n; i++) {
		const struct join_part *part = &join->parts[i];

		ranks->lost += parts[i]->lost;
		for (size_t j = 0; j < part->n_processes; j++)
			ranks->states[part->processes[j]] = parts[i]->states[part->processes[j]];
	}
	rank_steps_rename(ranks);
}

void ranks_replay(struct ranks *ranks, const struct journal_entry *entry)
{
	reading_place.position = entry->at;
	ranks_apply(ranks, entry->rank.event);
	free(entry->rank.event);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void release_ranks(struct ranks *ranks)
{
	for (size_t i = 0; i < ranks->n; i++) {
		free(ranks->all[i]->processes);
		free(ranks->all[i]->waited_for_ns);
		rank_spans_release(&ranks->all[i]->late);
		rank_samples_free(ranks->all[i]->samples);
		free(ranks->all[i]);
	}
	free(ranks->all);
	free(ranks->order);
	free(ranks->groups);
	free(ranks->sites);
	free(ranks->states);
	free(ranks->submits);
	free(ranks->by_process);
	rank_parts_release(&ranks->parts);
	idle_sums_release(&ranks->spent);
}

static void release_members(struct ranks *ranks)
{
	struct ranks_work *w = ranks->work;
	struct rank_timer *timer, *next_timer;
	struct rank_identity *identity, *next_identity;
	struct lane_comm *comm, *next_comm;

	HASH_CLEAR(hh, w->members);
	HASH_CLEAR(hh, w->comms);
	for (size_t i = 0; i < w->n_comms; i++)
		rank_comm_free(ranks, w->all_comms[i]);
	HASH_EMPTY (w->timers, timer, next_timer)
		free(timer);
	HASH_EMPTY (w->lane_comms, comm, next_comm)
		free(comm);
	HASH_EMPTY (w->identities, identity, next_identity) {
		free(identity->key);
		free(identity);
	}
	free(w->all_comms);
}

void ranks_release(struct ranks *ranks)
{
	struct ranks_work *w = ranks->work;
	struct rank_group_sum *group, *next_group;

	if (w) {
		release_members(ranks);
		HASH_EMPTY (w->groups, group, next_group) {
			free(group->sum.last);
			free(group);
		}
		for (struct rank_site_sum *site = w->sites; site; site = site->hh.next)
			free(site->sum.last);
		rank_lanes_release(w);
		rank_places_release(w);
		free(w->lacks);
		free(w->disagreements);
		rank_steps_release(w);
		free(w);
	}
	release_ranks(ranks);
	*ranks = (struct ranks){0};
}
