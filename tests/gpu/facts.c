/*
 * tests/gpu/facts.c: what this driver does, as far as cudaspy relies on it (docs/CUDA_FACTS.md). Prints which calls
 * wait for a kernel that runs in another stream, which look-ups take locks, what breaks a capture, and, with two GPUs, what copies between
 * them take with peer access and without.
 *
 *   facts [waits] [getters] [captures] [peers]      (default: all)
 *
 * Run it under CUDA_MODULE_LOADING=LAZY and =EAGER: they differ.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "facts.h"

#define BUSY_MS 200u
#define MIB ((size_t)1 << 20)

extern const unsigned char facts_code[];

double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

void need(CUresult result, const char *what)
{
	const char *name = "?";

	if (!result)
		return;
	cuGetErrorName(result, &name);
	fprintf(stderr, "facts: %s: %s\n", what, name);
	exit(1);
}

/* ---- what waits for a kernel in another stream ------------------------------------------------ */

static CUfunction busy;
static CUstream busy_stream, other_stream;

/* The device has nothing to do but a kernel, which has begun. */
static void make_busy(void)
{
	unsigned int ms = BUSY_MS;
	void *arguments[] = {&ms};
	double begun;

	NEED(cuCtxSynchronize());
	NEED(cuLaunchKernel(busy, 1, 1, 1, 1, 1, 1, 0, busy_stream, arguments, NULL));
	for (begun = now_ms(); now_ms() - begun < 3;)
		;
}

/* How long a call took, and whether the kernel had ended by then. */
static void tell(const char *call, CUresult result, double took_ms)
{
	bool ended = cuStreamQuery(busy_stream) == CUDA_SUCCESS;
	const char *name = "?";

	cuGetErrorName(result, &name);
	printf("%-9s %9.3f ms  %s%s%s\n", ended ? "waits" : "does not", took_ms, call,
	       result ? ": " : "", result ? name : "");
}

#define TELL(text, call) \
	do { \
		double begun; \
		CUresult result; \
\
		make_busy(); \
		begun = now_ms(); \
		result = call; \
		tell(text, result, now_ms() - begun); \
	} while (0)

static CUresult launch(CUfunction kernel, CUdeviceptr memory)
{
	void *arguments[] = {&memory};

	return cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, other_stream, arguments, NULL);
}

static void tell_modules(CUdeviceptr memory)
{
	CUdeviceptr variable;
	CUfunction function = NULL;
	CUmodule module = NULL;
	size_t size;

	TELL("cuModuleLoadData", cuModuleLoadData(&module, facts_code));
	TELL("cuModuleGetFunction, of a kernel", cuModuleGetFunction(&function, module, "first"));
	TELL("cuLaunchKernel, the first of it", launch(function, memory));
	TELL("cuModuleGetGlobal", cuModuleGetGlobal(&variable, &size, module, "variable"));
	TELL("cuModuleUnload", cuModuleUnload(module));
}

static CUresult kernel_of(CUlibrary library, const char *name, CUkernel *kernel)
{
	return cuLibraryGetKernel(kernel, library, name);
}

static void tell_libraries(CUdevice device, CUdeviceptr memory)
{
	CUlibrary library = NULL, unused = NULL;
	CUkernel kernel = NULL;
	CUfunction function = NULL;
	CUdeviceptr variable;
	size_t size;
	int value;

	TELL("cuLibraryLoadData",
	     cuLibraryLoadData(&library, facts_code, NULL, NULL, 0, NULL, NULL, 0));
	NEED(cuLibraryLoadData(&unused, facts_code, NULL, NULL, 0, NULL, NULL, 0));
	TELL("cuLibraryUnload, of a library nobody used", cuLibraryUnload(unused));
	TELL("cuLibraryGetKernel", kernel_of(library, "first", &kernel));
	TELL("cuKernelGetAttribute",
	     cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, device));
	TELL("cuKernelGetFunction, the library's first kernel",
	     cuKernelGetFunction(&function, kernel));
	TELL("cuLaunchKernel, the first of it", launch(function, memory));
	NEED(kernel_of(library, "second", &kernel));
	TELL("cuKernelGetFunction, another of its kernels", cuKernelGetFunction(&function, kernel));
	NEED(kernel_of(library, "third", &kernel));
	TELL("cuLaunchKernel, the first of a third one", launch((CUfunction)kernel, memory));
	NEED(kernel_of(library, "fourth", &kernel));
	TELL("cuKernelSetAttribute, a fourth",
	     cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536, kernel,
				  device));
	TELL("cuLibraryGetGlobal", cuLibraryGetGlobal(&variable, &size, library, "variable"));
	TELL("cuLibraryUnload", cuLibraryUnload(library));
}

