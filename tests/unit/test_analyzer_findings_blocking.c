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
		STORY_TEST(test_sync_behind_blocking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
