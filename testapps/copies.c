/*
 * testapps/copies.c: asynchronous copies that are not. Several threads, each with a stream and
 * buffers of its own, repeat: copy to the GPU, a kernel, copy back. They share nothing, so each
 * should take as long as its own kernel. Three variants say otherwise, or not:
 *
 *   pageable       host buffers from malloc: cudaMemcpyAsync back to such memory waits inside the
 *                  call until the stream has drained, and the driver makes other threads' copies
 *                  wait with it: a thread with a short kernel ends when the longest kernel ends
 *   pageable-sync  the same buffers, but cudaStreamSynchronize before the copy back: the wait moves
 *                  to where it disturbs nobody
 *   pinned         host buffers from cudaMallocHost: the call returns in microseconds
 *
 * Thread i starts a few milliseconds after thread i-1 and its kernel is shorter, so that each
 * thread has a time of its own to end at: compare the columns 'kernel' and 'total'.
 */
#include "common.h"
#include "../kernels/kernels.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 64

struct variant {
	const char *name;
	bool pinned;
	bool sync_first;
};

static const struct variant variants[] = {
	{"pageable", false, false},
	{"pageable-sync", false, true},
	{"pinned", true, false},
};
#define VARIANT_CNT (sizeof(variants) / sizeof(variants[0]))

static struct {
	long threads, gpus, ms, stagger_ms, bytes, iterations;
	const char *variant;
	bool quick;
} options = {
	.threads = 4,
	.gpus = 1,
	.ms = 400,
	.stagger_ms = 5,
	.bytes = 352 * 1024 * 4,
	.iterations = 3,
	.variant = "all",
};

/* clang-format off */
static const struct option_row rows[] = {
	{"threads", "N", "threads, each with its own stream (4)",
		OPTION_NUMBER, &options.threads, 1, THREADS_MAX},
	{"gpus", "N", "GPUs to spread the threads over (1)",
		OPTION_NUMBER, &options.gpus, 1, 64},
	{"variant", "NAME", "pageable, pageable-sync, pinned or all (all)",
		OPTION_TEXT, &options.variant, 0, 0},
	{"ms", "MS", "length of thread 0's kernel; the others' are shorter (400)",
		OPTION_NUMBER, &options.ms, 1, 60000},
	{"stagger", "MS", "start of thread i after thread i-1 (5)",
		OPTION_NUMBER, &options.stagger_ms, 0, 10000},
	{"bytes", "N", "size of each copy (1441792)",
		OPTION_NUMBER, &options.bytes, 4, 1l << 30},
	{"iterations", "N", "rounds of each thread (3)",
		OPTION_NUMBER, &options.iterations, 1, 100000},
	{"quick", NULL, "a short run: --ms 80 --iterations 2",
		OPTION_FLAG, &options.quick, 0, 0},
	{0},
};
/* clang-format on */

/* What one thread does and found; the arrays have one value for each iteration. */
struct worker {
	pthread_t thread;
	int index, gpu;
	const struct variant *variant;
	pthread_barrier_t *start; /* of each iteration, all threads together */
	unsigned kernel_us;
	unsigned wrong; /* results that were not as they should be */
	double *h2d_ms, *d2h_ms, *total_ms;
};

/* ---- one thread ----------------------------------------------------------------------------- */

static int *host_buffer(const struct worker *worker)
{
	void *memory;

	if (!worker->variant->pinned)
		return allocate(1, options.bytes);
	CUDA_CHECK(cudaMallocHost(&memory, options.bytes));
	return memory;
}

static void host_buffer_free(const struct worker *worker, int *memory)
{
	if (worker->variant->pinned)
		CUDA_CHECK(cudaFreeHost(memory));
	else
		free(memory);
}

/* One round: the calls this program is about, and how long the host was inside the two copies. */
static void round_trip(struct worker *worker, int iteration, const int *in, int *out, int *device,
		       cudaStream_t stream)
{
	unsigned count = options.bytes / sizeof(int);
	double begin, copied, launched, returned;

	begin = now_ms();
	CUDA_CHECK(cudaMemcpyAsync(device, in, options.bytes, cudaMemcpyHostToDevice, stream));
	copied = now_ms();
	CUDA_CHECK(launch_delay(worker->kernel_us, stream));
	CUDA_CHECK(launch_add(device, count, worker->index + 1, stream));
	if (worker->variant->sync_first)
		CUDA_CHECK(cudaStreamSynchronize(stream));
	launched = now_ms();
	CUDA_CHECK(cudaMemcpyAsync(out, device, options.bytes, cudaMemcpyDeviceToHost, stream));
	returned = now_ms();
	CUDA_CHECK(cudaStreamSynchronize(stream));
	worker->h2d_ms[iteration] = copied - begin;
	worker->d2h_ms[iteration] = returned - launched;
	worker->total_ms[iteration] = now_ms() - begin;
}

