/*
 * testapps/matmul.c: matrix products on GPUs that have nothing to do with each other. Each worker has a
 * GPU of its own, a stream and matrices of its own, and launches the same product thousands of times.
 * Three crews of workers do it, one after the other:
 *
 *   alone      one worker on GPU 0
 *   threads    one worker for each GPU, as threads of one process
 *   processes  one worker for each GPU, each a process of its own
 *
 * All should be as fast as the lone one: look at 'ratio', a worker's time against that. Threads that are
 * several times slower while processes are not wait for locks inside the driver, which exist once for
 * each process whatever the number of GPUs. It is said to come at random, often at the third or fourth
 * run: --repeat. Drivers differ in what they do under such a lock. Where launches alone do not collide,
 * add what does with --beside: allocating, pinning, making graphs.
 *
 * A cure: one process for each GPU; or none of those calls in the loop (allocate and pin once, keep the
 * graphs, cudaMallocAsync), for it is the calls of *other* threads that a launch waits for.
 */
#include "common.h"
#include "matmul_beside.h"
#include "workers.h"
#include "../kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	long threads, processes, gpus, size, iterations, every, repeat;
	const char *beside;
} options = {
	.size = 320,
	.iterations = 10000,
	.every = 10,
	.repeat = 1,
	.beside = "none",
};

/* clang-format off */
static const struct option_row rows[] = {
	{"threads", "N", "only the lone worker and N threads of one process",
		OPTION_NUMBER, &options.threads, 1, WORKERS_MAX, NULL},
	{"processes", "N", "only the lone worker and N processes (with --threads: both)",
		OPTION_NUMBER, &options.processes, 1, WORKERS_MAX, NULL},
	{"gpus", "N", "GPUs to spread the workers over (all)",
		OPTION_NUMBER, &options.gpus, 1, 64, NULL},
	{"iterations", "N", "products of each worker (10000)",
		OPTION_NUMBER, &options.iterations, 1, 100000000, "2000"},
	{"size", "N", "N rows of N numbers times N rows of 2 N (320)",
		OPTION_NUMBER, &options.size, 1, 1024, "16"},
	{"beside", "LIST", "what else each worker does between launches: none, or some of\n"
		"                         malloc, event, pin, graph, with commas (none)",
		OPTION_TEXT, &options.beside, 0, 0, NULL},
	{"every", "N", "launches between one round of that and the next (10)",
		OPTION_NUMBER, &options.every, 1, 100000000, NULL},
	{"repeat", "N", "run all crews N times (1)",
		OPTION_NUMBER, &options.repeat, 1, 10000, NULL},
	{0},
};
/* clang-format on */

/* What one worker works with and found. */
struct multiplier {
	cudaStream_t stream;
	float *a, *b, *c;
	double total_ms, beside_ms;
	unsigned beside_cnt, wrong;
};

/* The same for all workers, made before the first crew: small whole numbers, so that sums are exact. */
static float *host_a, *host_b, *expected;

static size_t a_count(void)
{
	return (size_t)(options.size * options.size);
}

static size_t b_count(void) /* and of c */
{
	return 2 * a_count();
}

static void launch(const struct multiplier *self)
{
	unsigned size = (unsigned)options.size;

	CUDA_CHECK(launch_matmul(self->c, self->a, self->b, size, size, 2 * size, self->stream));
}

/* ---- one worker ------------------------------------------------------------------------------ */

static float *device_copy(const float *host, size_t count)
{
	float *memory;

	CUDA_CHECK(cudaMalloc((void **)&memory, count * sizeof(*memory)));
	CUDA_CHECK(cudaMemcpy(memory, host, count * sizeof(*memory), cudaMemcpyHostToDevice));
	CUDA_CHECK(cudaDeviceSynchronize()); /* until then the data may only have been staged */
	return memory;
}

static void prepare(struct worker *worker)
{
	struct multiplier *self = worker->state;

	CUDA_CHECK(cudaStreamCreateWithFlags(&self->stream, cudaStreamNonBlocking));
	self->a = device_copy(host_a, a_count());
	self->b = device_copy(host_b, b_count());
	CUDA_CHECK(cudaMalloc((void **)&self->c, b_count() * sizeof(*self->c)));
	launch(self); /* the first launch loads the code, and so with what is done beside it */
	beside_once(self->stream);
	CUDA_CHECK(cudaMemsetAsync(self->c, 0xff, b_count() * sizeof(*self->c), self->stream));
	CUDA_CHECK(cudaStreamSynchronize(self->stream));
}

static void beside(struct multiplier *self)
{
	double begin = now_ms();

	beside_once(self->stream);
	self->beside_ms += now_ms() - begin;
	self->beside_cnt++;
}

/* Nothing in the loop waits for the GPU, but a full launch queue: so the GPU sets the pace, and as long
 * as the host keeps ahead of it, what a launch costs the host does not show. */
static void work(struct worker *worker)
{
	struct multiplier *self = worker->state;
	double begin;
	long i;

	crew_meet();
	begin = now_ms();
	for (i = 1; i <= options.iterations; i++) {
		launch(self);
		if (beside_wanted() && i % options.every == 0)
			beside(self);
		if (i % 256 == 0 && worker->index == 0)
			progress("launch %ld of %ld", i, options.iterations);
	}
	CUDA_CHECK(cudaStreamSynchronize(self->stream));
	self->total_ms = now_ms() - begin;
	crew_meet(); /* nobody frees anything while others still measure */
}

