/*
 * testapps/syncs.c: synchronising the right device, the wrong one, and too often. A thousand rounds: bring a
 * matrix to GPU 0, multiply it by itself, and then synchronise, or not:
 *
 *   none    not at all: nothing waits but the end
 *   other   cudaDeviceSynchronize of GPU 1, where nothing runs
 *   own     cudaDeviceSynchronize of GPU 0
 *   both    of GPU 1, then of GPU 0
 *   every   of GPU 0, but only every --every rounds
 *   event   cudaEventSynchronize on an event recorded after the product
 *   stream  cudaStreamSynchronize of the stream of the product
 *
 * Each ends with one synchronisation, 'end', without which the results were not there. The column 'in syncs'
 * is how long the host stood still in the others: with 'own', 'event' and 'stream' it is idle while the GPU
 * computes, and then the GPU while the host launches. 'other' waits for nothing: it protects nothing, and
 * can go. A cure: synchronise where a result is needed and not before, and the device that makes it.
 *
 * Work for one stream is done in order, so no round needs to wait for another. Only when the host is about a
 * thousand operations ahead does the driver make it wait, in the launch itself ('none' and 'other').
 */
#include "common.h"
#include "../kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 8 /* rounds that have a matrix of their own; then it is the first one's turn again */

static struct {
	long gpus, iterations, size, every;
	const char *variant;
} options = {
	.gpus = 2,
	.iterations = 1000,
	.size = 100,
	.every = 10,
	.variant = "all",
};

/* clang-format off */
static const struct option_row rows[] = {
	{"gpus", "N", "1: leave out the variants that synchronise GPU 1 (2)",
		OPTION_NUMBER, &options.gpus, 1, 2, NULL},
	{"variant", "NAME", "none, other, own, both, every, event, stream or all (all)",
		OPTION_TEXT, &options.variant, 0, 0, NULL},
	{"iterations", "N", "rounds (1000)",
		OPTION_NUMBER, &options.iterations, 1, 10000000, "300"},
	{"size", "N", "rows and columns of the matrices (100)",
		OPTION_NUMBER, &options.size, 1, 1024, "16"},
	{"every", "N", "rounds between two synchronisations of 'every' (10)",
		OPTION_NUMBER, &options.every, 1, 10000000, NULL},
	{0},
};
/* clang-format on */

/* What all variants work with. */
static cudaStream_t stream;
static cudaEvent_t event;
static float *host_in, *host_out, *in, *out, *expected; /* SLOTS matrices each */

static size_t count(void) /* of the numbers of a matrix */
{
	return (size_t)(options.size * options.size);
}

/* ---- ways to synchronise --------------------------------------------------------------------- */

/* What a variant's synchronising calls took, without what it takes to come to them. */
static struct {
	double ms;
	long calls;
} syncs;

#define SYNC(call) \
	do { \
		double begin_ms = now_ms(); \
		CUDA_CHECK(call); \
		syncs.ms += now_ms() - begin_ms; \
		syncs.calls++; \
	} while (0)

static void sync_none(void)
{
}

static void sync_other(void)
{
	CUDA_CHECK(cudaSetDevice(1));
	SYNC(cudaDeviceSynchronize());
	CUDA_CHECK(cudaSetDevice(0));
}

static void sync_own(void)
{
	SYNC(cudaDeviceSynchronize());
}

static void sync_both(void)
{
	sync_other();
	sync_own();
}

static void sync_event(void)
{
	CUDA_CHECK(cudaEventRecord(event, stream));
	SYNC(cudaEventSynchronize(event));
}

static void sync_stream(void)
{
	SYNC(cudaStreamSynchronize(stream));
}

struct variant {
	const char *name;
	void (*sync)(void);
	bool rarely; /* every --every rounds, not after each */
	bool two_gpus;
};

static const struct variant variants[] = {
	{"none", sync_none, false, false},     {"other", sync_other, false, true},
	{"own", sync_own, false, false},       {"both", sync_both, false, true},
	{"every", sync_own, true, false},      {"event", sync_event, false, false},
	{"stream", sync_stream, false, false},
};
#define VARIANT_CNT (sizeof(variants) / sizeof(variants[0]))

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Small whole numbers, so that sums are exact. */
static void host_matrices(void)
{
	size_t size = (size_t)options.size, slot, row, i, column;

	for (i = 0; i < SLOTS * count(); i++)
		host_in[i] = (float)(i * 31 % 17) - 8;
	for (slot = 0; slot < SLOTS; slot++) {
		const float *matrix = host_in + slot * count();
		float *product = expected + slot * count();

		for (row = 0; row < size; row++)
			for (i = 0; i < size; i++)
				for (column = 0; column < size; column++)
					product[row * size + column] +=
						matrix[row * size + i] * matrix[i * size + column];
	}
}

static void one_round(long round)
{
	size_t at = (size_t)(round % SLOTS) * count();
	unsigned size = (unsigned)options.size;

	CUDA_CHECK(cudaMemcpyAsync(in + at, host_in + at, count() * sizeof(*in),
				   cudaMemcpyHostToDevice, stream));
	CUDA_CHECK(launch_matmul(out + at, in + at, in + at, size, size, size, stream));
}

