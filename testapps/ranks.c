/*
 * testapps/ranks.c: data-parallel training in small: processes, one a GPU, that each compute a step and then
 * add up their numbers, as gradients are, in an all-reduce. All go on when the last one has come:
 *
 *   --straggler 1:free   rank 1 comes late in every fourth step; --help has the causes
 *   --exchange           experts: an all-to-all in the midst of a step
 *   --microbatches 4     ranks are the stages of a pipeline: forward and back, and then the all-reduce
 *   --overlap            the all-reduce runs beside the step's second half, on a stream of its own
 *
 * Look at 'all-reduce': the time that a rank's GPU is in all-reduces, waiting for others included. It is
 * small at the rank that is late, and large at all others, which only wait for it: so who is slow does
 * not look slow. The twin without --straggler has no such difference.
 *
 * The sums are made by NCCL, where libnccl.so.2 is to be found, else through shared memory, where the
 * processes meet on the host. RANK, LOCAL_RANK and WORLD_SIZE are set as launchers do. With more ranks than
 * GPUs, ranks share them, and each gets an NCCL_HOSTID of its own: NCCL allows no two of a host on one GPU.
 */
#include "common.h"
#include "ranks.h"
#include "workers.h"
#include "../kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS_PER_STEP = 4 };

static struct {
	long ranks, gpus, steps, bytes, buckets, microbatches, work_us, read_every, in_turn;
	const char *straggler;
	bool overlap, exchange, without_nccl;
} options = {
	.steps = 200,
	.bytes = 4 << 20,
	.buckets = 1,
	.work_us = 4000,
	.read_every = 1,
	.straggler = "none",
};

/* clang-format off */
static const struct option_row rows[] = {
	{"ranks", "N", "processes (one for each GPU, but two at least)",
		OPTION_NUMBER, &options.ranks, 2, 64, NULL},
	{"gpus", "N", "GPUs to spread the ranks over (all)",
		OPTION_NUMBER, &options.gpus, 1, 64, NULL},
	{"steps", "N", "steps of each rank (200)",
		OPTION_NUMBER, &options.steps, 1, 100000000, "20"},
	{"work-us", "N", "how long a step's kernels take the GPU (4000)",
		OPTION_NUMBER, &options.work_us, KERNELS_PER_STEP, 10000000, "1000"},
	{"bytes", "N", "of the all-reduce (4194304)",
		OPTION_NUMBER, &options.bytes, 4, 256 << 20, "16384"},
	{"buckets", "N", "all-reduces that these are cut into, of different sizes (1)",
		OPTION_NUMBER, &options.buckets, 1, 64, NULL},
	{"microbatches", "N", "of a step, that ranks send to each other as a pipeline's stages do (0: none)",
		OPTION_NUMBER, &options.microbatches, 0, 1000, NULL},
	{"exchange", NULL, "an all-to-all before the all-reduce, and half of the kernels between them",
		OPTION_FLAG, &options.exchange, 0, 0, NULL},
	{"read-every", "N", "steps between reading back the sums and the next time (1)",
		OPTION_NUMBER, &options.read_every, 1, 1000, NULL},
	{"straggler", "SPEC", "who is late: RANK:CAUSE[:EVERY[:MS]]; cause: free, load, sync,\n"
		"                         cpu, nap, turns, kernel or uneven; in every EVERYth step (4), by MS (5); or none",
		OPTION_TEXT, &options.straggler, 0, 0, NULL},
	{"in-turn", "MS", "in each step the ranks compute, one of them, in turn, MS longer (0: none)",
		OPTION_NUMBER, &options.in_turn, 0, 1000, NULL},
	{"overlap", NULL, "the all-reduce beside the second half of the kernels",
		OPTION_FLAG, &options.overlap, 0, 0, NULL},
	{"without-nccl", NULL, "through shared memory, also where NCCL is",
		OPTION_FLAG, &options.without_nccl, 0, 0, NULL},
	{0},
};
/* clang-format on */

static struct straggler straggler;

/* A rank, and what it found. Others read the first one's id. */
struct rank {
	struct nccl_id id;
	bool nccl;
	cudaStream_t compute, communicate;
	cudaEvent_t computed, *began,
		*ended; /* of the all-reduce, for each step since the last reading */
	int *numbers, *sum, *host;
	double total_ms, all_reduce_ms;
	unsigned wrong;
};

static const struct crew *crew;

static size_t count(void)
{
	return (size_t)options.bytes / sizeof(int);
}

/* ---- one rank -------------------------------------------------------------------------------- */

static void enter(const struct crew *its_crew, int process)
{
	crew = its_crew;
	nccl_name_rank(process, (int)options.ranks, (int)options.gpus);
}

