/*
 * tests/gpu/facts_getters.c: which of the calls that only look something up take a lock of the C library's on
 * the way, whether another thread takes the same ones, and how long they take. Those that take none cannot wait for
 * anybody; those that take one to read only where somebody takes it to write, which this does not show.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include "facts.h"

#define ROUNDS 1000

/* ---- what the driver and the runtime call ------------------------------------------------------ */

static __thread unsigned long locks;
static __thread void *last_lock;
static __thread const char *last_way;

/* Exported from the program, so that the libraries' references find these first. */
#define COUNT(name, type) \
	int name(type *lock) \
	{ \
		static int (*real)(type *); \
\
		if (!real) \
			real = (int (*)(type *))dlsym(RTLD_NEXT, #name); \
		locks++; \
		last_lock = (void *)(uintptr_t)lock; \
		last_way = #name; \
		return real(lock); \
	}

COUNT(pthread_mutex_lock, pthread_mutex_t)
COUNT(pthread_mutex_trylock, pthread_mutex_t)
COUNT(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNT(pthread_rwlock_tryrdlock, pthread_rwlock_t)
COUNT(pthread_rwlock_wrlock, pthread_rwlock_t)
COUNT(pthread_rwlock_trywrlock, pthread_rwlock_t)
COUNT(pthread_spin_lock, pthread_spinlock_t)

/* ---- the calls ---------------------------------------------------------------------------------- */

static struct row {
	const char *call;
	double locks, ns;
	void *lock[2]; /* the last one, by thread */
	const char *way; /* how it was taken: the C library's function */
	int result;
} rows[64];
static int row_cnt; /* of those the thread that is at work has done */
static int at_work; /* 0, 1: the threads, one after the other */

/* The second of two rounds counts: the first one prepares. */
#define TELL(text) \
	do { \
		struct row *row = &rows[row_cnt++]; \
		double begun = 0; \
		int round, i; \
\
		row->call = #text; \
		for (round = 0; round < 2; round++) { \
			locks = 0; \
			last_lock = NULL; \
			begun = now_ms(); \
			for (i = 0; i < ROUNDS; i++) \
				row->result = (int)(text); \
		} \
		row->ns = (now_ms() - begun) * 1e6 / ROUNDS; \
		row->locks = (double)locks / ROUNDS; \
		row->lock[at_work] = last_lock; \
		row->way = last_lock ? last_way : ""; \
	} while (0)

/* A function of the runtime, which this program is not linked to. */
#define RUNTIME(name) __typeof__(&name) rt_##name = (__typeof__(&name))dlsym(runtime, #name)

static void tell_runtime(void *runtime, CUstream stream, CUevent event, CUdeviceptr memory)
{
	struct cudaPointerAttributes about;
	enum cudaStreamCaptureStatus status;
	int value;
	RUNTIME(cudaGetDevice);
	RUNTIME(cudaGetDeviceCount);
	RUNTIME(cudaGetLastError);
	RUNTIME(cudaPeekAtLastError);
	RUNTIME(cudaRuntimeGetVersion);
	RUNTIME(cudaDriverGetVersion);
	RUNTIME(cudaDeviceGetAttribute);
	RUNTIME(cudaDeviceCanAccessPeer);
	RUNTIME(cudaStreamIsCapturing);
	RUNTIME(cudaStreamGetPriority);
	RUNTIME(cudaStreamQuery);
	RUNTIME(cudaEventQuery);
	RUNTIME(cudaPointerGetAttributes);

	TELL(rt_cudaGetDevice(&value));
	TELL(rt_cudaGetDeviceCount(&value));
	TELL(rt_cudaGetLastError());
	TELL(rt_cudaPeekAtLastError());
	TELL(rt_cudaRuntimeGetVersion(&value));
	TELL(rt_cudaDriverGetVersion(&value));
	TELL(rt_cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
	TELL(rt_cudaDeviceCanAccessPeer(&value, 0, 1));
	TELL(rt_cudaStreamIsCapturing(stream, &status));
	TELL(rt_cudaStreamGetPriority(stream, &value));
	TELL(rt_cudaStreamQuery(stream));
	TELL(rt_cudaEventQuery(event));
	TELL(rt_cudaPointerGetAttributes(&about, (void *)memory));
}

static void tell_driver(CUfunction kernel, CUstream stream, CUevent event, CUdeviceptr memory)
{
	CUstreamCaptureStatus status;
	CUcontext context;
	CUdevice device;
	unsigned int flags;
	const char *text;
	int value;

	TELL(cuCtxGetCurrent(&context));
	TELL(cuCtxGetDevice(&device));
	TELL(cuCtxGetFlags(&flags));
	TELL(cuDevicePrimaryCtxGetState(0, &flags, &value));
	TELL(cuDeviceGet(&device, 0));
	TELL(cuDeviceGetCount(&value));
	TELL(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	TELL(cuDriverGetVersion(&value));
	TELL(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text));
	TELL(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
	TELL(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel));
	TELL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&value, kernel, 128, 0, 0));
	TELL(cuStreamIsCapturing(stream, &status));
	TELL(cuStreamGetPriority(stream, &value));
	TELL(cuStreamGetCtx(stream, &context));
	TELL(cuStreamQuery(stream));
	TELL(cuEventQuery(event));
	TELL(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory));
}

static struct {
	CUcontext context;
	CUfunction kernel;
	void *runtime; /* NULL: none found */
} with;

static void *tell_all(void *unused)
{
	CUdeviceptr memory;
	CUstream stream;
	CUevent event;

	(void)unused;
	NEED(cuCtxSetCurrent(with.context));
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	NEED(cuMemAlloc(&memory, 1 << 20));
	row_cnt = 0;
	tell_driver(with.kernel, stream, event, memory);
	if (with.runtime)
		tell_runtime(with.runtime, stream, event, memory);
	NEED(cuMemFree(memory));
	NEED(cuEventDestroy(event));
	NEED(cuStreamDestroy(stream));
	return NULL;
}

static const char *whose(const struct row *row)
{
	if (!row->lock[0] && !row->lock[1])
		return "";
	return row->lock[0] == row->lock[1] ? "shared, " : "its own, ";
}

void tell_getters(CUfunction kernel)
{
	pthread_t other;
	int i;

	with.kernel = kernel;
	with.runtime = dlopen("libcudart.so.13", RTLD_NOW);
	NEED(cuCtxGetCurrent(&with.context));
	tell_all(NULL);
	at_work = 1;
	if (pthread_create(&other, NULL, tell_all, NULL) == 0)
		pthread_join(other, NULL);
	printf("what a look-up takes of locks and time, the mean of %d:\n", ROUNDS);
	for (i = 0; i < row_cnt; i++)
		printf("%4.1f locks %-9s%-22s %8.1f ns  %s%s\n", rows[i].locks, whose(&rows[i]),
		       rows[i].way, rows[i].ns, rows[i].call, rows[i].result ? ": fails" : "");
	if (!with.runtime)
		printf("the runtime's: %s\n", dlerror());
}