static void tell_memory(void)
{
	CUdeviceptr memory = 0;
	void *host = NULL;

	TELL("cuMemAlloc, 64 MiB", cuMemAlloc(&memory, 64 * MIB));
	TELL("cuMemFree", cuMemFree(memory));
	TELL("cuMemAllocManaged, 1 MiB", cuMemAllocManaged(&memory, MIB, CU_MEM_ATTACH_GLOBAL));
	TELL("cuMemFree, of managed memory", cuMemFree(memory));
	TELL("cuMemHostAlloc, 1 MiB", cuMemHostAlloc(&host, MIB, 0));
	TELL("cuMemFreeHost", cuMemFreeHost(host));
	host = calloc(1, MIB);
	TELL("cuMemHostRegister, 1 MiB", cuMemHostRegister(host, MIB, 0));
	TELL("cuMemHostUnregister", cuMemHostUnregister(host));
	free(host);
}

static void tell_mappings(void)
{
	CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
	};
	CUmemAccessDesc access = {.location = properties.location,
				  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr range = 0;
	size_t size = 64 * MIB;

	TELL("cuMemAddressReserve", cuMemAddressReserve(&range, size, 0, 0, 0));
	TELL("cuMemCreate, 64 MiB", cuMemCreate(&handle, size, &properties, 0));
	TELL("cuMemMap", cuMemMap(range, size, 0, handle, 0));
	TELL("cuMemSetAccess", cuMemSetAccess(range, size, &access, 1));
	TELL("cuMemUnmap", cuMemUnmap(range, size));
	TELL("cuMemRelease", cuMemRelease(handle));
	TELL("cuMemAddressFree", cuMemAddressFree(range, size));
}

static void tell_pools(void)
{
	CUmemPoolProps properties = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
	};
	CUmemoryPool pool = NULL;
	CUdeviceptr memory = 0;

	TELL("cuMemPoolCreate", cuMemPoolCreate(&pool, &properties));
	TELL("cuMemAllocFromPoolAsync, 64 MiB, which the pool has not",
	     cuMemAllocFromPoolAsync(&memory, 64 * MIB, pool, other_stream));
	TELL("cuMemFreeAsync", cuMemFreeAsync(memory, other_stream));
	TELL("cuStreamSynchronize, of that stream", cuStreamSynchronize(other_stream));
	TELL("cuMemPoolTrimTo", cuMemPoolTrimTo(pool, 0));
	TELL("cuMemPoolDestroy", cuMemPoolDestroy(pool));
}

static void tell_objects(void)
{
	unsigned int ms = 0;
	void *arguments[] = {&ms};
	CUDA_ARRAY_DESCRIPTOR description = {
		.Width = 1024, .Height = 1024, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
	CUDA_KERNEL_NODE_PARAMS kernel = {.func = busy,
					  .gridDimX = 1,
					  .gridDimY = 1,
					  .gridDimZ = 1,
					  .blockDimX = 1,
					  .blockDimY = 1,
					  .blockDimZ = 1,
					  .kernelParams = arguments};
	CUgraphExec exec = NULL;
	CUgraphNode node;
	CUgraph graph;
	CUstream stream = NULL;
	CUevent event = NULL;
	CUarray array = NULL;

	TELL("cuStreamCreate", cuStreamCreate(&stream, 0));
	TELL("cuStreamDestroy", cuStreamDestroy(stream));
	TELL("cuEventCreate", cuEventCreate(&event, 0));
	TELL("cuEventDestroy", cuEventDestroy(event));
	TELL("cuArrayCreate", cuArrayCreate(&array, &description));
	TELL("cuArrayDestroy", cuArrayDestroy(array));
	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphAddKernelNode(&node, graph, NULL, 0, &kernel));
	TELL("cuGraphInstantiate", cuGraphInstantiate(&exec, graph, 0));
	TELL("cuGraphUpload", cuGraphUpload(exec, other_stream));
	TELL("cuGraphLaunch", cuGraphLaunch(exec, other_stream));
	TELL("cuGraphExecDestroy", cuGraphExecDestroy(exec));
}

