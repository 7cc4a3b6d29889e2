/*
 * tests/e2e/faults.c: programs with known faults, on the simulator (tests/sim), for test_findings.sh,
 * which holds what cudaspy finds against what is there.
 *
 *   faults --list                               a line for each: name, detector, truth, calls, also
 *   faults [--clean] --script HABIT...          what to write into SPYSIM_SCRIPT's file
 *   faults [--clean] [--one] [--then-more] [--seed N] [--user ID] HABIT...
 *                                               has them: each in threads and on GPUs of its own, or (--one)
 *                                               one after the other in one thread; and then a short phase in
 *                                               which it hands over far more; as that user
 *
 * A habit is a function of the same name, with _ for -; with --clean it does the same work as it should
 * be done. What others do to a program (scripted locks, costs) stays the same in the clean twin. The seed
 * varies lengths and numbers. Everything is made before the work, one after the other, and a first call
 * of each kind is made there, too: a fault is what the function does, not how the process starts. No habit
 * hands over so much that another one, before or behind it in a thread, is a mere phase (site_tenths). Prints
 * a line for each thread of a habit: name, thread id, begin and end in CLOCK_MONOTONIC ns, and what by its own
 * reckoning the fault cost more than the calls of its truth (less, if negative).
 */
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "sim_program.h"

enum {
	WORKERS_MAX = 8,
	PLACES = 24,
	LAZY_KERNELS = 16,
	RECKONED_MAX = 512,
	BUFFER_BYTES = 8 << 20,
	KB = 1024
};

struct worker;
typedef void run_fn(struct worker *w);

struct habit {
	const char *name, *detector;
	/* What its calls' cost is in truth: gpu, lock, time (but locks), work (time but waits), turns (what they waited
	 * for the GPU or what passed until the thread's next call, whichever is less), own (nothing: all is in the
	 * worker's cost_ns), mps (waits for another user's server, of the process), or -: none is known */
	const char *truth;
	const char *calls; /* of these functions, | between them */
	const char *also; /* detectors that may speak, too: the same seen from another side */
	const char *script;
	int threads, devices; /* thread i works on device i % devices of its own */
	run_fn *prepare, *run;
};

struct worker {
	pthread_t thread;
	const struct habit *habits[WORKERS_MAX]; /* one after the other */
	int habit_cnt, role, device;
	bool clean;
	void *stream, *blocking[2], *event, *gpu, *peer_gpu, *pinned, *pinned_to;
	char *pageable;
	void **places, *all_places[WORKERS_MAX][PLACES]; /* places: those of the habit it is at */
	int64_t *calm_ns, all_calm_ns[WORKERS_MAX]; /* of one cure, measured before */
	int64_t cost_ns; /* of the habit it is at, besides what its calls cost */
	int64_t reckoned_ns[RECKONED_MAX]; /* one by one */
	int reckoned;
	/* drawn from the seed */
	unsigned int rounds_pct, length_pct, size_pct;
};

static pthread_barrier_t ready;
static char stub_delay, stub_lazy[LAZY_KERNELS], symbol[1];

/* ---- what they are made of: inlined, so that the calls are the habit's own ---- */
#define INLINE static inline __attribute__((always_inline))

INLINE unsigned int rounds(const struct worker *w, unsigned int about)
{
	return about * w->rounds_pct / 100;
}

INLINE size_t size(const struct worker *w, size_t about)
{
	return about * w->size_pct / 100 / 64 * 64;
}

INLINE void launch(const void *kernel, int us, void *stream)
{
	struct dim3 one = {1, 1, 1};
	void *args[] = {&us};

	OK(cudaLaunchKernel(kernel, one, one, args, 0, stream));
}

/* Honest work of about so many microseconds: data goes there, a few kernels, data comes back. */
INLINE void work(struct worker *w, unsigned int us)
{
	us = us * w->length_pct / 100;
	OK(cudaMemcpyAsync(w->gpu, w->pinned, size(w, 256 * KB), H2D, w->stream));
	for (int i = 0; i < 4; i++)
		launch(&stub_delay, (int)us / 4, w->stream);
	OK(cudaMemcpyAsync(w->pinned_to, w->gpu, size(w, 256 * KB), D2H, w->stream));
}

INLINE void finish(struct worker *w)
{
	OK(cudaStreamSynchronize(w->stream));
}

