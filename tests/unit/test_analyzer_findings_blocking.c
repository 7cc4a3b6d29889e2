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
	says(finding, "10 launches waited");
	assert_int_equal(number(finding, "count"), 10);
	assert_int_equal(number(finding, "processes"), 2);
	assert_string_equal(json_string_value(json_object_get(finding, "function")),
			    "cuLaunchKernel");
	assert_string_equal(json_string_value(json_object_get(finding, "program")), "p200");
	assert_in_range(number(finding, "cost_ns"), 124 * MS, 126 * MS);
	assert_int_equal(number(finding, "gain_high_ns"), number(finding, "cost_ns"));
	assert_int_equal(number(finding, "gain_low_ns"), 0);
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
	};

	return RUN_WITH_FINDINGS(tests);
}
