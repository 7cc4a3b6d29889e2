/*
 * tests/unit/test_analyzer_histogram.c: quantiles are what the header promises.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include "base/histogram.h"

static void assert_about(uint64_t value, uint64_t wanted)
{
	uint64_t slack = wanted / 125; /* 0.8 % */

	assert_in_range(value, wanted - slack, wanted + slack);
}

static void test_empty(void **state)
{
	struct histogram h = {0};

	(void)state;
	assert_int_equal(histogram_quantile(&h, 0.5), 0);
	histogram_release(&h);
}

static void test_one_value(void **state)
{
	uint64_t value;

	(void)state;
	for (value = 0; value < 1ull << 50; value = value * 2 + value / 3 + 1) {
		struct histogram h = {0};

		histogram_add(&h, value);
		assert_about(histogram_quantile(&h, 0), value);
		assert_about(histogram_quantile(&h, 0.5), value);
		assert_about(histogram_quantile(&h, 1), value);
		assert_true(histogram_quantile(&h, 1) <= value);
		assert_int_equal(h.max, value);
		histogram_release(&h);
	}
}

static void test_exact_below_128(void **state)
{
	struct histogram h = {0};
	uint64_t value;

	(void)state;
	for (value = 0; value < 128; value++)
		histogram_add(&h, value);
	for (value = 0; value < 128; value++)
		assert_int_equal(histogram_quantile(&h, (double)(value + 1) / 128), value);
	histogram_release(&h);
}

static void test_even(void **state)
{
	struct histogram h = {0}, other = {0};
	uint64_t value;

	(void)state;
	for (value = 1; value <= 1000000; value++)
		histogram_add(value & 1 ? &h : &other, value);
	histogram_merge(&h, &other);
	assert_about(histogram_quantile(&h, 0.5), 500000);
	assert_about(histogram_quantile(&h, 0.99), 990000);
	assert_int_equal(h.max, 1000000);
	histogram_release(&h);
	histogram_release(&other);
}

static void test_largest(void **state)
{
	struct histogram h = {0};

	(void)state;
	histogram_add(&h, UINT64_MAX);
	assert_true(histogram_quantile(&h, 0.5) > UINT64_MAX / 2);
	histogram_release(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),           cmocka_unit_test(test_one_value),
		cmocka_unit_test(test_exact_below_128), cmocka_unit_test(test_even),
		cmocka_unit_test(test_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
