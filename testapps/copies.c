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
 * thread has a time of its own to end at: compare the columns 'kernel' and 'total'. This is the case
 * reduced to what is to be seen; with --throughput it is copies_throughput.c that runs: many small
 * kernels, by threads and by processes.
 */
#include "common.h"
#include "copies.h"
#include "list.h"
#include "workers.h"
#include "../kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	bool throughput;
} options = {
	.threads = 4,
	.gpus = 1,
	.ms = 400,
	.stagger_ms = 5,
	.bytes = 352 * 1024 * 4,
	.iterations = 3,
	.variant = "all",
};

static struct throughput throughput = {
	.modes = "all",
	.workers = "1,2,4,8",
	.launches = 220,
	.ms_each = 300,
};

/* clang-format off */
static const struct option_row rows[] = {
	{"threads", "N", "threads, each with its own stream (4)",
		OPTION_NUMBER, &options.threads, 1, WORKERS_MAX, NULL},
	{"gpus", "N", "GPUs to spread the threads over (1)",
		OPTION_NUMBER, &options.gpus, 1, 64, NULL},
	{"variant", "LIST", "of pageable, pageable-sync, pinned, or all (all)",
		OPTION_TEXT, &options.variant, 0, 0, NULL},
	{"ms", "MS", "length of thread 0's kernel; the others' are shorter (400)",
		OPTION_NUMBER, &options.ms, 1, 60000, "80"},
	{"stagger", "MS", "start of thread i after thread i-1 (5)",
		OPTION_NUMBER, &options.stagger_ms, 0, 10000, NULL},
	{"bytes", "N", "size of each copy (1441792)",
		OPTION_NUMBER, &options.bytes, 4, 1l << 30, NULL},
	{"iterations", "N", "rounds of each thread (3)",
		OPTION_NUMBER, &options.iterations, 1, 100000, "2"},
	{"throughput", NULL, "rounds a second instead, for which only --gpus, --bytes and these count:",
		OPTION_FLAG, &options.throughput, 0, 0, NULL},
	{"mode", "LIST", "of threads, processes, mps, or all (all; mps only if there is a daemon)",
		OPTION_TEXT, &throughput.modes, 0, 0, NULL},
	{"workers", "LIST", "numbers of workers (1,2,4,8)",
		OPTION_TEXT, &throughput.workers, 0, 0, "1,2"},
	{"launches", "N", "of the kernel in a round (220)",
		OPTION_NUMBER, &throughput.launches, 1, 100000, "10"},
	{"ms-each", "MS", "for each of four ways to copy, mode and number of workers (300)",
		OPTION_NUMBER, &throughput.ms_each, 1, 60000, "30"},
	{0},
};
/* clang-format on */

/* What one thread works with and found. */
struct copier {
	cudaStream_t stream;
	int *in, *out, *device;
	unsigned kernel_us;
	unsigned wrong; /* results that were not as they should be */
	struct round {
		double h2d_ms, d2h_ms, total_ms;
	} rounds[];
};

/* ---- one thread ----------------------------------------------------------------------------- */

static int *host_buffer(bool pinned)
{
	void *memory;

	if (!pinned)
		return allocate(1, options.bytes);
	CUDA_CHECK(cudaMallocHost(&memory, options.bytes));
	return memory;
}

static void host_buffer_free(bool pinned, int *memory)
{
	if (pinned)
		CUDA_CHECK(cudaFreeHost(memory));
	else
		free(memory);
}

static void prepare(struct worker *worker)
{
	const struct variant *variant = worker->argument;
	struct copier *copier = worker->state;

	/* from the whole of --ms for thread 0 down to a little over half of it */
	copier->kernel_us =
		options.ms * 1000 * (2 * options.threads - worker->index) / (2 * options.threads);
	CUDA_CHECK(cudaStreamCreateWithFlags(&copier->stream, cudaStreamNonBlocking));
	CUDA_CHECK(cudaMalloc((void **)&copier->device, options.bytes));
	copier->in = host_buffer(variant->pinned);
	copier->out = host_buffer(variant->pinned);
	CUDA_CHECK(launch_delay(0, copier->stream)); /* the first launch of a kernel loads it, */
	CUDA_CHECK(launch_add(copier->device, 1, 0, copier->stream)); /* behind the others' work */
	CUDA_CHECK(cudaStreamSynchronize(copier->stream));
}

static void finish(struct worker *worker)
{
	const struct variant *variant = worker->argument;
	struct copier *copier = worker->state;

	host_buffer_free(variant->pinned, copier->in);
	host_buffer_free(variant->pinned, copier->out);
	CUDA_CHECK(cudaFree(copier->device));
	CUDA_CHECK(cudaStreamDestroy(copier->stream));
}

