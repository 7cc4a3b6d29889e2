/*
 * tests/unit/test_analyzer_history.c: calls that are forgotten leave their sums, all of them, in stretches that follow one
 * another and become coarser, but not more.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include "account/account.h"
#include "account/history.h"

#define FIRST 8 /* calls of an era, at first */

/* The k-th call: 10 us, from 100 us * k on. */
static void add(struct history *history, uint64_t k)
{
	struct completed_call call = {.begin_ns = 100000 * k, .end_ns = 100000 * k + 10000};

	call.avoidable_ns = 3;
	call.bucket_ns[BUCKET_OWN] = 7;
	call.bucket_ns[BUCKET_COUNT - 1] = (uint32_t)(k % 5);
	history_add(history, &call);
}

static void test_eras(void **state)
{
	struct history *history = calloc(1, sizeof(*history));
	uint64_t k, each = FIRST, calls, rest;
	size_t i;

	(void)state;
	for (k = 0; k < 20000; k++) {
		/* There are too many: two become one. */
		if (k == ERAS * each)
			each *= 2;
		add(history, k);
		assert_int_equal(history->calls_each, each);
		assert_int_equal(history->n, k / each + 1);
		assert_true(history->n <= ERAS);
		if (k % 97 && k > 2 * FIRST)
			continue;
		for (i = 0, calls = 0; i < history->n; i++) {
			const struct era *era = &history->eras[i];
			uint64_t n = i + 1 < history->n ? each : k + 1 - i * each;

			assert_int_equal(era->calls, n);
			assert_int_equal(era->begin_ns, 100000 * calls);
			for (rest = 0; n; n--)
				rest += calls++ % 5;
			assert_int_equal(era->end_ns, 100000 * (calls - 1) + 10000);
			assert_int_equal(era->avoidable_ns, 3 * era->calls);
			assert_int_equal(era->bucket_ns[BUCKET_OWN], 7 * era->calls);
			assert_int_equal(era->bucket_ns[BUCKET_COUNT - 1], rest);
		}
		assert_int_equal(calls, k + 1);
	}
	history_free(history);
	history_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_eras),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
