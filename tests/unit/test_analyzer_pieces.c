/*
 * tests/unit/test_analyzer_pieces.c: of a thread's time in pieces, the end: as long as it is, each piece with what lies in it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include "idle/pieces.h"

#define END 120

/* The last first: a call [100, 120) that waited for a lock for a quarter of its time; before it a gap, in which the thread
 * waited from 20 to 60, was ready for 12, and computed. */
static const struct idle_piece pieces[] = {
	{{.cause = IDLE_CUDA_LOCK}, 5, {100, 120, true}, 0},
	{{.cause = IDLE_LAUNCH}, 15, {100, 120, true}, 0},
	{{.cause = IDLE_LOCK, .holder = 7, .at_ns = 20}, 40, {20, 60, false}, 2},
	{{.cause = IDLE_CPU}, 30, {30, 60, true}, 0},
	{{.cause = IDLE_SLEEP}, 10, {20, 30, false}, 0},
	{{.cause = IDLE_NOT_RUNNING}, 12, {0, 100, true}, 0},
	{{.cause = IDLE_CPU}, 48, {0, 100, true}, 0},
};

struct sums {
	uint64_t ns[IDLE_CAUSE_COUNT], all;
};

static void add(void *data, const struct idle_piece *piece, uint64_t ns)
{
	struct sums *sums = data;

	assert_in_range(ns, 1, piece->ns);
	sums->ns[piece->part.cause] += ns;
	sums->all += ns;
}

static struct sums cut(uint64_t begin_ns)
{
	struct sums sums = {0};

	idle_pieces_cut(pieces, ARRAY_SIZE(pieces), begin_ns, END, add, &sums);
	return sums;
}

static void test_whole(void **state)
{
	struct sums sums = cut(0);

	(void)state;
	assert_int_equal(sums.ns[IDLE_CUDA_LOCK], 5);
	assert_int_equal(sums.ns[IDLE_LAUNCH], 15);
	assert_int_equal(sums.ns[IDLE_LOCK], 40);
	assert_int_equal(sums.ns[IDLE_NOT_RUNNING], 12);
	assert_int_equal(sums.ns[IDLE_CPU], 48); /* and not what the holder did */
	assert_int_equal(sums.ns[IDLE_SLEEP], 0);
}

static void test_in_a_call(void **state)
{
	struct sums sums = cut(112);

	(void)state;
	assert_int_equal(sums.ns[IDLE_CUDA_LOCK], 2);
	assert_int_equal(sums.ns[IDLE_LAUNCH], 6);
	assert_int_equal(sums.all, 8);
}

static void test_in_a_gap(void **state)
{
	struct sums sums = cut(50);

	(void)state;
	assert_int_equal(sums.ns[IDLE_LOCK], 10);
	assert_int_equal(sums.ns[IDLE_NOT_RUNNING], 8); /* of 40: one fifth, as of 60 */
	assert_int_equal(sums.ns[IDLE_CPU], 32);
	sums = cut(70); /* the wait is over */
	assert_int_equal(sums.ns[IDLE_LOCK], 0);
	assert_int_equal(sums.ns[IDLE_NOT_RUNNING], 6);
	assert_int_equal(sums.ns[IDLE_CPU], 24);
}

static void test_nothing_is_lost(void **state)
{
	uint64_t begin_ns;

	(void)state;
	for (begin_ns = 0; begin_ns <= END; begin_ns++)
		assert_int_equal(cut(begin_ns).all, END - begin_ns);
}

/* Of a wait's end, what its holder did last. */
static void test_holder(void **state)
{
	const struct idle_sums sums = {0};
	struct idle_sum sum = {0};

	(void)state;
	idle_pieces_follow(&sums, &sum, &pieces[2], 40);
	assert_non_null(sum.holder);
	assert_int_equal(sum.holder->tid, 7);
	assert_int_equal(sum.holder->ns[IDLE_CPU], 30);
	assert_int_equal(sum.holder->ns[IDLE_SLEEP], 10);
	idle_pieces_follow(&sums, &sum, &pieces[2], 35);
	assert_int_equal(sum.holder->ns[IDLE_CPU], 60);
	assert_int_equal(sum.holder->ns[IDLE_SLEEP], 15);
	assert_int_equal(sum.holder->longest.cause, IDLE_CPU);
	idle_pieces_follow(&sums, &sum, &pieces[3], 30); /* no wait */
	assert_int_equal(sum.holder->ns[IDLE_CPU], 60);
	free(sum.holder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),           cmocka_unit_test(test_in_a_call),
		cmocka_unit_test(test_in_a_gap),        cmocka_unit_test(test_holder),
		cmocka_unit_test(test_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
