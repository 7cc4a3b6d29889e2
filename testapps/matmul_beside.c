/*
 * testapps/matmul_beside.c: the calls that programs make between their launches and had better not: see
 * matmul_beside.h. beside_once is called by every worker, in its own thread.
 */
#include "matmul_beside.h"
#include "common.h"
#include "list.h"
#include "../kernels/kernels.h"

#include <string.h>

/* cudaFree waits for the GPU, too: a lone worker's as any other's. */
static void beside_malloc(cudaStream_t stream)
{
	void *memory;

	(void)stream;
	CUDA_CHECK(cudaMalloc(&memory, 3 << 20));
	CUDA_CHECK(cudaFree(memory));
}

static void beside_event(cudaStream_t stream)
{
	cudaEvent_t event;

	CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CUDA_CHECK(cudaEventRecord(event, stream));
	CUDA_CHECK(cudaEventDestroy(event));
}

static void beside_pin(cudaStream_t stream)
{
	void *memory;

	(void)stream;
	CUDA_CHECK(cudaMallocHost(&memory, 1 << 20));
	CUDA_CHECK(cudaFreeHost(memory));
}

/* A graph that is made and never launched. */
static void beside_graph(cudaStream_t stream)
{
	cudaGraphExec_t executable;
	cudaGraph_t graph;
	int i;

	CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (i = 0; i < 10; i++)
		CUDA_CHECK(launch_empty(stream));
	CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
	CUDA_CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
	CUDA_CHECK(cudaGraphExecDestroy(executable));
	CUDA_CHECK(cudaGraphDestroy(graph));
}

static const struct {
	const char *name;
	void (*once)(cudaStream_t stream);
} besides[] = {
	{"malloc", beside_malloc},
	{"event", beside_event},
	{"pin", beside_pin},
	{"graph", beside_graph},
};
#define BESIDE_CNT (sizeof(besides) / sizeof(besides[0]))

static unsigned wanted; /* bit i: besides[i] */

void beside_read(const char *list)
{
	char name[LIST_ITEM_MAX];
	size_t i;

	if (!*list)
		usage_error("--beside: an empty list");
	while (list_next(&list, name)) {
		if (!strcmp(name, "none"))
			continue;
		for (i = 0; i < BESIDE_CNT && strcmp(name, besides[i].name); i++)
			;
		if (i == BESIDE_CNT)
			usage_error("--beside %s: must be of none, malloc, event, pin, graph",
				    name);
		wanted |= 1u << i;
	}
}

bool beside_wanted(void)
{
	return wanted;
}

void beside_once(cudaStream_t stream)
{
	size_t i;

	for (i = 0; i < BESIDE_CNT; i++) {
		if (wanted & 1u << i)
			besides[i].once(stream);
	}
}
