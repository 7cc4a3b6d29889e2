/*
 * tests/sim/nccl.c: a look-alike of NCCL over the simulated driver: libnccl.so.2. Here are the entry
 * points, on the caller's thread: communicators, groups, and the launch of what a group asked for. How
 * ranks meet is nccl_meet.c, what the profiler plugin gets nccl_plugin.c. Declared after nccl.h.
 *
 * Each collective is a kernel of its own, all sends and receives of a group in a stream are one. Kernels
 * of a communicator run one after the other, also in different streams. Not there: configurations
 * (ignored), user-defined reductions, numbers of 16 bits in reductions, windows, memory of its own.
 */
#include "nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define NCCL_API(name, params) \
	SIM_PUBLIC int name params; \
	SIM_PUBLIC int name params

struct nccl_id {
	char path[NCCL_ID_BYTES];
};

const struct sim_meeting_source *nccl_source;

static __thread char last_error[160];

/* Of the calling thread's group. */
static __thread struct {
	int depth, result;
	struct nccl_task *tasks, **end;
	struct nccl_comm *joining[NCCL_JOINING_MAX]; /* that wait for their ranks */
	unsigned joining_cnt;
} group;

/* ---- the driver ---- */
static struct {
	int (*context)(void **ctx);
	int (*set_context)(void *ctx);
	int (*device)(int *dev);
	int (*retain)(void **ctx, int dev);
	int (*load)(void **module, const void *image);
	int (*function)(void **kernel, void *module, const char *name);
	int (*launch)(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		      unsigned bz, unsigned shared, void *stream, void **params, void **extra);
} cuda;
static void *module;

static void find(void *function, const char *name, int version)
{
	static int (*look_up)(const char *name, void **out, int version, uint64_t flags,
			      int *status);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (driver && !look_up)
		*(void **)&look_up = dlsym(driver, "cuGetProcAddress_v2");
	if (look_up)
		look_up(name, function, version, 0, NULL);
}

static void find_all(void)
{
	const struct sim_meeting_source *(*source)(void) = NULL;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (driver)
		*(void **)&source = dlsym(driver, "spysim_meetings");
	if (!source)
		return;
	find(&cuda.context, "cuCtxGetCurrent", 4000);
	find(&cuda.set_context, "cuCtxSetCurrent", 4000);
	find(&cuda.device, "cuCtxGetDevice", 2000);
	find(&cuda.retain, "cuDevicePrimaryCtxRetain", 7000);
	find(&cuda.load, "cuModuleLoadData", 2000);
	find(&cuda.function, "cuModuleGetFunction", 2000);
	find(&cuda.launch, "cuLaunchKernel", 4000);
	if (cuda.launch)
		nccl_source = source();
}

static bool ready(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_all);
	return nccl_source;
}

/* ---- errors ---- */
static int error(int result, const char *why)
{
	snprintf(last_error, sizeof(last_error), "%s", why);
	return result;
}

void nccl_fail(struct nccl_comm *comm, enum nccl_result result, const char *why)
{
	int none = NCCL_OK;

	if (atomic_compare_exchange_strong(&comm->error, &none, result))
		fprintf(stderr, "sim: nccl: rank %d: %s\n", comm->rank, why);
}

SIM_PUBLIC const char *ncclGetErrorString(int result);
SIM_PUBLIC const char *ncclGetErrorString(int result)
{
	static const char *const texts[] = {
		"no error",
		"unhandled cuda error",
		"unhandled system error",
		"internal error",
		"invalid argument",
		"invalid usage",
		"remote process exited or there was a network error",
		"NCCL operation in progress",
	};

	return (unsigned)result < sizeof(texts) / sizeof(texts[0]) ? texts[result]
								   : "unknown result code";
}

SIM_PUBLIC const char *ncclGetLastError(void *comm);
SIM_PUBLIC const char *ncclGetLastError(void *comm)
{
	return last_error;
}

