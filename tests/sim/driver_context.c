/*
 * tests/sim/driver_context.c: cuInit, devices, primary and other contexts, each thread's stack of
 * them. Called on the application's threads.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

enum { STACK_DEPTH = 32 };

struct thread_streams {
	struct thread_streams *next;
	struct sim_ctx *ctx;
	uint64_t ctx_id;
	struct sim_stream *stream;
};

struct thread_state {
	struct sim_ctx *below[STACK_DEPTH]; /* the stack under sim_self.ctx */
	int depth;
	struct thread_streams *streams; /* this thread's default streams */
};

bool sim_ready;
struct sim_device sim_devices[SIM_MAX_DEVICES];

static pthread_key_t state_key;
static __thread struct thread_state *my_state;
static uint64_t next_ctx_id = 1;
static bool forked;

static void thread_ends(void *arg)
{
	struct thread_state *state = arg;

	while (state->streams) {
		struct thread_streams *ts = state->streams;

		state->streams = ts->next;
		if (ts->ctx->id == ts->ctx_id)
			sim_stream_retire(ts->stream);
		free(ts);
	}
	free(state);
	my_state = NULL;
}

static struct thread_state *state_of_thread(void)
{
	if (!my_state) {
		my_state = calloc(1, sizeof(*my_state));
		if (!my_state)
			abort();
		pthread_setspecific(state_key, my_state);
	}
	return my_state;
}

static void fork_child(void)
{
	forked = sim_ready;
	sim_ready = false;
	sim_self.ctx = NULL;
	sim_locks_fork_child();
	sim_engine_fork_child();
	sim_jobs_fork_child();
	sim_mps_fork_child();
	sim_truth_fork_child();
}

__attribute__((constructor)) static void driver_loaded(void)
{
	sim_script_load();
	pthread_key_create(&state_key, thread_ends);
	sim_truth_init(getenv("SPYSIM_TRUTH"));
	pthread_atfork(NULL, NULL, fork_child);
}

static void ctx_init(struct sim_ctx *ctx, int dev)
{
	static const size_t limits[] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0, 0};

	memset(ctx, 0, sizeof(*ctx));
	ctx->magic = CTX_MAGIC;
	ctx->dev = dev;
	memcpy(ctx->limits, limits, sizeof(limits));
	sim_spin_lock(&sim_engine);
	ctx->id = next_ctx_id++;
	sim_stream_init(&ctx->legacy, ctx, 0, 0);
	ctx->next = sim_contexts;
	sim_contexts = ctx;
	sim_spin_unlock(&sim_engine);
}

static int init(unsigned flags)
{
	if (flags)
		return SIM_INVALID_VALUE;
	if (sim_ready)
		return SIM_OK;
	if (forked)
		return SIM_NOT_INITIALIZED;
	if (sim_script.init_result)
		return sim_script.init_result;
	sim_lock_global(SIM_LOCK_INIT);
	if (!sim_ready) {
		int gpus = sim_find_gpus(), rc = gpus ? sim_mps_init() : SIM_NO_DEVICE;

		if (!rc)
			rc = sim_sharing_init(gpus);
		if (rc) {
			sim_unlock_global(SIM_LOCK_INIT);
			return rc;
		}
		sim_script.gpus = gpus;
		sim_truth_mps();
		sim_memory_init();
		for (int i = 0; i < sim_script.gpus; i++) {
			snprintf(sim_devices[i].name, sizeof(sim_devices[i].name),
				 "Simulated GPU %d", sim_devices[i].gpu);
			sim_devices[i].default_pool = sim_devices[i].pool = sim_pool_of(i);
			ctx_init(&sim_devices[i].primary, i);
			sim_devices[i].primary.primary = true;
		}
		__atomic_store_n(&sim_ready, true, __ATOMIC_RELEASE);
	}
	sim_unlock_global(SIM_LOCK_INIT);
	return SIM_OK;
}

EXPORT_ANYTIME(cuInit, (unsigned flags), init(flags))

