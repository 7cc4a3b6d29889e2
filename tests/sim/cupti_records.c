/*
 * tests/sim/cupti_records.c: the records of the look-alike of CUPTI: made of what the simulated driver
 * tells (activity.h), laid into buffers that the client's callback gives, and delivered by a thread of
 * our own when they are full or the flush period is over, or by who calls cuptiActivityFlushAll. As in
 * CUPTI, the buffer is asked for on whichever thread has a record; a record for which there is none is
 * counted. Records of one stream come in its order, all others as it happens.
 */
#include "cupti.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct buffer {
	struct buffer *next;
	uint8_t *bytes;
	size_t size, used, record_cnt, record_max; /* max 0: as many as fit */
};

/* A graph launch whose operations end one by one, for KIND_GRAPH_TRACE. */
struct launch {
	struct launch *next;
	unsigned left;
	struct cupti_graph record;
};

atomic_bool cupti_kind_on[KIND_CNT];
atomic_bool cupti_driver_on[FN_COUNT], cupti_runtime_on[FN_COUNT];
atomic_int cupti_thread_type;

static const uint32_t cbids[FN_COUNT] = {
#define CBID_DRIVER(function, number) [FN_##function] = number,
#define CBID_RUNTIME(function, version, number) [FN_##function] = number,
#include "cupti_cbid.def"
#undef CBID_DRIVER
#undef CBID_RUNTIME
};
static const bool of_runtime[FN_COUNT] = {
#define CBID_DRIVER(function, number)
#define CBID_RUNTIME(function, version, number) [FN_##function] = true,
#include "cupti_cbid.def"
#undef CBID_DRIVER
#undef CBID_RUNTIME
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	cupti_wanted *wanted;
	cupti_completed *completed;
	struct buffer *current, *full, **full_end; /* oldest first */
	struct launch *launches;
	size_t dropped;
	unsigned long record_cnt, activity_cnt;
	uint32_t period_ms;
	bool started, stop;
	pthread_t thread;
} r = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .full_end = &r.full};

uint32_t cupti_cbid(enum sim_fn fn, bool *runtime)
{
	*runtime = of_runtime[fn];
	return cbids[fn];
}

/* ---- buffers, under the lock ---- */
static bool room(const struct buffer *buffer, size_t bytes)
{
	return buffer->size - buffer->used >= bytes &&
	       (!buffer->record_max || buffer->record_cnt < buffer->record_max);
}

static void retire(void)
{
	*r.full_end = r.current;
	r.full_end = &r.current->next;
	r.current = NULL;
	pthread_cond_signal(&r.wake);
}

static struct buffer *buffer_new(void)
{
	struct buffer *buffer;
	uint8_t *bytes = NULL;
	size_t size = 0, record_max = 0;

	if (!r.wanted)
		return NULL;
	r.wanted(&bytes, &size, &record_max);
	if (!bytes || !size)
		return NULL;
	buffer = calloc(1, sizeof(*buffer));
	if (!buffer)
		abort();
	buffer->bytes = bytes;
	buffer->size = size;
	buffer->record_max = record_max;
	memset(bytes, 0, size);
	return buffer;
}

static void put(const void *record, size_t bytes)
{
	unsigned drop = cupti_source->knobs->drop;

	r.record_cnt++;
	if (drop && r.record_cnt % drop == 0) {
		r.dropped++;
		return;
	}
	if (r.current && !room(r.current, bytes))
		retire();
	if (!r.current)
		r.current = buffer_new();
	if (!r.current || !room(r.current, bytes)) {
		r.dropped++;
		return;
	}
	memcpy(r.current->bytes + r.current->used, record, bytes);
	r.current->used += bytes;
	r.current->record_cnt++;
	if (!room(r.current, 8)) /* full to the brim: the next record would find out late */
		retire();
}

/* Takes what may be delivered: full buffers, with all also the one that is being filled. */
static struct buffer *take(bool all)
{
	struct buffer *list;

	if (all && r.current && r.current->used)
		retire();
	list = r.full;
	r.full = NULL;
	r.full_end = &r.full;
	return list;
}

