/*
 * tests/unit/test_analyzer_runs.c: the first reading of a process in several runs of streams. It learns what one run of
 * all of them learns: of the same log once with small packets, which is too little for more than one run, and once with
 * large ones.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "cudaspy/function_numbers.h"
#include "scratch.h"
#include "trace_text.h"
#include "base/jobs.h"
#include "expect/learned.h"
#include "as_record.h"

#define THREADS 30
#define SMALL 4096
#define LARGE (1u << 18) /* so large is the file of each thread, whatever is in it */

/* Threads: the one that begins first; one of the first run, and one of the second run that calls something at the same
 * time; one that calls so often that the second run is larger than the first one, and is read before it. */
#define OLDEST 17
#define FIRST 5
#define TIED 20
#define BUSY 22
#define BUSY_CALLS 8000

struct reading {
	char *dir;
	struct trace_set set;
	struct expect e;
};

/* The session's stream. */
static void write_session(FILE *log, bool joins)
{
	fputs("slot 0\n", log);
	if (joins)
		fputs("1us window state=closed\n", log);
	fputs("2us gpu device=0 name=\"H200\" uuid=\"GPU-a\"\n"
	      "2us gpu device=1 name=\"H100\" uuid=\"GPU-b\"\n"
	      "3us note note=version text=\"driver 13000\"\n"
	      "4us mps initialised=1 uid=1 daemon=4 pipe_directory=\"/first\"\n",
	      log);
	if (joins)
		fputs("5us window state=open number=1\n", log);
}

static void write_thread(FILE *log, unsigned int slot)
{
	unsigned int begin_us = 20000 + 1000 * ((slot + THREADS - OLDEST) % THREADS), i;

	fprintf(log, "slot %u tid=%u\n10us thread tid=%u name=\"a\"\n", slot, slot, slot);
	if (slot == FIRST || slot == TIED)
		fprintf(log,
			"15ms launch cudaLaunchKernel duration=%uus stream=0x10 kernel=77 "
			"caller=0x70\n",
			slot);
	fprintf(log,
		"%uus memory cudaMalloc duration=%uus op=alloc kind=device address=1 bytes=4096 "
		"device=%u caller=0x10\n",
		begin_us, 1000 + slot, slot % 2);
	for (i = 1; i <= 10; i++)
		fprintf(log,
			"%uus wait kind=%s fn=cuMemAlloc outer_fn=cudaMalloc duration=2us "
			"object=9\n"
			"%uus memory cudaMalloc duration=%uus op=alloc kind=device address=1 "
			"bytes=4096 device=%u caller=0x10\n"
			"%uus launch cudaLaunchKernel duration=%uus stream=0x10 kernel=%u "
			"device=%u caller=0x20\n",
			begin_us + 1000 * i, i % 2 ? "ioctl" : "mutex", begin_us + 1000 * i + 1,
			10 + slot % 3, slot % 2, begin_us + 1000 * i + 500, 4 + i % 2, 1 + slot % 5,
			slot % 2);
	for (i = 0; slot == BUSY && i < BUSY_CALLS; i++)
		fprintf(log,
			"%uus launch cudaLaunchKernel duration=3us stream=0x10 kernel=1 "
			"caller=0x50\n",
			begin_us + 15000 + 5 * i);
	/* Of some threads alone: a class, the last call, a GPU, and what only the session's stream tells. */
	if (slot == FIRST)
		fputs("200ms launch cudaLaunchKernel duration=3us stream=0x10 kernel=1 device=2 "
		      "caller=0x40\n",
		      log);
	if (slot % 10 == 9)
		fprintf(log,
			"90ms copy cudaMemcpyAsync duration=9us direction=h2d src=pageable "
			"dst=device bytes=%u stream=0x10 caller=0x30\n",
			1000 * slot);
	if (slot == TIED)
		fputs("91ms mps initialised=1 uid=1 daemon=5 pipe_directory=\"/second\"\n"
		      "92ms gpu device=2 name=\"L4\" uuid=\"GPU-c\"\n"
		      "93ms window state=closed number=1\n",
		      log);
}

static uint64_t bytes_of(const struct trace_set *set)
{
	uint64_t bytes = 0;
	size_t i;

	for (i = 0; i < set->n_streams; i++)
		bytes += reader_bytes(&set->streams[i]->reader);
	return bytes;
}

static void read_log(struct reading *r, unsigned int packet_bytes, const char *jobs, bool joins)
{
	const char *dirs[] = {r->dir = scratch_make()};
	char path[256];
	unsigned int i;
	FILE *log;

	snprintf(path, sizeof(path), "%s/log", r->dir);
	log = fopen(path, "w");
	assert_non_null(log);
	fprintf(log, "trace a.1 pid=1 program=\"a\" packet=%u\n", packet_bytes);
	write_session(log, joins);
	for (i = 1; i <= THREADS; i++)
		write_thread(log, i);
	fclose(log);
	tt_make(path, r->dir);
	remove(path);
	assert_int_equal(trace_set_open(&r->set, dirs, 1, NULL), 0);
	assert_int_equal(bytes_of(&r->set) / RECORD_BYTES >= 2 * RUN_LEAST, packet_bytes == LARGE);
	setenv("CUDASPY_JOBS", jobs, 1);
	assert_int_equal(jobs_choose(NULL), 0);
	expect_learn(&r->e, &r->set);
}