static int give_int(int *out, int value)
{
	if (!out)
		return SIM_INVALID_VALUE;
	*out = value;
	return SIM_OK;
}
EXPORT_ANYTIME(cuDriverGetVersion, (int *version), give_int(version, 13000))

bool sim_dev_ok(int dev)
{
	return dev >= 0 && dev < sim_script.gpus;
}

static int device_get(int *out, int ordinal)
{
	return sim_dev_ok(ordinal) ? give_int(out, ordinal) : SIM_INVALID_DEVICE;
}
EXPORT(cuDeviceGet, (int *dev, int ordinal), device_get(dev, ordinal))
EXPORT(cuDeviceGetCount, (int *cnt), give_int(cnt, sim_script.gpus))

static int device_name(char *name, int len, int dev)
{
	if (!name || len < 1)
		return SIM_INVALID_VALUE;
	if (!sim_dev_ok(dev))
		return SIM_INVALID_DEVICE;
	snprintf(name, (size_t)len, "%s", sim_devices[dev].name);
	return SIM_OK;
}
EXPORT(cuDeviceGetName, (char *name, int len, int dev), device_name(name, len, dev))

static int total_memory(size_t *out, int dev)
{
	if (!sim_dev_ok(dev) || !out)
		return out ? SIM_INVALID_DEVICE : SIM_INVALID_VALUE;
	*out = sim_script.memory_bytes;
	return SIM_OK;
}
EXPORT(cuDeviceTotalMem_v2, (size_t * bytes, int dev), total_memory(bytes, dev))

static int uuid(unsigned char *out, int dev)
{
	if (!sim_dev_ok(dev))
		return SIM_INVALID_DEVICE;
	sim_uuid(sim_devices[dev].gpu, out);
	return SIM_OK;
}
EXPORT(cuDeviceGetUuid, (unsigned char *out, int dev), uuid(out, dev))
EXPORT(cuDeviceGetUuid_v2, (unsigned char *out, int dev), uuid(out, dev))

static int luid(char *out, unsigned *mask, int dev)
{
	memset(out, 0, 8);
	*mask = 1;
	return sim_dev_ok(dev) ? SIM_OK : SIM_INVALID_DEVICE;
}
EXPORT(cuDeviceGetLuid, (char *out, unsigned *mask, int dev), luid(out, mask, dev))

static int pci_id(char *out, int len, int dev)
{
	if (!sim_dev_ok(dev))
		return SIM_INVALID_DEVICE;
	snprintf(out, (size_t)len, "0000:%02X:00.0", sim_devices[dev].gpu + 1);
	return SIM_OK;
}
EXPORT(cuDeviceGetPCIBusId, (char *out, int len, int dev), pci_id(out, len, dev))

static int by_pci_id(int *dev, const char *id)
{
	unsigned domain, bus, device;

	if (sscanf(id, "%x:%x:%x", &domain, &bus, &device) != 3)
		return SIM_INVALID_VALUE;
	for (int i = 0; i < sim_script.gpus; i++)
		if (sim_devices[i].gpu + 1 == (int)bus)
			return give_int(dev, i);
	return SIM_INVALID_DEVICE;
}
EXPORT(cuDeviceGetByPCIBusId, (int *dev, const char *id), by_pci_id(dev, id))

EXPORT(cuDeviceGetAttribute, (int *value, int attr, int dev), sim_attribute(value, attr, dev))

static int compute_capability(int *major, int *minor, int dev)
{
	int rc = sim_attribute(major, 75, dev);

	return rc ? rc : sim_attribute(minor, 76, dev);
}
EXPORT(cuDeviceComputeCapability, (int *major, int *minor, int dev),
       compute_capability(major, minor, dev))

/* ---- contexts ---- */
static int retain(struct sim_ctx **out, int dev)
{
	struct sim_ctx *ctx;
	int rc = SIM_OK;

	if (!sim_dev_ok(dev))
		return SIM_INVALID_DEVICE;
	ctx = &sim_devices[dev].primary;
	sim_unlock(sim_lock(HOLD_PROCESS, dev), dev);
	sim_lock_global(SIM_LOCK_INIT);
	if (!ctx->alive) {
		rc = sim_mps_context_made(sim_devices[dev].gpu);
		if (!rc)
			sim_host_work(FN_cuDevicePrimaryCtxRetain, 2000000);
		ctx->alive = !rc;
	}
	if (!rc)
		ctx->refs++;
	sim_unlock_global(SIM_LOCK_INIT);
	if (!rc)
		*out = ctx;
	return rc;
}
EXPORT(cuDevicePrimaryCtxRetain, (struct sim_ctx * *out, int dev), retain(out, dev))

