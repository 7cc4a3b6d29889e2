/*
 * tests/sim/nccl_plugin.c: the profiler interface's side of NCCL: finds the plugin as NCCL does, with the
 * newest version that both have, and sends it what NCCL of that version sends: events of the API (since
 * version 5) while the program calls; group, collectives and sends right behind the launch, all on the
 * submitting thread; kernels by channel (since version 3, with the GPU's timer since 4) on the proxy's.
 * The order is that of NCCL 2.23 to 2.30 (src/plugin/profiler.cc, src/transport/profiler.cc).
 *
 * Not sent: events of network proxies, of network plugins and of copy engines. There is one mask for all
 * communicators, as in NCCL; it is read once for a group.
 */
#include "nccl.h"

#include "nccl_events.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const nccl_func_name[NCCL_FUNCS] = {
	"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
	"AllReduce", "SendRecv", "Send",      "Recv",
};
const char *const nccl_type_name[NCCL_TYPES] = {
	"ncclInt8",   "ncclUint8",   "ncclInt32",   "ncclUint32",  "ncclInt64",
	"ncclUint64", "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *library;
static struct plugin *plugin;
static int version; /* of the plugin */
static bool tried;
static int comm_cnt;
static int mask; /* the plugin writes it */

/* Of the calling thread's group. */
static __thread struct {
	int mask;
	void *event;
	bool calling; /* ncclGroupStart has not returned yet */
} group;

/* ---- finding it ---- */
static void *open_library(void)
{
	const char *name = getenv("NCCL_PROFILER_PLUGIN");
	char path[256];
	void *handle;

	if (!name || !*name)
		return dlopen("libnccl-profiler.so", RTLD_NOW | RTLD_LOCAL);
	if (!strcasecmp(name, "none"))
		return NULL;
	if (!strncasecmp(name, "STATIC_PLUGIN", strlen(name)))
		return dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
	handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (handle || strchr(name, '/'))
		return handle;
	snprintf(path, sizeof(path), "libnccl-profiler-%s.so", name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void load(void)
{
	char symbol[32];

	if (tried)
		return;
	tried = true;
	library = open_library();
	for (version = nccl_source->knobs->interface; library && version > 0; version--) {
		snprintf(symbol, sizeof(symbol), "ncclProfiler_v%d", version);
		plugin = dlsym(library, symbol);
		if (plugin)
			return;
	}
	if (library)
		dlclose(library);
	library = NULL;
}

static void unload(void)
{
	if (library)
		dlclose(library);
	library = NULL;
	plugin = NULL;
	tried = false;
}

static void log_nothing(int level, unsigned long flags, const char *file, int line,
			const char *format, ...)
{
}

void nccl_plugin_init(struct nccl_comm *comm)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	comm_cnt++;
	load();
	if (plugin && version <= 3)
		rc = plugin->init1(&comm->profiler, &mask);
	else if (plugin && version == 4)
		rc = plugin->init4(&comm->profiler, &mask, NULL, comm->hash, 1, comm->rank_cnt,
				   comm->rank, (void *)log_nothing);
	else if (plugin)
		rc = plugin->init5(&comm->profiler, comm->hash, &mask, NULL, 1, comm->rank_cnt,
				   comm->rank, (void *)log_nothing);
	if (rc)
		plugin = NULL;
	pthread_mutex_unlock(&lock);
}

void nccl_plugin_finalize(struct nccl_comm *comm)
{
	pthread_mutex_lock(&lock);
	if (plugin && comm->profiler)
		plugin->finalize(comm->profiler);
	if (!--comm_cnt)
		unload();
	pthread_mutex_unlock(&lock);
}

/* ---- the API's events ---- */
enum {
	BELOW_TASK = EVENT_PROXY_OP | EVENT_PROXY_STEP | EVENT_KERNEL_CH | EVENT_NET_PLUGIN,
	WANTS_COLL = EVENT_COLL | BELOW_TASK,
	WANTS_P2P = EVENT_P2P | BELOW_TASK,
	WANTS_GROUP = EVENT_GROUP | EVENT_COLL | EVENT_P2P | BELOW_TASK,
	WANTS_GROUP_API = WANTS_GROUP | EVENT_GROUP_API | EVENT_COLL_API | EVENT_P2P_API |
			  EVENT_KERNEL_LAUNCH,
};

static void *start(const struct nccl_comm *comm, void *description)
{
	void *event = NULL;

	plugin->start(comm->profiler, &event, description);
	return event;
}

int nccl_plugin_mask(void)
{
	return group.mask;
}

void nccl_plugin_group_begin(const struct nccl_task *task, int depth)
{
	struct event5 e = {.type = EVENT_GROUP_API, .group_api.depth = depth};

	group.mask = plugin ? __atomic_load_n(&mask, __ATOMIC_RELAXED) : 0;
	if (plugin && version >= 5 && group.mask & WANTS_GROUP_API)
		group.event = start(task->comm, &e);
	group.calling = true;
}

static void group_state(int state)
{
	union event_state none;

	memset(&none, 0, sizeof(none));
	if (plugin && group.event)
		plugin->state(group.event, state, &none);
}

/* The group's event begins with its first task, so the state is recorded behind that. */
void nccl_plugin_group_called(void)
{
	if (group.calling)
		group_state(STATE_GROUP_START_API_STOP);
	group.calling = false;
}

void nccl_plugin_group_ending(void)
{
	group_state(STATE_GROUP_END_API_START);
}

void nccl_plugin_group_end(void)
{
	if (plugin && group.event)
		plugin->stop(group.event);
	group.event = NULL;
}

void nccl_plugin_task(struct nccl_task *task)
{
	bool coll = nccl_is_collective(task->func);
	struct event5 e = {.type = coll ? EVENT_COLL_API : EVENT_P2P_API, .parent = group.event};

	if (!plugin || version < 5 ||
	    !(group.mask & (coll ? EVENT_COLL_API | WANTS_COLL : EVENT_P2P_API | WANTS_P2P)))
		return;
	if (coll) {
		e.coll_api.func = nccl_func_name[task->func];
		e.coll_api.count = task->count;
		e.coll_api.type = nccl_type_name[task->type];
		e.coll_api.root = task->peer;
		e.coll_api.stream = task->stream;
	} else {
		e.p2p_api.func = nccl_func_name[task->func];
		e.p2p_api.count = task->count;
		e.p2p_api.type = nccl_type_name[task->type];
		e.p2p_api.stream = task->stream;
	}
	task->api_event = start(task->comm, &e);
	if (task->api_event)
		plugin->stop(task->api_event);
}

/* ---- around the launch ---- */
void *nccl_plugin_launch_begin(const struct nccl_batch *batch)
{
	struct event5 e = {.type = EVENT_KERNEL_LAUNCH,
			   .parent = group.event,
			   .launch.stream = batch->tasks->stream};

	return plugin && version >= 5 && batch->mask & EVENT_KERNEL_LAUNCH ? start(batch->comm, &e)
									   : NULL;
}

void nccl_plugin_launch_end(void *event)
{
	if (plugin && event)
		plugin->stop(event);
}

/* What NCCL makes of it: bytes, for what only moves. */
static void as_reported(const struct nccl_task *task, size_t *count, enum nccl_type *type)
{
	bool moves = task->func == NCCL_ALL_GATHER || task->func == NCCL_BROADCAST;

	*count = moves ? task->count * nccl_type_bytes(task->type) : task->count;
	*type = moves ? NCCL_INT8 : task->type;
}

static bool small(const struct nccl_task *task)
{
	return nccl_task_bytes(task) < 65536;
}

/* NCCL dropped name and hash from all versions' collectives with its version 4. */
static uint64_t hash_for(const struct nccl_comm *comm)
{
	return nccl_source->knobs->interface < 4 ? comm->hash : 0;
}

enum { ALGORITHM_RING = 1, PROTOCOL_LL = 0, PROTOCOL_SIMPLE = 2, WARPS = 16 };

static void *start_coll1(struct nccl_batch *batch, struct nccl_task *task, void *parent)
{
	struct event1 e = {.type = EVENT_COLL, .parent = parent, .rank = task->comm->rank};
	enum nccl_type type;

	as_reported(task, &e.coll.count, &type);
	e.coll.type = (uint8_t)type;
	e.coll.comm_hash = hash_for(task->comm);
	e.coll.sequence = task->sequence;
	e.coll.func = (uint8_t)task->func;
	e.coll.send = task->send;
	e.coll.recv = task->recv;
	e.coll.root = task->peer;
	e.coll.channels = (uint8_t)batch->channels;
	e.coll.warps = WARPS;
	e.coll.algorithm = ALGORITHM_RING;
	e.coll.protocol = small(task) ? PROTOCOL_LL : PROTOCOL_SIMPLE;
	if (nccl_source->knobs->interface == 1) {
		e.coll.reduction = task->reduction;
		e.coll.traffic_bytes = nccl_task_bytes(task);
	}
	return start(task->comm, &e);
}

/* The fields that versions 2 to 5 have, wherever they lie. */
#define FILL_COLL(e) \
	do { \
		enum nccl_type type; \
\
		as_reported(task, &(e).coll.count, &type); \
		(e).coll.type = nccl_type_name[type]; \
		(e).coll.sequence = task->sequence; \
		(e).coll.func = nccl_func_name[task->func]; \
		(e).coll.send = task->send; \
		(e).coll.recv = task->recv; \
		(e).coll.root = task->peer; \
		(e).coll.channels = (uint8_t)batch->channels; \
		(e).coll.warps = WARPS; \
		(e).coll.algorithm = "RING"; \
		(e).coll.protocol = small(task) ? "LL" : "SIMPLE"; \
	} while (0)

static void *start_coll2(struct nccl_batch *batch, struct nccl_task *task, void *parent)
{
	struct event2 e = {.type = EVENT_COLL, .parent = parent, .rank = task->comm->rank};

	FILL_COLL(e);
	e.coll.comm_hash = hash_for(task->comm);
	return start(task->comm, &e);
}

static void *start_coll3(struct nccl_batch *batch, struct nccl_task *task, void *parent)
{
	struct event3 e = {.type = EVENT_COLL, .parent = parent, .rank = task->comm->rank};

	FILL_COLL(e);
	e.coll.comm_hash = hash_for(task->comm);
	return start(task->comm, &e);
}

static void *start_coll4(struct nccl_batch *batch, struct nccl_task *task, void *parent)
{
	struct event4 e = {.type = EVENT_COLL, .parent = parent, .rank = task->comm->rank};

	FILL_COLL(e);
	return start(task->comm, &e);
}

static void *start_coll5(struct nccl_batch *batch, struct nccl_task *task, void *parent)
{
	struct event5 e = {.type = EVENT_COLL, .parent = task->api_event, .rank = task->comm->rank};

	FILL_COLL(e);
	e.coll.group = parent;
	return start(task->comm, &e);
}

#define FILL_P2P(e) \
	do { \
		(e).p2p.buffer = \
			task->func == NCCL_SEND ? (void *)(uintptr_t)task->send : task->recv; \
		(e).p2p.count = task->count; \
		(e).p2p.peer = task->peer; \
	} while (0)
#define FILL_P2P_NAMES(e) \
	do { \
		(e).p2p.func = nccl_func_name[task->func]; \
		(e).p2p.type = nccl_type_name[task->type]; \
	} while (0)

static void *start_p2p1(struct nccl_batch *batch, struct nccl_task *task, void *parent)
{
	struct event1 e = {.type = EVENT_P2P, .parent = parent, .rank = task->comm->rank};

	FILL_P2P(e);
	e.p2p.comm_hash = hash_for(task->comm);
	e.p2p.func = (uint8_t)task->func;
	e.p2p.type = (uint8_t)task->type;
	return start(task->comm, &e);
}

static void *start_p2p2(struct nccl_batch *batch, struct nccl_task *task, void *parent)
{
	struct event2 e = {.type = EVENT_P2P, .parent = parent, .rank = task->comm->rank};

	FILL_P2P(e);
	FILL_P2P_NAMES(e);
	e.p2p.comm_hash = hash_for(task->comm);
	return start(task->comm, &e);
}

static void *start_p2p3(struct nccl_batch *batch, struct nccl_task *task, void *parent)
{
	struct event3 e = {.type = EVENT_P2P, .parent = parent, .rank = task->comm->rank};

	FILL_P2P(e);
	FILL_P2P_NAMES(e);
	e.p2p.comm_hash = hash_for(task->comm);
	return start(task->comm, &e);
}

static void *start_p2p4(struct nccl_batch *batch, struct nccl_task *task, void *parent)
{
	struct event4 e = {.type = EVENT_P2P, .parent = parent, .rank = task->comm->rank};

	FILL_P2P(e);
	FILL_P2P_NAMES(e);
	e.p2p.channels = (uint8_t)batch->channels;
	return start(task->comm, &e);
}

static void *start_p2p5(struct nccl_batch *batch, struct nccl_task *task, void *parent)
{
	struct event5 e = {.type = EVENT_P2P, .parent = task->api_event, .rank = task->comm->rank};

	FILL_P2P(e);
	FILL_P2P_NAMES(e);
	e.p2p.channels = (uint8_t)batch->channels;
	e.p2p.group = parent;
	return start(task->comm, &e);
}

typedef void *(*starter)(struct nccl_batch *batch, struct nccl_task *task, void *parent);
static const starter start_coll[] = {NULL,        start_coll1, start_coll2, start_coll3,
				     start_coll4, start_coll5, start_coll5};
static const starter start_p2p[] = {NULL,       start_p2p1, start_p2p2, start_p2p3,
				    start_p2p4, start_p2p5, start_p2p5};

static void *start_group(struct nccl_batch *batch)
{
	struct event5 wide = {.type = EVENT_GROUP};
	struct event1 e = {.type = EVENT_GROUP};
	char room[sizeof(struct event2) + sizeof(struct event4)] = {0};

	if (!(batch->mask & WANTS_GROUP))
		return NULL;
	if (version >= 5)
		return start(batch->comm, &wide);
	memcpy(room, &e, offsetof(struct event1, coll));
	return start(batch->comm, room);
}

void *nccl_plugin_submitted(struct nccl_batch *batch)
{
	void *parent;

	if (!plugin)
		return NULL;
	parent = start_group(batch);
	for (struct nccl_task *task = batch->tasks; task; task = task->next) {
		bool coll = nccl_is_collective(task->func);

		if (version <= 2 ? !parent : !(batch->mask & (coll ? WANTS_COLL : WANTS_P2P)))
			continue;
		task->event = (coll ? start_coll : start_p2p)[version](batch, task, parent);
	}
	return parent;
}

void nccl_plugin_handed_on(struct nccl_batch *batch, void *parent)
{
	if (!plugin)
		return;
	for (struct nccl_task *task = batch->tasks; task; task = task->next)
		if (task->event)
			plugin->stop(task->event);
	if (parent)
		plugin->stop(parent);
}

/* ---- the kernel's channels ---- */
static void *start_channel(struct nccl_batch *batch, struct nccl_task *task, uint8_t channel,
			   uint64_t timer)
{
	struct event3 e3 = {
		.type = EVENT_KERNEL_CH, .parent = task->event, .kernel.channel = channel};
	struct event4 e4 = {.type = EVENT_KERNEL_CH,
			    .parent = task->event,
			    .kernel = {.channel = channel, .timer = timer}};
	struct event5 e5 = {.type = EVENT_KERNEL_CH,
			    .parent = task->event,
			    .kernel = {.channel = channel, .timer = timer}};

	return start(batch->comm, version == 3 ? (void *)&e3 : version == 4 ? (void *)&e4 : &e5);
}

/* Channels begin one after the other, and end so: the first to begin and the last to end are the kernel's times. */
static bool is_to_itself(const struct nccl_batch *batch, const struct nccl_task *task)
{
	return !nccl_is_collective(task->func) && task->peer == batch->comm->rank;
}

/*
 * What is told of when the kernel ran is not always when it did (docs/CUDA_FACTS.md, "NCCL's times of several messages in one kernel"): of
 * several messages it is how long one part took that waits for no other rank.
 */
static void told_times(const struct nccl_batch *batch, uint64_t *begin_ns, uint64_t *end_ns)
{
	const struct nccl_comm *comm = batch->comm;

	*begin_ns = atomic_load(&batch->begin_ns);
	*end_ns = atomic_load(&batch->end_ns);
	if (comm->to_itself && nccl_is_collective(batch->tasks->func)) {
		*begin_ns = comm->first_begin_ns;
		*end_ns = comm->first_end_ns;
	} else if (batch->tasks->next && *end_ns > *begin_ns + batch->duration_ns) {
		*end_ns = *begin_ns + batch->duration_ns;
	}
}

void nccl_plugin_channels_begin(struct nccl_batch *batch)
{
	struct nccl_comm *comm = batch->comm;
	uint64_t begin_ns, end_ns;

	if (!plugin || version < 3 || !(batch->mask & EVENT_KERNEL_CH))
		return;
	for (struct nccl_task *task = batch->tasks; task; task = task->next)
		comm->to_itself |= is_to_itself(batch, task);
	told_times(batch, &begin_ns, &end_ns);
	for (struct nccl_task *task = batch->tasks; task; task = task->next)
		for (int i = 0; i < batch->channels && !is_to_itself(batch, task); i++)
			task->channel_events[i] = start_channel(
				batch, task, (uint8_t)i,
				nccl_clock_read(comm->clock, begin_ns + 300u * (unsigned)i));
}

void nccl_plugin_channels_end(struct nccl_batch *batch)
{
	union event_state state;
	uint64_t begin_ns, end_ns;

	told_times(batch, &begin_ns, &end_ns);
	if (!batch->comm->first_end_ns) {
		batch->comm->first_begin_ns = begin_ns;
		batch->comm->first_end_ns = end_ns;
	}
	for (struct nccl_task *task = batch->tasks; plugin && task; task = task->next)
		for (int i = 0; i < batch->channels; i++) {
			unsigned before = 200u * (unsigned)(batch->channels - 1 - i);

			if (!task->channel_events[i])
				continue;
			memset(&state, 0, sizeof(state));
			state.kernel.timer = nccl_clock_read(batch->comm->clock, end_ns - before);
			if (version >= 4)
				plugin->state(task->channel_events[i], STATE_KERNEL_CH_STOP,
					      &state);
			plugin->stop(task->channel_events[i]);
		}
}
