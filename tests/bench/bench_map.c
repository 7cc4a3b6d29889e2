/*
 * tests/bench/bench_map.c: what recording changes where threads contend for the driver's locks, inside
 * one process: the calls of testapps/contention are made by several threads at once, while recording is
 * dormant and while calls are recorded, in turns of some milliseconds and in random order. Two runs of a
 * program on one machine differ by more than what is measured; neighbouring turns of one run do not.
 *
 *   CUDASPY_CAPTURE_RANGE=cudaProfilerApi LD_PRELOAD=libcudaspy.so bench_map --ways dormant,recorded
 *
 * A row for each call and way: the median of the rounds of the mean iteration, and of how many times the
 * first way's it was in the same round, with the quarter of the rounds below and above. At the end the
 * geometric mean of these medians, in brackets where it lies in 95 of 100 draws from the rounds, and the worst.
 * --ways bare is for a run without the recorder. libcudaspy_ways.so (tests/bench/ways.c) has further ways.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda_profiler_api.h>
#include "../../testapps/common.h"
#include "../../testapps/contention.h"
#include "../../testapps/list.h"
#include "../../testapps/workers.h"
#include "../../kernels/kernels.h"

enum { WAYS_MAX = 8, ROUNDS_MAX = 64 };

static struct {
	const char *calls, *ways;
	long threads, gpus, ms, rounds;
} options = {
	.calls = "launch,graph,library,first-launch,func-set,stream,event,event-record,sync,"
		 "stream-sync,h2d-pinned,h2d-pageable,d2h-pinned,d2h-pageable,malloc-3m,"
		 "malloc-async,malloc-host",
	.ways = "dormant,recorded",
	.threads = 8,
	.gpus = 1,
	.ms = 12,
	.rounds = 15,
};

/* clang-format off */
static const struct option_row rows[] = {
	{"calls", "LIST", "names that testapps/contention --list tells (17 of them)",
		OPTION_TEXT, &options.calls, 0, 0, NULL},
	{"ways", "LIST", "bare, dormant, recorded, or what spy_bench_way knows of (dormant,recorded)",
		OPTION_TEXT, &options.ways, 0, 0, NULL},
	{"threads", "N", "that call at once (8)",
		OPTION_NUMBER, &options.threads, 1, WORKERS_MAX, NULL},
	{"gpus", "N", "to spread them over (1)",
		OPTION_NUMBER, &options.gpus, 1, 64, NULL},
	{"ms", "MS", "of a turn (12)",
		OPTION_NUMBER, &options.ms, 1, 1000, "4"},
	{"rounds", "N", "of all ways, for each call (15)",
		OPTION_NUMBER, &options.rounds, 1, ROUNDS_MAX, "3"},
	{0},
};
/* clang-format on */

static const struct call *calls[CALLS_MAX];
static int call_cnt;
static char way_names[WAYS_MAX][LIST_ITEM_MAX];
static int way_cnt;

struct turn {
	double ns;
	unsigned count;
};

struct contender {
	struct subject subject;
	struct turn turns[CALLS_MAX][WAYS_MAX][ROUNDS_MAX];
};

/* ---- ways ----------------------------------------------------------------------------------- */

/* A build of the recorder that is to be compared with itself has it: true if it knows the name. */
static bool (*bench_way)(const char *name);

static void take_ways(void)
{
	const char *rest = options.ways;

	bench_way = (bool (*)(const char *))dlsym(RTLD_DEFAULT, "spy_bench_way");
	while (way_cnt < WAYS_MAX && list_next(&rest, way_names[way_cnt]))
		way_cnt++;
	if (!way_cnt)
		die("no ways");
}

/* By one thread, while the others wait. */
static void go(const char *way)
{
	if (!strcmp(way, "bare"))
		return;
	if (!strcmp(way, "dormant")) {
		CUDA_CHECK(cudaProfilerStop());
		return;
	}
	if (strcmp(way, "recorded") != 0 && !(bench_way && bench_way(way)))
		die("no way %s", way);
	CUDA_CHECK(cudaProfilerStart());
}