/* The least that it takes to hand over such a copy. */
static int64_t calm_copy_ns(struct worker *w, void *to, const void *from, size_t bytes, int kind)
{
	int64_t least_ns = INT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t begin_ns = now_ns();
		int64_t ns;

		OK(cudaMemcpyAsync(to, from, bytes, kind, w->stream));
		ns = (int64_t)(now_ns() - begin_ns);
		least_ns = ns < least_ns ? ns : least_ns;
		OK(cudaStreamSynchronize(w->stream));
	}
	return least_ns;
}

/* What was begun then costs so much more than it does when it is done as it should be. */
INLINE void reckon(struct worker *w, uint64_t begin_ns)
{
	if (w->reckoned == RECKONED_MAX)
		die("too many to reckon");
	w->reckoned_ns[w->reckoned++] = (int64_t)(now_ns() - begin_ns) - *w->calm_ns;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* All of them, as if the machine had interrupted none: so many times the one in the middle. */
static int64_t sum_up(struct worker *w)
{
	if (!w->reckoned)
		return 0;
	qsort(w->reckoned_ns, (size_t)w->reckoned, sizeof(*w->reckoned_ns), by_size);
	return w->reckoned * w->reckoned_ns[w->reckoned / 2];
}

/* ---- copies of pageable memory ---- */
static void pageable_d2h(struct worker *w)
{
	for (unsigned int i = rounds(w, 10); i; i--) {
		work(w, 4000);
		OK(cudaMemcpyAsync(w->clean ? w->pinned : w->pageable, w->gpu, size(w, 256 * KB),
				   D2H, w->stream));
		finish(w);
	}
}

static void pageable_d2h_2d(struct worker *w)
{
	for (unsigned int i = rounds(w, 10); i; i--) {
		work(w, 4000);
		OK(cudaMemcpy2DAsync(w->clean ? w->pinned : w->pageable, 4096, w->gpu, 4096, 2048,
				     size(w, 256 * KB) / 4096, D2H, w->stream));
		finish(w);
	}
}

static void pageable_d2h_driver(struct worker *w)
{
	for (unsigned int i = rounds(w, 10); i; i--) {
		work(w, 4000);
		OK(cuMemcpyDtoHAsync_v2(w->clean ? w->pinned : w->pageable,
					(uint64_t)(uintptr_t)w->gpu, size(w, 256 * KB), w->stream));
		finish(w);
	}
}

static void pageable_d2h_3d(struct worker *w)
{
	struct copy_box box = {.from = w->gpu,
			       .from_pitch = 4096,
			       .from_height = 4,
			       .to = w->clean ? w->pinned : w->pageable,
			       .to_pitch = 4096,
			       .to_height = 4,
			       .width = 2048,
			       .height = 4,
			       .depth = size(w, 256 * KB) / 16384,
			       .kind = D2H};

	for (unsigned int i = rounds(w, 10); i; i--) {
		work(w, 4000);
		OK(cudaMemcpy3DAsync(&box, w->stream));
		finish(w);
	}
}

/* More than may be staged: it waits for the kernels. */
static void pageable_h2d(struct worker *w)
{
	for (unsigned int i = rounds(w, 8); i; i--) {
		work(w, 5000);
		OK(cudaMemcpyAsync(w->gpu, w->clean ? w->pinned : w->pageable, size(w, 4096 * KB),
				   H2D, w->stream));
		finish(w);
	}
}

static void pageable_h2d_driver(struct worker *w)
{
	for (unsigned int i = rounds(w, 8); i; i--) {
		work(w, 5000);
		OK(cuMemcpyHtoDAsync_v2((uint64_t)(uintptr_t)w->gpu,
					w->clean ? w->pinned : w->pageable, size(w, 4096 * KB),
					w->stream));
		finish(w);
	}
}

static void prepare_symbol(struct worker *w)
{
	OK(cudaMemcpyToSymbolAsync(symbol, w->pinned, 64, 0, H2D, w->stream));
	OK(cudaStreamSynchronize(w->stream));
}

static void pageable_symbol(struct worker *w)
{
	for (unsigned int i = rounds(w, 8); i; i--) {
		work(w, 5000);
		OK(cudaMemcpyToSymbolAsync(symbol, w->clean ? w->pinned : w->pageable,
					   size(w, 4096 * KB), 0, H2D, w->stream));
		finish(w);
	}
}

enum { ARRAY_PITCH = 8192 };

static void make_array(void **array, size_t bytes)
{
	OK(cudaMallocArray(array, &(struct channels){32, 0, 0, 0, 2}, ARRAY_PITCH / sizeof(float),
			   bytes / ARRAY_PITCH, 0));
}

static void prepare_array(struct worker *w)
{
	make_array(&w->places[0], BUFFER_BYTES);
	OK(cudaMemcpy2DToArrayAsync(w->places[0], 0, 0, w->pinned, ARRAY_PITCH, 64, 1, H2D,
				    w->stream));
	OK(cudaStreamSynchronize(w->stream));
}

static void pageable_array(struct worker *w)
{
	for (unsigned int i = rounds(w, 8); i; i--) {
		work(w, 5000);
		OK(cudaMemcpy2DToArrayAsync(w->places[0], 0, 0, w->clean ? w->pinned : w->pageable,
					    ARRAY_PITCH, ARRAY_PITCH,
					    size(w, 4096 * KB) / ARRAY_PITCH, H2D, w->stream));
		finish(w);
	}
}

static void pageable_batch(struct worker *w)
{
	char *host = w->clean ? w->pinned : w->pageable, *gpu = w->gpu;
	size_t bytes = size(w, 64 * KB), all[] = {bytes, bytes, bytes};

	for (unsigned int i = rounds(w, 10); i; i--) {
		const void *from[] = {host, host + bytes, host + 2 * bytes};
		void *to[] = {gpu, gpu + bytes, gpu + 2 * bytes};

		work(w, 4000);
		OK(cudaMemcpyBatchAsync(to, from, all, 3, NULL, NULL, 0, w->stream));
		finish(w);
	}
}

/* ---- calls that wait although nobody asked: few enough to be no habit of the loop ---- */
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

/* ---- made again and again ---- */
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

/* ---- synchronisations ---- */
static void prepare_second_device(struct worker *w)
{
	OK(cudaSetDevice(w->device + 1));
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(w->device));
}