static void tell_device(CUdevice device)
{
	CUcontext context, here = NULL;
	size_t free_bytes, all;

	TELL("cuCtxSetLimit, the stack", cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192));
	TELL("cuCtxSetLimit, malloc's heap", cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 * MIB));
	TELL("cuMemGetInfo", cuMemGetInfo(&free_bytes, &all));
	NEED(cuCtxGetCurrent(&here));
	NEED(cuCtxSynchronize());
	NEED(cuCtxCreate(&context, NULL, 0, device));
	NEED(cuCtxSetCurrent(here));
	TELL("cuCtxDestroy, of another context", cuCtxDestroy(context));
}

/* Makes the device's context current, with the kernel that keeps it busy. */
static void prepare(CUdevice device)
{
	CUcontext context;
	CUmodule module;

	NEED(cuDevicePrimaryCtxRetain(&context, device));
	NEED(cuCtxSetCurrent(context));
	NEED(cuModuleLoadData(&module, facts_code));
	NEED(cuModuleGetFunction(&busy, module, "busy"));
}

static void tell_waits(CUdevice device)
{
	CUdeviceptr memory;

	NEED(cuStreamCreate(&busy_stream, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&other_stream, CU_STREAM_NON_BLOCKING));
	NEED(cuMemAlloc(&memory, MIB));
	printf("behind a kernel of %u ms in another stream, CUDA_MODULE_LOADING=%s:\n", BUSY_MS,
	       getenv("CUDA_MODULE_LOADING") ?: "");
	tell_modules(memory);
	tell_libraries(device, memory);
	tell_memory();
	tell_mappings();
	tell_pools();
	tell_objects();
	tell_device(device);
	NEED(cuCtxSynchronize());
}

/* ---- copies between two GPUs -------------------------------------------------------------------- */

#define COPIES 10
#define COPY_BYTES (256 * MIB)

struct side {
	CUcontext context;
	CUdeviceptr memory;
};

static CUresult copy_peer(const struct side *to, const struct side *from, CUstream stream)
{
	return cuMemcpyPeerAsync(to->memory, to->context, from->memory, from->context, COPY_BYTES,
				 stream);
}

static CUresult copy_unified(const struct side *to, const struct side *from, CUstream stream)
{
	return cuMemcpyAsync(to->memory, from->memory, COPY_BYTES, stream);
}

static void time_copies(const char *access, const char *name,
			CUresult (*copy)(const struct side *, const struct side *, CUstream),
			const struct side *to, const struct side *from)
{
	double begun, inside_ms = 0, all_ms;
	CUstream stream;
	int i;

	NEED(cuCtxSetCurrent(from->context));
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	NEED(copy(to, from, stream)); /* the first one prepares */
	NEED(cuStreamSynchronize(stream));
	all_ms = now_ms();
	for (i = 0; i < COPIES; i++) {
		begun = now_ms();
		NEED(copy(to, from, stream));
		inside_ms += now_ms() - begun;
	}
	NEED(cuStreamSynchronize(stream));
	all_ms = now_ms() - all_ms;
	printf("%-20s %-18s %7.1f GB/s, %8.1f us in a call\n", access, name,
	       COPIES * (double)COPY_BYTES / all_ms * 1e-6, inside_ms / COPIES * 1e3);
	NEED(cuStreamDestroy(stream));
}

