/*
 * testapps/starved.c: a GPU that has nothing to do because of the thread that feeds it. A few
 * hundred steps: get a batch, bring it to the GPU, let that work on it for --gpu-us, wait with
 * cudaStreamSynchronize. While the host gets the next batch, --host-us each time, the GPU stands
 * still. The variants differ in what the host does then:
 *
 *   sleep    it sleeps, as programs do that poll
 *   compute  it makes the batch itself, on a CPU
 *   read     it reads the batch from a pipe; another thread writes it when asked
 *   lock     it needs a mutex that another thread, which never calls CUDA, keeps for so long
 *   thread   it has another thread make the batch, and waits on a condition until that is done
 *   join     it starts a thread for the batch and joins it
 *   ahead    the cure: another thread makes the next batch in the second of two pinned buffers
 *            while the GPU works on this one; the host submits a step before it waits for the one
 *            before
 *
 * Two more need nothing from others; what they do for the GPU comes in many pieces:
 *
 *   launches  the work of --gpu-us is --launches kernels: each takes the GPU less time than the host
 *             needs to launch the next one
 *   graph     the cure: the same kernels as a CUDA graph, which takes one launch
 *
 * Look at 'GPU has work': the share of the time that the steps kept the GPU busy. It is the same
 * for all variants but the last three, 60 % at most with the default times, and none of their CUDA
 * calls is slow: the time is lost between them. With 'ahead' it is close to 100 %, as long as
 * --gpu-us is more than --host-us. With 'launches' it is about what the kernel takes of a launch;
 * with 'graph' more.
 *
 * A cure: nothing that the host does for the next step may stand between two steps of the GPU. Let
 * others get the next batch early, into memory of its own, and submit it before you wait for the
 * last one.
 */
#include "common.h"
#include "../kernels/kernels.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define VALUES 4096 /* of a batch */
#define BATCH_BYTES (VALUES * sizeof(int))
#define SLOTS 2 /* steps that have buffers of their own */
#define TERM 5 /* what the GPU adds to each value */

static struct {
	long steps, gpu_us, host_us, launches;
	const char *variant;
} options = {
	.steps = 300,
	.gpu_us = 3000,
	.host_us = 2000,
	.launches = 1500,
	.variant = "all",
};

/* clang-format off */
static const struct option_row rows[] = {
	{"variant", "NAME", "sleep, compute, read, lock, thread, join, ahead, launches, graph or all (all)",
		OPTION_TEXT, &options.variant, 0, 0, NULL},
	{"steps", "N", "batches of each variant (300)",
		OPTION_NUMBER, &options.steps, 1, 10000000, "40"},
	{"gpu-us", "US", "how long the GPU works on a batch (3000)",
		OPTION_NUMBER, &options.gpu_us, 0, 1000000, NULL},
	{"host-us", "US", "how long the host needs for a batch (2000)",
		OPTION_NUMBER, &options.host_us, 0, 1000000, NULL},
	{"launches", "N", "kernels of a step of the variants launches and graph (1500)",
		OPTION_NUMBER, &options.launches, 1, 100000, NULL},
	{0},
};
/* clang-format on */

/* What all variants work with. A step has the slot step % SLOTS. */
static struct slot {
	int *in, *out; /* pinned */
	int *values; /* on the device */
	cudaEvent_t done;
} slots[SLOTS];
static cudaStream_t stream;

static struct slot *slot_of(long step)
{
	return &slots[step % SLOTS];
}

/* ---- batches --------------------------------------------------------------------------------- */

static int value_of(long step, int i)
{
	return (int)(step % 1000000) * 31 + i;
}

static void fill(int *batch, long step)
{
	int i;

	for (i = 0; i < VALUES; i++)
		batch[i] = value_of(step, i);
}

static void rest(void)
{
	usleep((useconds_t)options.host_us);
}

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Takes so much of a CPU's time, however many others want one. */
static void compute(void)
{
	double begin_us = cpu_us();

	while (cpu_us() - begin_us < (double)options.host_us)
		;
}