static void redundant_device(struct worker *w)
{
	for (unsigned int i = rounds(w, 40); i; i--) {
		work(w, 1000);
		finish(w);
		if (w->clean)
			continue;
		OK(cudaSetDevice(w->device + 1));
		for (int j = 0; j < 5; j++)
			OK(cudaDeviceSynchronize());
		OK(cudaSetDevice(w->device));
	}
}

static void redundant_twice(struct worker *w)
{
	for (unsigned int i = rounds(w, 40); i; i--) {
		uint64_t begin_ns;

		work(w, 1000);
		finish(w);
		begin_ns = now_ns();
		for (int j = 0; j < 5 && !w->clean; j++)
			OK(cudaStreamSynchronize(w->stream));
		reckon(w, begin_ns);
	}
}

static void prepare_two_devices(struct worker *w)
{
	OK(cudaSetDevice(w->device + 1));
	OK(cudaStreamCreateWithFlags(&w->places[0], 1));
	launch(&stub_delay, 1, w->places[0]);
	OK(cudaStreamSynchronize(w->places[0]));
	OK(cudaSetDevice(w->device));
}

/* Two GPUs with the same work; in the clean twin at once, which takes half the time. */
static void gpus_in_turn(struct worker *w)
{
	for (unsigned int i = rounds(w, 16); i; i--) {
		w->cost_ns += 4 * 500 * 1000;
		for (int j = 0; j < 4; j++)
			launch(&stub_delay, 500, w->stream);
		if (!w->clean)
			OK(cudaStreamSynchronize(w->stream));
		OK(cudaSetDevice(w->device + 1));
		for (int j = 0; j < 4; j++)
			launch(&stub_delay, 500, w->places[0]);
		OK(cudaStreamSynchronize(w->places[0]));
		OK(cudaSetDevice(w->device));
		if (w->clean)
			OK(cudaStreamSynchronize(w->stream));
	}
}

/* From those that find nothing to wait for it is known what the call itself takes. */
static void prepare_syncs(struct worker *w)
{
	for (int i = 0; i < 8; i++)
		OK(cudaStreamSynchronize(w->stream));
}

static void sync_every_launch(struct worker *w)
{
	for (unsigned int i = rounds(w, 40); i; i--) {
		for (int j = 0; j < 6; j++) {
			launch(&stub_delay, 150, w->stream);
			if (!w->clean)
				OK(cudaStreamSynchronize(w->stream));
		}
		if (w->clean)
			OK(cudaStreamSynchronize(w->stream));
	}
}

