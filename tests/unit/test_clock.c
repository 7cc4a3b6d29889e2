/*
 * tests/unit/test_clock.c: cycles a second from two readings of both clocks.
 */
/* links: shim/lib/clock.c */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <time.h>
#include "lib/clock.h"

static void test_frequency(void **state)
{
	const struct spy_clock_pair from = {.clock = 1000, .monotonic_ns = 5000000};
	const struct spy_clock_pair soon = {.clock = 3000000, .monotonic_ns = 5999999};
	const struct spy_clock_pair later = {.clock = 3001000, .monotonic_ns = 6000000};
	const struct spy_clock_pair week = {.clock = 1000 + 3ull * 604800 * 1000000000,
					    .monotonic_ns = 5000000 + 604800ull * 1000000000};

	(void)state;
	spy_clock_is_counter = true;
	assert_int_equal(spy_clock_frequency(&from, &soon), 0); /* less than a millisecond */
	assert_int_equal(spy_clock_frequency(&from, &later), 3000000000);
	assert_int_equal(spy_clock_frequency(&from, &week), 3000000000);
	spy_clock_is_counter = false;
	assert_int_equal(spy_clock_frequency(&from, &soon), 1000000000); /* they are nanoseconds */
}

static void test_pair(void **state)
{
	struct spy_clock_pair pair;
	struct timespec now;
	uint64_t before = spy_clock_monotonic();

	(void)state;
	spy_clock_init(true);
	assert_false(spy_clock_is_counter);
	spy_clock_read_pair(&pair);
	clock_gettime(CLOCK_REALTIME, &now);
	assert_in_range(pair.monotonic_ns, before, spy_clock_monotonic());
	assert_in_range(pair.clock, before, spy_clock_monotonic());
	assert_true(pair.realtime_ns <= (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frequency),
		cmocka_unit_test(test_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