static void prepare(void)
{
	size_t i, bytes = SLOTS * count() * sizeof(float);

	CUDA_CHECK(cudaSetDevice(0));
	CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CUDA_CHECK(cudaMallocHost((void **)&host_in, bytes));
	CUDA_CHECK(cudaMallocHost((void **)&host_out, bytes));
	CUDA_CHECK(cudaMalloc((void **)&in, bytes));
	CUDA_CHECK(cudaMalloc((void **)&out, bytes));
	expected = allocate(SLOTS * count(), sizeof(*expected));
	host_matrices();
	/* The first launch loads the code, the first call for GPU 1 makes its context. */
	one_round(0);
	for (i = 0; i < VARIANT_CNT; i++) {
		if (options.gpus > 1 || !variants[i].two_gpus)
			variants[i].sync();
	}
}

static void finish(void)
{
	CUDA_CHECK(cudaFreeHost(host_in));
	CUDA_CHECK(cudaFreeHost(host_out));
	CUDA_CHECK(cudaFree(in));
	CUDA_CHECK(cudaFree(out));
	CUDA_CHECK(cudaEventDestroy(event));
	CUDA_CHECK(cudaStreamDestroy(stream));
	free(expected);
}

/* Brings back the products that the rounds should have made; returns how many numbers are wrong. */
static unsigned check(void)
{
	size_t used = (size_t)(options.iterations < SLOTS ? options.iterations : SLOTS), i;
	unsigned wrong = 0;

	CUDA_CHECK(cudaMemcpyAsync(host_out, out, SLOTS * count() * sizeof(*out),
				   cudaMemcpyDeviceToHost, stream));
	CUDA_CHECK(cudaStreamSynchronize(stream));
	for (i = 0; i < used * count(); i++)
		wrong += host_out[i] != expected[i];
	return wrong;
}

/* ---- variants -------------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{"variant", "variant", 0}, {"rounds", "rounds", 0},           {"total_ms", "total ms", 2},
	{"syncs", "syncs", 0},     {"in_syncs_ms", "in syncs ms", 3}, {"sync_us", "us/sync", 2},
	{"end_ms", "end ms", 3},
};

static unsigned run_variant(const struct variant *variant, struct table *table)
{
	double begin, launched, end;
	unsigned wrong;
	long i;

	CUDA_CHECK(cudaMemsetAsync(out, 0xff, SLOTS * count() * sizeof(*out), stream));
	CUDA_CHECK(cudaStreamSynchronize(stream));
	syncs.ms = 0;
	syncs.calls = 0;
	begin = now_ms();
	for (i = 1; i <= options.iterations; i++) {
		one_round(i - 1);
		if (!variant->rarely || i % options.every == 0)
			variant->sync();
		progress("%s: round %ld of %ld", variant->name, i, options.iterations);
	}
	launched = now_ms();
	CUDA_CHECK(cudaStreamSynchronize(stream));
	end = now_ms();

	table_text(table, variant->name);
	table_number(table, (double)options.iterations);
	table_number(table, end - begin);
	table_number(table, (double)syncs.calls);
	table_number(table, syncs.ms);
	if (syncs.calls)
		table_number(table, syncs.ms / (double)syncs.calls * 1e3);
	else
		table_empty(table);
	table_number(table, end - launched);
	wrong = check();
	if (wrong)
		fprintf(stderr, "%s: %s: %u numbers of the products are wrong\n", program,
			variant->name, wrong);
	return wrong;
}

/* Settles for one GPU where there is no second. */
static void count_gpus(void)
{
	int there;

	CUDA_CHECK(cudaGetDeviceCount(&there));
	if (there < options.gpus) {
		fprintf(stderr, "%s: only one GPU: without the variants that synchronise another\n",
			program);
		options.gpus = 1;
	}
}

int main(int argc, char **argv)
{
	enum output output = options_read(
		argc, argv,
		"Multiplies a matrix on GPU 0, again and again, and synchronises GPU 0, the idle\n"
		"GPU 1, both, or none. Shows how long the host stands still in which of these "
		"calls.",
		rows);
	unsigned wrong = 0, chosen = 0, ran = 0;
	struct table table;
	size_t i;

	for (i = 0; i < VARIANT_CNT; i++)
		chosen += !strcmp(options.variant, "all") ||
			  !strcmp(options.variant, variants[i].name);
	if (!chosen)
		usage_error("--variant %s: no such variant", options.variant);
	count_gpus();
	prepare();
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; i < VARIANT_CNT; i++) {
		if (strcmp(options.variant, "all") && strcmp(options.variant, variants[i].name))
			continue;
		if (variants[i].two_gpus && options.gpus < 2)
			continue;
		wrong += run_variant(&variants[i], &table);
		ran++;
	}
	if (!ran)
		die("--variant %s needs two GPUs", options.variant);
	table_print(&table, output);
	table_release(&table);
	finish();
	return wrong != 0;
}
