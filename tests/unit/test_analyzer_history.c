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
#include "account/book.h"
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

/* Waits are kept of the last calls, 2,048 with what is known of who had their locks: older ones are forgotten first, but of the last call
 * all. */
static void test_waits_kept(void **state)
{
	static const struct {
		size_t waits, intervals,
			kept; /* of each call; calls whose waits are there at the end */
	} cases[] = {{1, 1, 32}, {64, 0, 32}, {64, 1, 16}, {32, 1, 32},
		     {64, 3, 8}, {4, 15, 32}, {4, 16, 30}, {1, 4000, 1}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct completed_call calls[32] = {{.begin_ns = 0}};
		struct thread_account c = {.ring = {.calls = calls, .size = 32, .most = 32}};
		size_t kept = 0;

		for (uint64_t n = 0; n < 100; n++) {
			struct completed_call *f = &calls[n % 32];

			if (f->waits)
				account_forget(&c, f);
			*f = (struct completed_call){.divided = true};
			c.ring.n++;
			c.n_waits = cases[i].waits;
			c.waits = calloc(c.n_waits, sizeof(*c.waits));
			for (size_t k = 0; k < c.n_waits && cases[i].intervals; k++) {
				c.waits[k].n_intervals = cases[i].intervals;
				c.waits[k].intervals =
					calloc(cases[i].intervals, sizeof(struct hold_interval));
			}
			account_keep_waits(&c, f);
			assert_null(c.waits);
			assert_int_equal(c.n_waits, 0);
			assert_int_equal(f->n_waits, cases[i].waits);
		}
		for (size_t k = 0; k < 32; k++) {
			const struct completed_call *f = &calls[(c.ring.n - 1 - k) % 32];

			assert_int_equal(f->waits != NULL, k < cases[i].kept);
			kept += f->n_waits * (1 + cases[i].intervals);
		}
		assert_int_equal(c.waits_kept, kept);
		for (size_t k = 0; k < 32; k++)
			if (calls[k].waits)
				account_forget(&c, &calls[k]);
		assert_int_equal(c.waits_kept, 0);
		history_free(c.history);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_eras),
		cmocka_unit_test(test_waits_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