/* The place of a peer (NULL: a free one) among those of a context; NULL: there is none. */
static struct sim_ctx **peer_of(struct sim_ctx *ctx, const struct sim_ctx *peer)
{
	for (int i = 0; i < SIM_PEERS; i++)
		if (ctx->peers[i] == peer)
			return &ctx->peers[i];
	return NULL;
}

/* Access ends with either context (the runtime's reference, "Peer Device Memory Access"). */
static void end_peers(struct sim_ctx *ctx)
{
	memset(ctx->peers, 0, sizeof(ctx->peers));
	for (struct sim_ctx *other = sim_contexts; other; other = other->next) {
		struct sim_ctx **place = peer_of(other, ctx);

		if (place)
			*place = NULL;
	}
}

static int primary_drop(int dev, bool reset)
{
	struct sim_ctx *ctx;

	if (!sim_dev_ok(dev))
		return SIM_INVALID_DEVICE;
	ctx = &sim_devices[dev].primary;
	if (!reset && !ctx->refs)
		return SIM_INVALID_CONTEXT;
	if (reset || ctx->refs == 1)
		sim_wait_ctx(ctx, WHY_HIDDEN);
	sim_lock_global(SIM_LOCK_INIT);
	if (reset)
		ctx->refs = 0;
	else if (ctx->refs)
		ctx->refs--;
	if (!ctx->refs && ctx->alive) {
		sim_host_work(FN_cuDevicePrimaryCtxRelease_v2, 1000000);
		sim_mps_context_gone(sim_devices[dev].gpu);
		ctx->alive = false;
		end_peers(ctx);
	}
	sim_unlock_global(SIM_LOCK_INIT);
	if (!ctx->refs && sim_self.ctx == ctx)
		sim_self.ctx = NULL;
	return SIM_OK;
}
EXPORT(cuDevicePrimaryCtxRelease, (int dev), primary_drop(dev, false))
EXPORT(cuDevicePrimaryCtxRelease_v2, (int dev), primary_drop(dev, false))
EXPORT(cuDevicePrimaryCtxReset, (int dev), primary_drop(dev, true))
EXPORT(cuDevicePrimaryCtxReset_v2, (int dev), primary_drop(dev, true))

static int primary_flags(int dev, unsigned flags)
{
	if (!sim_dev_ok(dev))
		return SIM_INVALID_DEVICE;
	sim_devices[dev].primary.flags = flags;
	return SIM_OK;
}
EXPORT(cuDevicePrimaryCtxSetFlags, (int dev, unsigned flags), primary_flags(dev, flags))
EXPORT(cuDevicePrimaryCtxSetFlags_v2, (int dev, unsigned flags), primary_flags(dev, flags))

static int primary_state(int dev, unsigned *flags, int *alive)
{
	if (!sim_dev_ok(dev))
		return SIM_INVALID_DEVICE;
	*flags = sim_devices[dev].primary.flags;
	*alive = sim_devices[dev].primary.alive;
	return SIM_OK;
}
EXPORT(cuDevicePrimaryCtxGetState, (int dev, unsigned *flags, int *alive),
       primary_state(dev, flags, alive))

static int push(struct sim_ctx *ctx)
{
	struct thread_state *state = state_of_thread();

	if (!ctx || ctx->magic != CTX_MAGIC || state->depth == STACK_DEPTH)
		return SIM_INVALID_CONTEXT;
	state->below[state->depth++] = sim_self.ctx;
	sim_self.ctx = ctx;
	return SIM_OK;
}
EXPORT(cuCtxPushCurrent_v2, (struct sim_ctx * ctx), push(ctx))
EXPORT(cuCtxPushCurrent, (struct sim_ctx * ctx), push(ctx))