NCCL_API(ncclGetVersion, (int *out))
{
	static const int of_interface[] = {0, 22304, 22507, 22605, 22706, 22809, 23007};

	if (!ready() || !out)
		return NCCL_INVALID_ARGUMENT;
	*out = of_interface[nccl_source->knobs->interface];
	return NCCL_OK;
}

/* ---- communicators ---- */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;

	while (*text)
		hash = (hash ^ (unsigned char)*text++) * 0x100000001b3;
	return hash;
}

NCCL_API(ncclGetUniqueId, (struct nccl_id * out))
{
	const char *dir = getenv("TMPDIR");
	uint64_t random = 0;

	if (!out || getrandom(&random, sizeof(random), 0) != sizeof(random))
		return NCCL_INVALID_ARGUMENT;
	memset(out, 0, sizeof(*out));
	if (snprintf(out->path, sizeof(out->path), "%s/spysim-nccl-%016llx",
		     dir && *dir ? dir : "/tmp", (unsigned long long)random) > 100)
		return error(NCCL_SYSTEM_ERROR, "TMPDIR is too long");
	return NCCL_OK;
}

/* The device of the calling thread, whose context becomes current if none is. */
static int find_device(struct nccl_comm *comm)
{
	if (cuda.context(&comm->ctx))
		return NCCL_CUDA_ERROR;
	if (!comm->ctx && (cuda.retain(&comm->ctx, 0) || cuda.set_context(comm->ctx)))
		return NCCL_CUDA_ERROR;
	if (cuda.device(&comm->dev) || (!module && cuda.load(&module, "the look-alike's kernels")))
		return NCCL_CUDA_ERROR;
	return NCCL_OK;
}

static void comm_free(struct nccl_comm *comm)
{
	nccl_file_leave(comm);
	if (comm->last)
		nccl_source->forget(&comm->last);
	free(comm);
}

/* Makes one that is counted among its ranks, and waits for nobody. */
static int comm_join(struct nccl_comm **out, int rank_cnt, const char *path, int rank)
{
	struct nccl_comm *comm = calloc(1, sizeof(*comm));
	int rc;

	if (!comm)
		return NCCL_SYSTEM_ERROR;
	comm->fd = -1;
	comm->rank = rank;
	comm->rank_cnt = rank_cnt;
	comm->hash = hash_of(path);
	snprintf(comm->path, sizeof(comm->path), "%s", path);
	rc = find_device(comm);
	if (!rc && !nccl_file_join(comm))
		rc = error(NCCL_SYSTEM_ERROR, "the file of the unique id cannot be used");
	if (rc) {
		comm_free(comm);
		return rc;
	}
	comm->clock = nccl_clock_of(comm->dev, rank);
	*out = comm;
	return NCCL_OK;
}

static int comm_ready(struct nccl_comm *comm)
{
	if (!nccl_file_wait(comm))
		return error(NCCL_REMOTE_ERROR, "not all ranks came");
	nccl_plugin_init(comm);
	return NCCL_OK;
}

/* In a group, the others are waited for when it ends. */
static int comm_begin(struct nccl_comm *comm)
{
	if (!group.depth)
		return comm_ready(comm);
	if (group.joining_cnt == NCCL_JOINING_MAX)
		return error(NCCL_INVALID_USAGE, "too many communicators in a group");
	group.joining[group.joining_cnt++] = comm;
	return NCCL_OK;
}

NCCL_API(ncclCommInitRankConfig,
	 (struct nccl_comm * *out, int rank_cnt, struct nccl_id id, int rank, void *config))
{
	int rc;

	if (!ready() || !out || rank_cnt < 1 || rank_cnt > NCCL_RANKS_MAX || rank < 0 ||
	    rank >= rank_cnt || !id.path[0] || id.path[NCCL_ID_BYTES - 1])
		return error(NCCL_INVALID_ARGUMENT, "ncclCommInitRank: an argument is wrong");
	rc = comm_join(out, rank_cnt, id.path, rank);
	return rc ? rc : comm_begin(*out);
}

