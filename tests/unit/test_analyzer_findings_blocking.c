/*
 * tests/unit/test_analyzer_findings_blocking.c: launches that wait for their kernels, as CUDA_LAUNCH_BLOCKING
 * makes them, and the same calls of a process without it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "story.h"

/* Launches of 100 us kernels, each twentieth of 10 ms; all of them waited for now and then. */
static void tell(struct story *s, const char *environment)
{
	int i;

	begin_with(s, environment);
	for (i = 0; i < 600; i++) {
		launch(s, 1000, i % 20 == 10 ? 10 * MS : MS / 10);
		if (i % 50 == 49)
			wait_for_stream(s, 1000, 0x20);
	}
	conclude(s);
}

static void test_launch_blocking(void **state)
{
	struct story *s = *state;
	json_t *finding;

	tell(s, "env_CUDA_LAUNCH_BLOCKING=\"1\"");
	finding = only(s, "launch-blocking", "600 launches waited for the kernel's end");
	assert_string_equal(json_string_value(json_object_get(finding, "function")),
			    "cudaLaunchKernel");
	assert_in_range(number(finding, "cost_ns"), 300 * MS, 357 * MS);
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "note");
	assert_int_equal(number(json_object_get(s->root, "waits"), "queue_ns"), 0);
	assert_int_equal(number(json_object_get(s->root, "waits"), "unexplained_ns"), 0);
}

static void test_not_blocking(void **state)
{
	struct story *s = *state;

	tell(s, "env_CUDA_LAUNCH_BLOCKING=\"0\"");
	assert_null(found(s, "launch-blocking"));
	tell(s, "");
	assert_null(found(s, "launch-blocking"));
}

/* A process of which each thread launches as told: "FUNCTION MILLISECONDS". */
static void add_process(struct story *s, unsigned int pid, const char *environment,
			const char *const *threads, size_t n)
{
	size_t i;

	fprintf(s->log, "trace p.%u pid=%u program=\"p%u\" boot_id=b clock_source=tsc %s\n", pid,
		pid, pid, environment);
	for (i = 0; i < n; i++) {
		const char *ms = strchr(threads[i], ' ');

		fprintf(s->log,
			"slot %zu tid=%zu\n1us thread tid=%zu name=\"t\"\n2us kernel kernel=1 "
			"name=\"k\"\n"
			"1ms launch %.*s duration=5us kernel=1 stream=8\n"
			"2ms op cudaDeviceSynchronize duration=5us\n",
			i + 1, pid + i, pid + i, (int)(ms - threads[i]), threads[i]);
		fprintf(s->log, "500ms launch %.*s duration=%sms kernel=1 stream=8\n",
			(int)(ms - threads[i]), threads[i], ms + 1);
	}
}

/* Of all threads of the processes that have the variable set and launch anything: their launches, and the function that
 * one of them waited longest in. */
static void test_processes(void **state)
{
	static const char *const first[] = {"cudaLaunchKernel 20", "cudaLaunchKernel 25"};
	static const char *const second[] = {"cudaLaunchCooperativeKernel 10", "cuLaunchKernel 40",
					     "cudaLaunchKernel 30"};
	static const char *const other[] = {"cudaLaunchKernelExC 400"};
	const char *dirs[4];
	struct story *s = *state;
	struct report_options options = {.renderer = renderer_find("json")};
	char paths[4][512], *text = NULL;
	size_t size, i;
	json_t *finding;
	FILE *out;

	s->log = open_memstream(&s->text, &s->size);
	add_process(s, 100, "env_CUDA_LAUNCH_BLOCKING=\"1\"", first, 2);
	add_process(s, 200, "env_CUDA_LAUNCH_BLOCKING=\"1\"", second, 3);
	add_process(s, 300, "", other, 1);
	add_process(s, 400, "env_CUDA_LAUNCH_BLOCKING=\"1\"", NULL, 0);
	fprintf(s->log, "slot 1 tid=400\n1ms call cudaSetDevice duration=5us\n");
	fclose(s->log);
	scratch_write(s->path, s->text, s->size);
	free(s->text);
	tt_make(s->path, s->dir);
	for (i = 0; i < 4; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/p.%zu", s->dir, 100 * (i + 1));
		dirs[i] = paths[i];
	}
	out = open_memstream(&text, &size);
	assert_int_equal(report_show(dirs, 4, NULL, &options, out), 0);
	fclose(out);
	s->root = json_loads(text, 0, NULL);
	free(text);
	s->findings = json_object_get(s->root, "findings");
	finding = found(s, "launch-blocking");
	says(finding, "is set in 2 of 4 processes: 10 launches waited");
	assert_int_equal(number(finding, "count"), 10);
	assert_int_equal(number(finding, "processes"), 2);
	assert_string_equal(json_string_value(json_object_get(finding, "function")),
			    "cuLaunchKernel");
	assert_string_equal(json_string_value(json_object_get(finding, "program")), "p200");
	assert_in_range(number(finding, "cost_ns"), 124 * MS, 126 * MS);
	/* Behind its launch none of these threads does anything that could be done meanwhile. */
	assert_in_range(number(finding, "gain_high_ns"), 0, MS);
}

