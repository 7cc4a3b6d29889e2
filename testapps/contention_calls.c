/*
 * testapps/contention_calls.c: the calls of contention.c that launch, load code, make things and wait,
 * and how to see that they did what they promise. Called by the worker's own thread.
 */
#include "common.h"
#include "contention.h"
#include "../kernels/kernels.h"

/* kernels/add.cu once more, as a fatbin to load and unload; the build makes it. */
extern const unsigned char small_library[];

/* What the host calls the kernel of kernels/add.cu. */
void add(int *values, unsigned count, int term);

/* ---- launches ------------------------------------------------------------------------------- */

static void launch_one(struct subject *s)
{
	CUDA_CHECK(launch_add(s->counter, 1, 1, s->stream));
	s->launched++;
}

static bool counter_right(struct subject *s)
{
	s->pinned[0] = -1;
	CUDA_CHECK(cudaMemcpyAsync(s->pinned, s->counter, sizeof(int), cudaMemcpyDeviceToHost,
				   s->stream));
	CUDA_CHECK(cudaStreamSynchronize(s->stream));
	return s->pinned[0] == s->launched;
}

static void capture(struct subject *s, cudaGraph_t *graph, cudaGraphExec_t *executable)
{
	int i;

	CUDA_CHECK(cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeThreadLocal));
	for (i = 0; i < 10; i++)
		CUDA_CHECK(launch_add(s->counter, 1, 1, s->stream));
	CUDA_CHECK(cudaStreamEndCapture(s->stream, graph));
	CUDA_CHECK(cudaGraphInstantiate(executable, *graph, 0));
}

static void graph_destroy(cudaGraph_t graph, cudaGraphExec_t executable)
{
	CUDA_CHECK(cudaGraphExecDestroy(executable));
	CUDA_CHECK(cudaGraphDestroy(graph));
}

static void graph_once(struct subject *s)
{
	cudaGraphExec_t executable;
	cudaGraph_t graph;

	capture(s, &graph, &executable);
	graph_destroy(graph, executable);
}

static bool graph_right(struct subject *s)
{
	cudaGraphExec_t executable;
	cudaGraph_t graph;

	capture(s, &graph, &executable);
	CUDA_CHECK(cudaGraphLaunch(executable, s->stream));
	s->launched += 10;
	CUDA_CHECK(cudaStreamSynchronize(s->stream));
	graph_destroy(graph, executable);
	return counter_right(s);
}

static void library_once(struct subject *s)
{
	cudaLibrary_t library;

	(void)s;
	CUDA_CHECK(cudaLibraryLoadData(&library, small_library, NULL, NULL, 0, NULL, NULL, 0));
	CUDA_CHECK(cudaLibraryUnload(library));
}

/* The stream is empty when the library goes: so this is the load, not somebody's kernel. */
static void first_launch_once(struct subject *s)
{
	unsigned count = 1;
	int term = 1;
	void *args[] = {&s->counter, &count, &term};
	struct dim3 one = {1, 1, 1};
	cudaLibrary_t library;
	cudaKernel_t kernel;

	CUDA_CHECK(cudaLibraryLoadData(&library, small_library, NULL, NULL, 0, NULL, NULL, 0));
	CUDA_CHECK(cudaLibraryGetKernel(&kernel, library, "add"));
	CUDA_CHECK(cudaLaunchKernel((const void *)kernel, one, one, args, 0, s->stream));
	s->launched++;
	CUDA_CHECK(cudaStreamSynchronize(s->stream));
	CUDA_CHECK(cudaLibraryUnload(library));
}

static bool first_launch_right(struct subject *s)
{
	first_launch_once(s);
	return counter_right(s);
}

