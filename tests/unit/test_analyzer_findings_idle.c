/*
 * tests/unit/test_analyzer_findings_idle.c: GPUs that have nothing to do because of the host: its work between calls,
 * its launches. For each detector a log in which it speaks, and a near twin in which it is silent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "story.h"
#include "analysis.h"
#include "detectors/table.h"

static uint64_t ns_of(const json_t *row, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(row, key));
}

/* A wait between calls, which has just ended. */
static void outside(struct story *s, uint64_t ns, const char *what)
{
	s->ns += ns;
	fprintf(s->log, "%lluns outside %s duration=%lluns\n", (unsigned long long)s->ns, what,
		(unsigned long long)ns);
}

/* ---- starved-by-host ------------------------------------------------------------------------- */

struct hungry_story {
	const char *wait; /* between two steps; NULL: on a CPU */
	const char *besides; /* another wait, of half a millisecond; NULL: none */
	uint64_t host_ns, gpu_ns, once_ns; /* once: before one of the steps */
	unsigned int steps;
	bool results, python, blind;
};

/* A line of Python that makes such calls. */
static void tell_line(struct story *s, const char *fn, unsigned int line)
{
	fprintf(s->log,
		"%lluns stack fn=%s why=32 frames=0x30\n%lluns python_stack fn=%s lines=1:%u\n",
		(unsigned long long)s->ns, fn, (unsigned long long)s->ns, fn, line);
}

static void tell_hungry(struct story *s, const struct hungry_story *t)
{
	unsigned int i;

	begin_with(s, "probes=1");
	if (t->blind)
		fprintf(s->log, "2us note note=blind text=\"a library was opened elsewhere\"\n");
	if (t->python)
		fprintf(s->log, "2us python_code code=1 first_line=1 file=\"/home/user/train.py\" "
				"function=\"step\"\n");
	for (i = 0; i <= t->steps; i++) {
		s->ns += 4000;
		if (t->python)
			tell_line(s, "cudaLaunchKernel", 17);
		fprintf(s->log,
			"%lluns launch cudaLaunchKernel kernel=1 stream=8 caller=0x10 "
			"duration=4000ns\n",
			(unsigned long long)s->ns);
		if (t->results)
			call(s, 500, 2000,
			     "copy cudaMemcpyAsync direction=d2h src=device dst=pinned bytes=4096 "
			     "stream=8 caller=0x13");
		s->ns += 1000 + t->gpu_ns;
		if (t->python)
			tell_line(s, "cudaStreamSynchronize", 21);
		fprintf(s->log,
			"%lluns op cudaStreamSynchronize stream=8 caller=0x20 "
			"duration=%lluns\n",
			(unsigned long long)s->ns, (unsigned long long)t->gpu_ns);
		if (t->besides)
			outside(s, MS / 2, t->besides);
		if (t->wait)
			outside(s, t->host_ns, t->wait);
		else
			s->ns += t->host_ns;
		s->ns += i == t->steps / 2 ? t->once_ns : 0;
	}
	conclude(s);
}

