/*
 * tests/sim/driver_memory.c: allocating, pinning and freeing, and questions about pointers, on the
 * calling thread. What locks and what waits follows what was measured on driver 580: allocation and
 * pinning work under the process mutex without waiting for kernels; pinning also locks the device's
 * context; freeing device, managed, pinned or registered memory waits for every stream of the device
 * with the context locked.
 */
#include "sim.h"

#include <string.h>
#include <sys/mman.h>

enum { HOST_PORTABLE = 1, HOST_MAPPED = 2 };

static int alloc(sim_ptr *out, uint64_t bytes, enum sim_mem kind, enum sim_fn fn)
{
	struct sim_block *block;
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);
	unsigned held;

	if (rc)
		return rc;
	if (!out || !bytes)
		return SIM_INVALID_VALUE;
	rc = sim_capture_unsafe();
	if (rc)
		return rc;
	held = sim_lock(HOLD_PROCESS, ctx->dev);
	rc = sim_block_new(&block, kind, ctx->dev, bytes);
	if (!rc)
		sim_host_work(fn, kind == MEM_MANAGED ? 8000 : 30000 + (bytes >> 20) * 1000);
	sim_unlock(held, ctx->dev);
	if (rc)
		return rc;
	block->ctx = ctx;
	*out = block->base;
	return SIM_OK;
}
EXPORT(cuMemAlloc_v2, (sim_ptr * out, size_t bytes),
       alloc(out, bytes, MEM_DEVICE, FN_cuMemAlloc_v2))
EXPORT(cuMemAllocManaged, (sim_ptr * out, size_t bytes, unsigned flags),
       alloc(out, bytes, MEM_MANAGED, FN_cuMemAllocManaged))

static int alloc_pitch(sim_ptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
	if (!pitch || (element != 4 && element != 8 && element != 16))
		return SIM_INVALID_VALUE;
	*pitch = (width + 511) / 512 * 512;
	return alloc(out, *pitch * height, MEM_DEVICE, FN_cuMemAllocPitch_v2);
}
EXPORT(cuMemAllocPitch_v2,
       (sim_ptr * out, size_t *pitch, size_t width, size_t height, unsigned element),
       alloc_pitch(out, pitch, width, height, element))

static int free_device(sim_ptr ptr)
{
	struct sim_block *block;
	struct sim_ctx *ctx;
	unsigned held;
	int dev, rc;

	if (!ptr)
		return SIM_OK;
	block = sim_block_of(ptr);
	if (!block || block->base != ptr || block->registered || block->kind == MEM_PINNED ||
	    block->vmm)
		return SIM_INVALID_VALUE;
	rc = sim_capture_unsafe();
	if (rc)
		return rc;
	if (block->pool) {
		sim_block_release(block);
		return SIM_OK;
	}
	dev = block->kind == MEM_MANAGED && !sim_current(&ctx) ? ctx->dev : block->dev;
	held = sim_lock_idle(dev);
	sim_host_work(FN_cuMemFree_v2, 20000);
	sim_block_free(block);
	sim_unlock(held, dev);
	return SIM_OK;
}
EXPORT(cuMemFree_v2, (sim_ptr ptr), free_device(ptr))

static int alloc_host(void **out, size_t bytes, unsigned flags, enum sim_fn fn)
{
	struct sim_block *block;
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);
	unsigned held;

	if (rc)
		return rc;
	if (!out || !bytes || flags > 7)
		return SIM_INVALID_VALUE;
	rc = sim_capture_unsafe();
	if (rc)
		return rc;
	held = sim_lock(HOLD_CTX_WRITE | HOLD_PROCESS, ctx->dev);
	sim_host_work(fn, 3000 + (bytes >> 10) * 250);
	rc = sim_block_new(&block, MEM_PINNED, ctx->dev, bytes);
	sim_unlock(held, ctx->dev);
	if (rc)
		return rc;
	block->ctx = ctx;
	block->flags = flags | HOST_MAPPED;
	*out = (void *)(uintptr_t)block->base;
	return SIM_OK;
}
EXPORT(cuMemHostAlloc, (void **out, size_t bytes, unsigned flags),
       alloc_host(out, bytes, flags, FN_cuMemHostAlloc))
EXPORT(cuMemAllocHost_v2, (void **out, size_t bytes),
       alloc_host(out, bytes, 0, FN_cuMemAllocHost_v2))
EXPORT(cuMemAllocHost, (void **out, unsigned bytes), alloc_host(out, bytes, 0, FN_cuMemAllocHost))

