/*
 * testapps/contention_memory.c: the calls of contention.c that copy and allocate, and how to see that
 * they did what they promise. Called by the worker's own thread; peers_open by the main thread of its
 * process, too.
 */
#include "common.h"
#include "contention.h"

#include <string.h>

#define KIB 1024u
#define MIB (1024u * KIB)

/* ---- copies --------------------------------------------------------------------------------- */

static int pattern(const struct subject *s, unsigned i)
{
	return (int)(i * 31) + s->worker + 1;
}

static void pattern_write(const struct subject *s, int *values)
{
	unsigned i;

	for (i = 0; i < COPY_BYTES / sizeof(int); i++)
		values[i] = pattern(s, i);
}

static bool pattern_right(const struct subject *s, const int *values)
{
	unsigned i;

	for (i = 0; i < COPY_BYTES / sizeof(int); i++)
		if (values[i] != pattern(s, i))
			return false;
	return true;
}

/* Before copies to the GPU: the pattern is on the host alone. */
static void to_gpu_open(struct subject *s)
{
	pattern_write(s, s->pinned);
	pattern_write(s, s->pageable);
	CUDA_CHECK(cudaMemsetAsync(s->memory, 0xff, COPY_BYTES, s->stream));
	CUDA_CHECK(cudaStreamSynchronize(s->stream));
}

static bool to_gpu_right(struct subject *s)
{
	memset(s->pinned, 0, COPY_BYTES);
	CUDA_CHECK(cudaMemcpyAsync(s->pinned, s->memory, COPY_BYTES, cudaMemcpyDeviceToHost,
				   s->stream));
	CUDA_CHECK(cudaStreamSynchronize(s->stream));
	return pattern_right(s, s->pinned);
}

/* Before copies back: it is on the GPU alone. */
static void from_gpu_open(struct subject *s)
{
	pattern_write(s, s->pinned);
	CUDA_CHECK(cudaMemcpyAsync(s->memory, s->pinned, COPY_BYTES, cudaMemcpyHostToDevice,
				   s->stream));
	CUDA_CHECK(cudaStreamSynchronize(s->stream));
	memset(s->pinned, 0, COPY_BYTES);
	memset(s->pageable, 0, COPY_BYTES);
}

static void h2d_pinned(struct subject *s)
{
	CUDA_CHECK(cudaMemcpyAsync(s->memory, s->pinned, COPY_BYTES, cudaMemcpyHostToDevice,
				   s->stream));
}

static void h2d_pageable(struct subject *s)
{
	CUDA_CHECK(cudaMemcpyAsync(s->memory, s->pageable, COPY_BYTES, cudaMemcpyHostToDevice,
				   s->stream));
}

static void d2h_pinned(struct subject *s)
{
	CUDA_CHECK(cudaMemcpyAsync(s->pinned, s->memory, COPY_BYTES, cudaMemcpyDeviceToHost,
				   s->stream));
}

static void d2h_pageable(struct subject *s)
{
	CUDA_CHECK(cudaMemcpyAsync(s->pageable, s->memory, COPY_BYTES, cudaMemcpyDeviceToHost,
				   s->stream));
}

static bool d2h_pinned_right(struct subject *s)
{
	return pattern_right(s, s->pinned);
}

