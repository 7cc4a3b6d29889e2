/*
 * testapps/hang.c: programs that hang, each for --seconds, after which they end by themselves: to be
 * looked at from another shell, with `cudaspy snapshot`, while nothing moves.
 *
 *   lock-cycle  two threads that use the GPU under locks of their own, and then want each other's: each
 *               has what the other one waits for
 *   kernel      a kernel that does not end; behind it one thread's cudaFree, which waits for the whole GPU,
 *               and behind that another thread's copy, which has to do with neither
 *   callback    a function on the host, handed to a stream, that needs a lock which the thread has that
 *               synchronises the stream
 *   rank        processes that meet in an all-reduce after each step; the last rank does not come, for its
 *               next batch does not arrive
 *   clean       the same threads, and nothing hangs: the locks are taken in one order, the kernels end
 *
 * Look at 'waited': the longest time that a thread was in one call, or waited for one lock. It is what
 * --seconds says in all variants but the last one. The cures: take locks in the same order everywhere; free
 * nothing while work goes on that may not end; give a rank that has no data an empty batch, or end the job.
 *
 * Each variant has processes of its own. `rank` needs NCCL (libnccl.so.2); without it, it is left out.
 */
#include "common.h"
#include "hang.h"
#include "list.h"
#include "../kernels/kernels.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

long hang_seconds = 60, hang_ranks = 2;

const struct crew *hang_crew;

static const char *variants = "all";
static int gpus; /* of this machine; counted for the variant that needs to know */

/* clang-format off */
static const struct option_row rows[] = {
	{"variant", "NAME,...", "lock-cycle, kernel, callback, rank, clean or all (all)",
		OPTION_TEXT, &variants, 0, 0, "lock-cycle,rank"},
	{"seconds", "N", "how long each of them hangs (60)",
		OPTION_NUMBER, &hang_seconds, 1, 3600, "1"},
	{"ranks", "N", "processes of the variant rank (2)",
		OPTION_NUMBER, &hang_ranks, 2, 32, NULL},
	{0},
};
/* clang-format on */

void hang_prepare(struct worker *worker)
{
	struct stuck *self = worker->state;

	CUDA_CHECK(cudaStreamCreateWithFlags(&self->stream, cudaStreamNonBlocking));
	CUDA_CHECK(cudaMalloc(&self->device, HANG_BLOCK_BYTES));
	CUDA_CHECK(cudaMallocHost(&self->pinned, HANG_BLOCK_BYTES));
	CUDA_CHECK(launch_delay(0, self->stream)); /* its code */
	CUDA_CHECK(cudaMemcpyAsync(self->device, self->pinned, HANG_BLOCK_BYTES,
				   cudaMemcpyHostToDevice, self->stream));
	CUDA_CHECK(cudaStreamSynchronize(self->stream));
}

static void waited_since(struct stuck *self, double begin)
{
	double ms = now_ms() - begin;

	if (ms > self->waited_ms)
		self->waited_ms = ms;
}

/* ---- lock-cycle ------------------------------------------------------------------------------ */

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER,
		       queue_lock = PTHREAD_MUTEX_INITIALIZER;

static void use_gpu(const struct stuck *self)
{
	CUDA_CHECK(launch_delay(100, self->stream));
	CUDA_CHECK(cudaStreamSynchronize(self->stream));
}

/* Gives up when the time is over: the program is to end. */
static void lock_for_some_time(pthread_mutex_t *lock, struct stuck *self)
{
	double begin = now_ms();
	struct timespec until;
	int result;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += hang_seconds;
	result = pthread_mutex_timedlock(lock, &until);
	waited_since(self, begin);
	if (!result)
		pthread_mutex_unlock(lock);
	else if (result != ETIMEDOUT)
		die("a lock: %s", strerror(result));
}

static void fill_cache(struct stuck *self)
{
	pthread_mutex_lock(&cache_lock);
	use_gpu(self);
	crew_meet(); /* both have their first lock */
	lock_for_some_time(&queue_lock, self);
	pthread_mutex_unlock(&cache_lock);
}

static void empty_queue(struct stuck *self)
{
	pthread_mutex_lock(&queue_lock);
	use_gpu(self);
	crew_meet();
	lock_for_some_time(&cache_lock, self);
	pthread_mutex_unlock(&queue_lock);
}

static void cycle_work(struct worker *worker)
{
	if (worker->index)
		empty_queue(worker->state);
	else
		fill_cache(worker->state);
}

/* ---- kernel ---------------------------------------------------------------------------------- */

enum { A_WHILE_MS = 100 }; /* so that the kernel, the free and the copy begin in this order */

static void run_kernel(struct stuck *self)
{
	CUDA_CHECK(launch_delay((unsigned)hang_seconds * 1000000u, self->stream));
	crew_meet();
	CUDA_CHECK(cudaStreamSynchronize(self->stream));
}

static void free_block(struct stuck *self)
{
	crew_meet();
	sleep_ms(A_WHILE_MS);
	CUDA_CHECK(cudaFree(self->device));
	self->device = NULL;
}