static void test_starved_by_host(void **state)
{
	static const struct {
		struct hungry_story story;
		const char *says;
	} cases[] = {
		{{.host_ns = 2 * MS, .gpu_ns = 3 * MS, .steps = 40, .results = true},
		 "computing on a CPU"},
		{{.host_ns = 2 * MS,
		  .gpu_ns = 3 * MS,
		  .steps = 40,
		  .results = true,
		  .python = true},
		 "Python keeps GPU 0 waiting"},
		{{.host_ns = 2 * MS,
		  .gpu_ns = 3 * MS,
		  .steps = 40,
		  .wait = "kind=transfer file=pipe object=3 caller=0x30"},
		 "waiting for a pipe"},
		{{.host_ns = 2 * MS,
		  .gpu_ns = 3 * MS,
		  .steps = 40,
		  .wait = "kind=transfer file=file object=3 caller=0x30"},
		 "reading or writing files"},
		{{.host_ns = 2 * MS,
		  .gpu_ns = 3 * MS,
		  .steps = 40,
		  .wait = "kind=condition object=0x1000 caller=0x30"},
		 "waiting for another thread"},
		{{.host_ns = 2 * MS,
		  .gpu_ns = 3 * MS,
		  .steps = 40,
		  .wait = "kind=join holder=9 caller=0x30",
		  .besides = "kind=sleep caller=0x31"},
		 "it slept, or waited for a connection"},
	};
	static const struct hungry_story silent[] = {
		/* a fifth of the GPU's work is much, less is not; nor are 40 ms */
		{.host_ns = MS / 2, .gpu_ns = 3 * MS, .steps = 400, .results = true},
		{.host_ns = 2 * MS, .gpu_ns = 3 * MS, .steps = 20, .results = true},
		/* what happens once */
		{.host_ns = MS / 4,
		 .gpu_ns = 3 * MS,
		 .once_ns = 400 * MS,
		 .steps = 40,
		 .results = true},
		/* it means to, or may wait for requests */
		{.host_ns = 2 * MS,
		 .gpu_ns = 3 * MS,
		 .steps = 40,
		 .wait = "kind=sleep caller=0x30"},
		{.host_ns = 2 * MS,
		 .gpu_ns = 3 * MS,
		 .steps = 40,
		 .wait = "kind=poll file=listening object=3 caller=0x30"},
		{.host_ns = 2 * MS,
		 .gpu_ns = 3 * MS,
		 .steps = 40,
		 .wait = "kind=transfer file=socket object=3 caller=0x30"},
		/* these have detectors of their own */
		{.host_ns = 2 * MS,
		 .gpu_ns = 3 * MS,
		 .steps = 40,
		 .wait = "kind=condition object=0x1000 caller=0x30 flags=32"},
		/* the thread could have waited later: early-sync has it */
		{.host_ns = 2 * MS, .gpu_ns = 3 * MS, .steps = 40},
		/* nothing is certain */
		{.host_ns = 2 * MS, .gpu_ns = 3 * MS, .steps = 40, .results = true, .blind = true},
	};
	struct story *s = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *finding;

		tell_hungry(s, &cases[i].story);
		finding = found(s, "starved-by-host");
		if (!finding)
			fail_msg("case %zu: silent:\n%s", i, s->shown);
		says(finding, cases[i].says);
		assert_in_range(ns_of(finding, "cost_ns"), 40 * 2 * MS, 40 * 2 * MS + 2 * MS);
		assert_int_equal(ns_of(finding, "cost_ns"), ns_of(finding, "idle_gpu_ns"));
		assert_int_equal(ns_of(finding, "count"), 40);
		assert_true(rs_is(finding, "severity", "problem"));
	}
	for (i = 0; i < ARRAY_SIZE(silent); i++) {
		tell_hungry(s, &silent[i]);
		if (found(s, "starved-by-host"))
			fail_msg("twin %zu: %s", i, what(found(s, "starved-by-host")));
	}
}

/* Lines of Python are named at both ends of the gap, and the cure is one for Python. */
static void test_starved_by_python(void **state)
{
	struct story *s = *state;
	json_t *finding;

	tell_hungry(s, &(struct hungry_story){.host_ns = 2 * MS,
					      .gpu_ns = MS / 10,
					      .steps = 40,
					      .results = true,
					      .python = true});
	finding = found(s, "starved-by-host");
	says(finding, "between train.py:21 in step and train.py:17 in step");
	assert_non_null(
		strstr(json_string_value(json_object_get(finding, "fix")), "torch.compile"));
	assert_int_equal(ns_of(finding, "python_line"), 17);
	assert_int_equal(ns_of(finding, "gain_high_ns"), ns_of(finding, "cost_ns"));
	/* Other work may become less, or be done by several threads. */
	tell_hungry(s, &(struct hungry_story){
			       .host_ns = 2 * MS, .gpu_ns = MS, .steps = 40, .results = true});
	finding = found(s, "starved-by-host");
	assert_int_equal(ns_of(finding, "gain_high_ns"), ns_of(finding, "cost_ns"));
}

/* ---- starved-by-calls ------------------------------------------------------------------------ */

/* Between two steps: a call, in which the thread waits for something, or nothing. */
struct calls_story {
	const char *call, *wait;
	uint64_t call_ns, gpu_ns;
	unsigned int steps;
	bool once; /* behind one step alone, and as long as all together */
};

static void tell_calls(struct story *s, const struct calls_story *t)
{
	unsigned int i;

	begin_with(s, "probes=1");
	for (i = 0; i <= t->steps; i++) {
		uint64_t ns = t->once ? (i == t->steps / 2) * t->call_ns * t->steps : t->call_ns;

		launch(s, 1000, 4000);
		call(s, 500, 2000,
		     "copy cudaMemcpyAsync direction=d2h src=device dst=pinned bytes=4096 stream=8 "
		     "caller=0x13");
		call(s, 1000, t->gpu_ns, "op cudaStreamSynchronize stream=8 caller=0x20");
		if (!ns)
			continue;
		s->ns += 1000;
		if (t->wait)
			fprintf(s->log, "%lluns wait fn=%s %s duration=%lluns device=0\n",
				(unsigned long long)(s->ns + ns - 2000), t->call, t->wait,
				(unsigned long long)(ns - 4000));
		call(s, 0, ns, "op %s caller=0x40", t->call);
	}
	conclude(s);
}

