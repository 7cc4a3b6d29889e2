/*
 * testapps/contention.c: which calls stand in each other's way? The same call is made again and again
 * in four ways, and nobody shares anything with anybody, as far as the program can see:
 *
 *   one        by one thread
 *   threads    by several threads of one process, each on a GPU of its own
 *   same       by as many threads on one GPU, each in a stream of its own
 *   processes  by as many processes, each on a GPU of its own
 *
 * Look at 'x one', how many times as long the median call takes as by one thread, and at 'mean x one':
 * where only that is large, most calls wait for nothing and a few for very long, because who has just
 * given the lock back gets it again. Where 'threads' is slow and 'processes' is not, the driver has one
 * lock for the whole process, whatever the GPU: a process for each GPU cures it, and so does calling less
 * often (pools instead of cudaMalloc, pinned buffers kept, graphs instantiated once). Where 'processes'
 * is as slow, the wait is in the kernel module, and only fewer calls help.
 *
 * All calls of a mode are made by one crew, one call after the other; the crew meets before each.
 */
#include "common.h"
#include "contention.h"
#include "list.h"
#include "workers.h"
#include "../kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	const char *modes, *calls;
	long threads, processes, gpus, ms, iterations;
	bool peer, list;
} options = {
	.modes = "all",
	.calls = "all",
	.ms = 100,
	.iterations = ITERATIONS_MAX,
};

/* clang-format off */
static const struct option_row rows[] = {
	{"mode", "LIST", "of one, threads, same, processes, or all (all)",
		OPTION_TEXT, &options.modes, 0, 0, NULL},
	{"calls", "LIST", "names that --list tells, or all (all)",
		OPTION_TEXT, &options.calls, 0, 0, NULL},
	{"list", NULL, "print the names of the calls and exit",
		OPTION_FLAG, &options.list, 0, 0, NULL},
	{"threads", "N", "of modes threads and same (one for each GPU; 4 where there is one)",
		OPTION_NUMBER, &options.threads, 1, WORKERS_MAX, NULL},
	{"processes", "N", "of mode processes (the same)",
		OPTION_NUMBER, &options.processes, 1, WORKERS_MAX, NULL},
	{"gpus", "N", "GPUs to spread the workers over (all)",
		OPTION_NUMBER, &options.gpus, 1, 64, NULL},
	{"peer", NULL, "with peer access between all these GPUs, for the whole run",
		OPTION_FLAG, &options.peer, 0, 0, NULL},
	{"ms", "MS", "for each call in each mode (100)",
		OPTION_NUMBER, &options.ms, 1, 60000, "10"},
	{"iterations", "N", "of each worker and call, at most; some calls stop earlier (4000)",
		OPTION_NUMBER, &options.iterations, 1, ITERATIONS_MAX, "40"},
	{0},
};
/* clang-format on */

static const struct call *calls[CALLS_MAX]; /* those wanted */
static int call_cnt;

/* What one worker works with and measured. */
struct contender {
	struct subject subject;
	bool wrong[CALLS_MAX];
	unsigned count[CALLS_MAX];
	float us[CALLS_MAX][ITERATIONS_MAX];
};

/* ---- one worker ----------------------------------------------------------------------------- */