static void function_set(struct subject *s)
{
	(void)s;
	CUDA_CHECK(cudaFuncSetAttribute((const void *)add,
					cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
}

static bool function_right(struct subject *s)
{
	struct cudaFuncAttributes attributes;

	function_set(s);
	CUDA_CHECK(cudaFuncGetAttributes(&attributes, (const void *)add));
	return attributes.maxDynamicSharedSizeBytes == 1024;
}

/* ---- streams, events, waiting --------------------------------------------------------------- */

static void stream(struct subject *s)
{
	cudaStream_t own;

	(void)s;
	CUDA_CHECK(cudaStreamCreate(&own));
	CUDA_CHECK(cudaStreamDestroy(own));
}

static bool stream_right(struct subject *s)
{
	cudaStream_t own;

	CUDA_CHECK(cudaStreamCreate(&own));
	if (!own)
		return false;
	CUDA_CHECK(launch_add(s->counter, 1, 1, own));
	s->launched++;
	CUDA_CHECK(cudaStreamSynchronize(own));
	CUDA_CHECK(cudaStreamDestroy(own));
	return counter_right(s);
}

static void event(struct subject *s)
{
	cudaEvent_t own;

	(void)s;
	CUDA_CHECK(cudaEventCreate(&own));
	CUDA_CHECK(cudaEventDestroy(own));
}

static void event_record(struct subject *s)
{
	cudaEvent_t own;

	CUDA_CHECK(cudaEventCreate(&own));
	CUDA_CHECK(cudaEventRecord(own, s->stream));
	CUDA_CHECK(cudaEventDestroy(own));
}

/* It comes after the launch. */
static bool event_right(struct subject *s)
{
	cudaEvent_t own;
	bool right;

	launch_one(s);
	CUDA_CHECK(cudaEventCreate(&own));
	if (!own)
		return false;
	CUDA_CHECK(cudaEventRecord(own, s->stream));
	CUDA_CHECK(cudaEventSynchronize(own));
	right = cudaEventQuery(own) == cudaSuccess && counter_right(s);
	CUDA_CHECK(cudaEventDestroy(own));
	return right;
}

static void device_sync(struct subject *s)
{
	(void)s;
	CUDA_CHECK(cudaDeviceSynchronize());
}

static void stream_sync(struct subject *s)
{
	CUDA_CHECK(cudaStreamSynchronize(s->stream));
}

static bool device_sync_right(struct subject *s)
{
	launch_one(s);
	device_sync(s);
	return cudaStreamQuery(s->stream) == cudaSuccess && counter_right(s);
}

static bool stream_sync_right(struct subject *s)
{
	launch_one(s);
	stream_sync(s);
	return cudaStreamQuery(s->stream) == cudaSuccess && counter_right(s);
}

/* clang-format off */
const struct call calls_without_memory[] = {
	{"launch", "a kernel launch", launch_one, counter_right, 3000, 64, NULL, NULL},
	{"graph", "capture of 10 launches, instantiate, destroy", graph_once, graph_right, 300, 0, NULL, NULL},
	{"library", "cudaLibraryLoadData, cudaLibraryUnload", library_once, first_launch_right, 1000, 0, NULL, NULL},
	{"first-launch", "the same with a launch and its end between them",
		first_launch_once, first_launch_right, 500, 0, NULL, NULL},
	{"func-set", "cudaFuncSetAttribute", function_set, function_right, 4000, 0, NULL, NULL},
	{"stream", "cudaStreamCreate, cudaStreamDestroy", stream, stream_right, 2000, 0, NULL, NULL},
	{"event", "cudaEventCreate, cudaEventDestroy", event, event_right, 4000, 0, NULL, NULL},
	{"event-record", "the same with cudaEventRecord between them", event_record, event_right, 3000, 64, NULL, NULL},
	{"sync", "cudaDeviceSynchronize, idle", device_sync, device_sync_right, 4000, 0, NULL, NULL},
	{"stream-sync", "cudaStreamSynchronize, idle", stream_sync, stream_sync_right, 4000, 0, NULL, NULL},
	{0},
};
/* clang-format on */