static void test_starved_by_calls(void **state)
{
	static const struct {
		struct calls_story story;
		const char *says, *fix;
	} cases[] = {
		{{"cudaPointerGetAttributes", NULL, 2 * MS, 3 * MS, 40, false},
		 "in other CUDA calls, most of it in cudaPointerGetAttributes",
		 "Call cudaPointerGetAttributes less often"},
		{{"cudaPointerGetAttributes", "kind=ioctl object=0x21", 2 * MS, 3 * MS, 40, false},
		 "in NVIDIA's kernel module, most of it in cudaPointerGetAttributes",
		 "Call cudaPointerGetAttributes less often"},
		{{"cudaPointerGetAttributes", "kind=mutex object=0x1000 holder=9", 2 * MS, 3 * MS,
		  40, false},
		 "waiting for a lock inside CUDA, most of it in cudaPointerGetAttributes",
		 "Cure what holds the lock"},
	};
	static const struct calls_story silent[] = {
		/* less than a fifth; less than 50 ms; once */
		{"cudaPointerGetAttributes", NULL, MS / 2, 3 * MS, 400, false},
		{"cudaPointerGetAttributes", NULL, 2 * MS, 3 * MS, 20, false},
		{"cudaPointerGetAttributes", NULL, 2 * MS, 3 * MS, 40, true},
		/* what is made again and again has a finding, whose price it is */
		{"cudaStreamCreate", NULL, 2 * MS, 3 * MS, 40, false},
	};
	struct story *s = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *finding;

		tell_calls(s, &cases[i].story);
		finding = found(s, "starved-by-calls");
		if (!finding)
			fail_msg("case %zu: silent:\n%s", i, s->shown);
		says(finding, cases[i].says);
		assert_in_range(ns_of(finding, "cost_ns"), 39 * 2 * MS, 41 * 2 * MS);
		assert_int_equal(ns_of(finding, "cost_ns"), ns_of(finding, "idle_gpu_ns"));
		assert_non_null(
			strstr(json_string_value(json_object_get(finding, "fix")), cases[i].fix));
		assert_true(rs_is(finding, "severity", "problem"));
	}
	for (i = 0; i < ARRAY_SIZE(silent); i++) {
		tell_calls(s, &silent[i]);
		if (found(s, "starved-by-calls"))
			fail_msg("twin %zu: %s", i, what(found(s, "starved-by-calls")));
	}
}

/* ---- launch-bound ---------------------------------------------------------------------------- */

struct launches_story {
	unsigned int launches; /* in a step, of 400 */
	uint64_t launch_ns, pause_ns, wait_ns;
	bool no_waits;
};

static void tell_launches(struct story *s, const struct launches_story *t)
{
	unsigned int i, j;

	begin_with(s, "probes=1");
	for (i = 0; i < 10; i++) { /* what synchronisations cost alone */
		launch(s, 1000, t->launch_ns);
		wait_for_stream(s, 3000, 0x21);
		wait_for_stream(s, 2000, 0x21);
	}
	for (i = 0; i < 400; i++) {
		for (j = 0; j < t->launches; j++)
			launch(s, t->pause_ns, t->launch_ns);
		if (!t->no_waits)
			wait_for_stream(s, t->wait_ns, 0x20);
	}
	conclude(s);
}

static void test_launch_bound(void **state)
{
	static const struct launches_story silent[] = {
		/* the GPU is the slower one */
		{.launches = 50, .launch_ns = 4000, .pause_ns = 300, .wait_ns = 100000},
		/* the thread does other things between launches */
		{.launches = 50, .launch_ns = 4000, .pause_ns = 5000, .wait_ns = 5000},
		/* few launches */
		{.launches = 10, .launch_ns = 4000, .pause_ns = 300, .wait_ns = 3000},
		/* nobody knows when the GPU was done */
		{.launches = 50, .launch_ns = 4000, .pause_ns = 300, .no_waits = true},
	};
	struct story *s = *state;
	json_t *finding;
	size_t i;

	tell_launches(s,
		      &(struct launches_story){
			      .launches = 50, .launch_ns = 4000, .pause_ns = 300, .wait_ns = 5000});
	finding = found(s, "launch-bound");
	says(finding, "inferred: thread 7");
	assert_in_range(ns_of(finding, "cost_ns"), 78 * MS, 81 * MS);
	assert_in_range(ns_of(finding, "count"), 20000, 20010);
	assert_true(json_is_null(json_object_get(finding, "idle_gpu_ns")));
	assert_true(rs_is(finding, "severity", "problem"));
	for (i = 0; i < ARRAY_SIZE(silent); i++) {
		tell_launches(s, &silent[i]);
		if (found(s, "launch-bound"))
			fail_msg("twin %zu: %s", i, what(found(s, "launch-bound")));
	}
}