static void deliver(struct buffer *list)
{
	while (list) {
		struct buffer *next = list->next;

		r.completed(NULL, 0, list->bytes, list->size, list->used);
		free(list);
		list = next;
	}
}

/* ---- records ---- */

/* Real CUPTI has been seen to give such times: none, or an end before the start. */
static void spoil(uint64_t *start, uint64_t *end)
{
	unsigned nth = cupti_source->knobs->broken_times;

	if (!nth || ++r.activity_cnt % nth)
		return;
	if (r.activity_cnt / nth % 2)
		*start = 0;
	else
		*end = *start - 1000;
}

static uint8_t memory_kind(unsigned char mem)
{
	static const uint8_t kinds[] = {
		[MEM_NONE] = 0,   [MEM_PAGEABLE] = 1, [MEM_PINNED] = 2,
		[MEM_DEVICE] = 3, [MEM_ARRAY] = 4,    [MEM_MANAGED] = 5,
	};

	return kinds[mem];
}

static uint8_t copy_kind(const struct sim_what *what)
{
	bool from_host = what->src == MEM_PAGEABLE || what->src == MEM_PINNED;
	bool to_host = what->dst == MEM_PAGEABLE || what->dst == MEM_PINNED;
	bool from_array = what->src == MEM_ARRAY, to_array = what->dst == MEM_ARRAY;

	if (from_host)
		return to_host ? COPY_HTOH : to_array ? COPY_HTOA : COPY_HTOD;
	if (from_array)
		return to_host ? COPY_ATOH : to_array ? COPY_ATOA : COPY_ATOD;
	return to_host ? COPY_DTOH : to_array ? COPY_DTOA : COPY_DTOD;
}

static void kernel_record(const struct sim_activity *a)
{
	bool concurrent = cupti_kind_on[KIND_CONCURRENT_KERNEL];
	struct cupti_kernel k = {
		.kind = concurrent ? KIND_CONCURRENT_KERNEL : KIND_KERNEL,
		.registers = 32,
		.start = cupti_clock(a->begin_ns),
		.end = cupti_clock(a->end_ns),
		.device = a->device,
		.context = a->context,
		.stream = a->stream,
		.dynamic_shared = (int32_t)a->what.shared,
		.correlation = a->correlation,
		.grid_id = (int64_t)r.record_cnt + 1,
		.name = a->what.name,
		.graph_node = a->graph_node,
		.graph = a->graph,
		.channel = 1,
		.channel_type = CUPTI_CHANNEL_COMPUTE,
	};

	if (!concurrent && !cupti_kind_on[KIND_KERNEL])
		return;
	for (int i = 0; i < 3; i++) {
		k.grid[i] = (int32_t)a->what.grid[i];
		k.block[i] = (int32_t)a->what.block[i];
	}
	spoil(&k.start, &k.end);
	put(&k, sizeof(k));
}

static void peer_record(const struct sim_activity *a)
{
	struct cupti_peer_copy c = {
		.kind = KIND_MEMCPY2,
		.copy_kind = COPY_PTOP,
		.src_kind = memory_kind(a->what.src),
		.dst_kind = memory_kind(a->what.dst),
		.flags = a->what.async ? CUPTI_COPY_ASYNC : 0,
		.bytes = a->what.bytes,
		.start = cupti_clock(a->begin_ns),
		.end = cupti_clock(a->end_ns),
		.device = a->device,
		.context = a->context,
		.stream = a->stream,
		.src_device = (uint32_t)a->what.src_dev,
		.dst_device = (uint32_t)a->what.dst_dev,
		.correlation = a->correlation,
		.graph_node = a->graph_node,
		.graph = a->graph,
		.channel = 1,
		.channel_type = CUPTI_CHANNEL_COPY,
	};

	if (!cupti_kind_on[KIND_MEMCPY2])
		return;
	spoil(&c.start, &c.end);
	put(&c, sizeof(c));
}

