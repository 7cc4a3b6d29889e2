/*
 * tests/sim/driver_pool.c: stream-ordered allocation. Memory is given at once and taken back when the
 * stream gets to the free; a pool that has to grow costs fifty times what a warm one costs, and with a
 * release threshold of 0 nothing stays warm past the threshold. On the calling thread; frees on the
 * engine's.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

enum { ATTR_THRESHOLD = 4, ATTR_RESERVED, ATTR_RESERVED_HIGH, ATTR_USED, ATTR_USED_HIGH };

static struct sim_pool default_pools[SIM_MAX_DEVICES];
static struct sim_spin spin; /* the figures of all pools */

struct sim_pool *sim_pool_of(int dev)
{
	default_pools[dev].dev = dev;
	default_pools[dev].fixed = true;
	return &default_pools[dev];
}

static int alloc(sim_ptr *out, size_t bytes, struct sim_pool *pool, void *handle, bool per_thread)
{
	struct sim_block *block;
	struct sim_stream *stream;
	bool grow;
	unsigned held;
	int rc;

	stream = sim_stream_of(handle, per_thread, &rc);
	if (rc || !out || !bytes)
		return rc ? rc : SIM_INVALID_VALUE;
	rc = sim_capturing(stream) ? SIM_OK : sim_capture_unsafe();
	if (rc)
		return rc;
	if (!pool)
		pool = sim_devices[stream->ctx->dev].pool;
	sim_note_stream(handle);
	held = sim_lock(HOLD_POOL, pool->dev);
	sim_spin_lock(&spin);
	grow = pool->cached < bytes;
	sim_spin_unlock(&spin);
	if (grow)
		sim_host_work(FN_cuMemAllocAsync, 40000);
	rc = sim_block_new(&block, MEM_DEVICE, pool->dev, bytes);
	if (!rc) {
		block->ctx = stream->ctx;
		block->pool = pool;
		sim_spin_lock(&spin);
		if (grow)
			pool->reserved += bytes;
		else
			pool->cached -= bytes;
		pool->used += bytes;
		if (pool->reserved > pool->reserved_high)
			pool->reserved_high = pool->reserved;
		if (pool->used > pool->used_high)
			pool->used_high = pool->used;
		sim_spin_unlock(&spin);
		*out = block->base;
	}
	sim_unlock(held, pool->dev);
	if (!rc && sim_capturing(stream))
		rc = sim_capture(stream, sim_op_new(OP_MARK, 0), NULL);
	return rc;
}
EXPORT(cuMemAllocAsync, (sim_ptr * out, size_t n, void *h), alloc(out, n, NULL, h, false))
EXPORT(cuMemAllocAsync_ptsz, (sim_ptr * out, size_t n, void *h), alloc(out, n, NULL, h, true))
EXPORT(cuMemAllocFromPoolAsync, (sim_ptr * out, size_t n, struct sim_pool *pool, void *h),
       alloc(out, n, pool, h, false))
EXPORT(cuMemAllocFromPoolAsync_ptsz, (sim_ptr * out, size_t n, struct sim_pool *pool, void *h),
       alloc(out, n, pool, h, true))

/* Gives the system back what is reserved beyond keep and not in use; returns how much. */
static uint64_t shrink_locked(struct sim_pool *pool, uint64_t keep)
{
	uint64_t excess = pool->reserved > keep ? pool->reserved - keep : 0;

	if (excess > pool->cached)
		excess = pool->cached;
	pool->cached -= excess;
	pool->reserved -= excess;
	return excess;
}

/* The bytes go back to the pool, and beyond its threshold to the system. */
void sim_block_release(struct sim_block *block)
{
	struct sim_pool *pool = block->pool;

	sim_spin_lock(&spin);
	pool->used -= block->bytes;
	pool->cached += block->bytes;
	shrink_locked(pool, pool->threshold);
	sim_spin_unlock(&spin);
	sim_block_free(block);
}

struct release_work {
	struct sim_work work;
	struct sim_block *block;
};

static void run_release(struct sim_work *work)
{
	sim_block_release(((struct release_work *)work)->block);
}

static int release(sim_ptr ptr, void *handle, bool per_thread)
{
	int rc;
	struct sim_stream *stream = sim_stream_of(handle, per_thread, &rc);
	struct sim_block *block = sim_block_of(ptr);
	struct release_work *work;
	struct sim_op *op;

	if (rc || !ptr)
		return rc;
	if (!block || block->base != ptr || block->kind != MEM_DEVICE || block->vmm)
		return SIM_INVALID_VALUE;
	sim_note_stream(handle);
	op = sim_op_new(OP_MARK, 0);
	if (sim_capturing(stream)) /* a graph's memory lives as long as the process here */
		return sim_capture(stream, op, NULL);
	if (!block->pool)
		block->pool = sim_devices[block->dev].pool;
	work = sim_work_new(sizeof(*work), run_release);
	work->block = block;
	op->work = &work->work;
	sim_submit(stream, op, NULL);
	return SIM_OK;
}
EXPORT(cuMemFreeAsync, (sim_ptr ptr, void *h), release(ptr, h, false))
EXPORT(cuMemFreeAsync_ptsz, (sim_ptr ptr, void *h), release(ptr, h, true))

