/*
 * analyzer/tables/sqlite.c: a recording as a database, in which queries that were made for Nsight Systems run. Called for
 * each call, wait, range and operation, in the order in which they become known.
 *
 * Calls are numbered as they return: that is their correlationId. What happens in a call before it has returned (calls inside
 * of it, operations of a GPU that it has submitted) has the number kept for it.
 */
#include <errno.h>
#include <stdlib.h>
#include "sqlite.h"
#include "model/gpu_ops.h"
#include "trace/names.h"

/* ---- calls ----------------------------------------------------------------------------------- */

static struct thread_rows *rows_of(struct sqlite_export *e, const struct thread *thread)
{
	struct thread_rows *t;

	while (e->n_threads <= thread->index) {
		e->threads = grow(e->threads, e->n_threads, sizeof(*e->threads));
		e->threads[e->n_threads++] = (struct thread_rows){0};
	}
	t = &e->threads[thread->index];
	if (unlikely(!t->global_tid)) {
		t->global_tid = global_tid(thread);
		if (thread->process->trace->use.gpu_times)
			t->calls = xcalloc(CALLS_KEPT, sizeof(*t->calls));
	}
	return t;
}

/* The number for a call that has not returned yet, in which something happened at that time. */
static uint64_t pending_id(struct sqlite_export *e, struct thread_rows *t, uint64_t ns)
{
	if (!t->pending_id) {
		t->pending_id = ++e->last_id;
		t->pending_ns = ns;
	}
	return t->pending_id;
}

/* Calls that do not count are not shown: what happened in one may have been the last one's before. */
static uint64_t id_of(struct sqlite_export *e, struct thread_rows *t,
		      const struct completed_call *call)
{
	uint64_t id = t->pending_id;

	if (!id || t->pending_ns < call->begin_ns || t->pending_ns > call->end_ns)
		id = ++e->last_id;
	t->pending_id = 0;
	if (t->calls)
		t->calls[t->n_calls++ % CALLS_KEPT] =
			(struct kept_call){id, call->begin_ns, call->end_ns};
	return id;
}

/* TRACE_PROCESS_EVENT_CUDA_RUNTIME or _DRIVER */
static uint64_t class_of(const struct sqlite_export *e, uint32_t fn)
{
	const char *name = e->job->shown->set->functions.all[fn].name;

	return strncmp(name, "cuda", 4) != 0 && !strncmp(name, "cu", 2);
}

/* A function without a result, or one that did not return, is no failure. */
static uint64_t result_of(const struct record *record)
{
	uint16_t result = record->result;

	return result == SPY_RESULT_NONE ? 0 : result;
}

static void add_call(struct sqlite_export *e, const struct record *record,
		     const struct completed_call *call, uint64_t id, uint64_t tid)
{
	struct database *db = &e->db;

	put_time(e, TABLE_CALLS, call->begin_ns);
	put_time(e, TABLE_CALLS, call->end_ns);
	put_number(db, TABLE_CALLS, class_of(e, call->fn));
	put_number(db, TABLE_CALLS, tid);
	put_number(db, TABLE_CALLS, id);
	put_number(db, TABLE_CALLS, sqlite_function(e, call->fn));
	put_number(db, TABLE_CALLS, result_of(record));
	row_end(db, TABLE_CALLS);
}

static void add_facts(struct sqlite_export *e, const struct record *record,
		      const struct completed_call *call, uint64_t id)
{
	struct database *db = &e->db;

	put_number(db, TABLE_CALL_FACTS, id);
	put_unless(db, TABLE_CALL_FACTS, record->device, SPY_DEVICE_NONE);
	put_unless(db, TABLE_CALL_FACTS, record_context(record), 0);
	put_unless(db, TABLE_CALL_FACTS, record_stream(record), 0);
	put_unless(db, TABLE_CALL_FACTS,
		   sqlite_place(e, record->thread->process, call->return_address, call->end_ns,
				call->stack),
		   0);
	put_unless(db, TABLE_CALL_FACTS, call->expected_ns, UNKNOWN_NS);
	row_end(db, TABLE_CALL_FACTS);
}

