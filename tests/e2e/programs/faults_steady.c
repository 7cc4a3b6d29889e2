/*
 * tests/e2e/programs/faults_steady.c: what is made again and again and could be kept: memory, streams, events, graphs,
 * contexts, mappings. Habits of faults (faults.c), for test_findings.sh.
 */
#include <string.h>
#include "faults.h"

static void prepare_malloc(struct worker *w)
{
	OK(cudaMalloc(&w->places[0], 64 * KB));
	OK(cudaFree(w->places[0]));
	if (w->clean)
		OK(cudaMalloc(&w->places[0], 64 * KB));
}

static void steady_malloc(struct worker *w)
{
	for (unsigned int i = rounds(w, 24); i; i--) {
		if (!w->clean)
			OK(cudaMalloc(&w->places[0], size(w, 64 * KB)));
		OK(cudaMemsetAsync(w->places[0], 0, 16 * KB, w->stream));
		work(w, 2000);
		finish(w);
		if (!w->clean)
			OK(cudaFree(w->places[0]));
	}
}

/* The free is within the work: what it waits for is part of this habit. */
static void steady_malloc_busy(struct worker *w)
{
	for (unsigned int i = rounds(w, 24); i; i--) {
		if (!w->clean)
			OK(cudaMalloc(&w->places[0], size(w, 64 * KB)));
		OK(cudaMemsetAsync(w->places[0], 0, 16 * KB, w->stream));
		work(w, 2000);
		if (!w->clean)
			OK(cudaFree(w->places[0]));
		finish(w);
	}
}

static void prepare_malloc_host(struct worker *w)
{
	OK(cudaMallocHost(&w->places[0], 64 * KB));
	OK(cudaFreeHost(w->places[0]));
	if (w->clean)
		OK(cudaMallocHost(&w->places[0], 64 * KB));
}

static void steady_malloc_host(struct worker *w)
{
	for (unsigned int i = rounds(w, 24); i; i--) {
		if (!w->clean)
			OK(cudaMallocHost(&w->places[0], size(w, 64 * KB)));
		memset(w->places[0], 0, 16 * KB);
		work(w, 2000);
		finish(w);
		if (!w->clean)
			OK(cudaFreeHost(w->places[0]));
	}
}

static void prepare_managed(struct worker *w)
{
	OK(cudaMallocManaged(&w->places[0], 64 * KB, 1));
	OK(cudaFree(w->places[0]));
	if (w->clean)
		OK(cudaMallocManaged(&w->places[0], 64 * KB, 1));
}

static void steady_managed(struct worker *w)
{
	for (unsigned int i = rounds(w, 24); i; i--) {
		if (!w->clean)
			OK(cudaMallocManaged(&w->places[0], size(w, 64 * KB), 1));
		OK(cudaMemsetAsync(w->places[0], 0, 16 * KB, w->stream));
		work(w, 2000);
		finish(w);
		if (!w->clean)
			OK(cudaFree(w->places[0]));
	}
}

static void prepare_stream(struct worker *w)
{
	OK(cudaStreamCreateWithFlags(&w->places[0], 1));
	OK(cudaStreamDestroy(w->places[0]));
	if (w->clean)
		OK(cudaStreamCreateWithFlags(&w->places[0], 1));
}

static void steady_stream(struct worker *w)
{
	for (unsigned int i = rounds(w, 32); i; i--) {
		if (!w->clean)
			OK(cudaStreamCreateWithFlags(&w->places[0], 1));
		for (int j = 0; j < 4; j++)
			launch(&stub_delay, 500, w->places[0]);
		OK(cudaStreamSynchronize(w->places[0]));
		if (!w->clean)
			OK(cudaStreamDestroy(w->places[0]));
	}
}

/* What a GPU can reach is said again in each round. */
static const int reach[] = {1, 0, 3}; /* location: a device, its number; to read and write */

static void prepare_mapping(struct worker *w)
{
	OK(cuMemSetAccess((uint64_t)w->gpu, BUFFER_BYTES, reach, 1));
}

static void steady_mapping(struct worker *w)
{
	for (unsigned int i = rounds(w, 32); i; i--) {
		if (!w->clean)
			OK(cuMemSetAccess((uint64_t)w->gpu, BUFFER_BYTES, reach, 1));
		for (int j = 0; j < 4; j++)
			launch(&stub_delay, 500, w->stream);
		finish(w);
	}
}