static bool d2h_pageable_right(struct subject *s)
{
	return pattern_right(s, s->pageable);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Is it of the kind and on the GPU that it should be, and does its last word hold a value? */
static bool memory_right(struct subject *s, void *memory, size_t bytes, enum cudaMemoryType type)
{
	int *last = (int *)((char *)memory + bytes) - 1, *seen = &s->pinned[1];
	struct cudaPointerAttributes attributes;
	int value = 4711 + s->worker;

	if (!memory)
		return false;
	if (type == cudaMemoryTypeDevice) {
		s->pinned[0] = value;
		CUDA_CHECK(cudaMemcpyAsync(last, s->pinned, sizeof(int), cudaMemcpyHostToDevice,
					   s->stream));
	} else {
		*last = value;
		CUDA_CHECK(cudaMemcpyAsync(s->memory, last, sizeof(int), cudaMemcpyDefault,
					   s->stream));
		last = s->memory;
	}
	*seen = 0;
	CUDA_CHECK(cudaMemcpyAsync(seen, last, sizeof(int), cudaMemcpyDeviceToHost, s->stream));
	CUDA_CHECK(cudaStreamSynchronize(s->stream));
	CUDA_CHECK(cudaPointerGetAttributes(&attributes, memory));
	return *seen == value && attributes.type == type &&
	       (type != cudaMemoryTypeDevice || attributes.device == s->gpu);
}

static void allocate_and_free(size_t bytes)
{
	void *memory;

	CUDA_CHECK(cudaMalloc(&memory, bytes));
	CUDA_CHECK(cudaFree(memory));
}

static void malloc_3m(struct subject *s)
{
	(void)s;
	allocate_and_free(3 * MIB);
}

static void malloc_64m(struct subject *s)
{
	(void)s;
	allocate_and_free(64 * MIB);
}

static bool malloc_right(struct subject *s)
{
	void *memory;
	bool right;

	CUDA_CHECK(cudaMalloc(&memory, 3 * MIB));
	right = memory_right(s, memory, 3 * MIB, cudaMemoryTypeDevice);
	CUDA_CHECK(cudaFree(memory));
	return right;
}

static void malloc_async(struct subject *s)
{
	void *memory;

	CUDA_CHECK(cudaMallocAsync(&memory, MIB, s->stream));
	CUDA_CHECK(cudaFreeAsync(memory, s->stream));
}

static bool malloc_async_right(struct subject *s)
{
	void *memory;
	bool right;

	CUDA_CHECK(cudaMallocAsync(&memory, MIB, s->stream));
	right = memory_right(s, memory, MIB, cudaMemoryTypeDevice);
	CUDA_CHECK(cudaFreeAsync(memory, s->stream));
	CUDA_CHECK(cudaStreamSynchronize(s->stream));
	return right;
}

static void malloc_host(struct subject *s)
{
	void *memory;

	(void)s;
	CUDA_CHECK(cudaMallocHost(&memory, MIB));
	CUDA_CHECK(cudaFreeHost(memory));
}

static bool malloc_host_right(struct subject *s)
{
	void *memory;
	bool right;

	CUDA_CHECK(cudaMallocHost(&memory, MIB));
	right = memory_right(s, memory, MIB, cudaMemoryTypeHost);
	CUDA_CHECK(cudaFreeHost(memory));
	return right;
}

static void host_register(struct subject *s)
{
	CUDA_CHECK(cudaHostRegister(s->pageable, PAGEABLE_BYTES, cudaHostRegisterDefault));
	CUDA_CHECK(cudaHostUnregister(s->pageable));
}

static bool host_register_right(struct subject *s)
{
	bool right;

	CUDA_CHECK(cudaHostRegister(s->pageable, PAGEABLE_BYTES, cudaHostRegisterDefault));
	right = memory_right(s, s->pageable, PAGEABLE_BYTES, cudaMemoryTypeHost);
	CUDA_CHECK(cudaHostUnregister(s->pageable));
	return right && memory_right(s, s->pageable, PAGEABLE_BYTES, cudaMemoryTypeUnregistered);
}

/* Small: all workers together stay within a few MiB. */
static void managed(struct subject *s)
{
	void *memory;

	(void)s;
	CUDA_CHECK(cudaMallocManaged(&memory, 256 * KIB, cudaMemAttachGlobal));
	CUDA_CHECK(cudaFree(memory));
}

static bool managed_right(struct subject *s)
{
	void *memory;
	bool right;

	CUDA_CHECK(cudaMallocManaged(&memory, 256 * KIB, cudaMemAttachGlobal));
	right = memory_right(s, memory, 256 * KIB, cudaMemoryTypeManaged);
	CUDA_CHECK(cudaFree(memory));
	return right;
}

/* ---- peer access ---------------------------------------------------------------------------- */

/* The other way round it would change nothing for the subject's own allocations. */
static void peers_set(const struct subject *s, bool open)
{
	int peer, can;

	for (peer = 0; peer < s->peer_cnt; peer++) {
		if (peer == s->gpu)
			continue;
		CUDA_CHECK(cudaDeviceCanAccessPeer(&can, peer, s->gpu));
		if (!can)
			continue;
		CUDA_CHECK(cudaSetDevice(peer));
		if (open)
			CUDA_CHECK(cudaDeviceEnablePeerAccess(s->gpu, 0));
		else
			CUDA_CHECK(cudaDeviceDisablePeerAccess(s->gpu));
	}
	CUDA_CHECK(cudaSetDevice(s->gpu));
}

void peers_open(const struct subject *s)
{
	peers_set(s, true);
}

static void peers_open_now(struct subject *s)
{
	if (s->opens_peers)
		peers_set(s, true);
}

static void peers_close_now(struct subject *s)
{
	if (s->opens_peers)
		peers_set(s, false);
}

/* Those with peer access come last: the contexts that they make on the other GPUs stay. */
/* clang-format off */
const struct call calls_with_memory[] = {
	{"h2d-pinned", "cudaMemcpyAsync to the GPU, 64 KiB, pinned",
		h2d_pinned, to_gpu_right, 3000, 64, to_gpu_open, NULL},
	{"h2d-pageable", "the same, pageable", h2d_pageable, to_gpu_right, 3000, 16, to_gpu_open, NULL},
	{"d2h-pinned", "cudaMemcpyAsync to the host, 64 KiB, pinned",
		d2h_pinned, d2h_pinned_right, 3000, 64, from_gpu_open, NULL},
	{"d2h-pageable", "the same, pageable", d2h_pageable, d2h_pageable_right, 3000, 16, from_gpu_open, NULL},
	{"malloc-3m", "cudaMalloc, cudaFree of 3 MiB", malloc_3m, malloc_right, 300, 0, NULL, NULL},
	{"malloc-64m", "of 64 MiB", malloc_64m, malloc_right, 200, 0, NULL, NULL},
	{"malloc-async", "cudaMallocAsync, cudaFreeAsync of 1 MiB",
		malloc_async, malloc_async_right, 2000, 64, NULL, NULL},
	{"malloc-host", "cudaMallocHost, cudaFreeHost of 1 MiB", malloc_host, malloc_host_right, 1000, 0, NULL, NULL},
	{"host-register", "cudaHostRegister, cudaHostUnregister of 1 MiB",
		host_register, host_register_right, 100, 0, NULL, NULL},
	{"managed", "cudaMallocManaged, cudaFree of 256 KiB", managed, managed_right, 6, 0, NULL, NULL},
	{"malloc-peer", "malloc-3m while the other GPUs have access",
		malloc_3m, malloc_right, 100, 0, peers_open_now, peers_close_now},
	{"malloc-64m-peer", "malloc-64m while the other GPUs have access",
		malloc_64m, malloc_right, 60, 0, peers_open_now, peers_close_now},
	{0},
};
/* clang-format on */