/* A few kernels that take so many microseconds. */
INLINE void kernels(const struct worker *w, unsigned int us)
{
	for (int i = 0; i < 4; i++)
		launch(&stub_delay, (int)(us * w->length_pct / 400), w->stream);
}

/* The host's own work, without CUDA. */
INLINE void host_work(const struct worker *w, unsigned int us)
{
	usleep(us * w->length_pct / 100);
}

/* It waits for the GPU before its own work, and not behind it: the longer of the two is the host's ... */
static void early_sync(struct worker *w)
{
	for (unsigned int i = rounds(w, 30); i; i--) {
		OK(cudaMemcpyAsync(w->gpu, w->pinned, size(w, 64 * KB), H2D, w->stream));
		kernels(w, 1000);
		if (!w->clean)
			finish(w);
		host_work(w, 2000);
		if (w->clean)
			finish(w);
	}
}

/* ... or the GPU's; and results are fetched when all is done. */
static void early_sync_device(struct worker *w)
{
	for (unsigned int i = rounds(w, 30); i; i--) {
		kernels(w, 2500);
		if (!w->clean)
			OK(cudaDeviceSynchronize());
		host_work(w, 1000);
		OK(cudaMemcpyAsync(w->pinned_to, w->gpu, size(w, 64 * KB), D2H, w->stream));
		finish(w);
	}
}

/* With an event, which the clean twin waits for one round later: the GPU then has the next one to do. */
static void early_sync_event(struct worker *w)
{
	unsigned int cnt = rounds(w, 30);

	for (unsigned int i = 0; i < cnt; i++) {
		if (!w->clean || !i)
			kernels(w, 1500);
		OK(cudaEventRecord(w->event, w->stream));
		if (w->clean)
			kernels(w, 1500);
		OK(cudaEventSynchronize(w->event));
		host_work(w, 1000);
	}
	finish(w);
}

/* ---- launches and copies ---- */
static void prepare_lazy(struct worker *w)
{
	for (int i = 0; i < LAZY_KERNELS && w->clean; i++)
		launch(&stub_lazy[i], 10, w->stream);
	OK(cudaStreamSynchronize(w->stream));
}

static void lazy_loading(struct worker *w)
{
	for (int i = 0; i < LAZY_KERNELS; i++) {
		work(w, 4000);
		launch(&stub_lazy[i], 100, w->stream);
		finish(w);
	}
}

static void queue_full(struct worker *w)
{
	unsigned int cnt = rounds(w, 240);

	for (unsigned int i = 1; i <= cnt; i++) {
		launch(&stub_delay, 400, w->stream);
		if (w->clean && i % 40 == 0)
			finish(w);
	}
	finish(w);
}

static void prepare_small_copies(struct worker *w)
{
	*w->calm_ns = calm_copy_ns(w, w->gpu, w->pinned, 12 * size(w, 2048), H2D);
}

static void small_copies(struct worker *w)
{
	size_t bytes = size(w, 2048);

	for (unsigned int i = rounds(w, 14); i; i--) {
		uint64_t begin_ns = now_ns();

		for (size_t j = 0; j < 12 && !w->clean; j++)
			OK(cudaMemcpyAsync((char *)w->gpu + j * bytes,
					   (char *)w->pinned + j * bytes, bytes, H2D, w->stream));
		if (w->clean)
			OK(cudaMemcpyAsync(w->gpu, w->pinned, 12 * bytes, H2D, w->stream));
		reckon(w, begin_ns);
		work(w, 1000);
		finish(w);
	}
}

/* A flag that the host looks at after every piece of work. */
static void read_back(struct worker *w)
{
	for (unsigned int i = rounds(w, 30); i; i--) {
		work(w, 2000);
		if (!w->clean)
			OK(cudaMemcpyAsync(w->pinned_to, w->gpu, 8, D2H, w->stream));
		finish(w);
	}
}

/* With access a copy takes no more of the host than one within the GPU. */
static void prepare_peer(struct worker *w)
{
	*w->calm_ns = calm_copy_ns(w, w->gpu, (char *)w->gpu + BUFFER_BYTES / 2, 64 * KB, D2D);
	OK(cudaSetDevice(w->device + 1));
	OK(cudaMalloc(&w->peer_gpu, BUFFER_BYTES));
	OK(cudaSetDevice(w->device));
	if (w->clean)
		OK(cudaDeviceEnablePeerAccess(w->device + 1, 0));
}