static int popped(struct sim_ctx **out)
{
	struct thread_state *state = state_of_thread();

	if (!sim_self.ctx)
		return SIM_INVALID_CONTEXT;
	if (out)
		*out = sim_self.ctx;
	sim_self.ctx = state->depth ? state->below[--state->depth] : NULL;
	return SIM_OK;
}
EXPORT(cuCtxPopCurrent_v2, (struct sim_ctx * *out), popped(out))
EXPORT(cuCtxPopCurrent, (struct sim_ctx * *out), popped(out))

static int set_current(struct sim_ctx *ctx)
{
	if (ctx && ctx->magic != CTX_MAGIC)
		return SIM_INVALID_CONTEXT;
	sim_self.ctx = ctx;
	return SIM_OK;
}
EXPORT(cuCtxSetCurrent, (struct sim_ctx * ctx), set_current(ctx))

static inline int get_current(struct sim_ctx **out)
{
	if (!out)
		return SIM_INVALID_VALUE;
	*out = sim_self.ctx;
	return SIM_OK;
}
EXPORT(cuCtxGetCurrent, (struct sim_ctx * *out), get_current(out))

static int create(struct sim_ctx **out, unsigned flags, int dev)
{
	struct sim_ctx *ctx;
	unsigned held;
	int rc;

	if (!out)
		return SIM_INVALID_VALUE;
	if (!sim_dev_ok(dev))
		return SIM_INVALID_DEVICE;
	ctx = malloc(sizeof(*ctx));
	if (!ctx)
		return SIM_OUT_OF_MEMORY;
	rc = sim_mps_context_made(sim_devices[dev].gpu);
	if (rc) {
		free(ctx);
		return rc;
	}
	held = sim_lock(HOLD_PROCESS, dev);
	sim_host_work(FN_cuCtxCreate_v4, 2000000);
	ctx_init(ctx, dev);
	ctx->flags = flags;
	ctx->alive = true;
	sim_unlock(held, dev);
	*out = ctx;
	return push(ctx);
}
EXPORT(cuCtxCreate, (struct sim_ctx * *out, unsigned flags, int dev), create(out, flags, dev))
EXPORT(cuCtxCreate_v2, (struct sim_ctx * *out, unsigned flags, int dev), create(out, flags, dev))
EXPORT(cuCtxCreate_v3, (struct sim_ctx * *out, void *affinity, int cnt, unsigned flags, int dev),
       create(out, flags, dev))
EXPORT(cuCtxCreate_v4, (struct sim_ctx * *out, void *params, unsigned flags, int dev),
       create(out, flags, dev))

static int destroy(struct sim_ctx *ctx)
{
	if (!ctx || ctx->magic != CTX_MAGIC || ctx->primary)
		return SIM_INVALID_CONTEXT;
	sim_wait_ctx(ctx, WHY_HIDDEN);
	sim_unlock(sim_lock(HOLD_PROCESS, ctx->dev), ctx->dev);
	sim_host_work(FN_cuCtxDestroy_v2, 1000000);
	sim_mps_context_gone(sim_devices[ctx->dev].gpu);
	ctx->magic = 0;
	ctx->alive = false;
	end_peers(ctx);
	if (sim_self.ctx == ctx)
		popped(NULL);
	return SIM_OK;
}
EXPORT(cuCtxDestroy, (struct sim_ctx * ctx), destroy(ctx))
EXPORT(cuCtxDestroy_v2, (struct sim_ctx * ctx), destroy(ctx))

int sim_current(struct sim_ctx **ctx)
{
	*ctx = sim_self.ctx;
	if (!*ctx || (*ctx)->magic != CTX_MAGIC)
		return SIM_INVALID_CONTEXT;
	return SIM_OK;
}

static struct sim_stream *per_thread_stream(struct sim_ctx *ctx)
{
	struct thread_state *state = state_of_thread();
	struct thread_streams *ts;