/* Where its time went, if it was not all its own work. */
static void add_parts(struct sqlite_export *e, const struct completed_call *call, uint64_t id)
{
	struct database *db = &e->db;

	put_number(db, TABLE_CALL_PARTS, id);
	put_number(db, TABLE_CALL_PARTS, completed_lost(call));
	for (unsigned int bucket = 0; bucket < BUCKET_COUNT; bucket++)
		put_number(db, TABLE_CALL_PARTS, call->bucket_ns[bucket]);
	row_end(db, TABLE_CALL_PARTS);
}

/* Numbers of ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND. */
static const uint8_t copy_kinds[] = {
	[SPY_DIR_UNKNOWN] = 0, [SPY_DIR_H2D] = 1, [SPY_DIR_D2H] = 2,
	[SPY_DIR_D2D] = 8,     [SPY_DIR_H2H] = 9,
};
static const uint8_t memory_kinds[] = {
	[SPY_MEM_UNKNOWN] = 7, [SPY_MEM_PAGEABLE] = 0, [SPY_MEM_PINNED] = 1, [SPY_MEM_MANAGED] = 4,
	[SPY_MEM_DEVICE] = 2,  [SPY_MEM_ARRAY] = 3,    [SPY_MEM_MIXED] = 7,
};

static uint8_t copy_kind(unsigned int direction)
{
	return direction < ARRAY_SIZE(copy_kinds) ? copy_kinds[direction] : 0;
}

static uint8_t memory_kind(unsigned int kind)
{
	return kind < ARRAY_SIZE(memory_kinds) ? memory_kinds[kind] : 7;
}

static void add_copy(struct sqlite_export *e, const struct spy_rec_copy *copy, uint64_t id)
{
	struct database *db = &e->db;

	put_number(db, TABLE_CALL_COPIES, id);
	put_number(db, TABLE_CALL_COPIES, copy->bytes);
	put_number(db, TABLE_CALL_COPIES, copy_kind(copy->direction));
	put_number(db, TABLE_CALL_COPIES, memory_kind(copy->src_kind));
	put_number(db, TABLE_CALL_COPIES, memory_kind(copy->dst_kind));
	put_unless(db, TABLE_CALL_COPIES, copy->src_device, SPY_DEVICE_NONE);
	put_unless(db, TABLE_CALL_COPIES, copy->dst_device, SPY_DEVICE_NONE);
	row_end(db, TABLE_CALL_COPIES);
}

/* Of ENUM_CUPTI_SYNC_TYPE; 0: the call is made for something else. */
static unsigned int sync_type(uint8_t contract)
{
	switch (contract) {
	case SPY_CONTRACT_EVENT:
		return 1;
	case SPY_CONTRACT_STREAM:
		return 3;
	case SPY_CONTRACT_DEVICE:
		return 4;
	default:
		return 0;
	}
}

