/*
 * tests/unit/test_analyzer_lateness.c: is a rank late systematically or by chance (ranks/lateness.c)? Two real jobs of PyTorch, and
 * made-up ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "ranks/lateness.h"

#define US 1000ull
#define MS 1000000ull

/* Two ranks; who is late by how much, in turns of tenths of a ms: positive is rank 1. */
static void tell(struct rank_parts *parts, const int *tenths, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		rank_parts_next(parts);
		rank_parts_add(parts, tenths[i] > 0, (uint64_t)abs(tenths[i]) * 100 * US);
	}
}

/*
 * tests/gpu/torch_ranks.py ddp --steps 90 on two H100s, 2026-11-25: of each step, how much later than rank 0 rank 1 was in its four
 * collectives, together. `clean` has no straggler: rank 1's host was slower for two thirds of the run, and rank 0's
 * for the rest. In `cpu` rank 1 computes for 30 ms in every sixth step. In `sync` it is late in every sixth, and rank 0 in
 * most others, for longer altogether.
 */
static const int clean[] = {
	247, 16,  25,  38,  15,  25, 30, 29, 35,  50,  22,  34,  8,  14,  51,  43,  54,  47, 40,
	41,  34,  38,  43,  40,  41, 44, 43, 45,  43,  44,  40,  26, 24,  31,  31,  35,  37, 30,
	30,  48,  43,  45,  38,  37, 43, 42, 32,  39,  35,  29,  26, 30,  26,  27,  14,  18, 26,
	27,  28,  33,  27,  35,  33, 24, 30, -49, 41,  -36, -30, 3,  -48, 47,  28,  37,  24, -18,
	-33, -33, -33, -20, -30, 18, 24, 29, 33,  -24, -47, -2,  8,  -1,  -55, -21, -37, -68};
static const int cpu[] = {-10, 10,  6,   -11, 17,  19,  -10, -16, -14, 332, -11, -21, -19, -15,
			  -27, 318, -15, -22, -17, -9,  -29, 357, -9,  -14, -33, -32, -28, 319,
			  -1,  -15, -5,  -1,  3,   336, -15, -30, -19, -22, -26, 328, 19,  23,
			  45,  20,  21,  339, -3,  17,  26,  13,  22,  333, 25,  21,  22,  26,
			  31,  342, 12,  22,  24,  26,  17,  341, -1,  -20, -8,  -28, -22, 319,
			  16,  -7,  -16, 7,   -9,  327, 17,  23,  10,  9,   -1,  337, 9,   -8,
			  -14, -25, -30, 314, -23, -21, -21, -21, -21, 321};
static const int sync_steps[] = {
	36,  22,  24,  29,  1,   14,  24,  6,   20,  80,  8,   19,  22,  29,  13,  75,
	7,   -7,  14,  4,   21,  88,  19,  17,  3,   -24, -25, 69,  -15, -26, -24, -26,
	-25, 60,  -19, -25, -27, -23, -26, 78,  -11, -26, -16, -17, -19, 71,  1,   -4,
	-16, -20, -11, 50,  -27, -34, -27, -21, -28, 69,  9,   -25, -21, -15, -22, 65,
	15,  -19, -28, -23, -24, 73,  -2,  -17, -21, -16, -17, 72,  8,   6,   2,   -14,
	-3,  79,  -14, -24, -17, -23, -22, 72,  -14, -27, -4,  -17, -27, 74};

static void test_real(void **state)
{
	static const struct {
		const int *tenths;
		size_t n;
		bool systematic;
	} jobs[] = {
		{clean, ARRAY_SIZE(clean), false},
		{cpu, ARRAY_SIZE(cpu), true},
		{sync_steps, ARRAY_SIZE(sync_steps), false},
	};
	struct rank_parts parts = {.late = NULL};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		tell(&parts, jobs[i].tenths, jobs[i].n);
		assert_int_equal(rank_parts_systematic(&parts, 1, 2), jobs[i].systematic);
		assert_false(rank_parts_systematic(&parts, 0, 2));
		rank_parts_release(&parts);
	}
}

/*
 * `cpu` once more, on another day (19:43 UTC), by eight operations at a time, tenths of a millisecond: the other rank was late
 * by 41 and 19 ms as the run began. What happens once is left out.
 */
static const int planted[] = {0,  1,  0,   0,  0,  330, 0,  11, 339, 37, 41, 339,
			      6,  32, 334, 0,  0,  323, 32, 36, 324, 0,  16, 346,
			      47, 16, 339, 51, 38, 336, 18, 33, 344, 5,  24, 745,
			      0,  54, 343, 14, 0,  442, 17, 46, 325, 1,  0,  330};
static const int other[] = {195, 25, 41, 40, 29, 30, 52, 26, 2,  0, 0,  10, 14, 0,  15, 43,
			    49,  6,  0,  0,  10, 34, 4,  6,  0,  2, 3,  0,  0,  11, 1,  0,
			    1,   5,  0,  83, 35, 0,  0,  18, 50, 7, 38, 0,  10, 20, 16, 0};

static void test_begin(void **state)
{
	struct rank_parts parts = {.late = NULL};
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(planted); i++)
		for (k = 0; k < 8; k++) {
			rank_parts_next(&parts);
			if (!k)
				rank_parts_add(&parts, 0, (uint64_t)other[i] * 100 * US);
			if (k == 1)
				rank_parts_add(&parts, 1, (uint64_t)planted[i] * 100 * US);
			if (!i && k == 2)
				rank_parts_add(&parts, 0, 41 * MS);
		}
	assert_true(rank_parts_systematic(&parts, 1, 2));
	assert_false(rank_parts_systematic(&parts, 0, 2));
	rank_parts_release(&parts);
}