static void staged_peer_copy(struct worker *w)
{
	for (unsigned int i = rounds(w, 20); i; i--) {
		OK(cudaMemcpyPeerAsync(w->peer_gpu, w->device + 1, w->gpu, w->device,
				       size(w, 4096 * KB), w->stream));
		w->cost_ns -= *w->calm_ns;
		work(w, 1000);
		finish(w);
	}
}

static void legacy_stream(struct worker *w)
{
	for (unsigned int i = rounds(w, 45); i; i--) {
		for (int j = 0; j < 2; j++) {
			launch(&stub_delay, 200, w->clean ? w->stream : w->blocking[0]);
			launch(&stub_delay, 200, w->clean ? w->stream : NULL);
			launch(&stub_delay, 200, w->clean ? w->stream : w->blocking[1]);
		}
		OK(cudaDeviceSynchronize());
	}
}

/* ---- errors ---- */
static void ignored_error(struct worker *w)
{
	for (unsigned int i = rounds(w, 20); i; i--) {
		int result = cudaMemsetAsync(w->clean ? w->gpu : NULL, 0, 16 * KB, w->stream);

		if (w->clean)
			ok(result, "cudaMemsetAsync");
		work(w, 1000);
		finish(w);
	}
}

static void capture_break(struct worker *w)
{
	void *graph, *exec;

	for (unsigned int i = rounds(w, 4); i; i--) {
		OK(cudaStreamBeginCapture(w->stream, 2));
		launch(&stub_delay, 200, w->stream);
		if (!w->clean && !cudaStreamSynchronize(w->stream))
			die("a stream that is captured was waited for");
		if (cudaStreamEndCapture(w->stream, &graph)) {
			cudaGetLastError();
		} else {
			OK(cudaGraphInstantiate(&exec, graph, 0));
			OK(cudaGraphLaunch(exec, w->stream));
			OK(cudaGraphDestroy(graph));
		}
		work(w, 4000);
		finish(w);
	}
}

/* ---- threads in each other's way: in calls whose locks the script makes ---- */
static void cross_device_stall(struct worker *w)
{
	for (unsigned int i = rounds(w, 30); i; i--) {
		work(w, 300);
		if (!w->clean)
			OK(cudaStreamWaitEvent(w->stream, w->event, 0));
		finish(w);
	}
}

static void same_device_stall(struct worker *w)
{
	for (unsigned int i = rounds(w, 30); i; i--) {
		work(w, 300);
		if (!w->clean)
			OK(cudaEventRecord(w->event, w->stream));
		finish(w);
	}
}

/* Three read, some of them at any time; who wants to write waits until they are done. */
static void lock_starvation(struct worker *w)
{
	bool writer = w->role == 3;

	usleep((useconds_t)w->role * 1000);
	for (unsigned int i = rounds(w, writer ? 5 : 30); i; i--) {
		if (w->clean)
			work(w, 3000);
		else if (writer)
			OK(cudaMemcpyAsync(w->gpu, (char *)w->gpu + BUFFER_BYTES / 2,
					   size(w, 256 * KB), D2D, w->stream));
		else
			OK(cudaMemsetAsync(w->gpu, 0, size(w, 256 * KB), w->stream));
		if (w->clean)
			finish(w);
	}
	if (!w->clean)
		finish(w);
}

/* ---- processes ---- */
static void time_slicing(struct worker *w)
{
	for (unsigned int i = rounds(w, 20); i; i--) {
		work(w, 5000);
		finish(w);
	}
}

/* With CUDA_LAUNCH_BLOCKING=1; in the twin with 0. */
static void launch_blocking(struct worker *w)
{
	for (unsigned int i = rounds(w, 10); i; i--) {
		work(w, 4000);
		finish(w);
	}
}

/* A client of MPS that has a quarter of the GPU; in the twin all of it. */
static void mps_share(struct worker *w)
{
	for (unsigned int i = rounds(w, 6); i; i--) {
		work(w, 5000);
		finish(w);
	}
}

/* Another client of MPS was first, and is another user's; in the twin the same user's. */
static void mps_users(struct worker *w)
{
	for (unsigned int i = rounds(w, 4); i; i--) {
		work(w, 5000);
		finish(w);
	}
}

