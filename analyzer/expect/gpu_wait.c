/*
 * analyzer/expect/gpu_wait.c: what a call may wait for on the GPU. Called by expect, and by what
 * tells where the time of a call went.
 *
 * "sync page" is the page "API synchronization behavior" of the CUDA runtime and driver API
 * references; "measured" is on H200 with driver 580: docs/CUDA_FACTS.md.
 */
#include "gpu_wait.h"

static const struct gpu_waits nothing;

/* By contract; those of copies, sets and frees depend on the record: below. */
/* clang-format off */
const struct gpu_waits gpu_waits_by_contract[SPY_CONTRACT_COUNT] = {
	/* measured: launch 1,021 in a row waits for the first one to end */
	[SPY_CONTRACT_SUBMIT]    = {GPU_WAIT_STREAM, GPU_WAIT_QUEUE, "its launch queue is full"},
	[SPY_CONTRACT_LAUNCH]    = {GPU_WAIT_STREAM, GPU_WAIT_QUEUE, "its launch queue is full"},
	/* sync page, "Memcpy": peer copies are asynchronous to the host; measured: without access
	 * the call hands over many pieces, but does not wait for them */
	[SPY_CONTRACT_PEER]      = {GPU_WAIT_STREAM, GPU_WAIT_QUEUE, "its launch queue is full"},
	/* the functions' own pages */
	[SPY_CONTRACT_STREAM]    = {GPU_WAIT_STREAM, GPU_WAIT_INTENDED, "it waits for a stream"},
	[SPY_CONTRACT_EVENT]     = {GPU_WAIT_EVENT,  GPU_WAIT_INTENDED, "it waits for an event"},
	[SPY_CONTRACT_DEVICE]    = {GPU_WAIT_DEVICE, GPU_WAIT_INTENDED, "it waits for a device"},
	/* cudaFree's page: "may" synchronise; measured for it and the others: they do */
	[SPY_CONTRACT_FREE]      = {GPU_WAIT_DEVICE, GPU_WAIT_HIDDEN, "freeing waits for the whole device"},
	/* cudaDeviceSetLimit's page says "may" for the stack; measured: only a change of the stack
	 * does */
	[SPY_CONTRACT_LIMIT]     = {GPU_WAIT_DEVICE, GPU_WAIT_HIDDEN, "a changed limit waits for the whole device"},
	/* measured: cuModuleLoadData, cuModuleUnload, cuLibraryUnload of a library that was used */
	[SPY_CONTRACT_MODULE]    = {GPU_WAIT_DEVICE, GPU_WAIT_HIDDEN, "loading or unloading code takes its time, and waits for the whole device"},
	/* programming guide, "Lazy loading": may need a context synchronisation; measured:
	 * cuKernelGetFunction of the first kernel of a library does, its other kernels and those of
	 * a module do not */
	[SPY_CONTRACT_LAZY_LOAD] = {GPU_WAIT_DEVICE, GPU_WAIT_HIDDEN, "a kernel's first use may load it"},
};

/* programming guide, "CUDA environment variables": with CUDA_LAUNCH_BLOCKING kernel launches are
 * synchronous */
const struct gpu_waits gpu_waits_launch_blocks = {GPU_WAIT_STREAM, GPU_WAIT_INTENDED,
						  "CUDA_LAUNCH_BLOCKING makes it wait for its kernel"};

/* ---- copies ---------------------------------------------------------------------------------- */

enum copy_side { SIDES_OTHER, SIDES_PAGEABLE, SIDES_COUNT };

#define COPY_DIRECTIONS (SPY_DIR_H2H + 1)

#define QUEUE    {GPU_WAIT_STREAM, GPU_WAIT_QUEUE, "its launch queue is full"}
#define INTENDED {GPU_WAIT_STREAM, GPU_WAIT_INTENDED, "a synchronous copy waits for its stream and for itself"}
#define STAGED   {GPU_WAIT_STREAM, GPU_WAIT_HIDDEN, "a copy from pageable memory waits when its staging buffer is full"}
#define PAGEABLE {GPU_WAIT_STREAM, GPU_WAIT_HIDDEN, "a copy to pageable memory waits for its stream and for itself"}
#define HOST     {GPU_WAIT_STREAM, GPU_WAIT_HIDDEN, "a copy from host to host waits for its stream"}

