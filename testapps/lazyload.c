/*
 * testapps/lazyload.c: one call that waits for the device stops every other thread of that context.
 * Thread A has a long kernel running. Thread B does one thing, once, in its own stream. Thread C copies
 * 4 KiB from pinned memory and launches an empty kernel every 2 ms, in a third stream: neither should
 * ever take more than microseconds. What B does:
 *
 *   none     nothing: what C reaches undisturbed
 *   small    launches a small kernel for the first time, so that its code is loaded
 *   big      the same with a kernel whose module has 256 MB of device memory
 *   stack    the same with a kernel that needs 100 KB of stack: local memory has to grow
 *   printf   the same with a kernel that calls printf
 *   malloc   cudaMalloc and cudaFree of 1 MiB
 *   limit    cudaDeviceSetLimit of the stack size
 *
 * Where B's call waits for A's kernel, it does so holding the context's lock, and C's next copy waits
 * with it, though C has nothing to do with either: compare 'B waited' and 'C copy'. A kernel that never
 * ends, because it waits for C, makes that a deadlock. The cure is to do all this before the work begins:
 * launch each kernel once, allocate once, set limits first. CUDA_MODULE_LOADING=EAGER loads all code when
 * CUDA starts: that cures the first launches (of driver 580: from 680 ms to 0.05), but not of a kernel for
 * which the stack has to grow, and neither cudaFree nor a limit. Each trigger runs in a process of its own,
 * with LAZY loading, which is CUDA's default, and with EAGER.
 */
#include "common.h"
#include "workers.h"
#include "../kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY_BYTES 4096
#define SUM_COUNT 64u

static struct {
	long ms;
	const char *trigger, *loading;
} options = {
	.ms = 700,
	.trigger = "all",
	.loading = "both",
};

/* clang-format off */
static const struct option_row rows[] = {
	{"trigger", "NAME,...", "none, small, big, stack, printf, malloc, limit or all (all)",
		OPTION_TEXT, &options.trigger, 0, 0, NULL},
	{"loading", "HOW", "CUDA_MODULE_LOADING: lazy, eager or both (both)",
		OPTION_TEXT, &options.loading, 0, 0, "lazy"},
	{"ms", "MS", "length of A's kernel (700)",
		OPTION_NUMBER, &options.ms, 50, 60000, "100"},
	{0},
};
/* clang-format on */

/* ---- what B does ---------------------------------------------------------------------------- */

static void do_nothing(unsigned *sum, cudaStream_t stream)
{
	(void)sum;
	(void)stream;
}

static void launch_small(unsigned *sum, cudaStream_t stream)
{
	CUDA_CHECK(launch_first(sum, SUM_COUNT, stream));
}

static void launch_big(unsigned *sum, cudaStream_t stream)
{
	CUDA_CHECK(launch_big_array(sum, SUM_COUNT, stream));
}

static void launch_stack(unsigned *sum, cudaStream_t stream)
{
	CUDA_CHECK(launch_needs_stack(sum, SUM_COUNT, stream));
}

static void launch_printf(unsigned *sum, cudaStream_t stream)
{
	CUDA_CHECK(launch_prints(sum, SUM_COUNT, stream));
}

static void malloc_and_free(unsigned *sum, cudaStream_t stream)
{
	void *memory;

	(void)sum;
	(void)stream;
	CUDA_CHECK(cudaMalloc(&memory, 1 << 20));
	CUDA_CHECK(cudaFree(memory));
}

static void set_limit(unsigned *sum, cudaStream_t stream)
{
	(void)sum;
	(void)stream;
	CUDA_CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 48 * 1024));
}

static const struct trigger {
	const char *name;
	void (*pull)(unsigned *sum, cudaStream_t stream);
	bool sums; /* a kernel of it does */
} triggers[] = {
	{"none", do_nothing, false},     {"small", launch_small, true},
	{"big", launch_big, true},       {"stack", launch_stack, true},
	{"printf", launch_printf, true}, {"malloc", malloc_and_free, false},
	{"limit", set_limit, false},
};
#define TRIGGER_CNT (sizeof(triggers) / sizeof(triggers[0]))