NCCL_API(ncclCommInitRank, (struct nccl_comm * *out, int rank_cnt, struct nccl_id id, int rank))
{
	return ncclCommInitRankConfig(out, rank_cnt, id, rank, NULL);
}

/* Two ranks after each other on the calling thread, so all join before one is waited for. */
NCCL_API(ncclCommInitAll, (struct nccl_comm * *out, int cnt, const int *devs))
{
	struct nccl_id id;
	void *before = NULL, *ctx;
	int rc;

	if (!ready() || !out || cnt < 1 || cnt > NCCL_RANKS_MAX)
		return error(NCCL_INVALID_ARGUMENT, "ncclCommInitAll: an argument is wrong");
	rc = ncclGetUniqueId(&id);
	cuda.context(&before);
	for (int i = 0; !rc && i < cnt; i++) {
		if (cuda.retain(&ctx, devs ? devs[i] : i) || cuda.set_context(ctx))
			rc = NCCL_CUDA_ERROR;
		else
			rc = comm_join(&out[i], cnt, id.path, i);
	}
	for (int i = 0; !rc && i < cnt; i++)
		rc = comm_ready(out[i]);
	cuda.set_context(before);
	return rc;
}

static bool all_split(const struct nccl_comm *comm)
{
	for (int i = 0; i < comm->rank_cnt; i++)
		if (atomic_load(&comm->file->split[i].round) < comm->split_cnt)
			return false;
	return true;
}

/* Which rank this one is among those of its color, and how many they are. */
static void place_in_split(const struct nccl_comm *comm, int color, int key, int *rank, int *cnt)
{
	*rank = *cnt = 0;
	for (int i = 0; i < comm->rank_cnt; i++) {
		int its_key = atomic_load(&comm->file->split[i].key);

		if (atomic_load(&comm->file->split[i].color) != color)
			continue;
		*rank += its_key < key || (its_key == key && i < comm->rank);
		++*cnt;
	}
}

NCCL_API(ncclCommSplit,
	 (struct nccl_comm * comm, int color, int key, struct nccl_comm **out, void *config))
{
	uint64_t until = nccl_now_ns() + nccl_source->knobs->wait_ns;
	struct timespec moment = {0, 500000};
	struct nccl_comm *made;
	char path[NCCL_ID_BYTES];
	int rank, cnt, rc;

	if (!comm || !out || group.depth)
		return error(NCCL_INVALID_USAGE, "ncclCommSplit: in a group, or without a place");
	comm->split_cnt++;
	atomic_store(&comm->file->split[comm->rank].color, color);
	atomic_store(&comm->file->split[comm->rank].key, key);
	atomic_store(&comm->file->split[comm->rank].round, comm->split_cnt);
	while (!all_split(comm)) {
		if (nccl_now_ns() > until)
			return error(NCCL_REMOTE_ERROR, "not all ranks came to ncclCommSplit");
		nanosleep(&moment, NULL);
	}
	*out = NULL;
	if (color < 0)
		return NCCL_OK;
	place_in_split(comm, color, key, &rank, &cnt);
	snprintf(path, sizeof(path), "%.100s-%llu-%d", comm->path,
		 (unsigned long long)comm->split_cnt, color);
	rc = comm_join(&made, cnt, path, rank);
	if (!rc)
		rc = comm_ready(*out = made);
	return rc;
}

NCCL_API(ncclCommFinalize, (struct nccl_comm * comm))
{
	if (!comm)
		return NCCL_INVALID_ARGUMENT;
	nccl_proxy_drain(comm);
	return NCCL_OK;
}

NCCL_API(ncclCommDestroy, (struct nccl_comm * comm))
{
	if (!comm)
		return NCCL_OK;
	nccl_proxy_drain(comm);
	nccl_plugin_finalize(comm);
	comm_free(comm);
	return NCCL_OK;
}

NCCL_API(ncclCommAbort, (struct nccl_comm * comm))
{
	if (!comm)
		return NCCL_OK;
	atomic_store(&comm->aborted, true);
	return ncclCommDestroy(comm);
}