/* ---- what the host does for a batch: alone --------------------------------------------------- */

static void get_at_once(long step)
{
	fill(slot_of(step)->in, step);
}

static void get_asleep(long step)
{
	rest();
	fill(slot_of(step)->in, step);
}

static void get_computed(long step)
{
	compute();
	fill(slot_of(step)->in, step);
}

/* ---- through a pipe -------------------------------------------------------------------------- */

static sem_t asked;
static int ends[2];

static void *write_batches(void *unused)
{
	int batch[VALUES];
	long step;

	(void)unused;
	for (step = 0; step < options.steps; step++) {
		const char *at = (const char *)batch;
		size_t left = BATCH_BYTES;

		sem_wait(&asked);
		rest();
		fill(batch, step);
		while (left) {
			ssize_t n = write(ends[1], at, left);

			if (n <= 0)
				die("cannot write to the pipe: %s", strerror(errno));
			at += n;
			left -= (size_t)n;
		}
	}
	return NULL;
}

static void get_read(long step)
{
	char *at = (char *)slot_of(step)->in;
	size_t left = BATCH_BYTES;

	sem_post(&asked);
	while (left) {
		ssize_t n = read(ends[0], at, left);

		if (n <= 0)
			die("cannot read from the pipe: %s", n ? strerror(errno) : "it has ended");
		at += n;
		left -= (size_t)n;
	}
}

/* ---- with a lock that another thread has ----------------------------------------------------- */

static pthread_mutex_t kept = PTHREAD_MUTEX_INITIALIZER;
static sem_t taken, passed;

/* Takes the lock while the GPU works, and gives it back so long after it has been asked to. */
static void *keep_lock(void *unused)
{
	long step;

	(void)unused;
	for (step = 0; step < options.steps; step++) {
		pthread_mutex_lock(&kept);
		sem_post(&taken);
		sem_wait(&asked);
		rest();
		pthread_mutex_unlock(&kept);
		sem_wait(&passed);
	}
	return NULL;
}

static void get_locked(long step)
{
	sem_wait(&taken);
	sem_post(&asked);
	pthread_mutex_lock(&kept);
	fill(slot_of(step)->in, step);
	pthread_mutex_unlock(&kept);
	sem_post(&passed);
}

/* ---- from another thread --------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	long wanted, ready; /* so many batches from the first one on */
} queue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};

/* With the lock. */
static void set(long *number, long to)
{
	*number = to;
	pthread_cond_broadcast(&queue.changed);
}

static void wait_for(const long *number, long least)
{
	while (*number < least)
		pthread_cond_wait(&queue.changed, &queue.lock);
}

static void ask(long steps)
{
	pthread_mutex_lock(&queue.lock);
	set(&queue.wanted, steps);
	pthread_mutex_unlock(&queue.lock);
}

static void wait_until_made(long steps)
{
	pthread_mutex_lock(&queue.lock);
	wait_for(&queue.ready, steps);
	pthread_mutex_unlock(&queue.lock);
}

static void *make_batches(void *unused)
{
	long step;

	(void)unused;
	for (step = 0; step < options.steps; step++) {
		pthread_mutex_lock(&queue.lock);
		wait_for(&queue.wanted, step + 1);
		pthread_mutex_unlock(&queue.lock);
		get_computed(step);
		pthread_mutex_lock(&queue.lock);
		set(&queue.ready, step + 1);
		pthread_mutex_unlock(&queue.lock);
	}
	return NULL;
}

/* The other thread begins only when this one waits: it needs the lock. */
static void get_made(long step)
{
	pthread_mutex_lock(&queue.lock);
	set(&queue.wanted, step + 1);
	wait_for(&queue.ready, step + 1);
	pthread_mutex_unlock(&queue.lock);
}

static pthread_t thread_start(void *(*run)(void *argument), void *argument)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, run, argument);

	if (error)
		die("no thread: %s", strerror(error));
	return thread;
}

static void *make_one(void *step)
{
	get_computed(*(long *)step);
	return NULL;
}