static void release(struct reading *r)
{
	expect_release(&r->e);
	trace_set_release(&r->set);
	scratch_remove(r->dir);
}

static void same_histogram(const struct histogram *x, const struct histogram *y)
{
	size_t i;

	assert_int_equal(x->max, y->max);
	for (i = 0; i < HISTOGRAM_OCTAVES; i++) {
		assert_int_equal(!x->octaves[i], !y->octaves[i]);
		if (x->octaves[i])
			assert_memory_equal(x->octaves[i], y->octaves[i],
					    HISTOGRAM_SUB * sizeof(uint64_t));
	}
}

static void same_classes(struct expect *x, struct expect *y)
{
	size_t i, n = y->n_classes;

	assert_int_equal(x->n_classes, n);
	for (i = 0; i < n; i++) {
		const struct call_class *a = x->classes[i], *b = expect_class_of_key(y, &a->key);

		assert_int_equal(y->n_classes, n);
		same_histogram(&a->clean, &b->clean);
		same_histogram(&a->all, &b->all);
		same_histogram(&a->rested, &b->rested);
		same_histogram(&a->kernel, &b->kernel);
		assert_int_equal(a->learnt, b->learnt);
		assert_int_equal(a->clean_calls, b->clean_calls);
		assert_int_equal(a->kernel_ns, b->kernel_ns);
	}
}

static void same_names(char **x, size_t n_x, char **y, size_t n_y)
{
	size_t i;

	assert_int_equal(n_x, n_y);
	for (i = 0; i < n_x; i++)
		assert_string_equal(x[i], y[i]);
}

static void same_use(const struct trace_use *x, const struct trace_use *y)
{
	size_t i;

	assert_memory_equal(x->devices, y->devices, sizeof(x->devices));
	assert_memory_equal(x->timed, y->timed, sizeof(x->timed));
	assert_int_equal(x->gpu_times, y->gpu_times);
	assert_int_equal(x->n_gpus, y->n_gpus);
	for (i = 0; i < x->n_gpus; i++) {
		assert_int_equal(x->gpus[i].device, y->gpus[i].device);
		assert_int_equal(x->gpus[i].uuid, y->gpus[i].uuid);
	}
	assert_string_equal(x->mps->directory, y->mps->directory);
}

static void same(struct reading *x, struct reading *y)
{
	const struct phase *a = x->e.phases.all, *b = y->e.phases.all;

	same_classes(&x->e, &y->e);
	same_names(x->e.machine.gpus, x->e.machine.n_gpus, y->e.machine.gpus, y->e.machine.n_gpus);
	same_names(x->e.machine.drivers, x->e.machine.n_drivers, y->e.machine.drivers,
		   y->e.machine.n_drivers);
	same_use(&x->set.traces[0]->use, &y->set.traces[0]->use);
	assert_int_equal(x->e.records, y->e.records);
	assert_int_equal(x->e.last_ns[0], y->e.last_ns[0]);
	assert_int_equal(x->e.processes[0].joined, y->e.processes[0].joined);
	assert_true(a->found && b->found);
	assert_int_equal(a->begin_ns, b->begin_ns);
	assert_int_equal(a->end_ns, b->end_ns);
}

static uint64_t max_of(struct expect *e, uint32_t fn, const struct spy_rec_memory *memory,
		       bool cold)
{
	const union spy_any raw = {.memory = *memory};

	return expect_class(e, AS_RECORD(&raw), fn, cold)->all.max;
}

/* What is known of that log without a reading of it. */
static void check(struct reading *r, bool joins)
{
	const struct spy_rec_memory malloced = {.head.event = SPY_EV_MEMORY,
						.op = SPY_MEMOP_ALLOC,
						.kind = SPY_MEM_DEVICE,
						.address = 1,
						.bytes = 4096};
	const struct trace_use *use = &r->set.traces[0]->use;

	assert_int_equal(r->e.processes[0].joined, joins);
	assert_int_equal(use->n_gpus, 3);
	assert_int_equal(use->devices[0], 7);
	assert_string_equal(use->mps->directory, "/first");
	assert_string_equal(r->e.machine.gpus[2], "L4");
	/* The oldest of each device: of threads 17 and 18. */
	assert_int_equal(max_of(&r->e, SPY_FN_cudaMalloc, &malloced, true),
			 joins ? 0 : 1000000 + 1000 * (OLDEST + 1));
	assert_int_equal(max_of(&r->e, SPY_FN_cudaMalloc, &malloced, false),
			 1000000 + 1000 * THREADS);
	/* Of two that began at the same time, it is the first stream's. */
	assert_int_equal(r->e.plain[2 * SPY_FN_cudaLaunchKernel + 1]->all.max, 1000 * FIRST);
	assert_int_equal(r->e.plain[2 * SPY_FN_cudaLaunchKernel]->all.max, 1000 * TIED);
}

static void compare(bool joins)
{
	static const char *const jobs[] = {"1", "2", "7"};
	struct reading one = {0};
	size_t i;

	read_log(&one, SMALL, "1", joins);
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		struct reading several = {0};

		read_log(&several, LARGE, jobs[i], joins);
		same(&one, &several);
		check(&several, joins);
		release(&several);
	}
	check(&one, joins);
	release(&one);
}

static void test_runs(void **state)
{
	(void)state;
	compare(false);
}

/* The session's stream says that CUDA was up before: no call is a first one, whichever run it is in. */
static void test_joined(void **state)
{
	(void)state;
	compare(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