static void make_streams(struct rank *self)
{
	long i;

	CUDA_CHECK(cudaStreamCreateWithFlags(&self->compute, cudaStreamNonBlocking));
	CUDA_CHECK(cudaStreamCreateWithFlags(&self->communicate, cudaStreamNonBlocking));
	CUDA_CHECK(cudaEventCreateWithFlags(&self->computed, cudaEventDisableTiming));
	self->began = allocate((size_t)options.read_every, sizeof(*self->began));
	self->ended = allocate((size_t)options.read_every, sizeof(*self->ended));
	for (i = 0; i < options.read_every; i++) {
		CUDA_CHECK(cudaEventCreate(&self->began[i]));
		CUDA_CHECK(cudaEventCreate(&self->ended[i]));
	}
}

static void prepare(struct worker *worker)
{
	struct rank *self = worker->state;
	size_t bytes = count() * sizeof(int);

	make_streams(self);
	CUDA_CHECK(cudaMalloc((void **)&self->numbers, bytes));
	CUDA_CHECK(cudaMalloc((void **)&self->sum, bytes));
	CUDA_CHECK(cudaMallocHost((void **)&self->host, bytes));
	straggler_prepare(&straggler, worker->index);
	self->nccl = !options.without_nccl && nccl_load();
	if (!self->nccl)
		shared_join();
	if ((options.microbatches || options.exchange) && !self->nccl)
		die("%s: there is no libnccl.so.2",
		    options.exchange ? "--exchange" : "--microbatches");
}

static void join(const struct worker *worker)
{
	struct rank *self = worker->state, *first = crew_state(crew, 0);

	if (self->nccl && worker->index == 0)
		nccl_make_id(&self->id);
	crew_meet();
	if (self->nccl != first->nccl)
		die("some ranks find NCCL and others do not");
	if (self->nccl)
		nccl_join(&first->id, worker->index, (int)options.ranks);
}

/* The kernels from one of the step's to another. */
static void launch_some(const struct rank *self, int from, int to, double ms)
{
	int i;

	for (i = from; i < to; i++)
		CUDA_CHECK(launch_delay((unsigned)(ms * 1e3 / KERNELS_PER_STEP), self->compute));
}

/* Each bucket has one share more than the one before it, as layers of a network differ. */
static void sum_buckets(const struct rank *self, cudaStream_t stream)
{
	size_t share = count() * 2 / (size_t)(options.buckets * (options.buckets + 1)), at = 0;
	long i;

	for (i = 1; i <= options.buckets; i++) {
		size_t n = i < options.buckets ? share * (size_t)i : count() - at;

		if (n)
			nccl_sum(self->numbers + at, self->sum + at, n, stream);
		at += n;
	}
}

static void all_reduce(struct rank *self, int rank, long step)
{
	cudaStream_t stream = options.overlap ? self->communicate : self->compute;
	long i = step % options.read_every;

	CUDA_CHECK(cudaEventRecord(self->began[i], stream));
	if (self->nccl)
		sum_buckets(self, stream);
	else
		shared_sum(self->numbers, self->sum, count(), rank, (int)options.ranks, stream);
	CUDA_CHECK(cudaEventRecord(self->ended[i], stream));
}

/* From the stage before, or back from the one behind, or for them; at the ends there is none. */
static void receive_from(const struct rank *self, long rank)
{
	if (rank >= 0 && rank < options.ranks)
		nccl_receive(self->sum, count(), (int)rank, self->compute);
}

static void send_to(const struct rank *self, long rank)
{
	if (rank >= 0 && rank < options.ranks)
		nccl_send(self->numbers, count(), (int)rank, self->compute);
}

/* All microbatches forward, then all of them back, which takes twice as long. */
static void pipeline(const struct rank *self, int rank, double ms)
{
	unsigned forward_us = (unsigned)(ms * 1e3 / 3 / (double)options.microbatches);
	long i;

	for (i = 0; i < options.microbatches; i++) {
		receive_from(self, rank - 1);
		CUDA_CHECK(launch_delay(forward_us, self->compute));
		send_to(self, rank + 1);
	}
	for (i = 0; i < options.microbatches; i++) {
		receive_from(self, rank + 1);
		CUDA_CHECK(launch_delay(2 * forward_us, self->compute));
		send_to(self, rank - 1);
	}
}

/* Experts: what they get comes before their work. */
static void exchange(const struct rank *self, int rank, double ms)
{
	launch_some(self, 0, KERNELS_PER_STEP / 2, ms);
	nccl_exchange(self->numbers, self->sum, count(), rank, (int)options.ranks, self->compute);
	launch_some(self, KERNELS_PER_STEP / 2, KERNELS_PER_STEP, ms);
}

static void one_step(struct rank *self, int rank, long step)
{
	bool late = straggler_is_late(&straggler, rank, step);
	double ms = (double)options.work_us / 1e3 + (late ? straggler_kernel_ms(&straggler) : 0);
	int half = options.overlap ? KERNELS_PER_STEP / 2 : KERNELS_PER_STEP;

	if (options.in_turn)
		take_turn(step % options.ranks == rank, (double)options.in_turn);
	if (late)
		straggler_before(&straggler, self->compute);
	CUDA_CHECK(cudaMemsetAsync(self->numbers, 0, count() * sizeof(int), self->compute));
	CUDA_CHECK(launch_add(self->numbers, (unsigned)count(), (int)(rank + 1 + step),
			      self->compute));
	if (options.microbatches)
		pipeline(self, rank, ms);
	else if (options.exchange)
		exchange(self, rank, ms);
	else
		launch_some(self, 0, half, ms);
	if (late)
		straggler_behind(&straggler, self->compute);
	if (options.overlap) {
		CUDA_CHECK(cudaEventRecord(self->computed, self->compute));
		CUDA_CHECK(cudaStreamWaitEvent(self->communicate, self->computed, 0));
	}
	all_reduce(self, rank, step);
	if (options.overlap) {
		launch_some(self, half, KERNELS_PER_STEP, ms);
		CUDA_CHECK(cudaStreamWaitEvent(self->compute,
					       self->ended[step % options.read_every], 0));
	}
}

