/*
 * testapps/clean.c: nothing to find here. A thread for each GPU copies to it, computes and copies back,
 * as it should be done: pinned buffers, a stream of its own, everything allocated before the loop, and one
 * wait for the GPU in each round, where the result is needed. Two variants:
 *
 *   plain      a round after the other: copy, kernel, copy, cudaStreamSynchronize
 *   pipelined  two rounds at a time, each with buffers and a stream of its own; the host checks one while
 *              the GPU works on the other, and waits for an event
 *
 * The worst of the asynchronous calls of all rounds should be microseconds, and what a tracer says about
 * this program should be: nothing. Compare copies.c, which differs in a malloc instead of a cudaMallocHost.
 */
#include "common.h"
#include "workers.h"
#include "../kernels/kernels.h"

#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 2

struct variant {
	const char *name;
	int depth; /* rounds at a time */
};

static const struct variant variants[] = {{"plain", 1}, {"pipelined", DEPTH_MAX}};
#define VARIANT_CNT (sizeof(variants) / sizeof(variants[0]))

static struct {
	long threads, gpus, ms, kernel_us, bytes;
	const char *variant;
} options = {
	.threads = ONE_PER_GPU,
	.ms = 5000,
	.kernel_us = 1000,
	.bytes = 352 * 1024 * 4,
	.variant = "all",
};

/* clang-format off */
static const struct option_row rows[] = {
	{"threads", "N", "threads, spread over the GPUs (one for each)",
		OPTION_NUMBER, &options.threads, 1, WORKERS_MAX, NULL},
	{"gpus", "N", "GPUs to use (all)",
		OPTION_NUMBER, &options.gpus, 1, 64, NULL},
	{"variant", "NAME", "plain, pipelined or all (all)",
		OPTION_TEXT, &options.variant, 0, 0, NULL},
	{"ms", "MS", "how long each variant runs (5000)",
		OPTION_NUMBER, &options.ms, 1, 3600000, "400"},
	{"kernel-us", "US", "length of a round's kernel (1000)",
		OPTION_NUMBER, &options.kernel_us, 0, 1000000, NULL},
	{"bytes", "N", "size of each copy (1441792)",
		OPTION_NUMBER, &options.bytes, 4, 1l << 30, NULL},
	{0},
};
/* clang-format on */

/* What a round needs. */
struct slot {
	cudaStream_t stream;
	cudaEvent_t done;
	int *in, *out, *device;
};

struct runner {
	struct slot slots[DEPTH_MAX];
	unsigned rounds, wrong;
	double worst_ms; /* of a call that is asynchronous */
	double took_ms;
};

/* ---- before and after ----------------------------------------------------------------------- */

static void prepare(struct worker *worker)
{
	const struct variant *variant = worker->argument;
	struct runner *runner = worker->state;
	size_t value, count = (size_t)options.bytes / sizeof(int);
	int i;

	for (i = 0; i < variant->depth; i++) {
		struct slot *slot = &runner->slots[i];

		CUDA_CHECK(cudaStreamCreateWithFlags(&slot->stream, cudaStreamNonBlocking));
		CUDA_CHECK(cudaEventCreateWithFlags(&slot->done, cudaEventDisableTiming));
		CUDA_CHECK(cudaMalloc((void **)&slot->device, options.bytes));
		CUDA_CHECK(cudaMallocHost((void **)&slot->in, options.bytes));
		CUDA_CHECK(cudaMallocHost((void **)&slot->out, options.bytes));
		for (value = 0; value < count; value++)
			slot->in[value] = (int)value * 31;
		memset(slot->out, 0xff, options.bytes);
		CUDA_CHECK(launch_delay(0, slot->stream)); /* the first launches load the code */
		CUDA_CHECK(launch_add(slot->device, (unsigned)count, 0, slot->stream));
		CUDA_CHECK(cudaStreamSynchronize(slot->stream));
	}
}

static void finish(struct worker *worker)
{
	const struct variant *variant = worker->argument;
	struct runner *runner = worker->state;
	int i;

	for (i = 0; i < variant->depth; i++) {
		struct slot *slot = &runner->slots[i];

		CUDA_CHECK(cudaFreeHost(slot->out));
		CUDA_CHECK(cudaFreeHost(slot->in));
		CUDA_CHECK(cudaFree(slot->device));
		CUDA_CHECK(cudaEventDestroy(slot->done));
		CUDA_CHECK(cudaStreamDestroy(slot->stream));
	}
}

/* ---- the rounds ----------------------------------------------------------------------------- */

/* Runs a call that should return at once, and remembers how long the worst took. */
#define TIMED(runner, call) \
	do { \
		double begin_ms_ = now_ms(), took_ms_; \
		CUDA_CHECK(call); \
		took_ms_ = now_ms() - begin_ms_; \
		if (took_ms_ > (runner)->worst_ms) \
			(runner)->worst_ms = took_ms_; \
	} while (0)