static void copy_record(const struct sim_activity *a)
{
	struct cupti_copy c = {
		.kind = KIND_MEMCPY,
		.copy_kind = copy_kind(&a->what),
		.src_kind = memory_kind(a->what.src),
		.dst_kind = memory_kind(a->what.dst),
		.flags = a->what.async ? CUPTI_COPY_ASYNC : 0,
		.bytes = a->what.bytes,
		.start = cupti_clock(a->begin_ns),
		.end = cupti_clock(a->end_ns),
		.device = a->device,
		.context = a->context,
		.stream = a->stream,
		.correlation = a->correlation,
		.runtime_correlation = a->correlation,
		.graph_node = a->graph_node,
		.graph = a->graph,
		.channel = 1,
		.channel_type = CUPTI_CHANNEL_COPY,
		.copies = 1,
	};

	if (a->what.src_dev >= 0 && a->what.dst_dev >= 0 && a->what.src_dev != a->what.dst_dev) {
		peer_record(a);
		return;
	}
	if (!cupti_kind_on[KIND_MEMCPY])
		return;
	spoil(&c.start, &c.end);
	put(&c, sizeof(c));
}

static void set_record(const struct sim_activity *a)
{
	struct cupti_set s = {
		.kind = KIND_MEMSET,
		.value = a->what.value,
		.bytes = a->what.bytes,
		.start = cupti_clock(a->begin_ns),
		.end = cupti_clock(a->end_ns),
		.device = a->device,
		.context = a->context,
		.stream = a->stream,
		.correlation = a->correlation,
		.flags = a->what.async ? CUPTI_MEMSET_ASYNC : 0,
		.memory_kind = memory_kind(a->what.dst),
		.graph_node = a->graph_node,
		.graph = a->graph,
		.channel = 1,
		.channel_type = CUPTI_CHANNEL_COMPUTE,
	};

	if (!cupti_kind_on[KIND_MEMSET])
		return;
	spoil(&s.start, &s.end);
	put(&s, sizeof(s));
}

/* One record for the whole launch, when the last of its operations has ended. */
static void graph_record(const struct sim_activity *a)
{
	uint64_t start = cupti_clock(a->begin_ns), end = cupti_clock(a->end_ns);
	struct launch **at = &r.launches, *l;

	while (*at && (*at)->record.correlation != a->correlation)
		at = &(*at)->next;
	l = *at;
	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l)
			abort();
		l->left = a->graph_ops;
		l->record = (struct cupti_graph){.kind = KIND_GRAPH_TRACE,
						 .correlation = a->correlation,
						 .start = start,
						 .end = end,
						 .device = a->device,
						 .graph = a->graph,
						 .context = a->context,
						 .stream = a->stream,
						 .end_device = a->device,
						 .end_context = a->context};
		*at = l;
	}
	if (start < l->record.start)
		l->record.start = start;
	if (end > l->record.end)
		l->record.end = end;
	if (--l->left)
		return;
	*at = l->next;
	spoil(&l->record.start, &l->record.end);
	put(&l->record, sizeof(l->record));
	free(l);
}

static void on_activity(const struct sim_activity *a)
{
	pthread_mutex_lock(&r.lock);
	if (a->graph && cupti_kind_on[KIND_GRAPH_TRACE])
		graph_record(a);
	else if (a->kind == ACTIVITY_KERNEL)
		kernel_record(a);
	else if (a->kind == ACTIVITY_COPY)
		copy_record(a);
	else
		set_record(a);
	pthread_mutex_unlock(&r.lock);
}

static void on_call(const struct sim_call *call)
{
	bool runtime = of_runtime[call->fn];
	struct cupti_call c = {
		.kind = runtime ? KIND_RUNTIME : KIND_DRIVER,
		.cbid = cbids[call->fn],
		.process = (uint32_t)getpid(),
		.thread = atomic_load(&cupti_thread_type) == CUPTI_THREAD_SYSTEM
				  ? (uint32_t)call->tid
				  : (uint32_t)(uintptr_t)pthread_self(),
		.correlation = call->correlation,
		.result = (uint32_t)call->result,
	};

	if (!c.cbid || !(runtime ? cupti_runtime_on : cupti_driver_on)[call->fn])
		return;
	c.start = cupti_clock(call->begin_ns);
	c.end = cupti_clock(call->end_ns);
	pthread_mutex_lock(&r.lock);
	put(&c, sizeof(c));
	pthread_mutex_unlock(&r.lock);
}

