/*
 * tests/e2e/programs/faults_hidden.c: calls that wait for the GPU although nobody asked, few enough to be no habit of the
 * loop. Habits of faults (faults.c), for test_findings.sh.
 */
#include <stdlib.h>
#include <string.h>
#include "faults.h"

enum { FEW = 4 };

static void prepare_gpu_memory(struct worker *w)
{
	void *first;

	OK(cudaMalloc(&first, 64 * KB));
	for (int i = 0; i < PLACES; i++)
		OK(cudaMalloc(&w->places[i], 64 * KB));
	OK(cudaFree(first));
}

static void hidden_free(struct worker *w)
{
	for (int i = 0; i < FEW; i++) {
		work(w, 8000);
		if (!w->clean)
			OK(cudaFree(w->places[i]));
		finish(w);
	}
	for (int i = w->clean ? 0 : FEW; i < PLACES; i++)
		OK(cudaFree(w->places[i]));
}

static void prepare_arrays(struct worker *w)
{
	void *first;

	make_array(&first, 64 * KB);
	for (int i = 0; i < FEW; i++)
		make_array(&w->places[i], 64 * KB);
	OK(cudaFreeArray(first));
}

static void hidden_free_array(struct worker *w)
{
	for (int i = 0; i < FEW; i++) {
		work(w, 8000);
		if (!w->clean)
			OK(cudaFreeArray(w->places[i]));
		finish(w);
	}
	for (int i = 0; w->clean && i < FEW; i++)
		OK(cudaFreeArray(w->places[i]));
}

static void prepare_host_memory(struct worker *w)
{
	void *first;

	OK(cudaMallocHost(&first, 64 * KB));
	for (int i = 0; i < PLACES; i++)
		OK(cudaMallocHost(&w->places[i], 64 * KB));
	OK(cudaFreeHost(first));
}

static void hidden_free_host(struct worker *w)
{
	for (int i = 0; i < FEW; i++) {
		work(w, 8000);
		if (!w->clean)
			OK(cudaFreeHost(w->places[i]));
		finish(w);
	}
	for (int i = w->clean ? 0 : FEW; i < PLACES; i++)
		OK(cudaFreeHost(w->places[i]));
}

/* Memory of its own: what is registered is not pageable to the thread's other habits. */
static void prepare_registered(struct worker *w)
{
	char *memory = aligned_alloc(4096, (FEW + 1) * 64 * KB);

	if (!memory)
		die("no memory");
	for (int i = FEW; i >= 0; i--) {
		w->places[i] = memory + i * 64 * KB;
		OK(cudaHostRegister(w->places[i], 64 * KB, 0));
	}
	OK(cudaHostUnregister(w->places[FEW]));
}

static void hidden_unregister(struct worker *w)
{
	for (int i = 0; i < FEW; i++) {
		work(w, 8000);
		if (!w->clean)
			OK(cudaHostUnregister(w->places[i]));
		finish(w);
	}
	for (int i = 0; w->clean && i < FEW; i++)
		OK(cudaHostUnregister(w->places[i]));
}

static void hidden_host_to_host(struct worker *w)
{
	for (unsigned int i = rounds(w, 8); i; i--) {
		work(w, 5000);
		if (w->clean)
			memcpy(w->pinned_to, w->pinned, size(w, 64 * KB));
		else
			OK(cudaMemcpyAsync(w->pinned_to, w->pinned, size(w, 64 * KB), H2H,
					   w->stream));
		finish(w);
	}
}

static void prepare_module(struct worker *w)
{
	OK(cuModuleLoadData(&w->places[0], "code"));
	for (int i = 0; i < FEW && w->clean; i++)
		OK(cuModuleLoadData(&w->places[i], "code"));
}

static void hidden_module(struct worker *w)
{
	for (int i = 0; i < FEW; i++) {
		work(w, 8000);
		if (!w->clean)
			OK(cuModuleLoadData(&w->places[i], "code"));
		finish(w);
	}
}

static void prepare_limit(struct worker *w)
{
	OK(cudaDeviceSetLimit(0, 1100));
	OK(cudaDeviceSetLimit(0, w->clean ? 65536 : 1200));
}

static void hidden_limit(struct worker *w)
{
	for (int i = 0; i < FEW; i++) {
		work(w, 8000);
		if (!w->clean)
			OK(cudaDeviceSetLimit(0, (size_t)(2048 << i)));
		finish(w);
	}
}

/* clang-format off */
const struct habit hidden_habits[] = {
	{"hidden-free", "hidden-sync", "gpu", "cudaFree", "", "", 1, 1, prepare_gpu_memory, hidden_free},
	{"hidden-free-array", "hidden-sync", "gpu", "cudaFreeArray", "", "", 1, 1, prepare_arrays, hidden_free_array},
	{"hidden-free-host", "hidden-sync", "gpu", "cudaFreeHost", "", "", 1, 1, prepare_host_memory, hidden_free_host},
	{"hidden-unregister", "hidden-sync", "gpu", "cudaHostUnregister", "", "", 1, 1, prepare_registered, hidden_unregister},
	{"hidden-host-to-host", "hidden-sync", "gpu", "cudaMemcpyAsync", "", "", 1, 1, NULL, hidden_host_to_host},
	{"hidden-module", "hidden-sync", "gpu", "cuModuleLoadData", "", "", 1, 1, prepare_module, hidden_module},
	{"hidden-limit", "hidden-sync", "gpu", "cudaDeviceSetLimit", "", "", 1, 1, prepare_limit, hidden_limit},
	{.name = NULL},
};
/* clang-format on */