/* One round: the calls this program is about, and how long the host was inside the two copies. */
static void round_trip(struct copier *copier, bool sync_first, int term, struct round *round)
{
	unsigned count = options.bytes / sizeof(int);
	double begin, copied, launched, returned;

	begin = now_ms();
	CUDA_CHECK(cudaMemcpyAsync(copier->device, copier->in, options.bytes,
				   cudaMemcpyHostToDevice, copier->stream));
	copied = now_ms();
	CUDA_CHECK(launch_delay(copier->kernel_us, copier->stream));
	CUDA_CHECK(launch_add(copier->device, count, term, copier->stream));
	if (sync_first)
		CUDA_CHECK(cudaStreamSynchronize(copier->stream));
	launched = now_ms();
	CUDA_CHECK(cudaMemcpyAsync(copier->out, copier->device, options.bytes,
				   cudaMemcpyDeviceToHost, copier->stream));
	returned = now_ms();
	CUDA_CHECK(cudaStreamSynchronize(copier->stream));
	round->h2d_ms = copied - begin;
	round->d2h_ms = returned - launched;
	round->total_ms = now_ms() - begin;
}

static void work(struct worker *worker)
{
	const struct variant *variant = worker->argument;
	size_t i, count = options.bytes / sizeof(int);
	struct copier *copier = worker->state;
	int iteration, term = worker->index + 1;

	for (iteration = 0; iteration < options.iterations; iteration++) {
		for (i = 0; i < count; i++)
			copier->in[i] = (int)i * 31 + iteration;
		memset(copier->out, 0xff, options.bytes);
		crew_meet();
		sleep_ms((double)(options.stagger_ms * worker->index));
		round_trip(copier, variant->sync_first, term, &copier->rounds[iteration]);
		for (i = 0; i < count; i++)
			copier->wrong += copier->out[i] != copier->in[i] + term;
		if (worker->index == 0)
			progress("%s: round %d of %ld", variant->name, iteration + 1,
				 options.iterations);
	}
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

/* The median over all rounds of one of their times; offset says which. */
static double median_of(const struct copier *copier, size_t offset)
{
	double *values = allocate(options.iterations, sizeof(*values)), value;
	long i;

	for (i = 0; i < options.iterations; i++)
		values[i] = *(const double *)((const char *)&copier->rounds[i] + offset);
	value = median(values, options.iterations);
	free(values);
	return value;
}

static double report_thread(struct table *table, const struct crew *crew, int thread)
{
	const struct copier *copier = crew_state(crew, thread);
	double total_ms = median_of(copier, offsetof(struct round, total_ms));

	table_text(table, ((const struct variant *)crew->argument)->name);
	table_number(table, thread);
	table_number(table, thread % crew->gpu_cnt);
	table_number(table, copier->kernel_us / 1e3);
	table_number(table, median_of(copier, offsetof(struct round, h2d_ms)));
	table_number(table, median_of(copier, offsetof(struct round, d2h_ms)));
	table_number(table, total_ms);
	table_number(table, 1e3 / total_ms);
	return 1e3 / total_ms;
}

static unsigned run_variant(const struct variant *variant, struct table *table)
{
	struct crew crew = {
		.processes = IN_PLACE,
		.threads = options.threads,
		.gpus = options.gpus,
		.state_size = sizeof(struct copier) + options.iterations * sizeof(struct round),
		.argument = variant,
		.prepare = prepare,
		.work = work,
		.finish = finish,
	};
	unsigned wrong = 0;
	double rate = 0;
	int i;

	crew_run(&crew);
	for (i = 0; i < crew.worker_cnt; i++) {
		rate += report_thread(table, &crew, i);
		wrong += ((struct copier *)crew_state(&crew, i))->wrong;
	}
	/* All threads together: the rate they would reach if nobody met the slowest. */
	table_text(table, variant->name);
	table_text(table, "all");
	for (i = 0; i < 5; i++)
		table_empty(table);
	table_number(table, rate);
	crew_release(&crew);
	if (wrong)
		fprintf(stderr, "%s: %s: %u values came back wrong\n", program, variant->name,
			wrong);
	return wrong;
}

static bool variant_there(const char *name)
{
	size_t i;

	for (i = 0; i < VARIANT_CNT; i++)
		if (!strcmp(variants[i].name, name))
			return true;
	return false;
}

static unsigned run_variants(enum output output)
{
	struct table table;
	unsigned wrong = 0;
	size_t i;

	list_check("variant", options.variant, variant_there);
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; i < VARIANT_CNT; i++)
		if (list_has(options.variant, variants[i].name))
			wrong += run_variant(&variants[i], &table);
	table_print(&table, output);
	table_release(&table);
	return wrong;
}

static unsigned long measure_throughput(enum output output)
{
	throughput.gpus = options.gpus;
	throughput.bytes = options.bytes;
	return throughput_run(&throughput, output);
}

int main(int argc, char **argv)
{
	enum output output = options_read(
		argc, argv,
		"Threads that share nothing copy to the GPU, compute, and copy back, through "
		"pageable\n"
		"or pinned memory. Shows which copies wait for other threads' kernels; with "
		"--throughput\n"
		"(half a minute), what that costs threads, processes, and processes under MPS.",
		rows);

	options.bytes -= options.bytes % (long)sizeof(int);
	if (options.throughput)
		return measure_throughput(output) != 0;
	if (option_given("mode") || option_given("workers") || option_given("launches") ||
	    option_given("ms-each"))
		usage_error("--mode, --workers, --launches and --ms-each need --throughput");
	return run_variants(output) != 0;
}