static int free_host(void *ptr)
{
	struct sim_block *block = sim_block_of((uint64_t)(uintptr_t)ptr);
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);
	unsigned held;

	if (!ptr)
		return SIM_OK;
	if (rc)
		return rc;
	if (!block || block->kind != MEM_PINNED || block->registered ||
	    block->base != (uint64_t)(uintptr_t)ptr)
		return SIM_INVALID_VALUE;
	rc = sim_capture_unsafe();
	if (rc)
		return rc;
	held = sim_lock_idle(ctx->dev);
	sim_host_work(FN_cuMemFreeHost, 3000 + (block->bytes >> 20) * 5000);
	sim_block_free(block);
	sim_unlock(held, ctx->dev);
	return SIM_OK;
}
EXPORT(cuMemFreeHost, (void *ptr), free_host(ptr))

static int host_register(void *ptr, size_t bytes, unsigned flags)
{
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);
	unsigned held;

	if (rc || !ptr)
		return rc ? rc : SIM_INVALID_VALUE;
	rc = sim_capture_unsafe();
	if (rc)
		return rc;
	held = sim_lock(HOLD_CTX_WRITE | HOLD_PROCESS, ctx->dev);
	sim_host_work(FN_cuMemHostRegister_v2, 10000 + (bytes >> 10) * 36);
	rc = sim_register_range(ptr, bytes, flags);
	if (!rc)
		sim_block_of((uint64_t)(uintptr_t)ptr)->dev = ctx->dev;
	sim_unlock(held, ctx->dev);
	return rc;
}
EXPORT(cuMemHostRegister_v2, (void *ptr, size_t bytes, unsigned flags),
       host_register(ptr, bytes, flags))
EXPORT(cuMemHostRegister, (void *ptr, size_t bytes, unsigned flags),
       host_register(ptr, bytes, flags))

static int host_unregister(void *ptr)
{
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);
	unsigned held;

	if (rc)
		return rc;
	held = sim_lock_idle(ctx->dev);
	sim_host_work(FN_cuMemHostUnregister, 30000);
	rc = sim_unregister_range(ptr);
	sim_unlock(held, ctx->dev);
	return rc;
}
EXPORT(cuMemHostUnregister, (void *ptr), host_unregister(ptr))

static int host_device_pointer(sim_ptr *out, void *ptr, unsigned flags)
{
	struct sim_block *block = sim_block_of((uint64_t)(uintptr_t)ptr);

	if (!out || flags || !block || block->kind != MEM_PINNED)
		return SIM_INVALID_VALUE;
	*out = (sim_ptr)(uintptr_t)ptr;
	return SIM_OK;
}
EXPORT(cuMemHostGetDevicePointer_v2, (sim_ptr * out, void *ptr, unsigned flags),
       host_device_pointer(out, ptr, flags))

static int host_flags(unsigned *out, void *ptr)
{
	struct sim_block *block = sim_block_of((uint64_t)(uintptr_t)ptr);

	if (!out || !block || block->kind != MEM_PINNED)
		return SIM_INVALID_VALUE;
	*out = block->flags;
	return SIM_OK;
}
EXPORT(cuMemHostGetFlags, (unsigned *out, void *ptr), host_flags(out, ptr))

static int mem_info(size_t *available, size_t *total)
{
	struct sim_ctx *ctx;
	int rc = sim_current(&ctx);

	if (rc)
		return rc;
	sim_host_work(FN_cuMemGetInfo_v2, 7000); /* docs/CUDA_FACTS.md: getters */
	if (total)
		*total = sim_script.memory_bytes;
	if (available)
		*available =
			sim_script.memory_bytes - atomic_load(&sim_devices[ctx->dev].used_bytes);
	return SIM_OK;
}
EXPORT(cuMemGetInfo_v2, (size_t * available, size_t *total), mem_info(available, total))

static int address_range(sim_ptr *base, size_t *bytes, sim_ptr ptr)
{
	struct sim_block *block = sim_block_of(ptr);

	if (!block)
		return SIM_NOT_FOUND;
	if (base)
		*base = block->base;
	if (bytes)
		*bytes = block->bytes;
	return SIM_OK;
}
EXPORT(cuMemGetAddressRange_v2, (sim_ptr * base, size_t *bytes, sim_ptr ptr),
       address_range(base, bytes, ptr))

