/*
 * analyzer/live/recent.c: reads the ends of a running program's streams. Called by live.c.
 */
#include <limits.h>
#include <stdlib.h>
#include "expect/gpu_wait.h"
#include "recent.h"

/* Where in its stream an event was recorded. */
struct recent_event {
	struct recent_event_key {
		uint64_t event, process;
	} key;
	struct recent_key stream;
	UT_hash_handle hh;
};

static struct recent_key key_of(const struct record *record, uint64_t stream)
{
	struct recent_key key;

	memset(&key, 0, sizeof(key));
	if (stream == STREAM_PER_THREAD)
		stream |= (uint64_t)(record->thread->index + 1) << 8;
	key.stream = stream;
	key.process = record->process;
	key.device = record->raw->call_head.device;
	return key;
}

/* ---- work ------------------------------------------------------------------------------------ */

static struct recent_work *work_of(struct recent *r, const struct recent_key *key, bool make)
{
	struct recent_work *work;

	HASH_FIND(hh, r->works, key, sizeof(*key), work);
	if (work || !make)
		return work;
	work = xcalloc(1, sizeof(*work));
	work->key = *key;
	HASH_ADD(hh, r->works, key, sizeof(work->key), work);
	return work;
}

static struct recent_site *site_of(const struct recent *r, uint32_t process, uint64_t caller)
{
	struct recent_site_key key = {caller, process};
	struct recent_site *site;

	HASH_FIND(hh, r->sites, &key, sizeof(key), site);
	return site;
}

const struct stack *recent_stack(const struct recent *r, uint32_t process, uint64_t caller)
{
	const struct recent_site *site = site_of(r, process, caller);

	return site ? site->stack : NULL;
}

static void see_stack(struct recent *r, const struct record *record)
{
	const struct stack *stack = model_stack(record->thread, record->raw);
	uint64_t caller = record_return_address(record->raw);
	struct recent_site *site;

	if (!stack || !caller)
		return;
	site = site_of(r, record->process, caller);
	if (!site) {
		site = xcalloc(1, sizeof(*site));
		site->key = (struct recent_site_key){caller, record->process};
		HASH_ADD(hh, r->sites, key, sizeof(site->key), site);
	}
	site->stack = stack;
}

static void hand_over(struct recent *r, const struct record *record)
{
	struct recent_key key = key_of(record, record_stream(record->raw) ?: STREAM_LEGACY);
	struct recent_work *work = work_of(r, &key, true);
	bool launch = record->raw->other.event == SPY_EV_LAUNCH;

	work->outstanding++;
	work->host_caller = 0;
	if (!launch && work->kernel && work->outstanding > 1)
		return; /* the kernel is what takes long */
	work->ns = record->ns;
	work->caller = record_return_address(record->raw);
	work->thread = record->thread;
	work->stack = model_stack(record->thread, record->raw);
	work->fn = record->fn;
	work->kernel = launch ? record_kernel(&record->raw->launch) : 0;
}

/* cudaLaunchHostFunc and its like: what lies behind in the stream waits for that function. */
static void hand_over_function(struct recent *r, const struct record *record)
{
	struct recent_key key = key_of(record, record_stream(record->raw) ?: STREAM_LEGACY);
	struct recent_work *work = work_of(r, &key, true);

	if (!work->outstanding) {
		work->ns = record->ns;
		work->caller = record_return_address(record->raw);
		work->thread = record->thread;
		work->stack = model_stack(record->thread, record->raw);
		work->fn = record->fn;
	}
	work->outstanding++;
	work->host_caller = record_return_address(record->raw);
}

static void done(struct recent_work *work)
{
	work->outstanding = 0;
	work->kernel = 0;
	work->host_caller = 0;
}

static void device_done(struct recent *r, const struct record *record)
{
	struct recent_work *work;

	for (work = r->works; work; work = work->hh.next)
		if (work->key.process == record->process &&
		    work->key.device == record->raw->call_head.device)
			done(work);
}

static struct recent_event *event_of(struct recent *r, const struct record *record, bool make)
{
	struct recent_event_key key = {record->raw->op.object, record->process};
	struct recent_event *event;

	HASH_FIND(hh, r->events, &key, sizeof(key), event);
	if (event || !make)
		return event;
	event = xcalloc(1, sizeof(*event));
	event->key = key;
	HASH_ADD(hh, r->events, key, sizeof(event->key), event);
	return event;
}

static void see_wait(struct recent *r, const struct record *record, const struct gpu_waits *waits)
{
	struct recent_event *event;
	struct recent_work *work = NULL;
	struct recent_key key;

	if (!gpu_wait_is_for_work(waits))
		return;
	switch (waits->what) {
	case GPU_WAIT_DEVICE:
		device_done(r, record);
		return;
	case GPU_WAIT_EVENT:
		event = record->raw->other.event == SPY_EV_OP ? event_of(r, record, false) : NULL;
		if (event)
			work = work_of(r, &event->stream, false);
		break;
	case GPU_WAIT_STREAM:
		key = key_of(record, record_stream(record->raw) ?: STREAM_LEGACY);
		work = work_of(r, &key, false);
		break;
	default:
		break;
	}
	if (work)
		done(work);
}