/* ---- the three threads ---------------------------------------------------------------------- */

struct situation {
	const struct trigger *trigger;
	const char *loading;
};

enum role { A, B, C, ROLE_CNT };

struct actor {
	cudaStream_t stream;
	void *device, *pinned;
	unsigned wrong;
	double waited_ms; /* B: in its call */
	double copy_ms, launch_ms; /* C: the worst */
	unsigned rounds; /* C, while A's kernel ran */
};

static int kernel_over; /* of this process: set by A, read by C */

static void enter(const struct crew *crew, int process)
{
	const struct situation *situation = crew->argument;

	(void)process;
	if (setenv("CUDA_MODULE_LOADING", situation->loading, 1))
		die("out of memory");
}

static void prepare(struct worker *worker)
{
	struct actor *actor = worker->state;

	CUDA_CHECK(cudaStreamCreateWithFlags(&actor->stream, cudaStreamNonBlocking));
	CUDA_CHECK(cudaMalloc(&actor->device, COPY_BYTES));
	CUDA_CHECK(cudaMemset(actor->device, 0, COPY_BYTES));
	CUDA_CHECK(cudaMallocHost(&actor->pinned, COPY_BYTES));
	memset(actor->pinned, 0x5a, COPY_BYTES);
	CUDA_CHECK(launch_delay(0, actor->stream)); /* the code of A's and C's kernels */
	CUDA_CHECK(launch_empty(actor->stream));
	CUDA_CHECK(cudaDeviceSynchronize());
}

static void work_a(struct actor *actor)
{
	crew_meet();
	CUDA_CHECK(launch_delay((unsigned)options.ms * 1000, actor->stream));
	crew_meet(); /* it runs */
	CUDA_CHECK(cudaStreamSynchronize(actor->stream));
	__atomic_store_n(&kernel_over, 1, __ATOMIC_RELEASE);
}

static void work_b(struct actor *actor, const struct trigger *trigger)
{
	double begin_ms;

	crew_meet();
	crew_meet();
	sleep_ms(20);
	begin_ms = now_ms();
	trigger->pull(actor->device, actor->stream);
	actor->waited_ms = now_ms() - begin_ms;
	CUDA_CHECK(cudaStreamSynchronize(actor->stream));
	CUDA_CHECK(
		cudaMemcpy(actor->pinned, actor->device, sizeof(unsigned), cudaMemcpyDeviceToHost));
	if (trigger->sums)
		actor->wrong = *(unsigned *)actor->pinned != SUM_COUNT * (SUM_COUNT - 1) / 2;
}

static void work_c(struct actor *actor, const struct situation *situation)
{
	void *back = allocate(1, COPY_BYTES);

	crew_meet();
	crew_meet();
	while (!__atomic_load_n(&kernel_over, __ATOMIC_ACQUIRE)) {
		double begin_ms = now_ms(), copied_ms, launched_ms;

		CUDA_CHECK(cudaMemcpyAsync(actor->device, actor->pinned, COPY_BYTES,
					   cudaMemcpyHostToDevice, actor->stream));
		copied_ms = now_ms();
		CUDA_CHECK(launch_empty(actor->stream));
		launched_ms = now_ms();
		if (copied_ms - begin_ms > actor->copy_ms)
			actor->copy_ms = copied_ms - begin_ms;
		if (launched_ms - copied_ms > actor->launch_ms)
			actor->launch_ms = launched_ms - copied_ms;
		actor->rounds++;
		progress("%s, %s: %u rounds", situation->loading, situation->trigger->name,
			 actor->rounds);
		sleep_ms(2);
	}
	CUDA_CHECK(cudaStreamSynchronize(actor->stream));
	CUDA_CHECK(cudaMemcpy(back, actor->device, COPY_BYTES, cudaMemcpyDeviceToHost));
	actor->wrong = memcmp(back, actor->pinned, COPY_BYTES) != 0;
	free(back);
}