static void get_joined(long step)
{
	pthread_join(thread_start(make_one, &step), NULL);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void in_one_piece(void)
{
	if (options.gpu_us)
		CUDA_CHECK(launch_delay((unsigned)options.gpu_us, stream));
}

/* As much work, to the microsecond. */
static void in_pieces(void)
{
	long i;

	for (i = 0; i < options.launches; i++)
		CUDA_CHECK(launch_delay((unsigned)(options.gpu_us * (i + 1) / options.launches -
						   options.gpu_us * i / options.launches),
					stream));
}

static cudaGraphExec_t pieces;

static void make_graph(void)
{
	cudaGraph_t graph;

	CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	in_pieces();
	CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
	CUDA_CHECK(cudaGraphInstantiateWithFlags(&pieces, graph, 0));
	CUDA_CHECK(cudaGraphDestroy(graph));
	CUDA_CHECK(cudaGraphUpload(pieces, stream));
	CUDA_CHECK(cudaStreamSynchronize(stream));
}

static void as_graph(void)
{
	CUDA_CHECK(cudaGraphLaunch(pieces, stream));
}

static void submit(long step, void (*hand_over)(void))
{
	struct slot *slot = slot_of(step);

	CUDA_CHECK(cudaMemcpyAsync(slot->values, slot->in, BATCH_BYTES, cudaMemcpyHostToDevice,
				   stream));
	hand_over();
	CUDA_CHECK(launch_add(slot->values, VALUES, TERM, stream));
	CUDA_CHECK(cudaMemcpyAsync(slot->out, slot->values, BATCH_BYTES, cudaMemcpyDeviceToHost,
				   stream));
}

/* How many values of a step came back wrong. */
static unsigned check(long step)
{
	const int *out = slot_of(step)->out;
	unsigned wrong = 0;
	int i;

	for (i = 0; i < VALUES; i++)
		wrong += out[i] != value_of(step, i) + TERM;
	return wrong;
}

struct variant {
	const char *name;
	void (*get)(long step); /* the batch of the step; NULL: it is made ahead */
	void *(*other)(void *unused); /* the other thread, if there is one for all steps */
	void (*hand_over)(void); /* the GPU's work */
};

static const struct variant variants[] = {
	{"sleep", get_asleep, NULL, in_one_piece},
	{"compute", get_computed, NULL, in_one_piece},
	{"read", get_read, write_batches, in_one_piece},
	{"lock", get_locked, keep_lock, in_one_piece},
	{"thread", get_made, make_batches, in_one_piece},
	{"join", get_joined, NULL, in_one_piece},
	{"ahead", NULL, make_batches, in_one_piece},
	{"launches", get_at_once, NULL, in_pieces},
	{"graph", get_at_once, NULL, as_graph},
};
#define VARIANT_CNT (sizeof(variants) / sizeof(variants[0]))

static unsigned one_by_one(const struct variant *variant)
{
	unsigned wrong = 0;
	long step;

	for (step = 0; step < options.steps; step++) {
		variant->get(step);
		submit(step, variant->hand_over);
		CUDA_CHECK(cudaStreamSynchronize(stream));
		wrong += check(step);
		progress("%s: step %ld of %ld", variant->name, step + 1, options.steps);
	}
	return wrong;
}

/* The step has ended, and its buffers are free for the one after the next. */
static unsigned end_of(long step)
{
	CUDA_CHECK(cudaEventSynchronize(slot_of(step)->done));
	return check(step);
}

static unsigned ahead(const struct variant *variant)
{
	unsigned wrong = 0;
	long step;

	ask(1);
	for (step = 0; step < options.steps; step++) {
		wait_until_made(step + 1);
		submit(step, variant->hand_over);
		CUDA_CHECK(cudaEventRecord(slot_of(step)->done, stream));
		if (step)
			wrong += end_of(step - 1);
		ask(step + 2);
		progress("%s: step %ld of %ld", variant->name, step + 1, options.steps);
	}
	return wrong + end_of(options.steps - 1);
}

/* ---- variants -------------------------------------------------------------------------------- */

static void prepare(void)
{
	int i;

	CUDA_CHECK(cudaSetDevice(0));
	CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (i = 0; i < SLOTS; i++) {
		CUDA_CHECK(cudaMallocHost((void **)&slots[i].in, BATCH_BYTES));
		CUDA_CHECK(cudaMallocHost((void **)&slots[i].out, BATCH_BYTES));
		CUDA_CHECK(cudaMalloc((void **)&slots[i].values, BATCH_BYTES));
		CUDA_CHECK(cudaEventCreateWithFlags(&slots[i].done, cudaEventDisableTiming));
	}
	CUDA_CHECK(launch_delay(0, stream)); /* the first launches load the code */
	CUDA_CHECK(launch_add(slots[0].values, VALUES, 0, stream));
	CUDA_CHECK(cudaStreamSynchronize(stream));
	if (sem_init(&asked, 0, 0) || sem_init(&taken, 0, 0) || sem_init(&passed, 0, 0) ||
	    pipe(ends))
		die("no semaphore or no pipe: %s", strerror(errno));
}

static void finish(void)
{
	int i;

	close(ends[0]);
	close(ends[1]);
	for (i = 0; i < SLOTS; i++) {
		CUDA_CHECK(cudaFreeHost(slots[i].in));
		CUDA_CHECK(cudaFreeHost(slots[i].out));
		CUDA_CHECK(cudaFree(slots[i].values));
		CUDA_CHECK(cudaEventDestroy(slots[i].done));
	}
	CUDA_CHECK(cudaStreamDestroy(stream));
}

static const struct table_column columns[] = {
	{"variant", "variant", 0},
	{"steps", "steps", 0},
	{"total_ms", "total ms", 2},
	{"step_us", "us/step", 1},
	{"gpu_percent", "GPU has work %", 1},
};

static unsigned run_variant(const struct variant *variant, struct table *table)
{
	double begin_ms, total_ms, steps = (double)options.steps;
	pthread_t other = 0;
	unsigned wrong;
	int i;

	queue.wanted = queue.ready = 0; /* no other thread yet */
	for (i = 0; i < SLOTS; i++)
		memset(slots[i].out, 0xff, BATCH_BYTES);
	if (variant->hand_over == as_graph)
		make_graph();
	begin_ms = now_ms();
	if (variant->other)
		other = thread_start(variant->other, NULL);
	wrong = variant->get ? one_by_one(variant) : ahead(variant);
	total_ms = now_ms() - begin_ms;
	if (variant->other)
		pthread_join(other, NULL);
	if (variant->hand_over == as_graph)
		CUDA_CHECK(cudaGraphExecDestroy(pieces));

	table_text(table, variant->name);
	table_number(table, steps);
	table_number(table, total_ms);
	table_number(table, total_ms / steps * 1e3);
	table_number(table, steps * (double)options.gpu_us / 10 / total_ms);
	if (wrong)
		fprintf(stderr, "%s: %s: %u values came back wrong\n", program, variant->name,
			wrong);
	return wrong;
}

int main(int argc, char **argv)
{
	enum output output = options_read(
		argc, argv,
		"Brings batches to a GPU that has nothing to do while the host gets the next one: "
		"it sleeps,\ncomputes, reads, waits for a lock or a thread; or has it made ahead. "
		"Or launches so\nshort kernels that the GPU waits for each launch; or a graph of "
		"them. Shows how busy\nthe GPU is.",
		rows);
	unsigned wrong = 0, chosen = 0;
	struct table table;
	size_t i;

	for (i = 0; i < VARIANT_CNT; i++)
		chosen += !strcmp(options.variant, "all") ||
			  !strcmp(options.variant, variants[i].name);
	if (!chosen)
		usage_error("--variant %s: no such variant", options.variant);
	prepare();
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; i < VARIANT_CNT; i++) {
		if (!strcmp(options.variant, "all") || !strcmp(options.variant, variants[i].name))
			wrong += run_variant(&variants[i], &table);
	}
	table_print(&table, output);
	table_release(&table);
	finish();
	return wrong != 0;
}