static bool calls_host(const char *function)
{
	return strstr(function, "LaunchHostFunc") || strstr(function, "StreamAddCallback");
}

static void see_call(struct recent *r, const struct model *model, const struct record *record)
{
	const union spy_any *raw = record->raw;
	const struct function *function = &model->set->functions.all[record->fn];

	if (call_failed(&raw->call_head) || raw->other.event < SPY_EV_OP)
		return;
	if (function->does == FUNCTION_RECORDS_EVENT)
		event_of(r, record, true)->stream =
			key_of(record, record_stream(raw) ?: STREAM_LEGACY);
	else if ((raw->other.event == SPY_EV_LAUNCH || raw->other.event == SPY_EV_COPY ||
		  function->does == FUNCTION_LAUNCHES_GRAPH) &&
		 spy_contract_submits(record->contract))
		hand_over(r, record);
	else if (calls_host(function->name))
		hand_over_function(r, record);
	see_stack(r, record);
	see_wait(r, record, gpu_wait_of(raw, record->contract, &record->stream->trace->cuda));
}

const struct recent_work *recent_find_work(const struct recent *r, uint32_t process,
					   uint32_t device, uint64_t stream,
					   const struct thread *thread)
{
	const struct recent_work *work, *best = NULL;

	if (stream == STREAM_PER_THREAD && thread)
		stream |= (uint64_t)(thread->index + 1) << 8;
	for (work = r->works; work; work = work->hh.next) {
		if (work->key.process != process || work->key.device != device ||
		    !work->outstanding || (stream && work->key.stream != stream))
			continue;
		/* a kernel rather than a copy, the one launched last */
		if (!best || (work->kernel && !best->kernel) ||
		    (!work->kernel == !best->kernel && work->ns > best->ns))
			best = work;
	}
	return best;
}

uint64_t recent_outstanding(const struct recent *r, uint32_t process, uint32_t device)
{
	const struct recent_work *work;
	uint64_t sum = 0;

	for (work = r->works; work; work = work->hh.next)
		if (work->key.process == process && work->key.device == device)
			sum += work->outstanding;
	return sum;
}

/* ---- locks ----------------------------------------------------------------------------------- */

static struct recent_lock *lock_of(struct recent *r, uint32_t process, uint64_t object, bool make)
{
	struct recent_lock_key key = {object, process};
	struct recent_lock *lock;

	HASH_FIND(hh, r->locks, &key, sizeof(key), lock);
	if (lock || !make)
		return lock;
	lock = xcalloc(1, sizeof(*lock));
	lock->key = key;
	HASH_ADD(hh, r->locks, key, sizeof(lock->key), lock);
	return lock;
}

static void taken(struct recent *r, const struct record *record, uint64_t object)
{
	struct recent_lock *lock = lock_of(r, record->process, object, true);

	lock->taken_ns = record->ns;
	lock->taken_tid = record->thread->tid;
}

static void given(struct recent *r, const struct record *record, uint64_t object)
{
	struct recent_lock *lock = lock_of(r, record->process, object, true);

	lock->given_ns = record->ns;
	lock->given_tid = record->thread->tid;
}

uint32_t recent_holder(const struct recent *r, uint32_t process, uint64_t object, uint32_t holder,
		       uint32_t waiter, uint64_t since_ns)
{
	const struct recent_lock *lock = lock_of((struct recent *)r, process, object, false);

	if (!lock)
		return holder;
	if (lock->taken_ns > since_ns && lock->taken_tid != waiter)
		return lock->given_ns >= lock->taken_ns && lock->given_tid == lock->taken_tid
			       ? 0
			       : lock->taken_tid;
	return lock->given_ns > since_ns && lock->given_tid == holder ? 0 : holder;
}

/* ---- collective operations ------------------------------------------------------------------- */

static struct recent_comm *comm_of(struct recent *r, uint32_t process, uint32_t number)
{
	struct recent_comm_key key = {process, number};
	struct recent_comm *comm;

	HASH_FIND(hh, r->comms, &key, sizeof(key), comm);
	if (comm)
		return comm;
	comm = xcalloc(1, sizeof(*comm));
	comm->key = key;
	HASH_ADD(hh, r->comms, key, sizeof(comm->key), comm);
	return comm;
}

static void see_comm(struct recent *r, const struct record *record)
{
	const struct spy_rec_nccl_comm *raw = &record->raw->nccl_comm;
	struct recent_comm *comm = comm_of(r, record->process, raw->comm);

	comm->told = true;
	comm->hash = raw->hash;
	comm->rank = raw->rank;
	comm->ranks = raw->ranks;
	comm->tid = raw->tid;
	comm->device = raw->device;
	memcpy(comm->name, raw->name, sizeof(comm->name));
	comm->name[sizeof(comm->name) - 1] = '\0';
}