static void finish(struct worker *worker)
{
	struct multiplier *self = worker->state;
	size_t i, bytes = b_count() * sizeof(float);
	float *c = allocate(1, bytes);

	CUDA_CHECK(cudaMemcpy(c, self->c, bytes, cudaMemcpyDeviceToHost));
	for (i = 0; i < b_count(); i++)
		self->wrong += c[i] != expected[i];
	free(c);
	CUDA_CHECK(cudaFree(self->a));
	CUDA_CHECK(cudaFree(self->b));
	CUDA_CHECK(cudaFree(self->c));
	CUDA_CHECK(cudaStreamDestroy(self->stream));
}

static void host_matrices(void)
{
	size_t size = (size_t)options.size, row, i, column;

	host_a = allocate(a_count(), sizeof(*host_a));
	host_b = allocate(b_count(), sizeof(*host_b));
	expected = allocate(b_count(), sizeof(*expected));
	for (i = 0; i < a_count(); i++)
		host_a[i] = (float)(i * 31 % 17) - 8;
	for (i = 0; i < b_count(); i++)
		host_b[i] = (float)(i * 13 % 11) - 5;
	for (row = 0; row < size; row++) {
		for (i = 0; i < size; i++) {
			for (column = 0; column < 2 * size; column++)
				expected[row * 2 * size + column] +=
					host_a[row * size + i] * host_b[i * 2 * size + column];
		}
	}
}

/* ---- one crew -------------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{"mode", "mode", 0},
	{"run", "run", 0},
	{"worker", "worker", 0},
	{"gpu", "GPU", 0},
	{"ms_per_launch", "ms/launch", 4},
	{"gflop_per_s", "GFLOP/s", 1},
	{"ratio", "ratio", 2},
	{"beside_us", "beside us", 1},
};

struct mode {
	const char *name;
	long processes, threads, gpus; /* as a crew has them; gpus 0: --gpus */
	bool wanted;
};

/* The last columns of a row: of one worker, or means if these are the sums of cnt workers. Returns the
 * time of a launch. alone_ms 0: this is the lone worker. */
static double report_times(struct table *table, const struct multiplier *times, int cnt,
			   double alone_ms)
{
	double operations = 4.0 * (double)options.size * (double)a_count();
	double ms = times->total_ms / (double)options.iterations / cnt;

	table_number(table, ms);
	table_number(table, operations / ms / 1e6);
	table_number(table, alone_ms > 0 ? ms / alone_ms : 1);
	if (times->beside_cnt)
		table_number(table, times->beside_ms / times->beside_cnt * 1e3);
	else
		table_empty(table);
	return ms;
}

/* Adds a row for each worker, adds up what they found, and adds the row of all. */
static double report_crew(struct table *table, const struct crew *crew, const char *mode, int run,
			  double alone_ms, struct multiplier *sum)
{
	int i;

	for (i = 0; i < crew->worker_cnt; i++) {
		const struct multiplier *self = crew_state(crew, i);

		table_text(table, mode);
		table_number(table, run);
		table_number(table, i);
		table_number(table, i % crew->gpu_cnt);
		report_times(table, self, 1, alone_ms);
		sum->total_ms += self->total_ms;
		sum->beside_ms += self->beside_ms;
		sum->beside_cnt += self->beside_cnt;
		sum->wrong += self->wrong;
	}
	table_text(table, mode);
	table_number(table, run);
	table_text(table, "all");
	table_empty(table);
	return report_times(table, sum, crew->worker_cnt, alone_ms);
}

/* alone_ms is set by the first crew, the lone worker. Returns how many numbers were wrong. */
static unsigned run_crew(const struct mode *mode, int run, double *alone_ms, struct table *table)
{
	struct crew crew = {
		.processes = mode->processes,
		.threads = mode->threads,
		.gpus = mode->gpus ? mode->gpus : options.gpus,
		.state_size = sizeof(struct multiplier),
		.prepare = prepare,
		.work = work,
		.finish = finish,
	};
	struct multiplier sum = {0};
	double ms;

	crew_run(&crew);
	ms = report_crew(table, &crew, mode->name, run, *alone_ms, &sum);
	if (!*alone_ms)
		*alone_ms = ms;
	crew_release(&crew);
	if (sum.wrong)
		fprintf(stderr, "%s: %s: %u numbers of the products are wrong\n", program,
			mode->name, sum.wrong);
	progress("run %d of %ld: %s: %.4f ms a launch", run, options.repeat, mode->name, ms);
	return sum.wrong;
}

int main(int argc, char **argv)
{
	enum output output = options_read(
		argc, argv,
		"Workers that share nothing multiply matrices, each on its own GPU: one alone,\n"
		"then threads of one process, then processes. Shows who slows whom down.",
		rows);
	bool both = !options.threads == !options.processes;
	const struct mode modes[] = {
		{"alone", 1, 1, 1, true},
		{"threads", 1, options.threads ? options.threads : ONE_PER_GPU, 0,
		 both || options.threads},
		{"processes", options.processes ? options.processes : ONE_PER_GPU, 1, 0,
		 both || options.processes},
	};
	unsigned wrong = 0;
	struct table table;
	int run, i;

	beside_read(options.beside);
	if (!options.gpus)
		options.gpus = gpu_count();
	host_matrices();
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (run = 1; run <= options.repeat; run++) {
		double alone_ms = 0;

		for (i = 0; i < 3; i++) {
			if (modes[i].wanted)
				wrong += run_crew(&modes[i], run, &alone_ms, &table);
		}
	}
	table_print(&table, output);
	table_release(&table);
	return wrong != 0;
}