/* ---- pointer attributes ---- */
enum {
	POINTER_CONTEXT = 1,
	POINTER_MEMORY_TYPE,
	POINTER_DEVICE,
	POINTER_HOST,
	POINTER_P2P,
	POINTER_SYNC_MEMOPS,
	POINTER_ID,
	POINTER_MANAGED,
	POINTER_ORDINAL,
	POINTER_IPC,
	POINTER_START,
	POINTER_SIZE,
	POINTER_MAPPED,
	POINTER_HANDLES,
	POINTER_RDMA,
	POINTER_ACCESS,
	POINTER_POOL,
	POINTER_MAPPING_SIZE,
	POINTER_MAPPING_BASE,
	POINTER_BLOCK_ID,
	POINTER_DECOMPRESS,
};

/* Writes the attribute as far as the pointer has it, zero where it has not. */
static int pointer_attribute(void *out, int attr, const struct sim_block *block, sim_ptr ptr)
{
	bool host = block && block->kind != MEM_DEVICE;

	switch (attr) {
	case POINTER_CONTEXT:
		*(void **)out = block ? block->ctx : NULL;
		return SIM_OK;
	case POINTER_MEMORY_TYPE:
		*(unsigned *)out = !block ? 0 : block->kind == MEM_PINNED ? SIM_HOST : SIM_DEVICE;
		return SIM_OK;
	case POINTER_DEVICE:
		*(sim_ptr *)out = block ? ptr : 0;
		return SIM_OK;
	case POINTER_HOST:
		*(void **)out = host ? (void *)(uintptr_t)ptr : NULL;
		return SIM_OK;
	case POINTER_ID:
		*(unsigned long long *)out = block ? block->id : 0;
		return SIM_OK;
	case POINTER_ORDINAL:
		if (sim_mem_at(ptr, (int *)out) == MEM_PAGEABLE)
			*(int *)out = -2;
		return SIM_OK;
	case POINTER_START:
		*(sim_ptr *)out = block ? block->base : 0;
		return SIM_OK;
	case POINTER_SIZE:
		*(size_t *)out = block ? block->bytes : 0;
		return SIM_OK;
	case POINTER_MANAGED:
		*(unsigned *)out = block && block->kind == MEM_MANAGED;
		return SIM_OK;
	case POINTER_SYNC_MEMOPS:
	case POINTER_HANDLES:
	case POINTER_RDMA:
	case POINTER_DECOMPRESS:
		*(unsigned *)out = 0;
		return SIM_OK;
	case POINTER_IPC:
	case POINTER_MAPPED:
		*(unsigned char *)out = block != NULL;
		return SIM_OK;
	case POINTER_ACCESS:
		*(unsigned *)out = sim_self.ctx && sim_reaches(sim_self.ctx->dev, ptr) ? 3 : 0;
		return SIM_OK;
	case POINTER_POOL:
		*(void **)out = block ? block->pool : NULL;
		return SIM_OK;
	case POINTER_MAPPING_SIZE:
		*(size_t *)out = block ? block->granule_bytes : 0;
		return SIM_OK;
	case POINTER_MAPPING_BASE:
		*(sim_ptr *)out = block ? block->base : 0;
		return SIM_OK;
	case POINTER_BLOCK_ID:
		*(unsigned long long *)out = block ? block->id : 0;
		return SIM_OK;
	}
	return SIM_INVALID_VALUE;
}

static int get_attribute(void *out, int attr, sim_ptr ptr)
{
	struct sim_block *block = sim_block_of(ptr);

	if (!out || !block)
		return SIM_INVALID_VALUE;
	return pointer_attribute(out, attr, block, ptr);
}
EXPORT(cuPointerGetAttribute, (void *out, int attr, sim_ptr ptr), get_attribute(out, attr, ptr))

static int get_attributes(unsigned cnt, const int *attrs, void **out, sim_ptr ptr)
{
	struct sim_block *block = sim_block_of(ptr);

	if (!attrs || !out)
		return SIM_INVALID_VALUE;
	for (unsigned i = 0; i < cnt; i++) {
		int rc = pointer_attribute(out[i], attrs[i], block, ptr);

		if (rc)
			return rc;
	}
	return SIM_OK;
}
EXPORT(cuPointerGetAttributes, (unsigned cnt, const int *attrs, void **out, sim_ptr ptr),
       get_attributes(cnt, attrs, out, ptr))
EXPORT(cuPointerSetAttribute, (const void *value, int attr, sim_ptr ptr),
       sim_block_of(ptr) ? SIM_OK : SIM_INVALID_VALUE)