	for (ts = state->streams; ts; ts = ts->next)
		if (ts->ctx == ctx && ts->ctx_id == ctx->id)
			return ts->stream;
	ts = calloc(1, sizeof(*ts));
	if (!ts)
		abort();
	ts->ctx = ctx;
	ts->ctx_id = ctx->id;
	ts->stream = sim_stream_new(ctx, 0, 0);
	ts->next = state->streams;
	state->streams = ts;
	return ts->stream;
}

struct sim_stream *sim_stream_of(void *handle, bool per_thread, int *rc)
{
	struct sim_stream *stream = handle;
	struct sim_ctx *ctx;

	*rc = SIM_OK;
	if (stream > SIM_PER_THREAD) {
		if (stream->magic == STREAM_MAGIC)
			return stream;
		*rc = SIM_INVALID_HANDLE;
		return NULL;
	}
	*rc = sim_current(&ctx);
	if (*rc)
		return NULL;
	if (stream == SIM_PER_THREAD || (!stream && per_thread))
		return per_thread_stream(ctx);
	return &ctx->legacy;
}

static int ctx_device(int *dev, struct sim_ctx *ctx)
{
	if (!ctx)
		ctx = sim_self.ctx;
	if (!ctx || ctx->magic != CTX_MAGIC)
		return SIM_INVALID_CONTEXT;
	return give_int(dev, ctx->dev);
}
EXPORT(cuCtxGetDevice, (int *dev), ctx_device(dev, NULL))
EXPORT(cuCtxGetDevice_v2, (int *dev, struct sim_ctx *ctx), ctx_device(dev, ctx))

static int synchronize(struct sim_ctx *ctx)
{
	int rc = ctx ? SIM_OK : sim_current(&ctx);

	if (rc)
		return rc;
	rc = sim_capture_device(ctx);
	if (rc)
		return rc;
	sim_wait_ctx(ctx, WHY_INTENDED);
	return SIM_OK;
}
EXPORT(cuCtxSynchronize, (void), synchronize(NULL))
EXPORT(cuCtxSynchronize_v2, (struct sim_ctx * ctx), synchronize(ctx))

static int ctx_field(struct sim_ctx *ctx, unsigned *flags, unsigned *version,
		     unsigned long long *id)
{
	int rc = ctx ? SIM_OK : sim_current(&ctx);

	if (rc)
		return rc;
	if (flags)
		*flags = ctx->flags;
	if (version)
		*version = 13000;
	if (id)
		*id = ctx->id;
	return SIM_OK;
}
EXPORT(cuCtxGetFlags, (unsigned *flags), ctx_field(NULL, flags, NULL, NULL))
EXPORT(cuCtxGetApiVersion, (struct sim_ctx * ctx, unsigned *version),
       ctx_field(ctx, NULL, version, NULL))
EXPORT(cuCtxGetId, (struct sim_ctx * ctx, unsigned long long *id), ctx_field(ctx, NULL, NULL, id))

static int set_flags(unsigned flags)
{
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);

	if (!rc)
		ctx->flags = flags;
	return rc;
}
EXPORT(cuCtxSetFlags, (unsigned flags), set_flags(flags))

static int get_limit(size_t *out, unsigned limit)
{
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);

	if (rc)
		return rc;
	if (limit >= 8 || !out)
		return SIM_INVALID_VALUE;
	*out = ctx->limits[limit];
	return SIM_OK;
}
EXPORT(cuCtxGetLimit, (size_t * out, unsigned limit), get_limit(out, limit))

/* A changed stack size waits for the whole device with the context locked, as measured. */
static int set_limit(unsigned limit, size_t value)
{
	struct sim_ctx *ctx;
	unsigned held;
	int rc = sim_current(&ctx);

	if (rc)
		return rc;
	if (limit >= 8)
		return SIM_INVALID_VALUE;
	rc = sim_capture_unsafe();
	if (rc)
		return rc;
	if (limit == 0 && ctx->limits[0] != value) {
		held = sim_lock(HOLD_CTX_WRITE, ctx->dev);
		sim_wait_device(ctx->dev, WHY_HIDDEN);
		sim_host_work(FN_cuCtxSetLimit, 1000000);
		ctx->limits[0] = value;
		sim_unlock(held, ctx->dev);
	}
	ctx->limits[limit] = value;
	return SIM_OK;
}
EXPORT(cuCtxSetLimit, (unsigned limit, size_t value), set_limit(limit, value))

