/*
 * testapps/copies_throughput.c: what pageable memory costs a program that does much at once. Each
 * worker has a stream of its own and repeats: copy to the GPU, many launches of a small kernel that
 * leaves most of the GPU to others, copy back, compare. How many such rounds a second, by more and
 * more workers, that are
 *
 *   threads    of one process
 *   processes  with a thread each: the GPU is given to one after the other, a slice of time each
 *   mps        processes again, clients of an MPS daemon, which lets them run at the same time
 *
 * and with buffers from malloc or from cudaMallocHost, with or without cudaStreamSynchronize before the
 * copy back. Look at 'x one': with pinned memory it grows with the workers until the GPU is full. With
 * pageable memory it stays behind where workers are threads, for the copy back waits inside the call and
 * lets others wait with it. Cures, in this order: pin the buffers; synchronise first; use processes
 * under MPS, for which the memory hardly matters.
 *
 * Called from main; a crew for each mode and number of workers runs all four variants.
 */
#include "copies.h"
#include "list.h"
#include "mps.h"
#include "workers.h"
#include "../kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum mode { THREADS, PROCESSES, MPS, MODE_CNT };
static const char *const mode_names[MODE_CNT] = {"threads", "processes", "mps"};

static const struct variant {
	bool pinned, sync_first;
} variants[] = {{false, false}, {false, true}, {true, false}, {true, true}};
enum { VARIANT_CNT = 4, WORKER_NUMBERS_MAX = 16 };

static const struct throughput *options;
static int count; /* integers in a buffer */

/* What one worker works with and found. */
struct copier {
	cudaStream_t stream;
	int *device;
	int *in[2], *out[2]; /* pageable, pinned */
	int term; /* that a launch adds */
	unsigned long wrong; /* results that were not as they should be */
	struct {
		unsigned iterations;
		double ms;
	} done[VARIANT_CNT];
};

/* ---- one worker ----------------------------------------------------------------------------- */

static void stay_alone(const struct crew *crew, int process)
{
	(void)crew, (void)process;
	mps_avoid();
}

static void prepare(struct worker *worker)
{
	struct copier *copier = worker->state;
	int i;

	copier->term = worker->index + 1;
	CUDA_CHECK(cudaStreamCreateWithFlags(&copier->stream, cudaStreamNonBlocking));
	CUDA_CHECK(cudaMalloc((void **)&copier->device, options->bytes));
	copier->in[false] = allocate(1, options->bytes);
	copier->out[false] = allocate(1, options->bytes);
	CUDA_CHECK(cudaMallocHost((void **)&copier->in[true], options->bytes));
	CUDA_CHECK(cudaMallocHost((void **)&copier->out[true], options->bytes));
	for (i = 0; i < count; i++)
		copier->in[false][i] = copier->in[true][i] = i * 31;
}

static void finish(struct worker *worker)
{
	struct copier *copier = worker->state;

	CUDA_CHECK(cudaFreeHost(copier->in[true]));
	CUDA_CHECK(cudaFreeHost(copier->out[true]));
	free(copier->in[false]);
	free(copier->out[false]);
	CUDA_CHECK(cudaFree(copier->device));
	CUDA_CHECK(cudaStreamDestroy(copier->stream));
}

/* The calls this program is about. Compares, and makes the next round's numbers others than these. */
static void round_trip(struct copier *copier, const struct variant *variant)
{
	int *in = copier->in[variant->pinned], *out = copier->out[variant->pinned], i;
	int sum = (int)options->launches * copier->term;

	CUDA_CHECK(cudaMemcpyAsync(copier->device, in, options->bytes, cudaMemcpyHostToDevice,
				   copier->stream));
	for (i = 0; i < options->launches; i++)
		CUDA_CHECK(launch_add_slowly(copier->device, count, copier->term, copier->stream));
	if (variant->sync_first)
		CUDA_CHECK(cudaStreamSynchronize(copier->stream));
	CUDA_CHECK(cudaMemcpyAsync(out, copier->device, options->bytes, cudaMemcpyDeviceToHost,
				   copier->stream));
	CUDA_CHECK(cudaStreamSynchronize(copier->stream));
	for (i = 0; i < count; i++)
		copier->wrong += out[i] != in[i]++ + sum;
}

static void work(struct worker *worker)
{
	struct copier *copier = worker->state;
	int v;

	for (v = 0; v < VARIANT_CNT; v++) {
		double begin, end;

		round_trip(copier, &variants[v]); /* the first is another */
		crew_meet();
		begin = now_ms();
		do {
			round_trip(copier, &variants[v]);
			copier->done[v].iterations++;
			end = now_ms();
			if (worker->index == 0)
				progress("%s: way %d of %d to copy",
					 mode_names[*(const enum mode *)worker->argument], v + 1,
					 VARIANT_CNT);
		} while (end - begin < (double)options->ms_each);
		copier->done[v].ms = end - begin;
		crew_meet();
	}
}