static void prepare_context(struct worker *w)
{
	OK(cuCtxCreate_v4(&w->places[0], NULL, 0, w->device));
	OK(cuCtxDestroy_v2(w->places[0]));
}

static void steady_context(struct worker *w)
{
	for (unsigned int i = rounds(w, 16); i; i--) {
		if (!w->clean) {
			OK(cuCtxCreate_v4(&w->places[0], NULL, 0, w->device));
			OK(cuCtxDestroy_v2(w->places[0]));
		}
		for (int j = 0; j < 8; j++)
			launch(&stub_delay, 250, w->stream);
		finish(w);
	}
}

static void prepare_event(struct worker *w)
{
	OK(cudaEventCreate(&w->places[0]));
	OK(cudaEventDestroy(w->places[0]));
	if (w->clean)
		OK(cudaEventCreate(&w->places[0]));
}

static void steady_event(struct worker *w)
{
	for (unsigned int i = rounds(w, 24); i; i--) {
		if (!w->clean)
			OK(cudaEventCreate(&w->places[0]));
		work(w, 2000);
		OK(cudaEventRecord(w->places[0], w->stream));
		finish(w);
		if (!w->clean)
			OK(cudaEventDestroy(w->places[0]));
	}
}

INLINE void make_graph(struct worker *w)
{
	void *graph;

	OK(cudaStreamBeginCapture(w->stream, 2));
	for (int i = 0; i < 8; i++)
		launch(&stub_delay, 200, w->stream);
	OK(cudaStreamEndCapture(w->stream, &graph));
	OK(cudaGraphInstantiate(&w->places[0], graph, 0));
	OK(cudaGraphDestroy(graph));
}

static void prepare_graph(struct worker *w)
{
	make_graph(w);
	if (!w->clean)
		OK(cudaGraphExecDestroy(w->places[0]));
}

static void steady_graph(struct worker *w)
{
	for (unsigned int i = rounds(w, 24); i; i--) {
		if (!w->clean)
			make_graph(w);
		OK(cudaGraphLaunch(w->places[0], w->stream));
		work(w, 500);
		finish(w);
		if (!w->clean)
			OK(cudaGraphExecDestroy(w->places[0]));
	}
}

#define STEADY "steady-state"

/* clang-format off */
const struct habit steady_habits[] = {
	{"steady-malloc", STEADY, "time", "cudaMalloc|cudaFree", "",
		"cost cuMemAlloc_v2 500\ncost cuMemFree_v2 500\n", 1, 1, prepare_malloc, steady_malloc},
	{"steady-malloc-busy", STEADY, "time", "cudaMalloc", "hidden-sync",
		"cost cuMemAlloc_v2 500\n", 1, 1, prepare_malloc, steady_malloc_busy},
	{"steady-malloc-host", STEADY, "time", "cudaMallocHost", "", "cost cuMemHostAlloc 500\n", 1, 1, prepare_malloc_host, steady_malloc_host},
	{"steady-managed", STEADY, "time", "cudaMallocManaged|cudaFree", "",
		"cost cuMemAllocManaged 500\ncost cuMemFree_v2 500\n", 1, 1, prepare_managed, steady_managed},
	{"steady-stream", STEADY, "time", "cudaStreamCreateWithFlags|cudaStreamDestroy", "",
		"cost cuStreamCreate 500\ncost cuStreamDestroy_v2 500\n", 1, 1, prepare_stream, steady_stream},
	{"steady-mapping", STEADY, "time", "cuMemSetAccess", "", "cost cuMemSetAccess 500\n", 1, 1, prepare_mapping, steady_mapping},
	{"steady-context", STEADY, "time", "cuCtxCreate_v4|cuCtxDestroy_v2", "",
		"cost cuCtxCreate_v4 3000\ncost cuCtxDestroy_v2 2000\n", 1, 1, prepare_context, steady_context},
	{"steady-event", STEADY, "time", "cudaEventCreate", "", "ioctl cuEventCreate 500\n", 1, 1, prepare_event, steady_event},
	{"steady-graph", STEADY, "time", "cudaGraphInstantiate", "", "cost cuGraphInstantiateWithFlags 500\n", 1, 1, prepare_graph, steady_graph},
	{.name = NULL},
};
/* clang-format on */