NCCL_API(ncclCommGetAsyncError, (struct nccl_comm * comm, int *out))
{
	if (!comm || !out)
		return NCCL_INVALID_ARGUMENT;
	*out = atomic_load(&comm->error);
	return NCCL_OK;
}

static int tell(const struct nccl_comm *comm, int *out, int value)
{
	if (!comm || !out)
		return NCCL_INVALID_ARGUMENT;
	*out = value;
	return NCCL_OK;
}
NCCL_API(ncclCommCount, (const struct nccl_comm *comm, int *out))
{
	return tell(comm, out, comm ? comm->rank_cnt : 0);
}
NCCL_API(ncclCommUserRank, (const struct nccl_comm *comm, int *out))
{
	return tell(comm, out, comm ? comm->rank : 0);
}
NCCL_API(ncclCommCuDevice, (const struct nccl_comm *comm, int *out))
{
	return tell(comm, out, comm ? comm->dev : 0);
}

/* ---- operations ---- */
size_t nccl_type_bytes(enum nccl_type type)
{
	static const unsigned char bytes[NCCL_TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

	return bytes[type];
}

bool nccl_is_collective(enum nccl_func func)
{
	return func < NCCL_SEND_RECV;
}

size_t nccl_task_bytes(const struct nccl_task *task)
{
	size_t bytes = task->count * nccl_type_bytes(task->type);

	return task->func == NCCL_REDUCE_SCATTER ? bytes * (size_t)task->comm->rank_cnt : bytes;
}

/* The kernel's name, as NCCL's are. */
static void name_kernel(const struct nccl_batch *batch, char *name, size_t room)
{
	static const char *const types[NCCL_TYPES] = {"i8",  "u8",  "i32", "u32", "i64",
						      "u64", "f16", "f32", "f64", "bf16"};
	static const char *const reductions[] = {"Sum", "Prod", "MinMax", "MinMax", "SumPostDiv"};
	const struct nccl_task *task = batch->tasks;
	bool reduces = task->func == NCCL_REDUCE || task->func == NCCL_ALL_REDUCE ||
		       task->func == NCCL_REDUCE_SCATTER;
	char base[96];
	int n;

	if (!nccl_is_collective(task->func))
		n = snprintf(base, sizeof(base), "ncclDevKernel_SendRecv");
	else if (!reduces)
		n = snprintf(base, sizeof(base), "ncclDevKernel_%s_RING_LL",
			     nccl_func_name[task->func]);
	else
		n = snprintf(base, sizeof(base), "ncclDevKernel_%s_%s_%s_RING_LL",
			     nccl_func_name[task->func], reductions[task->reduction],
			     types[task->type]);
	snprintf(name, room, "_Z%d%s24ncclDevKernelArgsStorageILm4096EE", n, base);
}

static void size_up(struct nccl_batch *batch)
{
	const struct nccl_comm *comm = batch->comm;
	uint64_t bytes = 0;

	for (const struct nccl_task *task = batch->tasks; task; task = task->next)
		bytes += nccl_task_bytes(task) *
			 (task->func == NCCL_ALL_GATHER ? (uint64_t)comm->rank_cnt : 1);
	batch->channels = bytes < 65536 ? 1 : bytes < 1 << 20 ? 2 : NCCL_CHANNELS_MAX;
	batch->duration_ns =
		nccl_source->knobs->base_ns + (uint64_t)((double)bytes / nccl_source->knobs->gbps);
	if (nccl_source->knobs->spread_ns)
		batch->spread_ns = nccl_mix(comm->hash + (uint64_t)comm->rank, batch->tasks->n) %
				   nccl_source->knobs->spread_ns;
}

static int launch(struct nccl_batch *batch)
{
	struct nccl_comm *comm = batch->comm;
	char name[160], arguments[4096] = {0};
	void *params[] = {arguments}, *kernel, *event, *before = NULL;
	int rc;

	nccl_meet_prepare(batch);
	name_kernel(batch, name, sizeof(name));
	size_up(batch);
	cuda.context(&before);
	if (before != comm->ctx)
		cuda.set_context(comm->ctx);
	rc = cuda.function(&kernel, module, name);
	event = nccl_plugin_launch_begin(batch);
	for (struct nccl_task *task = batch->tasks; task; task = task->next)
		task->submitted_ns = nccl_now_ns();
	nccl_source->next(&batch->meeting);
	if (!rc)
		rc = cuda.launch(kernel, (unsigned)batch->channels, 1, 1, 512, 1, 1, 0,
				 batch->tasks->stream, params, NULL);
	nccl_source->next(NULL);
	nccl_plugin_launch_end(event);
	if (before != comm->ctx)
		cuda.set_context(before);
	return rc ? error(NCCL_CUDA_ERROR, "the kernel could not be launched") : NCCL_OK;
}

static void number(struct nccl_task *task)
{
	struct nccl_comm *comm = task->comm;

	task->n = task->func == NCCL_SEND   ? ++comm->sent_cnt[task->peer]
		  : task->func == NCCL_RECV ? ++comm->received_cnt[task->peer]
					    : ++comm->collective_cnt;
	task->sequence = nccl_is_collective(task->func) ? comm->sequence[task->func]++ : 0;
}

static void batch_drop(struct nccl_batch *batch)
{
	struct nccl_task *task;

	while ((task = batch->tasks)) {
		batch->tasks = task->next;
		free(task);
	}
	free(batch);
}

static int submit(struct nccl_task *tasks)
{
	struct nccl_batch *batch = calloc(1, sizeof(*batch));
	void *parent;
	int rc;

	if (!batch)
		return NCCL_SYSTEM_ERROR;
	batch->comm = tasks->comm;
	batch->tasks = tasks;
	batch->mask = nccl_plugin_mask();
	for (struct nccl_task *task = tasks; task; task = task->next)
		number(task);
	rc = launch(batch);
	if (!batch->meeting.launched) { /* captured into a graph, or refused */
		batch_drop(batch);
		return rc;
	}
	parent = nccl_plugin_submitted(batch);
	nccl_plugin_handed_on(batch, parent);
	nccl_proxy_add(batch);
	return rc;
}

/* Takes a collective, or all sends and receives of one communicator and stream, off the list. */
static struct nccl_task *next_batch(struct nccl_task **list)
{
	struct nccl_task *first = *list, **end = &first->next, **p;

	*list = first->next;
	first->next = NULL;
	if (nccl_is_collective(first->func))
		return first;
	for (p = list; *p;) {
		struct nccl_task *task = *p;

		if (nccl_is_collective(task->func) || task->comm != first->comm ||
		    task->stream != first->stream) {
			p = &task->next;
			continue;
		}
		*p = task->next;
		task->next = NULL;
		*end = task;
		end = &task->next;
	}
	return first;
}

static int group_end(void)
{
	struct nccl_task *tasks = group.tasks;
	int result = group.result;

	group.tasks = NULL;
	group.result = NCCL_OK;
	for (unsigned i = 0; i < group.joining_cnt; i++) {
		int rc = comm_ready(group.joining[i]);

		result = result ? result : rc;
	}
	group.joining_cnt = 0;
	while (tasks) {
		struct nccl_task *batch = next_batch(&tasks);
		int rc = result ? result : submit(batch);

		result = result ? result : rc;
	}
	nccl_plugin_group_end();
	return result;
}

NCCL_API(ncclGroupStart, (void))
{
	group.depth++;
	return NCCL_OK;
}

NCCL_API(ncclGroupEnd, (void))
{
	if (!group.depth)
		return error(NCCL_INVALID_USAGE, "ncclGroupEnd without ncclGroupStart");
	if (--group.depth)
		return NCCL_OK;
	nccl_plugin_group_ending();
	return group_end();
}

static int check(const struct nccl_task *t)
{
	bool reduces = t->func == NCCL_REDUCE || t->func == NCCL_ALL_REDUCE ||
		       t->func == NCCL_REDUCE_SCATTER;

	if (!t->comm || (unsigned)t->type >= NCCL_TYPES || t->peer < 0 ||
	    t->peer >= t->comm->rank_cnt || (unsigned)t->reduction >= NCCL_REDUCTIONS)
		return error(NCCL_INVALID_ARGUMENT, "an argument is wrong");
	if (reduces && !nccl_can_reduce(t->type))
		return error(NCCL_INVALID_ARGUMENT, "the look-alike reduces no such numbers");
	if (nccl_task_bytes(t) > (size_t)256 << 20)
		return error(NCCL_INVALID_ARGUMENT, "more than 256 MiB in one operation");
	if (!nccl_is_collective(t->func) && t->peer == t->comm->rank && !group.depth)
		return error(NCCL_INVALID_USAGE, "a message to itself, not in a group");
	return atomic_load(&t->comm->error);
}

static int ask(const struct nccl_task *wanted)
{
	struct nccl_task *task;
	int rc = check(wanted);

	if (rc) {
		group.result = group.depth ? rc : NCCL_OK;
		return rc;
	}
	task = malloc(sizeof(*task));
	if (!task)
		return NCCL_SYSTEM_ERROR;
	*task = *wanted;
	if (!group.tasks) {
		group.end = &group.tasks;
		nccl_plugin_group_begin(task, group.depth + 1);
	}
	nccl_plugin_task(task);
	nccl_plugin_group_called();
	*group.end = task;
	group.end = &task->next;
	return group.depth ? NCCL_OK : group_end();
}

NCCL_API(ncclAllReduce, (const void *send, void *recv, size_t count, int type, int reduction,
			 struct nccl_comm *comm, void *stream))
{
	return ask(&(struct nccl_task){.func = NCCL_ALL_REDUCE,
				       .send = send,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .reduction = reduction,
				       .comm = comm,
				       .stream = stream});
}

NCCL_API(ncclReduceScatter, (const void *send, void *recv, size_t count, int type, int reduction,
			     struct nccl_comm *comm, void *stream))
{
	return ask(&(struct nccl_task){.func = NCCL_REDUCE_SCATTER,
				       .send = send,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .reduction = reduction,
				       .comm = comm,
				       .stream = stream});
}

NCCL_API(ncclReduce, (const void *send, void *recv, size_t count, int type, int reduction, int root,
		      struct nccl_comm *comm, void *stream))
{
	return ask(&(struct nccl_task){.func = NCCL_REDUCE,
				       .send = send,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .reduction = reduction,
				       .peer = root,
				       .comm = comm,
				       .stream = stream});
}

NCCL_API(ncclAllGather, (const void *send, void *recv, size_t count, int type,
			 struct nccl_comm *comm, void *stream))
{
	return ask(&(struct nccl_task){.func = NCCL_ALL_GATHER,
				       .send = send,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .comm = comm,
				       .stream = stream});
}

NCCL_API(ncclBroadcast, (const void *send, void *recv, size_t count, int type, int root,
			 struct nccl_comm *comm, void *stream))
{
	return ask(&(struct nccl_task){.func = NCCL_BROADCAST,
				       .send = send,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .peer = root,
				       .comm = comm,
				       .stream = stream});
}

NCCL_API(ncclBcast,
	 (void *buffer, size_t count, int type, int root, struct nccl_comm *comm, void *stream))
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

NCCL_API(ncclSend,
	 (const void *send, size_t count, int type, int peer, struct nccl_comm *comm, void *stream))
{
	return ask(&(struct nccl_task){.func = NCCL_SEND,
				       .send = send,
				       .count = count,
				       .type = type,
				       .peer = peer,
				       .comm = comm,
				       .stream = stream});
}

NCCL_API(ncclRecv,
	 (void *recv, size_t count, int type, int peer, struct nccl_comm *comm, void *stream))
{
	return ask(&(struct nccl_task){.func = NCCL_RECV,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .peer = peer,
				       .comm = comm,
				       .stream = stream});
}