/* ---- pools ---- */
static int get_pool(struct sim_pool **out, int dev, bool standard)
{
	if (!sim_dev_ok(dev) || !out)
		return out ? SIM_INVALID_DEVICE : SIM_INVALID_VALUE;
	*out = standard ? sim_devices[dev].default_pool : sim_devices[dev].pool;
	return SIM_OK;
}
EXPORT(cuDeviceGetDefaultMemPool, (struct sim_pool * *out, int dev), get_pool(out, dev, true))
EXPORT(cuDeviceGetMemPool, (struct sim_pool * *out, int dev), get_pool(out, dev, false))
EXPORT(cuDeviceSetMemPool, (int dev, struct sim_pool *pool),
       sim_dev_ok(dev) && pool ? (sim_devices[dev].pool = pool, SIM_OK) : SIM_INVALID_VALUE)

static int create(struct sim_pool **out, const struct sim_pool_props *props)
{
	struct sim_pool *pool;

	if (!out || !props || !sim_dev_ok(props->location.id))
		return SIM_INVALID_VALUE;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return SIM_OUT_OF_MEMORY;
	pool->dev = props->location.id;
	*out = pool;
	return SIM_OK;
}
EXPORT(cuMemPoolCreate, (struct sim_pool * *out, const struct sim_pool_props *props),
       create(out, props))

/* Blocks may still be in use: the pool's figures stay where they are. */
static int destroy(struct sim_pool *pool)
{
	if (!pool || pool->fixed)
		return SIM_INVALID_VALUE;
	if (sim_devices[pool->dev].pool == pool)
		sim_devices[pool->dev].pool = sim_devices[pool->dev].default_pool;
	sim_spin_lock(&spin);
	pool->threshold = pool->cached = 0;
	sim_spin_unlock(&spin);
	return SIM_OK;
}
EXPORT(cuMemPoolDestroy, (struct sim_pool * pool), destroy(pool))

static int trim(struct sim_pool *pool, uint64_t keep)
{
	uint64_t excess;

	if (!pool)
		return SIM_INVALID_VALUE;
	sim_spin_lock(&spin);
	excess = shrink_locked(pool, keep);
	sim_spin_unlock(&spin);
	if (excess)
		sim_host_work(FN_cuMemPoolTrimTo, 50000);
	return SIM_OK;
}
EXPORT(cuMemPoolTrimTo, (struct sim_pool * pool, size_t keep), trim(pool, keep))

static int attribute(struct sim_pool *pool, int attr, void *value, bool set)
{
	uint64_t *figures[] = {&pool->threshold, &pool->reserved, &pool->reserved_high, &pool->used,
			       &pool->used_high};

	if (!pool || !value || attr < 1 || attr > ATTR_USED_HIGH)
		return SIM_INVALID_VALUE;
	sim_spin_lock(&spin);
	if (attr < ATTR_THRESHOLD && set)
		pool->attrs[attr] = *(int *)value;
	else if (attr < ATTR_THRESHOLD)
		*(int *)value = pool->attrs[attr];
	else if (set)
		*figures[attr - ATTR_THRESHOLD] = *(uint64_t *)value;
	else
		*(uint64_t *)value = *figures[attr - ATTR_THRESHOLD];
	sim_spin_unlock(&spin);
	return SIM_OK;
}
EXPORT(cuMemPoolSetAttribute, (struct sim_pool * pool, int attr, void *value),
       attribute(pool, attr, value, true))
EXPORT(cuMemPoolGetAttribute, (struct sim_pool * pool, int attr, void *value),
       attribute(pool, attr, value, false))

/* Which devices reach a pool's memory says the pool, whatever peer access there is (programming guide,
 * "Stream Ordered Memory Allocator", "Device Accessibility for Multi-GPU Support"). */
static int set_access(struct sim_pool *pool, const struct sim_access_desc *d, size_t cnt)
{
	if (!pool || !d)
		return SIM_INVALID_VALUE;
	for (size_t i = 0; i < cnt; i++)
		if (!sim_dev_ok(d[i].location.id) || (d[i].location.id == pool->dev && !d[i].flags))
			return SIM_INVALID_DEVICE;
	sim_spin_lock(&spin);
	for (size_t i = 0; i < cnt; i++) {
		if (d[i].flags)
			pool->access |= 1u << d[i].location.id;
		else
			pool->access &= ~(1u << d[i].location.id);
	}
	sim_spin_unlock(&spin);
	return SIM_OK;
}

static int get_access(int *out, const struct sim_pool *pool, const struct sim_location *where)
{
	if (!pool || !out || !where || !sim_dev_ok(where->id))
		return SIM_INVALID_VALUE;
	*out = where->id == pool->dev || pool->access >> where->id & 1 ? 3 : 0;
	return SIM_OK;
}
EXPORT(cuMemPoolSetAccess, (struct sim_pool * pool, const struct sim_access_desc *d, size_t cnt),
       set_access(pool, d, cnt))
EXPORT(cuMemPoolGetAccess, (int *out, struct sim_pool *pool, struct sim_location *where),
       get_access(out, pool, where))