/* Of round r: all ways, each round in another order. */
static void order_of(int c, int r, int *order)
{
	unsigned long state = 0x9e3779b97f4a7c15ul * (unsigned long)(c * ROUNDS_MAX + r + 1);
	int i;

	for (i = 0; i < way_cnt; i++) {
		int at;

		state = state * 6364136223846793005ul + 1442695040888963407ul;
		at = (int)(state >> 33) % (i + 1);
		order[i] = order[at];
		order[at] = i;
	}
}

/* ---- one worker ----------------------------------------------------------------------------- */

static void prepare(struct worker *worker)
{
	struct subject *s = &((struct contender *)worker->state)->subject;

	s->worker = worker->index;
	s->gpu = worker->gpu;
	CUDA_CHECK(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
	CUDA_CHECK(cudaMalloc((void **)&s->memory, COPY_BYTES));
	CUDA_CHECK(cudaMalloc((void **)&s->counter, sizeof(int)));
	CUDA_CHECK(cudaMallocHost((void **)&s->pinned, COPY_BYTES));
	s->pageable = aligned_alloc(4096, PAGEABLE_BYTES);
	if (!s->pageable)
		die("out of memory");
	memset(s->pageable, 0, PAGEABLE_BYTES);
	CUDA_CHECK(cudaMemsetAsync(s->counter, 0, sizeof(int), s->stream));
	CUDA_CHECK(launch_add(s->counter, 1, 1, s->stream));
	CUDA_CHECK(cudaStreamSynchronize(s->stream));
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

/* Waiting for the stream is not of the time. */
static void make_calls(const struct call *call, struct subject *subject, double ms,
		       struct turn *turn)
{
	double begin = now_ms(), last = begin + ms, end;

	turn->ns = 0;
	turn->count = 0;
	do {
		call->once(subject);
		end = now_ms();
		turn->ns += (end - begin) * 1e6;
		begin = end;
		if (call->chunk && ++turn->count % call->chunk == 0) {
			CUDA_CHECK(cudaStreamSynchronize(subject->stream));
			begin = now_ms();
		} else if (!call->chunk) {
			turn->count++;
		}
	} while (begin < last);
	CUDA_CHECK(cudaStreamSynchronize(subject->stream));
}

static void work(struct worker *worker)
{
	struct contender *contender = worker->state;
	struct subject *subject = &contender->subject;
	struct turn warm;
	int order[WAYS_MAX], c, r, i;

	for (c = 0; c < call_cnt; c++) {
		crew_meet();
		if (calls[c]->open)
			calls[c]->open(subject);
		calls[c]->once(subject);
		CUDA_CHECK(cudaStreamSynchronize(subject->stream));
		for (r = 0; r < options.rounds; r++) {
			order_of(c, r, order);
			for (i = 0; i < way_cnt; i++) {
				crew_meet();
				if (worker->index == 0)
					go(way_names[order[i]]);
				crew_meet();
				make_calls(calls[c], subject, (double)options.ms / 6, &warm);
				crew_meet();
				make_calls(calls[c], subject, (double)options.ms,
					   &contender->turns[c][order[i]][r]);
			}
		}
		if (calls[c]->close)
			calls[c]->close(subject);
		if (worker->index == 0)
			progress("%s", calls[c]->name);
	}
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct table_column columns[] = {
	{"call", "call", 0},
	{"way", "way", 0},
	{"us", "us", 2},
	{"times_first", "times", 3},
	{"low", "25 %", 3},
	{"high", "75 %", 3},
	{"iterations", "iterations", 0},
};

static double mean_us(const struct crew *crew, int c, int way, int r, double *iterations)
{
	double ns = 0, count = 0;
	int w;

	for (w = 0; w < crew->worker_cnt; w++) {
		const struct contender *contender = crew_state(crew, w);

		ns += contender->turns[c][way][r].ns;
		count += contender->turns[c][way][r].count;
	}
	*iterations += count;
	return ns / count / 1e3;
}

/* How many times the first way's, in each round. */
static double ratios[CALLS_MAX][WAYS_MAX][ROUNDS_MAX];

/* The median of the rounds' ratios. */
static double report_way(struct table *table, const struct crew *crew, int c, int way)
{
	double us[ROUNDS_MAX], sorted[ROUNDS_MAX], iterations = 0, ignored = 0, middle;
	unsigned n = (unsigned)options.rounds, r;

	for (r = 0; r < n; r++) {
		us[r] = mean_us(crew, c, way, (int)r, &iterations);
		sorted[r] = us[r] / mean_us(crew, c, 0, (int)r, &ignored);
		ratios[c][way][r] = sorted[r];
	}
	middle = median(sorted, n);
	table_text(table, calls[c]->name);
	table_text(table, way_names[way]);
	table_number(table, median(us, n));
	table_number(table, middle);
	table_number(table, percentile(sorted, n, 25));
	table_number(table, percentile(sorted, n, 75));
	table_number(table, iterations);
	return middle;
}

enum { DRAWS = 1000 };

/* The geometric mean of the calls' medians, of rounds drawn anew for each call. */
static double drawn_mean(int way, unsigned long *state)
{
	double drawn[ROUNDS_MAX], sum = 0;
	int c, r;

	for (c = 0; c < call_cnt; c++) {
		for (r = 0; r < options.rounds; r++) {
			*state = *state * 6364136223846793005ul + 1442695040888963407ul;
			drawn[r] = ratios[c][way][(*state >> 33) % (unsigned long)options.rounds];
		}
		sum += log(median(drawn, (unsigned)options.rounds));
	}
	return exp(sum / call_cnt);
}

static void report_means(double sums[WAYS_MAX], double worst[WAYS_MAX], int worst_call[WAYS_MAX])
{
	double means[DRAWS];
	unsigned long state = 1;
	int way, i;

	for (way = 1; way < way_cnt; way++) {
		for (i = 0; i < DRAWS; i++)
			means[i] = drawn_mean(way, &state);
		median(means, DRAWS); /* sorts them */
		printf("%s: geometric mean %.3f (%.3f to %.3f) times %s, worst %.3f (%s)\n",
		       way_names[way], exp(sums[way] / call_cnt), percentile(means, DRAWS, 2.5),
		       percentile(means, DRAWS, 97.5), way_names[0], worst[way],
		       calls[worst_call[way]]->name);
	}
}

static void report(enum output output, const struct crew *crew)
{
	double sums[WAYS_MAX] = {0}, worst[WAYS_MAX] = {0};
	int worst_call[WAYS_MAX] = {0}, c, way;
	struct table table;

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (c = 0; c < call_cnt; c++)
		for (way = 0; way < way_cnt; way++) {
			double times = report_way(&table, crew, c, way);

			sums[way] += log(times);
			if (times > worst[way]) {
				worst[way] = times;
				worst_call[way] = c;
			}
		}
	table_print(&table, output);
	table_release(&table);
	report_means(sums, worst, worst_call);
}

/* ---- main ----------------------------------------------------------------------------------- */

static void take(const struct call *table)
{
	for (; table->name; table++)
		if (list_has(options.calls, table->name))
			calls[call_cnt++] = table;
}

int main(int argc, char **argv)
{
	enum output output = options_read(
		argc, argv, "Calls by several threads at once, dormant and recorded.", rows);
	struct crew crew = {
		.processes = IN_PLACE,
		.state_size = sizeof(struct contender),
		.prepare = prepare,
		.work = work,
		.finish = finish,
	};

	crew.threads = options.threads;
	crew.gpus = options.gpus;
	take(calls_without_memory);
	take(calls_with_memory);
	if (!call_cnt)
		die("no such calls: %s", options.calls);
	take_ways();
	crew_run(&crew);
	report(output, &crew);
	crew_release(&crew);
	output_end();
	return 0;
}
