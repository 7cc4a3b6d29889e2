/*
 * testapps/queue.c: how far the host can run ahead of the GPU. One thread starts a long kernel and then
 * launches small ones behind it, or copies from pinned memory, until one of these asynchronous calls
 * blocks: the stream's queue is full, after about a thousand operations, and the call returns only when
 * the GPU has taken one out. In a trace that looks like a stall on a lock and is none: nobody holds
 * anything. A second thread launches in another stream of the same GPU meanwhile; its worst launch says
 * whether anybody else is held up.
 *
 * Look at 'depth' and at 'blocked': about what is left of the long kernel. If that hurts, wait for the
 * GPU where you choose to (an event every few hundred operations), give it fewer and larger operations,
 * or replay them as a graph, which takes one place in the queue.
 */
#include "common.h"
#include "workers.h"
#include "../kernels/kernels.h"

#include <stdio.h>
#include <string.h>

#define VALUES 64 /* of a small kernel */
#define SLOT_BYTES 4096 /* of a small copy */
#define SLOTS 64

static struct {
	long ms;
	const char *what;
} options = {
	.ms = 1000,
	.what = "all",
};

/* clang-format off */
static const struct option_row rows[] = {
	{"what", "NAME", "launch, copy or all (all)",
		OPTION_TEXT, &options.what, 0, 0, NULL},
	{"ms", "MS", "length of the kernel that the GPU is busy with (1000)",
		OPTION_NUMBER, &options.ms, 50, 60000, "250"},
	{0},
};
/* clang-format on */

enum role { FILLER, BYSTANDER, ROLE_CNT };

struct actor {
	cudaStream_t stream;
	int *values;
	char *slots, *slot; /* pinned, and on the device */
	unsigned wrong;
	unsigned
		depth; /* the filler's: operations that found room, the long kernel being the first */
	double blocked_ms; /* the one that did not */
	unsigned launches; /* the bystander's */
	double worst_ms;
};

static int filled; /* set by the filler when it need not be watched any longer */

/* ---- the thread that runs ahead ------------------------------------------------------------- */

static void launch_one(struct actor *actor, unsigned nth)
{
	(void)nth;
	CUDA_CHECK(launch_add(actor->values, VALUES, 1, actor->stream));
}

static void copy_one(struct actor *actor, unsigned nth)
{
	CUDA_CHECK(cudaMemcpyAsync(actor->slot, actor->slots + nth % SLOTS * SLOT_BYTES, SLOT_BYTES,
				   cudaMemcpyHostToDevice, actor->stream));
}

/* Whether all of count operations were done, and in their order. */
static bool launches_right(struct actor *actor, unsigned count)
{
	int values[VALUES], i;

	CUDA_CHECK(cudaMemcpy(values, actor->values, sizeof(values), cudaMemcpyDeviceToHost));
	for (i = 0; i < VALUES && values[i] == (int)count; i++)
		;
	return i == VALUES;
}

static bool copies_right(struct actor *actor, unsigned count)
{
	char slot[SLOT_BYTES];

	CUDA_CHECK(cudaMemcpy(slot, actor->slot, sizeof(slot), cudaMemcpyDeviceToHost));
	return !memcmp(slot, actor->slots + (count - 1) % SLOTS * SLOT_BYTES, SLOT_BYTES);
}

static const struct operation {
	const char *name;
	void (*issue)(struct actor *actor, unsigned nth);
	bool (*right)(struct actor *actor, unsigned count);
} operations[] = {
	{"launch", launch_one, launches_right},
	{"copy", copy_one, copies_right},
};
#define OPERATION_CNT (sizeof(operations) / sizeof(operations[0]))

/*
 * Issues operations until one takes a quarter of the long kernel, which none does that finds room.
 */
static void fill(struct actor *actor, const struct operation *operation)
{
	double begin_ms = now_ms(), took_ms = 0;
	unsigned count = 0;

	CUDA_CHECK(launch_delay((unsigned)options.ms * 1000, actor->stream));
	crew_meet();
	while (took_ms < (double)options.ms / 4) {
		double called_ms = now_ms();

		if (called_ms - begin_ms > (double)options.ms)
			die("%s: %u operations found room before the kernel ended; try a longer "
			    "--ms",
			    operation->name, count);
		operation->issue(actor, count++);
		took_ms = now_ms() - called_ms;
	}
	actor->depth = count; /* the one that blocked is counted here, and the kernel is not */
	actor->blocked_ms = took_ms;
	__atomic_store_n(&filled, 1, __ATOMIC_RELEASE);
	CUDA_CHECK(cudaStreamSynchronize(actor->stream));
	actor->wrong = !operation->right(actor, count);
}