/* ---- one crew ------------------------------------------------------------------------------- */

/* Of the four variants of one mode by so many workers. */
struct result {
	int workers, gpus;
	struct {
		unsigned iterations;
		double per_s;
	} of[VARIANT_CNT];
};

static unsigned long run_crew(enum mode mode, long workers, struct result *result)
{
	struct crew crew = {
		.processes = mode == THREADS ? 1 : workers,
		.threads = mode == THREADS ? workers : 1,
		.gpus = options->gpus,
		.state_size = sizeof(struct copier),
		.argument = &mode,
		.enter = mode == MPS ? NULL : stay_alone,
		.prepare = prepare,
		.work = work,
		.finish = finish,
	};
	unsigned long wrong = 0;
	int w, v;

	progress("%s: %ld workers", mode_names[mode], workers);
	crew_run(&crew);
	*result = (struct result){.workers = crew.worker_cnt, .gpus = crew.gpu_cnt};
	for (w = 0; w < crew.worker_cnt; w++) {
		const struct copier *copier = crew_state(&crew, w);

		wrong += copier->wrong;
		for (v = 0; v < VARIANT_CNT; v++) {
			result->of[v].iterations += copier->done[v].iterations;
			result->of[v].per_s +=
				copier->done[v].iterations * 1e3 / copier->done[v].ms;
		}
	}
	crew_release(&crew);
	if (wrong)
		fprintf(stderr, "%s: %s, %ld workers: %lu values came back wrong\n", program,
			mode_names[mode], workers, wrong);
	return wrong;
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct table_column columns[] = {
	{"mode", "mode", 0},
	{"memory", "memory", 0},
	{"sync_first", "sync first", 0},
	{"workers", "workers", 0},
	{"gpus", "GPUs", 0},
	{"iterations", "iterations", 0},
	{"iterations_per_s", "iterations/s", 1},
	{"per_worker", "each worker", 1},
	{"times_one", "x one", 2},
};

static void report_row(struct table *table, enum mode mode, int v, const struct result *result,
		       const struct result *one)
{
	table_text(table, mode_names[mode]);
	table_text(table, variants[v].pinned ? "pinned" : "pageable");
	table_text(table, variants[v].sync_first ? "yes" : "no");
	table_number(table, result->workers);
	table_number(table, result->gpus);
	table_number(table, result->of[v].iterations);
	table_number(table, result->of[v].per_s);
	table_number(table, result->of[v].per_s / result->workers);
	if (one)
		table_number(table, result->of[v].per_s / one->of[v].per_s);
	else
		table_empty(table);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static bool mode_there(const char *name)
{
	int mode;

	for (mode = 0; mode < MODE_CNT; mode++)
		if (!strcmp(mode_names[mode], name))
			return true;
	return false;
}

static unsigned long run_mode(enum mode mode, const long *workers, int worker_cnt,
			      struct table *table)
{
	const struct result *one = NULL;
	struct result results[WORKER_NUMBERS_MAX];
	unsigned long wrong = 0;
	int i, v;

	for (i = 0; i < worker_cnt; i++) {
		wrong += run_crew(mode, workers[i], &results[i]);
		if (workers[i] == 1)
			one = &results[i];
	}
	for (v = 0; v < VARIANT_CNT; v++)
		for (i = 0; i < worker_cnt; i++)
			report_row(table, mode, v, &results[i], one);
	return wrong;
}

unsigned long throughput_run(const struct throughput *wanted, enum output output)
{
	long workers[WORKER_NUMBERS_MAX];
	const char *modes = wanted->modes;
	unsigned long wrong = 0;
	struct table table;
	int worker_cnt, mode;

	list_check("mode", modes, mode_there);
	worker_cnt =
		list_numbers("workers", wanted->workers, workers, WORKER_NUMBERS_MAX, WORKERS_MAX);
	/* Who did not ask for MPS need not have it. */
	if (!strcmp(modes, "all"))
		modes = mps_there() ? "all" : "threads,processes";
	else if (list_has(modes, mode_names[MPS]))
		mps_need();
	options = wanted;
	count = (int)(options->bytes / (long)sizeof(int));
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (mode = 0; mode < MODE_CNT; mode++)
		if (list_has(modes, mode_names[mode]))
			wrong += run_mode(mode, workers, worker_cnt, &table);
	table_print(&table, output);
	table_release(&table);
	return wrong;
}
