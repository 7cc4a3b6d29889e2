/*
 * tests/unit/test_nccl_pairs.c: sends and receives are numbered for each pair of ranks, communicator and direction.
 */
/* links: shim/nccl/pairs.c shim/lib/lock.c */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "nccl/operations.h"

static void test_numbers(void **state)
{
	uint64_t n;

	(void)state;
	for (n = 1; n < 4; n++) {
		assert_int_equal(spy_nccl_pair_number(1, 0, false), n);
		assert_int_equal(spy_nccl_pair_number(1, 0, true), n);
		assert_int_equal(spy_nccl_pair_number(1, 1, false), n);
		assert_int_equal(spy_nccl_pair_number(2, 0, false), n);
		assert_int_equal(spy_nccl_pair_number(2, INT32_MAX, true), n);
		assert_int_equal(spy_nccl_pair_number(3, INT32_MAX, true), n);
		assert_int_equal(spy_nccl_pair_number(1, -1, false), 0);
	}
}

/* Where the table is full, those that are not in it have no numbers, and the others theirs. */
static void test_many(void **state)
{
	uint32_t comm, known = 0;

	(void)state;
	for (comm = 10; comm < 20010; comm++)
		known += spy_nccl_pair_number(comm, 7, true) != 0;
	assert_in_range(known, 3000, 4096);
	for (comm = 10; comm < 20010; comm++) {
		uint64_t n = spy_nccl_pair_number(comm, 7, true);

		known -= n != 0;
		assert_true(n == 0 || n == 2);
	}
	assert_int_equal(known, 0);
	assert_int_equal(spy_nccl_pair_number(1, 1, false), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
