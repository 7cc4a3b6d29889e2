/*
 * tests/unit/test_analyzer_progress.c: how much of a sum lies in the first part of a process's work (idle/progress.c): parts that grow
 * together lose nothing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "idle/progress.h"

static uint64_t sum(const struct progress *progress)
{
	uint64_t ns = 0;

	for (unsigned int i = 0; i < PROGRESS_PARTS; i++)
		ns += progress->ns[i];
	return ns;
}

static void near_to(double value, double expected)
{
	assert_true(value > expected - 1e-9 && value < expected + 1e-9);
}

/* 1 ns at each of so many submissions, and 3 ns at each of the second half. */
static struct progress uneven(uint64_t submissions)
{
	struct progress progress = {0};

	for (uint64_t i = 0; i < submissions; i++)
		progress_add(&progress, i, i < submissions / 2 ? 1 : 3);
	return progress;
}

static void test_few(void **state)
{
	struct progress progress = uneven(PROGRESS_PARTS);

	(void)state;
	assert_int_equal(progress.each, 1);
	assert_int_equal(sum(&progress), 2 * PROGRESS_PARTS);
	near_to(progress_before(&progress, 0), 0);
	near_to(progress_before(&progress, 1), 1.0 / (2 * PROGRESS_PARTS));
	near_to(progress_before(&progress, PROGRESS_PARTS / 2), 0.25);
	near_to(progress_before(&progress, PROGRESS_PARTS), 1);
}

static void test_many(void **state)
{
	struct progress progress = uneven(8 * PROGRESS_PARTS);

	(void)state;
	assert_int_equal(progress.each, 8);
	assert_int_equal(sum(&progress), 16 * PROGRESS_PARTS);
	assert_int_equal(progress.ns[0], 8);
	assert_int_equal(progress.ns[PROGRESS_PARTS - 1], 24);
	near_to(progress_before(&progress, 4 * PROGRESS_PARTS), 0.25);
	/* The part that it lies in counts as behind it. */
	near_to(progress_before(&progress, 15), 8.0 / (16 * PROGRESS_PARTS));
	near_to(progress_before(&progress, 16), 16.0 / (16 * PROGRESS_PARTS));
}

/* From one that came to the end of its work: 64 ns, a quarter of them in the first half of that. */
static void test_in_proportion(void **state)
{
	const struct progress from = uneven(4 * PROGRESS_PARTS), none = {0};
	struct progress progress = {0};

	(void)state;
	progress_add_of(&progress, &from, 64);
	assert_int_equal(progress.each, 4);
	assert_int_equal(sum(&progress), 64);
	near_to(progress_before(&progress, 2 * PROGRESS_PARTS), 0.25);
	progress_add_of(&progress, &none, 64);
	assert_int_equal(sum(&progress), 64);
	near_to(progress_before(&none, 7), 0);
}

/* 7 calls a second, and half of all calls after half of the time: no mark lies behind what it is asked for. */
static void test_clock(void **state)
{
	struct progress_clock clock = {0};

	(void)state;
	assert_int_equal(progress_clock_at(&clock, 0), 0);
	for (uint64_t i = 1; i <= 700; i++) {
		progress_clock_see(&clock, i, i * 1000);
		assert_in_range(progress_clock_at(&clock, i / 2), (i / 2 - i / 8) * 1000,
				(i / 2 + 1) * 1000);
	}
	assert_int_equal(clock.each, 64);
	/* Steps of many at once. */
	clock = (struct progress_clock){0};
	progress_clock_see(&clock, 1, 5);
	progress_clock_see(&clock, 1000, 6);
	assert_int_equal(progress_clock_at(&clock, 999), 6);
	assert_int_equal(progress_clock_at(&clock, 500), 5);
}

static void test_end(void **state)
{
	struct progress progress = {0};

	(void)state;
	assert_int_equal(progress_end(&progress), 0);
	progress_add(&progress, 0, 1);
	assert_int_equal(progress_end(&progress), 1);
	progress_add(&progress, 100, 1);
	assert_int_equal(progress_end(&progress), 104);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few),           cmocka_unit_test(test_many),
		cmocka_unit_test(test_in_proportion), cmocka_unit_test(test_clock),
		cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