static void work(struct worker *worker)
{
	const struct situation *situation = worker->argument;

	if (worker->index == A)
		work_a(worker->state);
	else if (worker->index == B)
		work_b(worker->state, situation->trigger);
	else
		work_c(worker->state, situation);
}

static void finish(struct worker *worker)
{
	struct actor *actor = worker->state;

	CUDA_CHECK(cudaFreeHost(actor->pinned));
	CUDA_CHECK(cudaFree(actor->device));
	CUDA_CHECK(cudaStreamDestroy(actor->stream));
}

/* ---- one process for each situation --------------------------------------------------------- */

static const struct table_column columns[] = {
	{"loading", "loading", 0},
	{"trigger", "trigger", 0},
	{"b_waited_ms", "B waited ms", 2},
	{"c_copy_ms", "C worst copy ms", 2},
	{"c_launch_ms", "C worst launch ms", 2},
	{"c_rounds", "C rounds", 0},
};

static unsigned run(const struct situation *situation, struct table *table)
{
	struct crew crew = {
		.processes = 1,
		.threads = ROLE_CNT,
		.gpus = 1,
		.state_size = sizeof(struct actor),
		.argument = situation,
		.enter = enter,
		.prepare = prepare,
		.work = work,
		.finish = finish,
	};
	const struct actor *b, *c;
	unsigned wrong;

	progress("%s, %s", situation->loading, situation->trigger->name);
	crew_run(&crew);
	b = crew_state(&crew, B);
	c = crew_state(&crew, C);
	table_text(table, situation->loading);
	table_text(table, situation->trigger->name);
	table_number(table, b->waited_ms);
	table_number(table, c->copy_ms);
	table_number(table, c->launch_ms);
	table_number(table, c->rounds);
	wrong = b->wrong + c->wrong;
	if (b->wrong)
		fprintf(stderr, "%s: %s: the kernel's sum is wrong\n", program,
			situation->trigger->name);
	if (c->wrong)
		fprintf(stderr, "%s: %s: C's copy came out wrong\n", program,
			situation->trigger->name);
	crew_release(&crew);
	return wrong;
}

/* Whether name is in a list of names with commas between them, or the list is all. */
static bool listed(const char *list, const char *all, const char *name)
{
	size_t length = strlen(name);
	const char *at = list;

	if (!strcmp(list, all))
		return true;
	while (at) {
		if (!strncmp(at, name, length) && (!at[length] || at[length] == ','))
			return true;
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	return false;
}

static void check_triggers(void)
{
	char *names = strdup(options.trigger), *rest = names, *name;
	size_t i;

	while ((name = strsep(&rest, ","))) {
		for (i = 0; i < TRIGGER_CNT && strcmp(triggers[i].name, name); i++)
			;
		if (i == TRIGGER_CNT && strcmp(options.trigger, "all"))
			usage_error("--trigger %s: no such trigger", name);
	}
	free(names);
}

int main(int argc, char **argv)
{
	enum output output = options_read(argc, argv,
					  "While a long kernel of one thread runs, another does "
					  "one thing that may wait for it, and a\nthird copies "
					  "and launches in a stream of its own. Shows what "
					  "stops the third.",
					  rows);
	struct situation situations[2] = {{NULL, "LAZY"}, {NULL, "EAGER"}};
	struct table table;
	unsigned wrong = 0;
	size_t i, j;

	check_triggers();
	if (strcmp(options.loading, "both") && strcmp(options.loading, "lazy") &&
	    strcmp(options.loading, "eager"))
		usage_error("--loading %s: must be lazy, eager or both", options.loading);
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; i < 2; i++) {
		if (!strcmp(options.loading, i ? "lazy" : "eager"))
			continue;
		for (j = 0; j < TRIGGER_CNT; j++) {
			situations[i].trigger = &triggers[j];
			if (listed(options.trigger, "all", triggers[j].name))
				wrong += run(&situations[i], &table);
		}
	}
	table_print(&table, output);
	table_release(&table);
	return wrong != 0;
}