/* With exact times of the GPU, which the log does not have: its idle time, of that in launches, its work. */
struct exact_times {
	uint64_t idle_ns, launches_ns, busy_ns, operations;
};

/* Of the exact times, launches_ns with that cause, at two places: does the detector have a finding of them? */
static bool is_found_exactly(const struct story *s, const struct detector *detector,
			     enum idle_cause cause, const struct exact_times *exact)
{
	char path[512];
	const char *dirs[] = {path};
	struct trace_set set;
	struct arena texts = {0};
	struct found found = {.texts = &texts};
	struct analysis a;
	struct idle_gpu *gpu;
	size_t i;

	snprintf(path, sizeof(path), "%s/a.%u", s->dir, s->told);
	assert_int_equal(trace_set_open(&set, dirs, 1, NULL), 0);
	assert_int_equal(analysis_run(&a, &set, &(struct analysis_options){0}), 0);
	assert_int_equal(a.idle.n_gpus, 1);
	gpu = &a.idle.gpus[0];
	a.model.complete = gpu->certain = gpu->exact.sound = true;
	gpu->exact.idle_ns = exact->idle_ns;
	gpu->exact.busy_ns = exact->busy_ns;
	gpu->exact.operations = exact->operations;
	for (i = 0; i < 2; i++)
		idle_sums_add(&a.idle.sums, idle_owner_exact(0), gpu->processes[0],
			      &(struct idle_part){.cause = cause,
						  .address = 0x10 + i,
						  .thread = a.model.threads[0],
						  .fn = set.functions.count - 1,
						  .fn_before = NO_FUNCTION},
			      exact->launches_ns / 2);
	detector->conclude_idle(&a.idle, &found);
	if (found.n) {
		assert_int_equal(found.n, 1);
		assert_int_equal(found.all[0].cost.idle_gpu_ns, exact->launches_ns);
		assert_int_equal(cost_ns(&found.all[0].cost), exact->launches_ns);
		assert_null(strstr(found.all[0].what, "inferred"));
	}
	findings_free(found.all, found.n);
	arena_release(&texts);
	analysis_release(&a);
	trace_set_release(&set);
	return found.n;
}

static bool is_launch_bound(const struct story *s, const struct exact_times *exact)
{
	return is_found_exactly(s, &detector_launch_bound, IDLE_LAUNCH, exact);
}

static bool is_stalled(const struct story *s, const struct exact_times *exact)
{
	return is_found_exactly(s, &detector_stalled_on_device, IDLE_DEPENDENCY, exact);
}

/* The work of the story takes some 90 ms. */
static void test_stalled_on_device(void **state)
{
	struct story *s = *state;

	tell_launches(s,
		      &(struct launches_story){
			      .launches = 50, .launch_ns = 4000, .pause_ns = 300, .wait_ns = 5000});
	assert_true(is_stalled(s, &(struct exact_times){80 * MS, 120 * MS, 20 * MS, 100}));
	assert_false(is_stalled(s, &(struct exact_times){80 * MS, 40 * MS, 20 * MS, 100}));
	assert_false(is_found_exactly(s, &detector_stalled_on_device, IDLE_LAUNCH,
				      &(struct exact_times){80 * MS, 120 * MS, 20 * MS, 100}));
}

static void test_launch_bound_exactly(void **state)
{
	struct story *s = *state;

	tell_launches(s,
		      &(struct launches_story){
			      .launches = 50, .launch_ns = 4000, .pause_ns = 300, .wait_ns = 5000});
	assert_true(is_launch_bound(s, &(struct exact_times){100 * MS, 60 * MS, 20 * MS, 20000}));
	/* long kernels; other idle time; little of it; and what is inferred does not count */
	assert_false(is_launch_bound(s, &(struct exact_times){100 * MS, 60 * MS, 20 * MS, 900}));
	assert_false(is_launch_bound(s, &(struct exact_times){300 * MS, 60 * MS, 20 * MS, 20000}));
	assert_false(is_launch_bound(s, &(struct exact_times){50 * MS, 40 * MS, 20 * MS, 20000}));
}