/* Threads that share one processor, with calls that need it: large copies, which the host stages. */
static void oversubscribed_host(struct worker *w)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (!w->clean)
		pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
	for (unsigned int i = rounds(w, 12); i; i--) {
		work(w, 500);
		OK(cudaMemcpy(w->gpu, w->pageable, w->clean ? 256 * KB : BUFFER_BYTES, H2D));
		finish(w);
	}
}

/* ---- a phase behind them: some milliseconds, in which it hands over many times as much ---- */
static void hand_over_more(struct worker *w)
{
	for (int i = 1; i <= 2048; i++) {
		OK(cudaMemsetAsync(w->gpu, 0, 64, w->stream));
		if (i % 32 == 0)
			finish(w);
	}
}

/* The table of habits. A finding whose cost the report calls unknown (legacy-stream, time-slicing, mps-share) has none
 * in truth. Calls that fail cost a few us, of which most is the recorder's. Which of a thread's waits for a lock were
 * longer than a queue's, and which time a CPU was missing, the simulator does not know. */
#define COPIES "pageable-copy"
#define STEADY "steady-state"

/* clang-format off */
static const struct habit habits[] = {
	{"pageable-d2h", COPIES, "time", "cudaMemcpyAsync", "", "", 1, 1, NULL, pageable_d2h},
	{"pageable-d2h-2d", COPIES, "time", "cudaMemcpy2DAsync", "", "", 1, 1, NULL, pageable_d2h_2d},
	{"pageable-d2h-driver", COPIES, "time", "cuMemcpyDtoHAsync_v2", "", "", 1, 1, NULL, pageable_d2h_driver},
	{"pageable-h2d", COPIES, "time", "cudaMemcpyAsync", "", "", 1, 1, NULL, pageable_h2d},
	{"pageable-d2h-3d", COPIES, "time", "cudaMemcpy3DAsync", "", "", 1, 1, NULL, pageable_d2h_3d},
	{"pageable-h2d-driver", COPIES, "time", "cuMemcpyHtoDAsync_v2", "", "", 1, 1, NULL, pageable_h2d_driver},
	{"pageable-symbol", COPIES, "time", "cudaMemcpyToSymbolAsync", "", "", 1, 1, prepare_symbol, pageable_symbol},
	{"pageable-array", COPIES, "time", "cudaMemcpy2DToArrayAsync", "", "", 1, 1, prepare_array, pageable_array},
	{"pageable-batch", COPIES, "time", "cudaMemcpyBatchAsync", "", "", 1, 1, NULL, pageable_batch},
	{"hidden-free", "hidden-sync", "gpu", "cudaFree", "", "", 1, 1, prepare_gpu_memory, hidden_free},
	{"hidden-free-array", "hidden-sync", "gpu", "cudaFreeArray", "", "", 1, 1, prepare_arrays, hidden_free_array},
	{"hidden-free-host", "hidden-sync", "gpu", "cudaFreeHost", "", "", 1, 1, prepare_host_memory, hidden_free_host},
	{"hidden-unregister", "hidden-sync", "gpu", "cudaHostUnregister", "", "", 1, 1, prepare_registered, hidden_unregister},
	{"hidden-host-to-host", "hidden-sync", "gpu", "cudaMemcpyAsync", "", "", 1, 1, NULL, hidden_host_to_host},
	{"hidden-module", "hidden-sync", "gpu", "cuModuleLoadData", "", "", 1, 1, prepare_module, hidden_module},
	{"hidden-limit", "hidden-sync", "gpu", "cudaDeviceSetLimit", "", "", 1, 1, prepare_limit, hidden_limit},
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
	{"redundant-device", "redundant-sync", "time", "cudaDeviceSynchronize", "", "hold cuCtxSynchronize read:idle1 45\n", 1, 1,
		prepare_second_device, redundant_device},
	{"redundant-twice", "redundant-sync", "own", "cudaStreamSynchronize", "", "hold cuStreamSynchronize read:idle2 45\n", 1, 1, NULL, redundant_twice},
	{"gpus-in-turn", "gpus-in-turn", "own", "cudaStreamSynchronize", "", "", 1, 1, prepare_two_devices, gpus_in_turn},
	{"sync-every-launch", "sync-every-launch", "work", "cudaStreamSynchronize|cudaLaunchKernel", "", "hold cuLaunchKernel read:launches 55\n", 1, 1, prepare_syncs, sync_every_launch},
	{"early-sync", "early-sync", "turns", "cudaStreamSynchronize", "", "", 1, 1, NULL, early_sync},
	{"early-sync-device", "early-sync", "turns", "cudaDeviceSynchronize", "", "", 1, 1, NULL, early_sync_device},
	{"early-sync-event", "early-sync", "turns", "cudaEventSynchronize", "", "", 1, 1, NULL, early_sync_event},
	{"lazy-loading", "lazy-loading", "gpu", "cudaLaunchKernel", "", "lazy lazy\n", 1, 1, prepare_lazy, lazy_loading},
	{"queue-full", "queue-full", "gpu", "cudaLaunchKernel", "", "queue 80\n", 1, 1, NULL, queue_full},
	{"small-copies", "small-copies", "own", "cudaMemcpyAsync", "", "hold cuMemcpyHtoDAsync_v2 read:copies 60\n", 1, 1, prepare_small_copies, small_copies},
	{"read-back", "read-back", "gpu", "cudaStreamSynchronize", "", "", 1, 1, NULL, read_back},
	{"ignored-error", "ignored-error", "-", "cudaMemsetAsync", "", "", 1, 1, NULL, ignored_error},
	{"capture-break", "capture-break", "-", "cudaStreamSynchronize", "", "", 1, 1, NULL, capture_break},
	{"cross-device-stall", "cross-device-stall", "lock", "cudaStreamWaitEvent", "lock-starvation",
		"hold cuStreamWaitEvent mutex:cross 1000\n", 2, 2, NULL, cross_device_stall},
	{"same-device-stall", "same-device-stall", "lock", "cudaEventRecord", "lock-starvation",
		"hold cuEventRecord mutex:same 1000\n", 2, 1, NULL, same_device_stall},
	{"lock-starvation", "lock-starvation", "-", "cudaMemcpyAsync|cudaMemsetAsync", "same-device-stall",
		"hold cuMemsetD8Async read:starved 3000\nhold cuMemcpyDtoDAsync_v2 write:starved 50\n", 4, 1, NULL, lock_starvation},
	{"staged-peer-copy", "staged-peer-copy", "time", "cudaMemcpyPeerAsync", "", "hold cuMemcpyPeerAsync read:peers 300\n", 1, 1, prepare_peer, staged_peer_copy},
	{"legacy-stream", "legacy-stream", "-", "cudaLaunchKernel", "", "", 1, 1, NULL, legacy_stream},
	{"oversubscribed-host", "oversubscribed-host", "-", "-", "", "", 4, 1, NULL, oversubscribed_host},
	{"launch-blocking", "launch-blocking", "gpu", "cudaLaunchKernel", "", "", 1, 1, NULL, launch_blocking},
	{"mps-share", "mps-share", "-", "-", "", "", 1, 1, NULL, mps_share},
	{"mps-users", "mps-users", "mps", "cuInit", "", "", 1, 1, NULL, mps_users},
	{"time-slicing", "time-slicing", "-", "-", "", "", 1, 1, NULL, time_slicing},
};
/* clang-format on */