const struct sim_listener cupti_listener = {.activity = on_activity, .call = on_call};

/* ---- the thread ---- */
static void *worker(void *arg)
{
	struct buffer *list;
	bool stop = false;

	(void)arg;
	while (!stop) {
		bool all = false;

		pthread_mutex_lock(&r.lock);
		while (!r.full && !r.stop && !all) {
			struct timespec until;

			if (!r.period_ms) {
				pthread_cond_wait(&r.wake, &r.lock);
				continue;
			}
			clock_gettime(CLOCK_REALTIME, &until);
			until.tv_nsec += (long)(r.period_ms % 1000) * 1000000;
			until.tv_sec += r.period_ms / 1000 + until.tv_nsec / 1000000000;
			until.tv_nsec %= 1000000000;
			all = pthread_cond_timedwait(&r.wake, &r.lock, &until) != 0;
		}
		stop = r.stop;
		list = take(all || stop);
		pthread_mutex_unlock(&r.lock);
		deliver(list);
	}
	return NULL;
}

/* Under the lock. */
static void worker_start(void)
{
	sigset_t all, old;

	if (r.started)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r.stop = false;
	r.started = pthread_create(&r.thread, NULL, worker, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int cupti_buffers_set(cupti_wanted *wanted, cupti_completed *completed)
{
	pthread_mutex_lock(&r.lock);
	r.wanted = wanted;
	r.completed = completed;
	worker_start();
	pthread_mutex_unlock(&r.lock);
	return CUPTI_OK;
}

int cupti_flush(void)
{
	struct buffer *list;

	if (!r.completed)
		return CUPTI_BAD_OPERATION;
	cupti_source->settle();
	pthread_mutex_lock(&r.lock);
	list = take(true);
	pthread_mutex_unlock(&r.lock);
	deliver(list);
	return CUPTI_OK;
}

void cupti_flush_every(uint32_t ms)
{
	pthread_mutex_lock(&r.lock);
	r.period_ms = ms;
	pthread_cond_signal(&r.wake);
	pthread_mutex_unlock(&r.lock);
}

size_t cupti_dropped(void)
{
	size_t dropped;

	pthread_mutex_lock(&r.lock);
	dropped = r.dropped;
	r.dropped = 0;
	pthread_mutex_unlock(&r.lock);
	return dropped;
}

void cupti_records_stop(void)
{
	bool started;

	pthread_mutex_lock(&r.lock);
	r.stop = true;
	started = r.started;
	pthread_cond_signal(&r.wake);
	pthread_mutex_unlock(&r.lock);
	if (started)
		pthread_join(r.thread, NULL);
	pthread_mutex_lock(&r.lock);
	r.started = false;
	r.wanted = NULL;
	r.completed = NULL;
	r.period_ms = 0;
	pthread_mutex_unlock(&r.lock);
}

/* ---- reading ---- */
static size_t record_bytes(int32_t kind)
{
	switch (kind) {
	case KIND_MEMCPY:
		return sizeof(struct cupti_copy);
	case KIND_MEMSET:
		return sizeof(struct cupti_set);
	case KIND_KERNEL:
	case KIND_CONCURRENT_KERNEL:
		return sizeof(struct cupti_kernel);
	case KIND_DRIVER:
	case KIND_RUNTIME:
		return sizeof(struct cupti_call);
	case KIND_MEMCPY2:
		return sizeof(struct cupti_peer_copy);
	case KIND_GRAPH_TRACE:
		return sizeof(struct cupti_graph);
	}
	return 0;
}

int cupti_next_record(uint8_t *buffer, size_t valid, uint8_t **record)
{
	uint8_t *next = buffer;
	int32_t kind;

	if (!buffer || !record)
		return CUPTI_BAD_PARAMETER;
	if (*record) {
		memcpy(&kind, *record, sizeof(kind));
		next = *record + record_bytes(kind);
	}
	if (next + sizeof(kind) > buffer + valid)
		return CUPTI_LIMIT_REACHED;
	memcpy(&kind, next, sizeof(kind));
	if (!record_bytes(kind))
		return CUPTI_BAD_KIND;
	*record = next;
	return CUPTI_OK;
}