/* ---- the other thread ----------------------------------------------------------------------- */

static void stand_by(struct actor *actor, const struct operation *operation)
{
	crew_meet();
	while (!__atomic_load_n(&filled, __ATOMIC_ACQUIRE)) {
		double begin_ms = now_ms(), took_ms;

		CUDA_CHECK(launch_empty(actor->stream));
		took_ms = now_ms() - begin_ms;
		if (took_ms > actor->worst_ms)
			actor->worst_ms = took_ms;
		actor->launches++;
		progress("%s: %u launches beside it", operation->name, actor->launches);
		sleep_ms(1);
	}
	CUDA_CHECK(cudaStreamSynchronize(actor->stream));
}

static void prepare(struct worker *worker)
{
	struct actor *actor = worker->state;
	int i;

	__atomic_store_n(&filled, 0, __ATOMIC_RELEASE);
	CUDA_CHECK(cudaStreamCreateWithFlags(&actor->stream, cudaStreamNonBlocking));
	CUDA_CHECK(cudaMalloc((void **)&actor->values, VALUES * sizeof(int)));
	CUDA_CHECK(cudaMemset(actor->values, 0, VALUES * sizeof(int)));
	CUDA_CHECK(cudaMalloc((void **)&actor->slot, SLOT_BYTES));
	CUDA_CHECK(cudaMallocHost((void **)&actor->slots, SLOTS * SLOT_BYTES));
	for (i = 0; i < SLOTS; i++)
		memset(actor->slots + i * SLOT_BYTES, i, SLOT_BYTES);
	CUDA_CHECK(launch_delay(0, actor->stream)); /* the first launches load the code */
	CUDA_CHECK(launch_empty(actor->stream));
	CUDA_CHECK(launch_add(actor->values, VALUES, 0, actor->stream));
	CUDA_CHECK(cudaDeviceSynchronize());
}

static void work(struct worker *worker)
{
	if (worker->index == FILLER)
		fill(worker->state, worker->argument);
	else
		stand_by(worker->state, worker->argument);
}

static void finish(struct worker *worker)
{
	struct actor *actor = worker->state;

	CUDA_CHECK(cudaFreeHost(actor->slots));
	CUDA_CHECK(cudaFree(actor->slot));
	CUDA_CHECK(cudaFree(actor->values));
	CUDA_CHECK(cudaStreamDestroy(actor->stream));
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct table_column columns[] = {
	{"what", "what", 0},
	{"depth", "depth", 0},
	{"blocked_ms", "blocked ms", 2},
	{"kernel_ms", "kernel ms", 0},
	{"other_launches", "other's launches", 0},
	{"other_worst_ms", "other's worst ms", 3},
};

static bool run(const struct operation *operation, struct table *table)
{
	struct crew crew = {
		.processes = IN_PLACE,
		.threads = ROLE_CNT,
		.gpus = 1,
		.state_size = sizeof(struct actor),
		.argument = operation,
		.prepare = prepare,
		.work = work,
		.finish = finish,
	};
	const struct actor *filler, *bystander;
	bool wrong;

	crew_run(&crew);
	filler = crew_state(&crew, FILLER);
	bystander = crew_state(&crew, BYSTANDER);
	table_text(table, operation->name);
	table_number(table, filler->depth);
	table_number(table, filler->blocked_ms);
	table_number(table, (double)options.ms);
	table_number(table, bystander->launches);
	table_number(table, bystander->worst_ms);
	wrong = filler->wrong;
	if (wrong)
		fprintf(stderr, "%s: %s: the results are wrong\n", program, operation->name);
	crew_release(&crew);
	return wrong;
}

int main(int argc, char **argv)
{
	enum output output = options_read(
		argc, argv,
		"Launches and copies so far ahead of the GPU that one blocks for want of room "
		"in the queue.\nShows how many found room, how long one blocked, and that "
		"others do not.",
		rows);
	struct table table;
	unsigned ran = 0;
	bool wrong = false;
	size_t i;

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; i < OPERATION_CNT; i++) {
		if (strcmp(options.what, "all") && strcmp(options.what, operations[i].name))
			continue;
		wrong |= run(&operations[i], &table);
		ran++;
	}
	if (!ran)
		usage_error("--what %s: must be launch, copy or all", options.what);
	table_print(&table, output);
	table_release(&table);
	return wrong;
}