static const struct habit *habit_find(const char *name)
{
	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++)
		if (!strcmp(habits[i].name, name))
			return &habits[i];
	die("no habit %s; --list lists them", name);
	return NULL;
}

/* ---- playing ---- */
static struct worker workers[WORKERS_MAX];
static int worker_cnt;
static bool then_more;

static void turn_to(struct worker *w, int habit)
{
	w->places = w->all_places[habit];
	w->calm_ns = &w->all_calm_ns[habit];
	w->cost_ns = 0;
	w->reckoned = 0;
}

static void prepare(struct worker *w)
{
	OK(cudaSetDevice(w->device));
	OK(cudaStreamCreateWithFlags(&w->stream, 1));
	OK(cudaStreamCreateWithFlags(&w->blocking[0], 0));
	OK(cudaStreamCreateWithFlags(&w->blocking[1], 0));
	OK(cudaEventCreate(&w->event));
	OK(cudaMalloc(&w->gpu, BUFFER_BYTES));
	OK(cudaMallocHost(&w->pinned, BUFFER_BYTES));
	OK(cudaMallocHost(&w->pinned_to, BUFFER_BYTES));
	w->pageable = aligned_alloc(4096, BUFFER_BYTES);
	if (!w->pageable)
		die("no memory");
	memset(w->pageable, 1, BUFFER_BYTES);
	memset(w->pinned, 1, BUFFER_BYTES);
	memset(w->pinned_to, 1, BUFFER_BYTES);
	launch(&stub_delay, 1, w->stream);
	OK(cudaStreamSynchronize(w->stream));
	work(w, 4);
	OK(cudaStreamSynchronize(w->stream));
	for (int i = 0; i < w->habit_cnt; i++) {
		turn_to(w, i);
		if (w->habits[i]->prepare)
			w->habits[i]->prepare(w);
	}
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	OK(cudaSetDevice(w->device));
	pthread_barrier_wait(&ready);
	for (int i = 0; i < w->habit_cnt; i++) {
		uint64_t begin_ns = now_ns();

		turn_to(w, i);
		w->habits[i]->run(w);
		printf("%s %d %llu %llu %lld\n", w->habits[i]->name, (int)syscall(SYS_gettid),
		       (unsigned long long)begin_ns, (unsigned long long)now_ns(),
		       (long long)(w->cost_ns + sum_up(w)));
	}
	if (then_more)
		hand_over_more(w);
	return NULL;
}

