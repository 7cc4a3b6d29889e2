/*
 * tests/gpu/facts_captures.c: what breaks the capture of a stream: which calls return an error while one is going
 * on, by its mode, its stream and the thread that makes them. After an error the capture's end says that it is
 * invalid; after none it is whole, which is checked.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "facts.h"

#define BYTES 4096

static CUstream capturing, other;
static CUevent event;
static CUdeviceptr memory, freed;
static void *pageable, *pinned;

/* ---- the calls ---------------------------------------------------------------------------------- */

static CUresult allocates(void)
{
	CUdeviceptr p;
	CUresult result = cuMemAlloc(&p, BYTES);

	if (!result)
		cuMemFree(p);
	return result;
}

static CUresult frees(void)
{
	return cuMemFree(freed);
}

static CUresult pins(void)
{
	void *p;
	CUresult result = cuMemAllocHost(&p, BYTES);

	if (!result)
		cuMemFreeHost(p);
	return result;
}

static CUresult registers(void)
{
	CUresult result = cuMemHostRegister(pageable, BYTES, 0);

	if (!result)
		cuMemHostUnregister(pageable);
	return result;
}

static CUresult copies(void)
{
	return cuMemcpyHtoD(memory, pinned, 4);
}

static CUresult sets(void)
{
	return cuMemsetD8(memory, 0, 4);
}

static CUresult waits_for_all(void)
{
	return cuCtxSynchronize();
}

static CUresult waits_for_stream(void)
{
	return cuStreamSynchronize(capturing);
}

static CUresult asks_stream(void)
{
	return cuStreamQuery(capturing);
}

static CUresult waits_for_other(void)
{
	return cuStreamSynchronize(other);
}

static CUresult waits_for_event(void)
{
	return cuEventSynchronize(event);
}

static CUresult allocates_in_other(void)
{
	CUdeviceptr p;
	CUresult result = cuMemAllocAsync(&p, BYTES, other);

	if (!result)
		cuMemFreeAsync(p, other);
	return result;
}

static CUresult copies_in_other(void)
{
	return cuMemcpyHtoDAsync(memory, pinned, 4, other);
}

static CUresult limits(void)
{
	size_t stack;
	CUresult result = cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE);

	return result ? result : cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack + 256);
}

static CUresult creates(void)
{
	CUstream made;
	CUresult result = cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);

	if (!result)
		cuStreamDestroy(made);
	return result;
}

static const struct {
	const char *name;
	CUresult (*call)(void);
} calls[] = {
	{"cuMemAlloc", allocates},
	{"cuMemFree", frees},
	{"cuMemAllocHost", pins},
	{"cuMemHostRegister", registers},
	{"cuMemcpyHtoD, legacy stream", copies},
	{"cuMemsetD8, legacy stream", sets},
	{"cuCtxSynchronize", waits_for_all},
	{"cuStreamSynchronize", waits_for_stream},
	{"cuStreamQuery", asks_stream},
	{"cuStreamSynchronize, another", waits_for_other},
	{"cuEventSynchronize", waits_for_event},
	{"cuMemAllocAsync, another", allocates_in_other},
	{"cuMemcpyHtoDAsync, another", copies_in_other},
	{"cuCtxSetLimit", limits},
	{"cuStreamCreate", creates},
};

/* ---- in a capture -------------------------------------------------------------------------------- */

static const struct situation {
	const char *name;
	CUstreamCaptureMode mode;
	unsigned flags; /* of the stream */
	int elsewhere; /* by another thread */
} situations[] = {
	{"global", CU_STREAM_CAPTURE_MODE_GLOBAL, 0, 0},
	{"by another", CU_STREAM_CAPTURE_MODE_GLOBAL, 0, 1},
	{"thread-local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 0, 0},
	{"by another", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 0, 1},
	{"relaxed", CU_STREAM_CAPTURE_MODE_RELAXED, 0, 0},
	{"by another", CU_STREAM_CAPTURE_MODE_RELAXED, 0, 1},
	{"non-blocking", CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_NON_BLOCKING, 0},
};

struct attempt {
	CUcontext context;
	CUresult (*call)(void);
	CUresult result;
};

static void *attempt(void *argument)
{
	struct attempt *a = argument;

	NEED(cuCtxSetCurrent(a->context));
	a->result = a->call();
	return NULL;
}

/* The call's error; -1: the capture did not end as it should. */
static int try_in(const struct situation *s, CUresult (*call)(void))
{
	struct attempt a = {.call = call};
	CUresult ended;
	pthread_t thread;
	CUgraph graph;

	NEED(cuCtxGetCurrent(&a.context));
	NEED(cuMemAlloc(&freed, BYTES));
	NEED(cuStreamCreate(&capturing, s->flags));
	NEED(cuStreamBeginCapture(capturing, s->mode));
	NEED(cuMemsetD8Async(memory, 0, 4, capturing));
	if (!s->elsewhere)
		attempt(&a);
	else if (!pthread_create(&thread, NULL, attempt, &a))
		pthread_join(thread, NULL);
	ended = cuStreamEndCapture(capturing, &graph);
	if (!ended)
		cuGraphDestroy(graph);
	cuStreamDestroy(capturing);
	if (call != frees || a.result)
		cuMemFree(freed);
	return ended == (a.result ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS)
		       ? (int)a.result
		       : -1;
}

void tell_captures(void)
{
	size_t i, k;

	NEED(cuMemAlloc(&memory, BYTES));
	NEED(cuMemAllocHost(&pinned, BYTES));
	pageable = aligned_alloc(BYTES, BYTES);
	NEED(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&event, 0));
	NEED(cuEventRecord(event, other));
	NEED(cuCtxSynchronize());
	printf("what a call returns while a stream captures\n%-30s", "call");
	for (k = 0; k < sizeof(situations) / sizeof(situations[0]); k++)
		printf(" %12s", situations[k].name);
	puts("");
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		printf("%-30s", calls[i].name);
		for (k = 0; k < sizeof(situations) / sizeof(situations[0]); k++)
			printf(" %12d", try_in(&situations[k], calls[i].call));
		puts("");
	}
}