static void add_sync(struct sqlite_export *e, const struct record *record,
		     const struct completed_call *call, uint64_t id)
{
	struct database *db = &e->db;
	bool event = record->contract == SPY_CONTRACT_EVENT && record->event == SPY_EV_OP;

	put_time(e, TABLE_SYNCS, call->begin_ns);
	put_time(e, TABLE_SYNCS, call->end_ns);
	put_number(db, TABLE_SYNCS, record->device == SPY_DEVICE_NONE ? 0 : record->device);
	put_number(db, TABLE_SYNCS, record_context(record));
	put_null(db, TABLE_SYNCS);
	put_number(db, TABLE_SYNCS, record_stream(record));
	put_number(db, TABLE_SYNCS, id);
	put_number(db, TABLE_SYNCS, global_pid(record->thread->process->trace));
	put_number(db, TABLE_SYNCS, sync_type(record->contract));
	put_number(db, TABLE_SYNCS, event ? record_object(record) : 0);
	row_end(db, TABLE_SYNCS);
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* What a wait is called as a function of the C library, one for each kind. */
static const char *function_of(unsigned int kind)
{
	static const char *const names[SPY_WAIT_KINDS] = {
		[SPY_WAIT_MUTEX] = "pthread_mutex_lock",
		[SPY_WAIT_READ] = "pthread_rwlock_rdlock",
		[SPY_WAIT_WRITE] = "pthread_rwlock_wrlock",
		[SPY_WAIT_SPIN] = "pthread_spin_lock",
		[SPY_WAIT_CONDITION] = "pthread_cond_wait",
		[SPY_WAIT_SEMAPHORE] = "sem_wait",
		[SPY_WAIT_FUTEX] = "futex",
		[SPY_WAIT_IOCTL] = "ioctl",
		[SPY_WAIT_POLL] = "poll",
		[SPY_WAIT_QUERY] = "cudaEventQuery",
		[SPY_WAIT_YIELD] = "sched_yield",
		[SPY_WAIT_SLEEP] = "nanosleep",
		[SPY_WAIT_TRANSFER] = "read",
		[SPY_WAIT_EPOLL] = "epoll_wait",
		[SPY_WAIT_ACCEPT] = "accept",
		[SPY_WAIT_JOIN] = "pthread_join",
		[SPY_WAIT_CHILD] = "waitpid",
	};

	return kind < SPY_WAIT_KINDS ? names[kind] : name_wait(kind);
}

/* The number of the name of a small enum's value, which is looked up once. */
static uint32_t name_of(struct sqlite_export *e, uint32_t numbers[NAMES_CACHED], unsigned int value,
			const char *(*name)(unsigned int value))
{
	if (value >= NAMES_CACHED)
		return database_string(&e->db, name(value));
	if (!numbers[value])
		numbers[value] = database_string(&e->db, name(value));
	return numbers[value];
}

#define OS_RUNTIME 27 /* TRACE_PROCESS_EVENT_OS_RUNTIME */

/* Several in a row are as long as all of them together, and end with the last one. */
static void add_os_wait(struct sqlite_export *e, unsigned int kind, uint64_t end_ns, uint64_t ns,
			uint64_t tid)
{
	struct database *db = &e->db;

	put_time(e, TABLE_OSRT, end_ns - min_u64(ns, end_ns));
	put_time(e, TABLE_OSRT, end_ns);
	put_number(db, TABLE_OSRT, OS_RUNTIME);
	put_number(db, TABLE_OSRT, tid);
	put_number(db, TABLE_OSRT, name_of(e, e->wait_functions, kind, function_of));
	put_zeros(db, TABLE_OSRT, 3);
	row_end(db, TABLE_OSRT);
}

/* As the report numbers them: L1 is number 1; 0: nobody waited for it. */
static uint32_t lock_number(const struct sqlite_export *e, const struct lock *lock)
{
	const struct locks *locks = &e->job->known->accounts.locks;

	return lock && lock->index < locks->count ? locks->all[lock->index]->rank : 0;
}

/* What of a wait is due to one holder; NULL: it has none. */
static void add_wait(struct sqlite_export *e, const struct wait *w, uint64_t id, uint64_t tid,
		     const struct holder_part *part)
{
	struct database *db = &e->db;
	const struct hold_interval *by = part ? part->by : NULL;

	put_number(db, TABLE_WAITS, id);
	put_time(e, TABLE_WAITS, part ? part->begin_ns : w->begin_ns);
	put_time(e, TABLE_WAITS, part ? part->end_ns : w->end_ns);
	put_number(db, TABLE_WAITS, part ? part->end_ns - part->begin_ns : w->ns);
	put_number(db, TABLE_WAITS, tid);
	put_number(db, TABLE_WAITS, name_of(e, e->waits, w->kind, name_wait));
	put_unless(db, TABLE_WAITS, lock_number(e, w->lock), 0);
	if (by && by->holder) {
		put_number(db, TABLE_WAITS, global_tid(by->holder));
		put_unless(db, TABLE_WAITS, sqlite_function(e, by->fn), 0);
		put_unless(db, TABLE_WAITS, by->device, SPY_DEVICE_NONE);
	} else {
		put_nulls(db, TABLE_WAITS, 3);
	}
	if (part)
		put_number(db, TABLE_WAITS, part->release_ns);
	else
		put_null(db, TABLE_WAITS);
	put_number(db, TABLE_WAITS, w->count);
	row_end(db, TABLE_WAITS);
}

static void add_waits(struct sqlite_export *e, const struct completed_call *call, uint64_t id,
		      uint64_t tid)
{
	for (size_t i = 0; i < call->n_waits; i++) {
		const struct wait *w = &call->waits[i];
		struct holder_part part;

		add_os_wait(e, w->kind, w->end_ns, w->ns, tid);
		for (size_t next = 0; next < w->n_intervals;) {
			next = wait_next_holder(w, next, &part);
			add_wait(e, w, id, tid, &part);
		}
		if (!w->n_intervals)
			add_wait(e, w, id, tid, NULL);
	}
}

static void on_call(void *data, const struct record *record, const struct completed_call *call)
{
	struct sqlite_export *e = data;
	struct thread_rows *t = rows_of(e, record->thread);
	uint64_t tid = t->global_tid, id = id_of(e, t, call);

	add_call(e, record, call, id, tid);
	add_facts(e, record, call, id);
	if (call->divided)
		add_parts(e, call, id);
	if (record->event == SPY_EV_COPY)
		add_copy(e, record_copy(record), id);
	if (sync_type(record->contract))
		add_sync(e, record, call, id);
	if (call->divided)
		add_waits(e, call, id, tid);
}

static void on_nested(void *data, const struct record *record)
{
	struct sqlite_export *e = data;
	struct database *db = &e->db;
	struct thread_rows *t = rows_of(e, record->thread);
	uint64_t begin_ns = record->ns - min_u64(record->duration_ns, record->ns);

	put_time(e, TABLE_NESTED, begin_ns);
	put_time(e, TABLE_NESTED, record->ns);
	put_number(db, TABLE_NESTED, class_of(e, record->fn));
	put_number(db, TABLE_NESTED, t->global_tid);
	put_number(db, TABLE_NESTED, pending_id(e, t, begin_ns));
	put_number(db, TABLE_NESTED, sqlite_function(e, record->fn));
	put_number(db, TABLE_NESTED, result_of(record));
	row_end(db, TABLE_NESTED);
}

/* ---- between calls --------------------------------------------------------------------------- */

static void on_outside(void *data, const struct record *record)
{
	struct sqlite_export *e = data;
	struct database *db = &e->db;
	const struct analysis *a = e->job->shown;
	const struct host_thread *host = host_thread_find(&a->idle.threads, record->thread);
	const struct host_wait *wait;
	const struct thread *holder = NULL;
	uint64_t tid = rows_of(e, record->thread)->global_tid;

	if (!host || !host->n_waits)
		return;
	wait = &host->waits[(host->n_waits - 1) % host->waits_size];
	if (wait->part.holder)
		holder = model_find_thread(&a->model, record->thread->process, wait->part.holder);
	add_os_wait(e, decode_outside(record).kind, wait->end_ns, wait->ns, tid);
	put_time(e, TABLE_GAPS, wait->begin_ns);
	put_time(e, TABLE_GAPS, wait->end_ns);
	put_number(db, TABLE_GAPS, wait->ns);
	put_number(db, TABLE_GAPS, tid);
	put_number(db, TABLE_GAPS, database_string(db, idle_cause_codes[wait->part.cause]));
	put_unless(db, TABLE_GAPS,
		   sqlite_place(e, record->thread->process, wait->part.address, wait->end_ns,
				wait->part.stack),
		   0);
	put_unless(db, TABLE_GAPS, holder ? global_tid(holder) : 0, 0);
	row_end(db, TABLE_GAPS);
}

/* As Nsight Systems numbers what NVTX announces. */
enum { NVTX_MARK = 34, NVTX_PUSH_POP = 59, NVTX_START_END = 60 };

static void on_range(void *data, const struct shown_range *range)
{
	struct sqlite_export *e = data;
	struct database *db = &e->db;
	uint32_t domain = sqlite_domain(e, range->name->domain, range->begin_ns, range->thread);

	put_time(e, TABLE_NVTX, range->begin_ns);
	put_time_if(e, TABLE_NVTX, !range->mark && !range->unended, range->end_ns);
	put_number(db, TABLE_NVTX,
		   range->mark     ? NVTX_MARK
		   : range->pushed ? NVTX_PUSH_POP
				   : NVTX_START_END);
	put_nulls(db, TABLE_NVTX, 3);
	put_text(db, TABLE_NVTX, range->name->name);
	put_number(db, TABLE_NVTX, rows_of(e, range->thread)->global_tid);
	put_null(db, TABLE_NVTX);
	put_number(db, TABLE_NVTX, database_string(db, range->name->name));
	put_number(db, TABLE_NVTX, domain);
	row_end(db, TABLE_NVTX);
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* Of the call that submitted it, on a clock that is not exactly the host's; 0 unknown. */
static uint64_t id_of_submission(struct sqlite_export *e, const struct gpu_event *op)
{
	const struct process *process = &e->job->shown->model.processes[op->process];
	const struct thread *thread =
		op->tid ? model_find_thread(&e->job->shown->model, process, op->tid) : NULL;
	uint64_t ns = op->submit_begin_ns / 2 + op->submit_end_ns / 2, i;
	struct thread_rows *t;

	if (!thread || !ns)
		return 0;
	t = rows_of(e, thread);
	for (i = t->n_calls; t->calls && i && i + CALLS_KEPT > t->n_calls; i--) {
		const struct kept_call *call = &t->calls[(i - 1) % CALLS_KEPT];

		if (ns > call->end_ns)
			return i == t->n_calls ? pending_id(e, t, ns) : 0;
		if (ns >= call->begin_ns)
			return call->id;
	}
	return t->n_calls ? 0 : pending_id(e, t, ns);
}

/* The columns that operations of all kinds begin with. */
static void put_op(struct sqlite_export *e, enum database_table table, const struct gpu_event *op,
		   uint32_t gpu)
{
	struct database *db = &e->db;

	put_time(e, table, op->begin_ns);
	put_time(e, table, op->end_ns);
	put_number(db, table, gpu);
	put_number(db, table, op->context);
	put_null(db, table);
	put_number(db, table, op->stream);
	put_unless(db, table, id_of_submission(e, op), 0);
	put_number(db, table, global_pid(e->job->shown->model.processes[op->process].trace));
}

static void add_kernel(struct sqlite_export *e, const struct gpu_event *op, uint32_t gpu)
{
	struct database *db = &e->db;
	const struct name_row *name = sqlite_kernel(e, op->process, op->kernel);

	put_op(e, TABLE_KERNELS, op, gpu);
	put_number(db, TABLE_KERNELS, name->id);
	put_number(db, TABLE_KERNELS, name->short_id);
	put_unless(db, TABLE_KERNELS, name->mangled_id, 0);
	put_nulls(db, TABLE_KERNELS, 2);
	put_number(db, TABLE_KERNELS, 0);
	put_number(db, TABLE_KERNELS, op->amount); /* of blocks; how they lie is not recorded */
	put_number(db, TABLE_KERNELS, 1);
	put_number(db, TABLE_KERNELS, 1);
	put_zeros(db, TABLE_KERNELS, 8);
	row_end(db, TABLE_KERNELS);
}

static void on_gpu_op(void *data, const struct gpu_event *op, uint32_t gpu)
{
	struct sqlite_export *e = data;
	struct database *db = &e->db;

	switch (op->kind) {
	case SPY_GPU_KERNEL:
		add_kernel(e, op, gpu);
		break;
	case SPY_GPU_COPY:
		put_op(e, TABLE_COPIES, op, gpu);
		put_number(db, TABLE_COPIES, op->amount);
		put_number(db, TABLE_COPIES, copy_kind(op->direction));
		row_end(db, TABLE_COPIES);
		break;
	default:
		put_op(e, TABLE_MEMSETS, op, gpu);
		put_number(db, TABLE_MEMSETS, 0); /* the value is not recorded */
		put_number(db, TABLE_MEMSETS, op->amount);
		row_end(db, TABLE_MEMSETS);
	}
}

static void on_idle(void *data, const struct shown_idle *idle)
{
	struct sqlite_export *e = data;
	struct database *db = &e->db;

	put_number(db, TABLE_IDLE, idle->gpu);
	put_time(e, TABLE_IDLE, idle->begin_ns);
	put_time(e, TABLE_IDLE, idle->end_ns);
	put_number(db, TABLE_IDLE, idle->ns);
	put_number(db, TABLE_IDLE, database_string(db, idle_cause_codes[idle->cause]));
	put_number(db, TABLE_IDLE, idle->exact);
	row_end(db, TABLE_IDLE);
}

static uint64_t rank_number(const struct sqlite_export *e, uint32_t index)
{
	return index == UINT32_MAX ? UNKNOWN_NS : e->job->shown->ranks.all[index]->number;
}

static void on_collective(void *data, const struct shown_collective *c)
{
	struct sqlite_export *e = data;
	struct database *db = &e->db;

	put_number(db, TABLE_COLLECTIVES, c->number);
	put_number(db, TABLE_COLLECTIVES, rank_number(e, c->rank));
	put_unless(db, TABLE_COLLECTIVES, rank_number(e, c->last_rank), UNKNOWN_NS);
	put_number(db, TABLE_COLLECTIVES, global_pid(c->process->trace));
	put_unless(db, TABLE_COLLECTIVES, c->device, SPY_DEVICE_NONE);
	put_number(db, TABLE_COLLECTIVES, database_string(db, name_shown_func(c->func)));
	put_number(db, TABLE_COLLECTIVES, c->comm & NUMBER_MOST);
	put_number(db, TABLE_COLLECTIVES, c->count);
	put_unless(db, TABLE_COLLECTIVES, c->bytes, 0);
	put_time(e, TABLE_COLLECTIVES, c->submit_begin_ns);
	put_time(e, TABLE_COLLECTIVES, c->submit_end_ns);
	put_time_if(e, TABLE_COLLECTIVES, c->end_ns, c->begin_ns);
	put_time_if(e, TABLE_COLLECTIVES, c->end_ns, c->end_ns);
	put_number(db, TABLE_COLLECTIVES, c->wait_ns);
	row_end(db, TABLE_COLLECTIVES);
}

/* ---- */

void *sqlite_begin(const struct export_job *job)
{
	struct sqlite_export *e = xcalloc(1, sizeof(*e));

	e->job = job;
	e->zero_ns = job->known->model.first_ns;
	e->listener = (struct listener){.data = e,
					.on_call = on_call,
					.on_nested = on_nested,
					.on_outside = on_outside,
					.on_range = on_range,
					.on_gpu_op = on_gpu_op,
					.on_idle = on_idle,
					.on_collective = on_collective};
	database_open(&e->db, job->out->temporary);
	sqlite_enums(e);
	sqlite_report(e);
	return e;
}

const struct listener *sqlite_listener(void *state)
{
	struct sqlite_export *e = state;

	return &e->listener;
}

static void release(struct sqlite_export *e)
{
	for (size_t i = 0; i < e->n_threads; i++)
		free(e->threads[i].calls);
	free(e->threads);
	sqlite_names_release(e);
	database_close(&e->db);
	free(e);
}

int sqlite_end(void *state, int err)
{
	struct sqlite_export *e = state;

	if (!err) {
		sqlite_targets(e);
		database_finish(&e->db);
	}
	if (!err && e->db.error) {
		warn("%s: %s", e->job->out->path, e->db.error);
		err = -EIO;
	}
	release(e);
	return err;
}