/* ---- host and GPU one after the other ----------------------------------------------------------- */

#define BLOCKS "probes=1 env_CUDA_LAUNCH_BLOCKING=\"1\""
#define RETURNS "probes=1"

/* Steps, each of so many launches behind as many pauses, and then a wait. */
struct steps {
	unsigned int steps, launches;
	uint64_t pause_ns, launch_ns, wait_ns;
};

static void tell_steps(struct story *s, const char *environment, const struct steps *t)
{
	begin_with(s, environment);
	for (unsigned int i = 0; i < 10; i++) { /* what calls cost that wait for next to nothing */
		launch(s, 1000, 4000);
		wait_for_stream(s, 3000, 0x21);
		wait_for_stream(s, 2000, 0x21);
	}
	for (unsigned int i = 0; i < t->steps; i++) {
		for (unsigned int j = 0; j < t->launches; j++)
			launch(s, t->pause_ns, t->launch_ns);
		wait_for_stream(s, t->wait_ns, 0x20);
	}
	launch(s, t->pause_ns, 4000);
	conclude(s);
}

/* The host takes 130 us for each kernel of 100 us: without the variable they would pass beside each other, but for the last one of a
 * step. Then the GPU would wait for the host, but how long now is no one's finding. */
static void test_adds_up(void **state)
{
	static const struct steps steps = {40, 50, 130000, 100000, 3000};
	struct story *s = *state;
	json_t *finding;

	tell_steps(s, BLOCKS, &steps);
	finding = only(s, "launch-blocking", "2011 launches waited for the kernel's end");
	says(finding, "of the GPU's idle time is due to that");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "problem");
	assert_in_range(number(finding, "cost_ns"), 40 * 50 * 96000, 40 * 50 * 98100);
	assert_in_range(number(finding, "gain_high_ns"), 40 * 49 * 96000, 40 * 50 * 98000);
	assert_in_range(number(finding, "gain_low_ns"), 40 * 48 * 96000, 40 * 49 * 96000);
	assert_true(is_said(s, "CUDA_LAUNCH_BLOCKING is set: behind each kernel the GPU waits"));
	assert_true(is_said(s, "1 problem"));
	tell_steps(s, RETURNS, &steps);
	assert_null(found(s, "launch-blocking"));
	assert_false(is_said(s, "CUDA_LAUNCH_BLOCKING"));
}

/* What launches cost by themselves is unknown; the twin says that it is the launches. */
static void test_not_launch_bound(void **state)
{
	static const struct steps steps = {400, 50, 300, 4000, 5000};
	struct story *s = *state;

	tell_steps(s, BLOCKS, &steps);
	assert_non_null(found(s, "launch-blocking"));
	assert_null(found(s, "launch-bound"));
	tell_steps(s, RETURNS, &steps);
	assert_non_null(found(s, "launch-bound"));
}

/* Of 22 ms the GPU works for two, of which one might pass beside the host's 20: of those it is not known alone. */
static void test_starved_beside(void **state)
{
	static const struct steps steps = {40, 2, 10 * MS, MS, 3000};
	struct story *s = *state;
	json_t *finding;

	tell_steps(s, BLOCKS, &steps);
	assert_null(strstr(what(found(s, "launch-blocking")), "idle time"));
	finding = found(s, "starved-by-host");
	assert_non_null(finding);
	assert_in_range(number(finding, "cost_ns"), 40 * 18900000ll, 40 * 19400000ll);
	tell_steps(s, RETURNS, &(struct steps){40, 2, 10 * MS, 5000, MS});
	finding = found(s, "starved-by-host");
	assert_non_null(finding);
	assert_in_range(number(finding, "cost_ns"), 36 * 10ll * MS, 404ll * MS);
}

/* A program that launches little; one that waits for each kernel in any case. */
static void test_nothing_gained(void **state)
{
	static const struct steps few = {12, 1, 100 * MS, MS / 2, 3000},
				  each = {200, 1, 1000, 10 * MS, 3000};
	struct story *s = *state;

	for (unsigned int i = 0; i < 2; i++) {
		json_t *finding;

		tell_steps(s, BLOCKS, i ? &few : &each);
		finding = found(s, "launch-blocking");
		assert_string_equal(json_string_value(json_object_get(finding, "severity")),
				    "note");
	}
}