static int config(int *get_cache, int set_cache, int *get_shared, int set_shared)
{
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);

	if (rc)
		return rc;
	if (get_cache)
		*get_cache = ctx->cache_config;
	if (set_cache >= 0)
		ctx->cache_config = set_cache;
	if (get_shared)
		*get_shared = ctx->shared_config;
	if (set_shared >= 0)
		ctx->shared_config = set_shared;
	return SIM_OK;
}
EXPORT(cuCtxGetCacheConfig, (int *out), config(out, -1, NULL, -1))
EXPORT(cuCtxSetCacheConfig, (int value), config(NULL, value, NULL, -1))
EXPORT(cuCtxGetSharedMemConfig, (int *out), config(NULL, -1, out, -1))
EXPORT(cuCtxSetSharedMemConfig, (int value), config(NULL, -1, NULL, value))
EXPORT(cuCtxResetPersistingL2Cache, (void), config(NULL, -1, NULL, -1))

static int priority_range(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return SIM_OK;
}
EXPORT(cuCtxGetStreamPriorityRange, (int *least, int *greatest), priority_range(least, greatest))

/* ---- peers ---- */
static int can_access(int *out, int dev, int peer)
{
	if (!sim_dev_ok(dev) || !sim_dev_ok(peer))
		return SIM_INVALID_DEVICE;
	return give_int(out, dev != peer);
}
EXPORT(cuDeviceCanAccessPeer, (int *out, int dev, int peer), can_access(out, dev, peer))

static int p2p_attribute(int *out, int attr, int src, int dst)
{
	if (!sim_dev_ok(src) || !sim_dev_ok(dst) || src == dst)
		return SIM_INVALID_DEVICE;
	return give_int(out, attr != 1);
}
EXPORT(cuDeviceGetP2PAttribute, (int *out, int attr, int src, int dst),
       p2p_attribute(out, attr, src, dst))

static int peer_access(struct sim_ctx *peer, bool enable)
{
	struct sim_ctx *ctx, **place;
	int rc = sim_current(&ctx);
	unsigned held;

	if (rc || !peer || peer->magic != CTX_MAGIC)
		return SIM_INVALID_CONTEXT;
	if (peer->dev == ctx->dev)
		return SIM_INVALID_DEVICE;
	held = sim_lock(HOLD_PROCESS, ctx->dev);
	place = peer_of(ctx, peer);
	if (enable == !!place) {
		rc = enable ? SIM_PEER_ALREADY_ENABLED : SIM_PEER_NOT_ENABLED;
	} else {
		sim_host_work(FN_cuCtxEnablePeerAccess, 80000);
		if (enable)
			place = peer_of(ctx, NULL);
		if (place)
			*place = enable ? peer : NULL;
		else
			rc = SIM_TOO_MANY_PEERS;
	}
	sim_unlock(held, ctx->dev);
	return rc;
}
EXPORT(cuCtxEnablePeerAccess, (struct sim_ctx * peer, unsigned flags), peer_access(peer, true))
EXPORT(cuCtxDisablePeerAccess, (struct sim_ctx * peer), peer_access(peer, false))

/* Peer access is to what cudaMalloc and its like gave; a pool and what is mapped have lists of their own. */
bool sim_reaches(int dev, uint64_t address)
{
	struct sim_block *block = sim_block_of(address);
	unsigned access;

	if (!block || block->kind != MEM_DEVICE)
		return true;
	if (block->vmm) {
		sim_mapped_on(address, &access);
		return access >> dev & 1;
	}
	if (block->dev == dev)
		return true;
	if (block->pool)
		return block->pool->access >> dev & 1;
	for (struct sim_ctx *ctx = sim_contexts; ctx; ctx = ctx->next)
		if (ctx->dev == dev && block->ctx && peer_of(ctx, block->ctx))
			return true;
	return false;
}