static void see_collective(struct recent *r, const struct record *record)
{
	const struct spy_rec_collective *raw = &record->raw->collective;
	struct recent_comm *comm = comm_of(r, record->process, raw->comm);
	uint8_t func = raw->func < SPY_NCCL_FUNCS ? raw->func : SPY_NCCL_OTHER;

	comm->operations++;
	comm->last_func = func;
	comm->last[func] = (struct recent_op){
		.seen = true,
		.follows = raw->flags & SPY_COLLECTIVE_RUN_FOLLOWS,
		.graph = raw->flags & SPY_COLLECTIVE_GRAPH,
		.seq = raw->seq,
		.ns = record->ns,
		.count = raw->count,
		.id = raw->id,
		.thread = record->thread,
		.bytes_each = raw->bytes_each,
	};
}

static void see_ran(struct recent *r, const struct record *record)
{
	const struct spy_rec_collective_ran *raw = &record->raw->collective_ran;
	struct recent_comm *comm = comm_of(r, record->process, raw->comm);
	size_t i;

	for (i = 0; i < SPY_NCCL_FUNCS; i++)
		if (comm->last[i].seen && comm->last[i].id == raw->id)
			comm->last[i].ran = true;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void see_other(struct recent *r, const struct record *record)
{
	const union spy_any *raw = record->raw;

	switch (raw->other.event) {
	case SPY_EV_WAIT:
		if (spy_wait_is_lock(raw->wait.kind) && !(raw->wait.flags & SPY_WAIT_FAILED))
			taken(r, record, raw->wait.object);
		break;
	case SPY_EV_OUTSIDE:
		if (spy_wait_is_lock(raw->outside.kind) && !(raw->outside.flags & SPY_WAIT_FAILED))
			taken(r, record, raw->outside.object);
		break;
	case SPY_EV_TAKEN:
		taken(r, record, raw->taken.object);
		break;
	case SPY_EV_RELEASED:
	case SPY_EV_HELD:
		given(r, record, raw->held.object);
		break;
	case SPY_EV_NCCL_COMM:
		see_comm(r, record);
		break;
	case SPY_EV_COLLECTIVE:
		see_collective(r, record);
		break;
	case SPY_EV_COLLECTIVE_RAN:
		see_ran(r, record);
		break;
	default:
		break;
	}
}

#define PACKET_BYTES ((uint64_t)128 << 10) /* that a packet may have grown to */

/* To the last packets of a stream, by their headers alone. The session's own has names, modules and communicators: it
 * is read as a whole. */
static void go_to_end(struct reader *r, uint64_t keep)
{
	uint64_t first, packets;

	if (!reader_next(r))
		return;
	first = r->seq;
	reader_pass(r, UINT_MAX);
	packets = r->seq - first;
	reader_rewind(r);
	if (packets > keep && reader_next(r))
		reader_pass(r, (unsigned int)min_u64(packets - keep + 1, UINT_MAX));
}

static bool is_large(const struct trace_set *set, uint64_t whole_bytes)
{
	uint64_t bytes = 0;
	size_t i;

	for (i = 0; i < set->n_streams; i++)
		bytes += reader_bytes(&set->streams[i]->reader);
	return bytes > whole_bytes;
}

void recent_read(struct recent *recent, struct model *model, uint64_t whole_bytes)
{
	struct trace_set *set = model->set;
	struct record record;
	struct merge merge;
	uint64_t keep;
	size_t i;

	*recent = (struct recent){.partly = is_large(set, whole_bytes)};
	keep = min_u64(whole_bytes / max_u64(set->n_streams, 1) / PACKET_BYTES, RECENT_PACKETS);
	for (i = 0; i < set->n_streams; i++) {
		if (recent->partly && set->streams[i]->slot)
			go_to_end(&set->streams[i]->reader, keep);
		set->streams[i]->reader.quiet = true;
	}
	merge_init(&merge, set, false);
	while (merge_next(&merge, &record)) {
		model_apply(model, &record);
		if (record_is_call(record.raw))
			see_call(recent, model, &record);
		else
			see_other(recent, &record);
	}
	merge_release(&merge);
	model_finish(model);
}

void recent_release(struct recent *r)
{
	struct recent_work *work, *next_work;
	struct recent_lock *lock, *next_lock;
	struct recent_comm *comm, *next_comm;
	struct recent_event *event, *next_event;
	struct recent_site *site, *next_site;

	HASH_EMPTY (r->works, work, next_work)
		free(work);
	HASH_EMPTY (r->locks, lock, next_lock)
		free(lock);
	HASH_EMPTY (r->comms, comm, next_comm)
		free(comm);
	HASH_EMPTY (r->events, event, next_event)
		free(event);
	HASH_EMPTY (r->sites, site, next_site)
		free(site);
	*r = (struct recent){0};
}
