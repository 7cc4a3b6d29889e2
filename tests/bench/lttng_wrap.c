/*
 * tests/bench/lttng_wrap.c: a peer for the simulator: the calls that bench_calls times, wrapped by
 * hand with an LTTng-UST tracepoint at entry and one at exit. A library to preload under a running
 * LTTng session. It knows only these few calls and sees no driver call made by the runtime, so it
 * does less than cudaspy does: where cudaspy is cheaper all the same, it is cheaper by more.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_provider.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

enum { GET_CURRENT, SET_CURRENT, LAUNCH, COPY };

/* Looked up before main; the calls are made by threads that start later. */
static __typeof__(cuCtxGetCurrent) *real_get;
static __typeof__(cuCtxSetCurrent) *real_set;
static __typeof__(cudaLaunchKernel) *real_launch;
static __typeof__(cudaMemcpyAsync) *real_copy;

__attribute__((constructor)) static void start(void)
{
	real_get = (__typeof__(real_get))dlsym(RTLD_NEXT, "cuCtxGetCurrent");
	real_set = (__typeof__(real_set))dlsym(RTLD_NEXT, "cuCtxSetCurrent");
	real_launch = (__typeof__(real_launch))dlsym(RTLD_NEXT, "cudaLaunchKernel");
	real_copy = (__typeof__(real_copy))dlsym(RTLD_NEXT, "cudaMemcpyAsync");
}

#define WRAP(fn, stream, call) \
	do { \
		__typeof__(call) result_; \
		lttng_ust_tracepoint(cuda_call, enter, fn, (uint64_t)(uintptr_t)(stream)); \
		result_ = (call); \
		lttng_ust_tracepoint(cuda_call, leave, fn, (uint32_t)result_); \
		return result_; \
	} while (0)

CUresult cuCtxGetCurrent(CUcontext *context)
{
	WRAP(GET_CURRENT, 0, real_get(context));
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	WRAP(SET_CURRENT, 0, real_set(context));
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
			     cudaStream_t stream)
{
	WRAP(LAUNCH, stream, real_launch(kernel, grid, block, args, shared, stream));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	WRAP(COPY, stream, real_copy(to, from, bytes, kind, stream));
}