static void copy_some(struct stuck *self)
{
	crew_meet();
	sleep_ms(2 * A_WHILE_MS);
	CUDA_CHECK(cudaMemcpyAsync(self->device, self->pinned, HANG_BLOCK_BYTES,
				   cudaMemcpyHostToDevice, self->stream));
	CUDA_CHECK(cudaStreamSynchronize(self->stream));
}

static void kernel_work(struct worker *worker)
{
	static void (*const roles[HANG_THREADS])(struct stuck * self) = {run_kernel, free_block,
									 copy_some};
	struct stuck *self = worker->state;
	double begin = now_ms();

	roles[worker->index](self);
	waited_since(self, begin);
}

/* ---- callback -------------------------------------------------------------------------------- */

static void need_cache(void *data)
{
	lock_for_some_time(&cache_lock, data);
}

static void callback_work(struct worker *worker)
{
	struct stuck *self = worker->state;

	pthread_mutex_lock(&cache_lock);
	CUDA_CHECK(launch_delay(100, self->stream));
	CUDA_CHECK(cudaLaunchHostFunc(self->stream, need_cache, self));
	CUDA_CHECK(cudaStreamSynchronize(self->stream));
	pthread_mutex_unlock(&cache_lock);
}

/* ---- clean ----------------------------------------------------------------------------------- */

static void clean_step(struct stuck *self)
{
	void *block;

	pthread_mutex_lock(&cache_lock);
	pthread_mutex_lock(&queue_lock);
	use_gpu(self);
	pthread_mutex_unlock(&queue_lock);
	pthread_mutex_unlock(&cache_lock);
	CUDA_CHECK(cudaMalloc(&block, HANG_BLOCK_BYTES));
	CUDA_CHECK(cudaMemcpyAsync(self->device, self->pinned, HANG_BLOCK_BYTES,
				   cudaMemcpyHostToDevice, self->stream));
	CUDA_CHECK(cudaFree(block));
}

static void clean_work(struct worker *worker)
{
	double until = now_ms() + (double)hang_seconds * 1e3;
	struct stuck *self = worker->state;

	while (now_ms() < until) {
		double begin = now_ms();

		clean_step(self);
		waited_since(self, begin);
		sleep_ms(2);
	}
}

/* ---- all ------------------------------------------------------------------------------------- */

static const struct hang hangs[] = {
	{"lock-cycle", 2, 1, hang_prepare, cycle_work},
	{"kernel", HANG_THREADS, 1, hang_prepare, kernel_work},
	{"callback", 1, 1, hang_prepare, callback_work},
	{"rank", 1, 0, rank_prepare, rank_work},
	{"clean", HANG_THREADS, 1, hang_prepare, clean_work},
};
#define HANG_CNT (sizeof(hangs) / sizeof(hangs[0]))

static bool is_variant(const char *name)
{
	size_t i;

	for (i = 0; i < HANG_CNT; i++)
		if (!strcmp(hangs[i].name, name))
			return true;
	return false;
}

static const struct table_column columns[] = {
	{"variant", "variant", 0},
	{"worker", "thread", 0},
	{"gpu", "GPU", 0},
	{"waited_ms", "waited (ms)", 1},
};

static void enter(const struct crew *crew, int process)
{
	const struct hang *hang = crew->argument;

	hang_crew = crew;
	if (!hang->processes)
		nccl_name_rank(process, (int)hang_ranks, gpus);
}

static unsigned run_one(const struct hang *hang, struct table *table)
{
	struct crew crew = {
		.threads = hang->threads,
		.processes = hang->processes ? hang->processes : hang_ranks,
		.gpus = hang->processes ? 1 : 0,
		.state_size = sizeof(struct stuck),
		.argument = hang,
		.enter = enter,
		.prepare = hang->prepare,
		.work = hang->work,
	};
	unsigned wrong = 0;
	int i;

	progress("%s, for %ld s", hang->name, hang_seconds);
	if (!hang->processes)
		gpus = gpu_count();
	crew_run(&crew);
	for (i = 0; i < crew.worker_cnt; i++) {
		const struct stuck *self = crew_state(&crew, i);

		if (self->left_out)
			continue;
		wrong += self->wrong;
		table_text(table, hang->name);
		table_number(table, i);
		table_number(table, i % crew.gpu_cnt);
		table_number(table, self->waited_ms);
	}
	crew_release(&crew);
	return wrong;
}

int main(int argc, char **argv)
{
	enum output output = options_read(argc, argv,
					  "Programs that hang for a while: to be asked from "
					  "another shell what hangs, and on what.",
					  rows);
	unsigned wrong = 0;
	struct table table;
	size_t i;

	list_check("variant", variants, is_variant);
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; i < HANG_CNT; i++)
		if (list_has(variants, hangs[i].name))
			wrong += run_one(&hangs[i], &table);
	if (wrong)
		fprintf(stderr, "%s: %u sums are wrong\n", program, wrong);
	table_print(&table, output);
	table_release(&table);
	return wrong != 0;
}