/* Any number of operations, in bins that are folded: 3 ms in each fourth one. */
static void test_long(void **state)
{
	struct rank_parts parts = {.late = NULL};
	uint64_t i, n;

	(void)state;
	for (n = 20; n < 1000000; n *= 5) {
		for (i = 0; i < n; i++) {
			rank_parts_next(&parts);
			rank_parts_add(&parts, i % 4 == 3 ? 2 : i % 3,
				       i % 4 == 3 ? 3 * MS : 50 * US);
		}
		assert_true(parts.n_bins <= RANK_BINS);
		assert_true(rank_parts_systematic(&parts, 2, 3));
		assert_false(rank_parts_systematic(&parts, 0, 3));
		rank_parts_release(&parts);
	}
}

/* From the middle of the run on, and far more than others ever are; its near twin: others are as late in the first half. */
static void test_half(void **state)
{
	struct rank_parts parts = {.late = NULL};
	unsigned int twin, i;

	(void)state;
	for (twin = 0; twin < 2; twin++) {
		for (i = 0; i < 400; i++) {
			rank_parts_next(&parts);
			rank_parts_add(&parts, i % 4, 100 * US);
			if (i >= 200)
				rank_parts_add(&parts, 3, 2 * MS);
			else if (twin)
				rank_parts_add(&parts, 1, 2 * MS);
		}
		assert_int_equal(rank_parts_systematic(&parts, 3, 4), !twin);
		assert_false(rank_parts_systematic(&parts, 1, 4));
		rank_parts_release(&parts);
	}
}

/* Hiccups of both are more than the habit of one: 1 ms in each operation. */
static void test_hiccups(void **state)
{
	struct rank_parts parts = {.late = NULL};
	unsigned int i;

	(void)state;
	for (i = 0; i < 200; i++) {
		rank_parts_next(&parts);
		if (i % 37 == 20)
			rank_parts_add(&parts, i & 1, 60 * MS);
		else
			rank_parts_add(&parts, 1, MS);
	}
	assert_true(rank_parts_systematic(&parts, 1, 2));
	assert_false(rank_parts_systematic(&parts, 0, 2));
	rank_parts_release(&parts);
}

/* Nothing, or too little, to tell; a rank that never was late. */
static void test_few(void **state)
{
	struct rank_parts parts = {.late = NULL};
	unsigned int i;

	(void)state;
	assert_false(rank_parts_systematic(&parts, 0, 2));
	for (i = 0; i < 7; i++) {
		rank_parts_next(&parts);
		rank_parts_add(&parts, 1, MS);
	}
	assert_false(rank_parts_systematic(&parts, 1, 2));
	rank_parts_next(&parts);
	rank_parts_add(&parts, 1, UINT64_MAX);
	assert_false(rank_parts_systematic(&parts, 0, 2));
	assert_false(rank_parts_systematic(&parts, 9, 10));
	assert_true(rank_parts_systematic(&parts, 1, 10));
	rank_parts_release(&parts);
}

static void test_matters(void **state)
{
	(void)state;
	assert_true(rank_late_is_significant(25 * MS, 1000 * MS));
	assert_false(rank_late_is_significant(24 * MS, 1000 * MS));
	assert_false(rank_late_is_significant(MS, MS));
	assert_true(rank_late_is_significant(2 * MS, 0));
	assert_false(rank_late_is_significant(0, 0));
}

/* Of times that come in any order, what is new; those that touch are one. */
static void test_spans(void **state)
{
	static const struct {
		uint64_t begin_ns, end_ns, new_ns;
		size_t n;
	} times[] = {
		{100, 200, 100, 1}, {300, 400, 100, 2},       {120, 180, 0, 2}, {150, 250, 50, 2},
		{280, 310, 20, 2},  {50, 100, 50, 2},         {10, 20, 10, 3},  {240, 290, 30, 2},
		{500, 500, 0, 3},   {0, 1000, 1000 - 360, 1},
	};
	struct rank_spans spans = {.n = 0};

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		assert_int_equal(rank_spans_take(&spans, times[i].begin_ns, times[i].end_ns),
				 times[i].new_ns);
		assert_int_equal(spans.n, times[i].n);
	}
	/* The last ones are known. */
	for (uint64_t i = 1; i <= RANK_SPANS_MOST; i++)
		assert_int_equal(rank_spans_take(&spans, 2000 * i, 2000 * i + 100), 100);
	assert_int_equal(spans.n, RANK_SPANS_MOST);
	assert_int_equal(spans.all[0].begin_ns, 2000);
	assert_int_equal(rank_spans_take(&spans, 2050, 2150), 50);
	assert_int_equal(rank_spans_take(&spans, 0, 10), 10);
	assert_int_equal(spans.n, RANK_SPANS_MOST);
	assert_int_equal(rank_spans_take(&spans, 0, 10), 10);
	rank_spans_release(&spans);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real),  cmocka_unit_test(test_spans),
		cmocka_unit_test(test_begin), cmocka_unit_test(test_long),
		cmocka_unit_test(test_half),  cmocka_unit_test(test_hiccups),
		cmocka_unit_test(test_few),   cmocka_unit_test(test_matters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