/* Every rank adds its number and one and the step. */
static int expected(long step)
{
	long ranks = options.ranks;

	return (int)(ranks * (ranks + 1) / 2 + ranks * step);
}

static void read_back(struct rank *self, long step)
{
	long steps = step % options.read_every + 1, i;
	size_t at;
	float ms;

	CUDA_CHECK(cudaMemcpyAsync(self->host, self->sum, count() * sizeof(int),
				   cudaMemcpyDeviceToHost, self->compute));
	CUDA_CHECK(cudaStreamSynchronize(self->compute));
	if (self->nccl)
		nccl_check();
	for (at = 0; at < count(); at++)
		self->wrong += self->host[at] != expected(step);
	for (i = 0; i < steps; i++) {
		CUDA_CHECK(cudaEventElapsedTime(&ms, self->began[i], self->ended[i]));
		self->all_reduce_ms += ms;
	}
}

static void work(struct worker *worker)
{
	struct rank *self = worker->state;
	double begin;
	long step;

	join(worker);
	all_reduce(self, worker->index, 0); /* the first one makes connections and loads code */
	CUDA_CHECK(cudaDeviceSynchronize());
	crew_meet();
	begin = now_ms();
	for (step = 0; step < options.steps; step++) {
		one_step(self, worker->index, step);
		if ((step + 1) % options.read_every == 0 || step + 1 == options.steps)
			read_back(self, step);
		if (worker->index == 0)
			progress("step %ld of %ld", step + 1, options.steps);
	}
	self->total_ms = now_ms() - begin;
	crew_meet();
}

static void finish(struct worker *worker)
{
	struct rank *self = worker->state;

	if (self->nccl)
		nccl_leave();
	else
		shared_leave();
	CUDA_CHECK(cudaFree(self->numbers));
	CUDA_CHECK(cudaFree(self->sum));
	CUDA_CHECK(cudaFreeHost(self->host));
	free(self->began);
	free(self->ended);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{"rank", "rank", 0},           {"gpu", "GPU", 0},
	{"through", "through", 0},     {"steps", "steps", 0},
	{"step_ms", "ms/step", 3},     {"all_reduce_ms", "all-reduce ms/step", 3},
	{"straggler", "straggler", 0},
};

static void report(const struct crew *of, struct table *table)
{
	int i;

	for (i = 0; i < of->worker_cnt; i++) {
		const struct rank *self = crew_state(of, i);

		table_number(table, i);
		table_number(table, i % of->gpu_cnt);
		table_text(table, self->nccl ? "nccl" : "host");
		table_number(table, (double)options.steps);
		table_number(table, self->total_ms / (double)options.steps);
		table_number(table, self->all_reduce_ms / (double)options.steps);
		table_text(table, i == straggler.rank ? straggler.cause : "");
	}
}

int main(int argc, char **argv)
{
	enum output output = options_read(
		argc, argv,
		"Processes, one a GPU, that compute and then add up their numbers, step by step.\n"
		"Shows who waits for whom when one of them is late.",
		rows);
	struct crew all = {
		.threads = 1,
		.state_size = sizeof(struct rank),
		.enter = enter,
		.prepare = prepare,
		.work = work,
		.finish = finish,
	};
	unsigned wrong = 0;
	struct table table;
	int i;

	straggler_read(options.straggler, &straggler);
	if (options.microbatches && (options.overlap || options.without_nccl))
		usage_error("--microbatches: not with --overlap, nor --without-nccl");
	all.gpus = options.gpus;
	if (!options.gpus)
		options.gpus = gpu_count();
	if (!options.ranks)
		options.ranks = options.gpus < 2 ? 2 : options.gpus;
	if (straggler.rank >= options.ranks)
		usage_error("--straggler %s: there are %ld ranks", options.straggler,
			    options.ranks);
	straggler.ranks = options.ranks;
	straggler.steps = options.steps;
	all.processes = options.ranks;
	shared_make((int)options.ranks, count());
	crew_run(&all);
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	report(&all, &table);
	for (i = 0; i < all.worker_cnt; i++)
		wrong += ((const struct rank *)crew_state(&all, i))->wrong;
	crew_release(&all);
	if (wrong)
		fprintf(stderr, "%s: %u sums are wrong\n", program, wrong);
	table_print(&table, output);
	table_release(&table);
	return wrong != 0;
}