static void round_begin(struct runner *runner, struct slot *slot, int round)
{
	TIMED(runner, cudaMemcpyAsync(slot->device, slot->in, options.bytes, cudaMemcpyHostToDevice,
				      slot->stream));
	if (options.kernel_us)
		TIMED(runner, launch_delay((unsigned)options.kernel_us, slot->stream));
	TIMED(runner, launch_add(slot->device, options.bytes / sizeof(int), round, slot->stream));
	TIMED(runner, cudaMemcpyAsync(slot->out, slot->device, options.bytes,
				      cudaMemcpyDeviceToHost, slot->stream));
}

static void round_check(struct runner *runner, const struct slot *slot, int round)
{
	size_t i, count = (size_t)options.bytes / sizeof(int);
	unsigned wrong = 0;

	for (i = 0; i < count; i++)
		wrong += slot->out[i] != slot->in[i] + round;
	runner->wrong += wrong;
	runner->rounds++;
}

static bool time_over(const struct worker *worker, double begin_ms)
{
	double ms = now_ms() - begin_ms;

	if (worker->index == 0)
		progress("%s: %.0f of %ld ms", ((const struct variant *)worker->argument)->name, ms,
			 options.ms);
	return ms >= (double)options.ms;
}

static void plain(struct worker *worker, double begin_ms)
{
	struct runner *runner = worker->state;
	struct slot *slot = &runner->slots[0];
	int round;

	for (round = 0; !time_over(worker, begin_ms); round++) {
		round_begin(runner, slot, round);
		CUDA_CHECK(cudaStreamSynchronize(slot->stream));
		round_check(runner, slot, round);
	}
}

static void pipelined(struct worker *worker, double begin_ms)
{
	struct runner *runner = worker->state;
	int begun = 0, ended = 0;

	for (;;) {
		bool over = time_over(worker, begin_ms);
		struct slot *slot;

		if (!over) {
			slot = &runner->slots[begun % DEPTH_MAX];
			round_begin(runner, slot, begun++);
			TIMED(runner, cudaEventRecord(slot->done, slot->stream));
			if (begun < DEPTH_MAX)
				continue;
		} else if (ended == begun) {
			return;
		}
		slot = &runner->slots[ended % DEPTH_MAX];
		CUDA_CHECK(cudaEventSynchronize(slot->done));
		round_check(runner, slot, ended++);
	}
}

static void work(struct worker *worker)
{
	const struct variant *variant = worker->argument;
	struct runner *runner = worker->state;
	double begin_ms;

	crew_meet();
	begin_ms = now_ms();
	if (variant->depth == 1)
		plain(worker, begin_ms);
	else
		pipelined(worker, begin_ms);
	runner->took_ms = now_ms() - begin_ms;
}

/* ---- one variant ---------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{"variant", "variant", 0},
	{"thread", "thread", 0},
	{"gpu", "GPU", 0},
	{"rounds", "rounds", 0},
	{"rounds_per_s", "rounds/s", 1},
	{"worst_ms", "worst asynchronous call ms", 3},
};

static unsigned run_variant(const struct variant *variant, struct table *table)
{
	struct crew crew = {
		.processes = IN_PLACE,
		.threads = options.threads,
		.gpus = options.gpus,
		.state_size = sizeof(struct runner),
		.argument = variant,
		.prepare = prepare,
		.work = work,
		.finish = finish,
	};
	unsigned wrong = 0;
	int i;

	crew_run(&crew);
	for (i = 0; i < crew.worker_cnt; i++) {
		const struct runner *runner = crew_state(&crew, i);

		table_text(table, variant->name);
		table_number(table, i);
		table_number(table, i % crew.gpu_cnt);
		table_number(table, runner->rounds);
		table_number(table, runner->rounds / runner->took_ms * 1e3);
		table_number(table, runner->worst_ms);
		wrong += runner->wrong;
	}
	crew_release(&crew);
	if (wrong)
		fprintf(stderr, "%s: %s: %u values came back wrong\n", program, variant->name,
			wrong);
	return wrong;
}

int main(int argc, char **argv)
{
	enum output output = options_read(argc, argv,
					  "A thread for each GPU copies, computes and copies back "
					  "through pinned memory, in streams\n"
					  "of its own, with one wait in each round: a program in "
					  "which nothing is to be found.",
					  rows);
	unsigned wrong = 0, ran = 0;
	struct table table;
	size_t i;

	options.bytes -= options.bytes % (long)sizeof(int);
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; i < VARIANT_CNT; i++) {
		if (strcmp(options.variant, "all") && strcmp(options.variant, variants[i].name))
			continue;
		wrong += run_variant(&variants[i], &table);
		ran++;
	}
	if (!ran)
		usage_error("--variant %s: must be plain, pipelined or all", options.variant);
	table_print(&table, output);
	table_release(&table);
	return wrong != 0;
}
