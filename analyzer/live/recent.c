/*
 * analyzer/live/recent.c: reads the ends of a running program's streams. Called by live.c.
 */
#include <limits.h>
#include <stdlib.h>
#include "recent_see.h"

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
	const struct stack *stack = model_stack(record);
	uint64_t caller = record_return_address(record);
	struct recent_site *site;

	if (!stack || !caller)
		return;
	site = site_of(r, record->process, caller);
	if (!site)
		HASH_NEW(r->sites, site, key, (struct recent_site_key){caller, record->process});
	site->stack = stack;
}

static void see_call(struct recent *r, const struct model *model, const struct record *record)
{

	if (record_failed(record) || record->event < SPY_EV_OP)
		return;
	recent_see_work(r, &model->set->functions.all[record->fn], record);
	see_stack(r, record);
}

/* ---- locks ----------------------------------------------------------------------------------- */

static struct recent_lock *lock_of(struct recent *r, uint32_t process, uint64_t object, bool make)
{
	struct recent_lock_key key = {object, process};
	struct recent_lock *lock;

	HASH_FIND(hh, r->locks, &key, sizeof(key), lock);
	if (lock || !make)
		return lock;
	HASH_NEW(r->locks, lock, key, key);
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

/* ---- GPUs ------------------------------------------------------------------------------------ */

static struct recent_gpu *find_gpu(const struct recent *r, struct recent_gpu_key key)
{
	struct recent_gpu *gpu;

	HASH_FIND(hh, r->gpus, &key, sizeof(key), gpu);
	return gpu;
}

static void see_gpu_look(struct recent *r, const struct record *record)
{
	const struct spy_rec_gpu_look *look = record_gpu_look(record);
	struct recent_gpu_key key = {record->process, look->device};
	struct recent_gpu *gpu = find_gpu(r, key);

	if (!gpu) {
		gpu = xcalloc(1, sizeof(*gpu));
		gpu->key = key;
		HASH_ADD(hh, r->gpus, key, sizeof(gpu->key), gpu);
	}
	gpu->ns = record->ns;
	gpu->look = *look;
}

const struct spy_rec_gpu_look *recent_gpu_look(const struct recent *r, uint32_t process,
					       uint32_t device, uint64_t now_ns)
{
	const struct recent_gpu *gpu = find_gpu(r, (struct recent_gpu_key){process, device});

	return gpu && now_ns < gpu->ns + RECENT_GPU_NS && gpu->look.busy <= 100 ? &gpu->look : NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void see_other(struct recent *r, const struct record *record)
{

	struct outside_record outside;
	struct wait_record wait;

	switch (record->event) {
	case SPY_EV_WAIT:
		wait = decode_wait(record);
		if (spy_wait_is_lock(wait.kind) && !(wait.flags & SPY_WAIT_FAILED))
			taken(r, record, wait.object);
		break;
	case SPY_EV_OUTSIDE:
		outside = decode_outside(record);
		if (spy_wait_is_lock(outside.kind) && !(outside.flags & SPY_WAIT_FAILED))
			taken(r, record, outside.object);
		break;
	case SPY_EV_TAKEN:
		taken(r, record, decode_lock(record).object);
		break;
	case SPY_EV_RELEASED:
	case SPY_EV_HELD:
		given(r, record, decode_lock(record).object);
		break;
	case SPY_EV_NCCL_COMM:
		recent_see_comm(r, record);
		break;
	case SPY_EV_COLLECTIVE:
		recent_see_collective(r, record);
		break;
	case SPY_EV_COLLECTIVE_RAN:
		recent_see_ran(r, record);
		break;
	case SPY_EV_GPU_LOOK:
		see_gpu_look(r, record);
		break;
	default:
		break;
	}
}

#define SESSION_BYTES ((uint64_t)1 << 30) /* of a session's own stream that are read; it has less */
#define PACKET_BYTES ((uint64_t)128 << 10) /* that a packet may have grown to */

/* To the last packets of a stream, by their headers alone. The session's own has names, modules and communicators: it
 * is read as a whole, unless it is so large that somebody has made it up. */
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

	for (size_t i = 0; i < set->n_streams; i++)
		bytes += reader_bytes(&set->streams[i]->reader);
	return bytes > whole_bytes;
}

void recent_read(struct recent *recent, struct model *model, uint64_t whole_bytes)
{
	struct trace_set *set = model->set;
	struct record record;
	struct merge merge;
	uint64_t keep;

	*recent = (struct recent){.partly = is_large(set, whole_bytes)};
	keep = min_u64(whole_bytes / max_u64(set->n_streams, 1) / PACKET_BYTES, RECENT_PACKETS);
	for (size_t i = 0; i < set->n_streams; i++) {
		if (recent->partly && (set->streams[i]->slot ||
				       reader_bytes(&set->streams[i]->reader) > SESSION_BYTES))
			go_to_end(&set->streams[i]->reader, keep);
		set->streams[i]->reader.quiet = true;
	}
	merge_init(&merge, set, false);
	while (merge_next(&merge, &record)) {
		model_apply(model, &record);
		if (record_is_call(&record))
			see_call(recent, model, &record);
		else
			see_other(recent, &record);
	}
	merge_release(&merge);
	recent_finish_comms(recent);
	model_finish(model);
}

void recent_release(struct recent *r)
{
	struct recent_lock *lock, *next_lock;
	struct recent_site *site, *next_site;
	struct recent_gpu *gpu, *next_gpu;

	recent_release_work(r);
	recent_release_comms(r);
	HASH_EMPTY (r->locks, lock, next_lock)
		free(lock);
	HASH_EMPTY (r->sites, site, next_site)
		free(site);
	HASH_EMPTY (r->gpus, gpu, next_gpu)
		free(gpu);
	*r = (struct recent){0};
}