/* Copies from the first to the second. */
static void time_ways(const char *access, const struct side sides[2])
{
	time_copies(access, "cuMemcpyPeerAsync", copy_peer, &sides[1], &sides[0]);
	time_copies(access, "cuMemcpyAsync", copy_unified, &sides[1], &sides[0]);
}

static void enable(const struct side *reaches, const struct side *reached)
{
	NEED(cuCtxSetCurrent(reaches->context));
	NEED(cuCtxEnablePeerAccess(reached->context, 0));
}

static void disable(const struct side *reaches, const struct side *reached)
{
	NEED(cuCtxSetCurrent(reaches->context));
	NEED(cuCtxDisablePeerAccess(reached->context));
}

/* Without access: does the call wait for what its stream has to do before? */
static void tell_behind(const struct side sides[2])
{
	unsigned int ms = BUSY_MS;
	void *arguments[] = {&ms};
	CUfunction kernel;
	CUmodule module;
	CUstream stream;
	size_t bytes;
	double begun;

	NEED(cuCtxSetCurrent(sides[0].context));
	NEED(cuModuleLoadData(&module, facts_code));
	NEED(cuModuleGetFunction(&kernel, module, "busy"));
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (bytes = MIB; bytes <= COPY_BYTES; bytes *= 4) {
		NEED(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
		begun = now_ms();
		NEED(cuMemcpyPeerAsync(sides[1].memory, sides[1].context, sides[0].memory,
				       sides[0].context, bytes, stream));
		printf("%-20s %4zu MiB behind a kernel of %u ms in the stream: %9.3f ms in the "
		       "call\n",
		       "no access", bytes / MIB, BUSY_MS, now_ms() - begun);
		NEED(cuStreamSynchronize(stream));
	}
}

static void tell_peers(void)
{
	struct side sides[2];
	int i, can = 0;

	for (i = 0; i < 2; i++) {
		NEED(cuDevicePrimaryCtxRetain(&sides[i].context, i));
		NEED(cuCtxSetCurrent(sides[i].context));
		NEED(cuMemAlloc(&sides[i].memory, COPY_BYTES));
	}
	printf("copies of %zu MiB from GPU 0 to GPU 1:\n", COPY_BYTES / MIB);
	time_ways("no access", sides);
	tell_behind(sides);
	NEED(cuDeviceCanAccessPeer(&can, 0, 1));
	if (!can) {
		printf("the two cannot reach each other\n");
		return;
	}
	enable(&sides[0], &sides[1]);
	time_ways("GPU 0 reaches GPU 1", sides);
	disable(&sides[0], &sides[1]);
	enable(&sides[1], &sides[0]);
	time_ways("GPU 1 reaches GPU 0", sides);
	enable(&sides[0], &sides[1]);
	time_ways("both", sides);
}

int main(int argc, char **argv)
{
	bool waits = argc < 2, getters = argc < 2, captures = argc < 2, peers = argc < 2;
	int i, gpus = 0;

	for (i = 1; i < argc; i++) {
		waits |= !strcmp(argv[i], "waits");
		getters |= !strcmp(argv[i], "getters");
		captures |= !strcmp(argv[i], "captures");
		peers |= !strcmp(argv[i], "peers");
	}
	if (!waits && !getters && !captures && !peers) {
		fprintf(stderr, "usage: facts [waits] [getters] [captures] [peers]\n");
		return 2;
	}
	NEED(cuInit(0));
	NEED(cuDeviceGetCount(&gpus));
	if (waits || getters)
		prepare(0);
	if (waits)
		tell_waits(0);
	if (getters)
		tell_getters(busy);
	if (captures) {
		CUcontext context;

		NEED(cuDevicePrimaryCtxRetain(&context, 0));
		NEED(cuCtxSetCurrent(context));
		tell_captures();
	}
	if (peers && gpus > 1)
		tell_peers();
	else if (peers)
		printf("copies between GPUs: there is one GPU\n");
	return 0;
}