static void progress(const struct worker *worker, int iteration)
{
	static double last_ms; /* thread 0's alone */
	double now = now_ms();

	if (worker->index)
		return;
	if (!last_ms)
		last_ms = now;
	if (now - last_ms < 3000)
		return;
	last_ms = now;
	fprintf(stderr, "%s: %s: round %d of %ld\n", program, worker->variant->name, iteration + 1,
		options.iterations);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	size_t i, count = options.bytes / sizeof(int);
	int *in, *out, *device, iteration;
	cudaStream_t stream;

	CUDA_CHECK(cudaSetDevice(worker->gpu));
	CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA_CHECK(cudaMalloc((void **)&device, options.bytes));
	in = host_buffer(worker);
	out = host_buffer(worker);
	CUDA_CHECK(launch_delay(0, stream)); /* the first launch loads the code */
	CUDA_CHECK(cudaStreamSynchronize(stream));

	for (iteration = 0; iteration < options.iterations; iteration++) {
		for (i = 0; i < count; i++)
			in[i] = (int)i * 31 + iteration;
		memset(out, 0xff, options.bytes);
		pthread_barrier_wait(worker->start);
		sleep_ms((double)(options.stagger_ms * worker->index));
		round_trip(worker, iteration, in, out, device, stream);
		for (i = 0; i < count; i++)
			worker->wrong += out[i] != in[i] + worker->index + 1;
		progress(worker, iteration);
	}
	pthread_barrier_wait(worker->start); /* nobody frees while another one measures */
	host_buffer_free(worker, in);
	host_buffer_free(worker, out);
	CUDA_CHECK(cudaFree(device));
	CUDA_CHECK(cudaStreamDestroy(stream));
	return NULL;
}

/* ---- one variant ---------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{"variant", "variant", 0},
	{"thread", "thread", 0},
	{"gpu", "GPU", 0},
	{"kernel_ms", "kernel ms", 1},
	{"h2d_ms", "H2D call ms", 3},
	{"d2h_ms", "D2H call ms", 3},
	{"total_ms", "total ms", 1},
	{"iterations_per_s", "iterations/s", 2},
};

static void report_thread(struct table *table, struct worker *worker)
{
	double total_ms = median(worker->total_ms, options.iterations);

	table_text(table, worker->variant->name);
	table_number(table, worker->index);
	table_number(table, worker->gpu);
	table_number(table, worker->kernel_us / 1e3);
	table_number(table, median(worker->h2d_ms, options.iterations));
	table_number(table, median(worker->d2h_ms, options.iterations));
	table_number(table, total_ms);
	table_number(table, 1e3 / total_ms);
}

/* All threads together: the rate they would reach if nobody waited for the slowest at the barrier.
 */
static void report_variant(struct table *table, const struct variant *variant,
			   const struct worker *workers)
{
	double rate = 0;
	long i;

	for (i = 0; i < options.threads; i++) /* report_thread has sorted the times */
		rate += 1e3 / workers[i].total_ms[options.iterations / 2];
	table_text(table, variant->name);
	table_text(table, "all");
	for (i = 0; i < 5; i++)
		table_empty(table);
	table_number(table, rate);
}

static unsigned run_variant(const struct variant *variant, struct table *table)
{
	struct worker *workers = allocate(options.threads, sizeof(*workers));
	pthread_barrier_t start;
	unsigned wrong = 0;
	long i;

	pthread_barrier_init(&start, NULL, options.threads);
	for (i = 0; i < options.threads; i++) {
		struct worker *worker = &workers[i];

		worker->index = i;
		worker->gpu = i % options.gpus;
		worker->variant = variant;
		worker->start = &start;
		/* from the whole of --ms for thread 0 down to a little over half of it */
		worker->kernel_us =
			options.ms * 1000 * (2 * options.threads - i) / (2 * options.threads);
		worker->h2d_ms = allocate(options.iterations, sizeof(double));
		worker->d2h_ms = allocate(options.iterations, sizeof(double));
		worker->total_ms = allocate(options.iterations, sizeof(double));
		if (pthread_create(&worker->thread, NULL, work, worker))
			die("cannot start thread %ld", i);
	}
	for (i = 0; i < options.threads; i++) {
		pthread_join(workers[i].thread, NULL);
		report_thread(table, &workers[i]);
		wrong += workers[i].wrong;
	}
	report_variant(table, variant, workers);
	for (i = 0; i < options.threads; i++) {
		free(workers[i].h2d_ms);
		free(workers[i].d2h_ms);
		free(workers[i].total_ms);
	}
	pthread_barrier_destroy(&start);
	free(workers);
	if (wrong)
		fprintf(stderr, "%s: %s: %u values came back wrong\n", program, variant->name,
			wrong);
	return wrong;
}

int main(int argc, char **argv)
{
	enum output output = options_read(
		argc, argv,
		"Threads that share nothing copy to the GPU, compute, and copy back, through "
		"pageable\n"
		"or pinned memory. Shows which copies wait for other threads' kernels.",
		rows);
	unsigned wrong = 0, ran = 0;
	struct table table;
	int gpu_cnt;
	size_t i;

	if (options.quick) {
		options.ms = 80;
		options.iterations = 2;
	}
	options.bytes -= options.bytes % (long)sizeof(int);
	CUDA_CHECK(cudaGetDeviceCount(&gpu_cnt));
	if (options.gpus > gpu_cnt)
		die("--gpus %ld: there %s only %d", options.gpus, gpu_cnt == 1 ? "is" : "are",
		    gpu_cnt);

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; i < VARIANT_CNT; i++) {
		if (strcmp(options.variant, "all") && strcmp(options.variant, variants[i].name))
			continue;
		wrong += run_variant(&variants[i], &table);
		ran++;
	}
	if (!ran)
		die("--variant %s: no such variant; see --help", options.variant);
	table_print(&table, output);
	table_release(&table);
	return wrong != 0;
}