/* [direction][is a side pageable] */
static const struct gpu_waits copy_sync[COPY_DIRECTIONS][SIDES_COUNT] = {
	/* sync page, "Memcpy, synchronous"; which stream, and that all sizes do: measured */
	[SPY_DIR_UNKNOWN] = {INTENDED, INTENDED},
	[SPY_DIR_H2D]     = {INTENDED, INTENDED},
	[SPY_DIR_D2H]     = {INTENDED, INTENDED},
	[SPY_DIR_D2D]     = {QUEUE, QUEUE}, /* "no host-side synchronization is performed" */
	[SPY_DIR_H2H]     = {INTENDED, INTENDED},
};
static const struct gpu_waits copy_async[COPY_DIRECTIONS][SIDES_COUNT] = {
	/* sync page, "Memcpy, asynchronous": pageable memory may be staged and synchronise.
	 * Measured: from pageable memory only beyond 2 MB outstanding; to pageable memory always,
	 * from 4 bytes on; host to host even if both sides are pinned; managed memory as pinned */
	[SPY_DIR_UNKNOWN] = {QUEUE, PAGEABLE},
	[SPY_DIR_H2D]     = {QUEUE, STAGED},
	[SPY_DIR_D2H]     = {QUEUE, PAGEABLE},
	[SPY_DIR_D2D]     = {QUEUE, QUEUE},
	[SPY_DIR_H2H]     = {HOST, HOST},
};
/* clang-format on */

const struct gpu_waits *gpu_wait_of_copy(const struct spy_rec_copy *copy, uint8_t contract)
{
	unsigned int direction =
		copy->direction < COPY_DIRECTIONS ? copy->direction : SPY_DIR_UNKNOWN;
	unsigned int sides = copy_is_pageable(copy) ? SIDES_PAGEABLE : SIDES_OTHER;

	/* A copy of nothing makes no call of the driver (measured). */
	if (!copy_moves(copy))
		return &nothing;
	switch (contract) {
	case SPY_CONTRACT_COPY_SYNC:
		return &copy_sync[direction][sides];
	case SPY_CONTRACT_COPY_ASYNC:
	case SPY_CONTRACT_COPY_BATCH: /* measured: pageable batches wait from 16 KB on */
		return &copy_async[direction][sides];
	default:
		return &gpu_waits_by_contract[contract];
	}
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const struct gpu_waits set_host = {GPU_WAIT_STREAM, GPU_WAIT_INTENDED,
					  "setting host memory waits for the stream"};

const struct gpu_waits *gpu_wait_of_memory(const struct spy_rec_memory *memory, uint8_t contract)
{
	switch (contract) {
	case SPY_CONTRACT_MEMSET_SYNC:
		/* sync page, "Memset": asynchronous, but of pinned host memory; measured: and of
		 * managed memory */
		if (memory->kind == SPY_MEM_PINNED || memory->kind == SPY_MEM_MANAGED)
			return &set_host;
		return &gpu_waits_by_contract[SPY_CONTRACT_SUBMIT];
	case SPY_CONTRACT_FREE:
		/* cudaFree's page: not for memory from a pool. Measured: not for unmapping. */
		if (memory->pool || memory->op == SPY_MEMOP_UNMAP || memory_is_nothing(memory))
			return &nothing;
		return &gpu_waits_by_contract[SPY_CONTRACT_FREE];
	default:
		return &gpu_waits_by_contract[contract];
	}
}

bool gpu_wait_ended(const struct record *record, uint8_t contract, const struct gpu_waits *waits)
{
	if (waits->sort == GPU_WAIT_INTENDED)
		return true;
	if (waits->sort != GPU_WAIT_HIDDEN)
		return false;
	if (record->event == SPY_EV_COPY)
		return record_direction(record) != SPY_DIR_H2D;
	return contract == SPY_CONTRACT_FREE;
}