/* ---- serial-gpus ----------------------------------------------------------------------------- */

/* Two threads with a GPU each. */
struct baton_story {
	uint64_t gpu_ns, beside_ns; /* of gpu_ns, so much at the same time */
	unsigned int rounds;
	const char *with; /* beside each launch; NULL: nothing */
	bool one_thread, managed;
};

static void a_turn(struct story *s, const struct baton_story *t, unsigned int gpu, uint64_t end_ns)
{
	unsigned long long at = s->ns;

	fprintf(s->log, "slot %u tid=%u\n", t->one_thread ? 1 : 1 + gpu,
		t->one_thread ? 7 : 7 + gpu);
	fprintf(s->log,
		"%lluns launch cudaLaunchKernel kernel=1 stream=%u caller=0x10 device=%u "
		"duration=4000ns\n",
		at + 5000, 8 + gpu, gpu);
	if (t->with)
		fprintf(s->log, "%lluns %s stream=%u device=%u caller=0x13 duration=2000ns\n",
			at + 8000, t->with, 8 + gpu, gpu);
	fprintf(s->log,
		"%lluns op cudaStreamSynchronize stream=%u caller=0x20 device=%u duration=%lluns\n",
		(unsigned long long)end_ns, 8 + gpu, gpu, (unsigned long long)end_ns - at - 9000);
}

static void tell_baton(struct story *s, const struct baton_story *t)
{
	unsigned int i;

	begin_with(s, "probes=1");
	fprintf(s->log, "slot 2 tid=8\n1us thread tid=8 name=\"b\"\nslot 1 tid=7\n");
	if (t->managed)
		call(s, 1000, 9000,
		     "memory cudaMallocManaged op=alloc kind=managed address=0x5000 bytes=64");
	for (i = 0; i < 2 * t->rounds; i++) {
		a_turn(s, t, i % 2, s->ns + t->gpu_ns);
		s->ns += t->gpu_ns - t->beside_ns + 20000;
	}
	fprintf(s->log, "slot 1 tid=7\n");
	conclude(s);
}

static void test_serial_gpus(void **state)
{
	static const struct baton_story silent[] = {
		{.gpu_ns = 2 * MS, .rounds = 50, .beside_ns = MS}, /* half of it together */
		{.gpu_ns = 2 * MS, .rounds = 15}, /* 30 ms are little */
		{.gpu_ns = 20 * MS, .rounds = 4}, /* and four turns no habit */
		{.gpu_ns = 2 * MS,
		 .rounds = 50,
		 .with = "copy cudaMemcpyPeerAsync form=peer direction=d2d src=device dst=device "
			 "src_device=0 dst_device=1 bytes=4096"},
		{.gpu_ns = 2 * MS, .rounds = 50, .managed = true},
	};
	struct story *s = *state;
	json_t *finding;
	size_t i;

	tell_baton(s, &(struct baton_story){.gpu_ns = 2 * MS, .rounds = 50});
	finding = found(s, "serial-gpus");
	says(finding, "GPUs 0 and 1, fed by different threads, work in turn");
	assert_in_range(ns_of(finding, "cost_ns"), 98 * MS, 104 * MS);
	assert_true(rs_is(finding, "severity", "problem"));
	/* The next one may need what the host got. */
	tell_baton(s, &(struct baton_story){
			      .gpu_ns = 2 * MS,
			      .rounds = 50,
			      .with = "copy cudaMemcpyAsync direction=d2h src=device dst=pinned "
				      "bytes=4096"});
	finding = found(s, "serial-gpus");
	says(finding, "which the next may need");
	assert_true(rs_is(finding, "severity", "note"));
	for (i = 0; i < ARRAY_SIZE(silent); i++) {
		tell_baton(s, &silent[i]);
		if (found(s, "serial-gpus"))
			fail_msg("twin %zu: %s", i, what(found(s, "serial-gpus")));
	}
	/* One thread is shown at its waits. */
	tell_baton(s, &(struct baton_story){.gpu_ns = 2 * MS, .rounds = 50, .one_thread = true});
	says(found(s, "serial-gpus"), "a thread waited for one GPU");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY_TEST(test_starved_by_host),   STORY_TEST(test_starved_by_python),
		STORY_TEST(test_launch_bound),      STORY_TEST(test_launch_bound_exactly),
		STORY_TEST(test_serial_gpus),       STORY_TEST(test_starved_by_calls),
		STORY_TEST(test_stalled_on_device),
	};

	return RUN_WITH_FINDINGS(tests);
}