/* It may ask until work is done, instead of waiting: then it waits in any case, for all that is known. */
static void test_asks(void **state)
{
	struct story *s = *state;
	json_t *finding;

	for (unsigned int asks = 0; asks < 2; asks++) {
		begin_with(s, BLOCKS);
		for (unsigned int i = 0; i < 1000; i++)
			launch(s, MS / 10, i % 10 ? MS / 10 : 4000);
		fprintf(s->log, "%lluns count function=cudaEventQuery tid=7 count=%u\n",
			(unsigned long long)s->ns, 1000 * asks);
		conclude(s);
		finding = found(s, "launch-blocking");
		assert_true(number(finding, "gain_high_ns") > 80 * MS);
		if (asks)
			assert_int_equal(number(finding, "gain_low_ns"), 0);
		else
			assert_true(number(finding, "gain_low_ns") > 80 * MS);
	}
}

/* One thread launches on two GPUs in turn. With the variable they work in turn for that. */
static void in_turn(struct story *s, const char *environment, bool waits)
{
	bool blocks = !strcmp(environment, BLOCKS);

	begin_with(s, environment);
	fputs("2us gpu device=0 name=\"A\" uuid=\"GPU-1\" pci=\"0\"\n"
	      "2us gpu device=1 name=\"A\" uuid=\"GPU-2\" pci=\"1\"\n",
	      s->log);
	for (unsigned int i = 0; i < 200; i++) {
		bool small = i < 20;

		call(s, 1000, small || !blocks ? 4000 : 5 * MS,
		     "launch cudaLaunchKernel kernel=1 stream=8 caller=0x10 device=%u", i % 2);
		if (small || waits)
			call(s, 1000, small || blocks ? 3000 : 5 * MS,
			     "op cudaDeviceSynchronize caller=0x20 device=%u", i % 2);
	}
	conclude(s);
}

static void test_turns(void **state)
{
	struct story *s = *state;
	json_t *finding;

	in_turn(s, BLOCKS, true);
	only(s, "launch-blocking", "200 launches");
	/* Not behind each kernel, but behind all of them: then both GPUs work at once. */
	in_turn(s, BLOCKS, false);
	finding = only(s, "launch-blocking", "200 launches");
	assert_in_range(number(finding, "gain_high_ns"), 88 * 5ll * MS, 92 * 5ll * MS);
	assert_in_range(number(finding, "gain_low_ns"), 88 * 5ll * MS, 92 * 5ll * MS);
	in_turn(s, RETURNS, true);
	assert_non_null(found(s, "serial-gpus"));
}

/* An event loop of a thread that launches, while other descriptors are ready. */
static void serve(struct story *s, const char *environment)
{
	begin_with(s, environment);
	for (unsigned int i = 0; i < 100; i++) {
		launch(s, 1000, i < 10 ? 4000 : 5 * MS);
		s->ns += 4000;
		fprintf(s->log,
			"%lluns outside kind=epoll object=0x5 caller=0x90 duration=2us flags=%u ready=3\n",
			(unsigned long long)s->ns, SPY_WAIT_LATE);
		s->ns += 200000;
		fprintf(s->log, "%lluns outside kind=epoll object=0x5 caller=0x90 duration=100us\n",
			(unsigned long long)s->ns);
	}
	conclude(s);
}

static void test_loop(void **state)
{
	struct story *s = *state;
	json_t *finding;

	serve(s, BLOCKS);
	finding = found(s, "blocked-loop");
	says(finding, "; due to launch-blocking");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "note");
}

/* A synchronisation behind such a launch has nothing left to wait for; elsewhere it is needed. */
static void test_sync_behind_blocking(void **state)
{
	struct story *s = *state;
	int i;

	begin_with(s, "env_CUDA_LAUNCH_BLOCKING=\"1\"");
	for (i = 0; i < 100; i++) {
		launch(s, 1000, MS);
		launch(s, 1000, MS);
		launch(s, 1000, MS);
		wait_for_stream(s, 20000, 0x20);
	}
	conclude(s);
	only(s, "launch-blocking", "300 launches");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY_TEST(test_launch_blocking),
		STORY_TEST(test_not_blocking),
		STORY_TEST(test_processes),
		STORY_TEST(test_sync_behind_blocking),
		STORY_TEST(test_adds_up),
		STORY_TEST(test_not_launch_bound),
		STORY_TEST(test_starved_beside),
		STORY_TEST(test_nothing_gained),
		STORY_TEST(test_asks),
		STORY_TEST(test_turns),
		STORY_TEST(test_loop),
	};

	return RUN_WITH_FINDINGS(tests);
}