static unsigned int pick(uint64_t *seed, unsigned int low, unsigned int high)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return low + (unsigned int)(*seed >> 33) % (high - low + 1);
}

static struct worker *add_worker(int device, int role, bool clean, uint64_t *seed)
{
	struct worker *w = &workers[worker_cnt++];

	if (worker_cnt > WORKERS_MAX)
		die("too many threads");
	w->device = device;
	w->role = role;
	w->clean = clean;
	w->rounds_pct = pick(seed, 80, 130);
	w->length_pct = pick(seed, 80, 130);
	w->size_pct = pick(seed, 75, 125);
	return w;
}

static void add_habit(const struct habit *habit, int device, bool clean, bool one, uint64_t *seed)
{
	struct worker *w;

	if (one && habit->threads > 1)
		die("%s is one of several threads", habit->name);
	for (int i = 0; i < habit->threads; i++) {
		w = one && worker_cnt ? &workers[0]
				      : add_worker(device + i % habit->devices, i, clean, seed);
		w->habits[w->habit_cnt++] = habit;
	}
}

static void play(void)
{
	register_kernels(&stub_delay, stub_lazy, LAZY_KERNELS);
	register_variable(symbol, BUFFER_BYTES);
	for (int i = 0; i < worker_cnt; i++)
		prepare(&workers[i]);
	pthread_barrier_init(&ready, NULL, (unsigned int)worker_cnt);
	for (int i = 0; i < worker_cnt; i++)
		if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]))
			die("no thread");
	for (int i = 0; i < worker_cnt; i++)
		pthread_join(workers[i].thread, NULL);
}

static void list(void)
{
	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++) {
		const struct habit *h = &habits[i];

		printf("%s %s %s %s %d %s\n", h->name, h->detector, h->truth, h->calls, h->threads,
		       *h->also ? h->also : "-");
	}
}

static void become(uid_t user)
{
	if (setgroups(0, NULL) || setgid(user) || setuid(user))
		die("cannot be user %d: %s", (int)user, strerror(errno));
}

int main(int argc, char **argv)
{
	bool clean = false, one = false, script = false;
	uint64_t seed = 1;
	int device = 0;

	for (argc--, argv++; argc && !strncmp(*argv, "--", 2); argc--, argv++) {
		if (!strcmp(*argv, "--list")) {
			list();
			return 0;
		}
		if (!strcmp(*argv, "--seed") && argc > 1) {
			argc--;
			seed = strtoull(*++argv, NULL, 0);
		} else if (!strcmp(*argv, "--user") && argc > 1) {
			argc--;
			become((uid_t)strtoul(*++argv, NULL, 0));
		} else if (!strcmp(*argv, "--clean")) {
			clean = true;
		} else if (!strcmp(*argv, "--one")) {
			one = true;
		} else if (!strcmp(*argv, "--then-more")) {
			then_more = true;
		} else if (!strcmp(*argv, "--script")) {
			script = true;
		} else {
			die("no such option: %s", *argv);
		}
	}
	if (!argc)
		die("which? --list lists the habits");
	pick(&seed, 0, 1);
	if (script)
		printf("gpus 8\n");
	for (int i = 0; i < argc; i++, device += 2) {
		const struct habit *habit = habit_find(argv[i]);

		if (script)
			fputs(habit->script, stdout);
		else
			add_habit(habit, one ? 0 : device, clean, one, &seed);
	}
	if (!script)
		play();
	return 0;
}