static void prepare(struct worker *worker)
{
	struct subject *s = &((struct contender *)worker->state)->subject;
	bool first_of_gpu = worker->process > 0 || worker->index < worker->gpu_cnt;

	s->worker = worker->index;
	s->gpu = worker->gpu;
	s->peer_cnt = (int)options.gpus;
	if (!s->peer_cnt)
		CUDA_CHECK(cudaGetDeviceCount(&s->peer_cnt));
	s->opens_peers = first_of_gpu && !options.peer;
	CUDA_CHECK(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
	CUDA_CHECK(cudaMalloc((void **)&s->memory, COPY_BYTES));
	CUDA_CHECK(cudaMalloc((void **)&s->counter, sizeof(int)));
	CUDA_CHECK(cudaMallocHost((void **)&s->pinned, COPY_BYTES));
	s->pageable = aligned_alloc(4096, PAGEABLE_BYTES); /* pages that are nobody else's */
	if (!s->pageable)
		die("out of memory");
	memset(s->pageable, 0, PAGEABLE_BYTES);
	CUDA_CHECK(cudaMemsetAsync(s->counter, 0, sizeof(int), s->stream));
	CUDA_CHECK(launch_add(s->counter, 1, 1, s->stream)); /* loads the code */
	s->launched = 1;
	CUDA_CHECK(cudaStreamSynchronize(s->stream));
	if (options.peer && first_of_gpu)
		peers_open(s);
}

static void finish(struct worker *worker)
{
	struct subject *s = &((struct contender *)worker->state)->subject;

	CUDA_CHECK(cudaStreamDestroy(s->stream));
	CUDA_CHECK(cudaFree(s->memory));
	CUDA_CHECK(cudaFree(s->counter));
	CUDA_CHECK(cudaFreeHost(s->pinned));
	free(s->pageable);
}

static unsigned measure(const struct call *call, struct subject *subject, float *us)
{
	unsigned limit = call->iterations, i = 0;
	double begin, end, last;

	if (limit > options.iterations)
		limit = (unsigned)options.iterations;
	begin = now_ms();
	last = begin + (double)options.ms;
	while (i < limit && begin < last) {
		call->once(subject);
		end = now_ms();
		us[i++] = (float)((end - begin) * 1e3);
		begin = end;
		if (call->chunk && i % call->chunk == 0) {
			CUDA_CHECK(cudaStreamSynchronize(subject->stream));
			begin = now_ms();
		}
	}
	CUDA_CHECK(cudaStreamSynchronize(subject->stream));
	return i;
}

static void work(struct worker *worker)
{
	struct contender *contender = worker->state;
	struct subject *subject = &contender->subject;
	int c;

	for (c = 0; c < call_cnt; c++) {
		const struct call *call = calls[c];

		crew_meet(); /* nobody prepares while another still closes the call before */
		if (call->open)
			call->open(subject);
		call->once(subject);
		CUDA_CHECK(cudaStreamSynchronize(subject->stream));
		crew_meet();
		contender->count[c] = measure(call, subject, contender->us[c]);
		crew_meet();
		contender->wrong[c] = !call->right(subject);
		if (call->close)
			call->close(subject);
		if (worker->index == 0)
			progress("%s: %s", (const char *)worker->argument, call->name);
	}
}

/* ---- one mode ------------------------------------------------------------------------------- */

enum { ONE, THREADS, SAME, PROCESSES, MODE_CNT };
static const char *const mode_names[MODE_CNT] = {"one", "threads", "same", "processes"};

/* Of one call in one mode, over all workers. */
static struct result {
	int workers, gpus;
	unsigned count;
	double median_us, p99_us, mean_us, max_us;
} results[MODE_CNT][CALLS_MAX];

static void summarize(const struct crew *crew, int c, struct result *result)
{
	double *all = allocate((size_t)crew->worker_cnt * ITERATIONS_MAX, sizeof(*all)), sum = 0;
	unsigned count = 0, i;
	int w;

	for (w = 0; w < crew->worker_cnt; w++) {
		const struct contender *contender = crew_state(crew, w);

		for (i = 0; i < contender->count[c]; i++)
			sum += all[count++] = contender->us[c][i];
	}
	result->workers = crew->worker_cnt;
	result->gpus = crew->gpu_cnt;
	result->count = count;
	result->median_us = median(all, count); /* sorts them */
	result->p99_us = percentile(all, count, 99);
	result->mean_us = sum / count;
	result->max_us = all[count - 1];
	free(all);
}

/* Returns how many results were wrong. */
static int run_mode(int mode, long workers)
{
	struct crew crew = {
		.processes = mode == PROCESSES ? workers : 1,
		.threads = mode == THREADS || mode == SAME ? workers : 1,
		.gpus = mode == SAME ? 1 : options.gpus,
		.state_size = sizeof(struct contender),
		.argument = mode_names[mode],
		.prepare = prepare,
		.work = work,
		.finish = finish,
	};
	int wrong = 0, c, w;

	progress("%s: %ld workers", mode_names[mode], workers);
	crew_run(&crew);
	for (c = 0; c < call_cnt; c++) {
		summarize(&crew, c, &results[mode][c]);
		for (w = 0; w < crew.worker_cnt; w++) {
			if (!((struct contender *)crew_state(&crew, w))->wrong[c])
				continue;
			fprintf(stderr, "%s: %s, %s: worker %d found a wrong result\n", program,
				calls[c]->name, mode_names[mode], w);
			wrong++;
		}
	}
	crew_release(&crew);
	return wrong;
}

/* How many work in a mode, unless --threads or --processes says so. */
static long workers_of(int mode)
{
	long wanted = mode == PROCESSES ? options.processes : options.threads;
	static long there;

	if (mode == ONE)
		return 1;
	if (wanted)
		return wanted;
	if (!there)
		there = options.gpus ? options.gpus : gpu_count();
	return there > 1 ? there : 4;
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct table_column columns[] = {
	{"call", "call", 0},
	{"mode", "mode", 0},
	{"workers", "workers", 0},
	{"gpus", "GPUs", 0},
	{"iterations", "iterations", 0},
	{"median_us", "median us", 2},
	{"p99_us", "p99 us", 2},
	{"mean_us", "mean us", 2},
	{"max_us", "max us", 2},
	{"times_one", "x one", 2},
	{"mean_times_one", "mean x one", 2},
};

static void report_call(struct table *table, int c)
{
	int mode;

	for (mode = 0; mode < MODE_CNT; mode++) {
		const struct result *result = &results[mode][c];

		if (!result->count)
			continue;
		table_text(table, calls[c]->name);
		table_text(table, mode_names[mode]);
		table_number(table, result->workers);
		table_number(table, result->gpus);
		table_number(table, result->count);
		table_number(table, result->median_us);
		table_number(table, result->p99_us);
		table_number(table, result->mean_us);
		table_number(table, result->max_us);
		if (results[ONE][c].count) {
			table_number(table, result->median_us / results[ONE][c].median_us);
			table_number(table, result->mean_us / results[ONE][c].mean_us);
		} else {
			table_empty(table);
			table_empty(table);
		}
	}
}

/* ---- main ----------------------------------------------------------------------------------- */

static void take_all(const struct call *table)
{
	for (; table->name; table++)
		calls[call_cnt++] = table;
}

static void list_calls(void)
{
	int c;

	for (c = 0; c < call_cnt; c++)
		printf("%-16s %s\n", calls[c]->name, calls[c]->what);
	output_end();
	exit(0);
}

static bool call_there(const char *name)
{
	int c;

	for (c = 0; c < call_cnt; c++)
		if (!strcmp(calls[c]->name, name))
			return true;
	return false;
}

static bool mode_there(const char *name)
{
	int mode;

	for (mode = 0; mode < MODE_CNT; mode++)
		if (!strcmp(mode_names[mode], name))
			return true;
	return false;
}

static void keep_wanted(void)
{
	int c, kept = 0;

	for (c = 0; c < call_cnt; c++)
		if (list_has(options.calls, calls[c]->name))
			calls[kept++] = calls[c];
	call_cnt = kept;
}

int main(int argc, char **argv)
{
	enum output output = options_read(argc, argv,
					  "The same call made by one thread, by a thread for each "
					  "GPU, by as many threads on one\n"
					  "GPU, and by a process for each GPU: what they take "
					  "longer than one thread alone they\n"
					  "wait for each other. By default 22 calls in 4 modes, "
					  "100 ms each: nine seconds, and\n"
					  "for each mode what CUDA takes to start on all GPUs, and "
					  "some slow calls take longer.",
					  rows);
	struct table table;
	int wrong = 0, mode, c;

	take_all(calls_without_memory);
	take_all(calls_with_memory);
	if (options.list)
		list_calls();
	list_check("calls", options.calls, call_there);
	list_check("mode", options.modes, mode_there);
	keep_wanted();
	for (mode = 0; mode < MODE_CNT; mode++)
		if (list_has(options.modes, mode_names[mode]))
			wrong += run_mode(mode, workers_of(mode));
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (c = 0; c < call_cnt; c++)
		report_call(&table, c);
	table_print(&table, output);
	table_release(&table);
	return wrong != 0;
}
