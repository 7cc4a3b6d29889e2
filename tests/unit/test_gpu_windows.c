/*
 * tests/unit/test_gpu_windows.c: what CUDASPY_GPU may be.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "cudaspy/gpu_windows.h"

static void is(const char *text, uint64_t on_ns, uint64_t every_ns)
{
	struct spy_gpu_windows windows;

	assert_true(spy_gpu_parse_windows(text, &windows));
	assert_int_equal(windows.on_ns, on_ns);
	assert_int_equal(windows.every_ns, every_ns);
}

static void is_none(const char *text)
{
	struct spy_gpu_windows windows;

	assert_false(spy_gpu_parse_windows(text, &windows));
	assert_int_equal(windows.every_ns, 0);
}

static void test_windows(void **state)
{
	(void)state;
	is("1", 0, 0);
	is("1s/10s", 1000000000, 10000000000);
	is("250ms/1m", 250000000, 60000000000);
	is("0.5s/1.25s", 500000000, 1250000000);
	is("1ms/2ms", 1000000, 2000000);
}

static void test_others(void **state)
{
	(void)state;
	is_none("");
	is_none("2");
	is_none("1s");
	is_none("1s/");
	is_none("1s/1s");
	is_none("2s/1s");
	is_none("1s/2s/3s");
	is_none("1/2");
	is_none("-1s/2s");
	is_none("0s/2s");
	is_none("nan/2s");
	is_none(".s/2s");
	is_none("1s/1e3s");
	is_none("1s/2000000s");
	/* It would open and close all the time. */
	is_none("0.1ms/1s");
	is_none("0.000001ms/0.000002ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
