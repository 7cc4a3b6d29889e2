/*
 * tests/unit/test_recorded.c: windows, and times in them in which calls are only counted, as records, the board and threads have
 * them.
 */
/* links: shim/state/recorded.c */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "record/board.h"
#include "state/recorded.h"
#include "state/session.h"

struct spy_session *spy_session;

static struct spy_session session;
static struct spy_board board;

static void expect_board(uint32_t windows, uint64_t since, bool dormant)
{
	spy_recorded_show();
	assert_int_equal(board.windows, windows);
	assert_int_equal(board.state_since, since);
	assert_int_equal(board.dormant, dormant);
}

static bool counts(bool count, uint64_t now, enum spy_window_state state)
{
	struct spy_rec_window record = {.head.time = now, .state = 99};

	if (!spy_window_count(count, &record)) {
		assert_int_equal(record.state, 99);
		return false;
	}
	assert_int_equal(record.state, state);
	assert_int_equal(record.number, spy_recorded.windows);
	return true;
}

/* A window that began with the recording; dormant; the next one. */
static void test_windows(void **state)
{
	struct spy_rec_window records[2];
	bool open;
	uint32_t number;

	(void)state;
	spy_session = &session;
	session.board = &board;
	spy_recorded_reset(true);
	assert_true(spy_window_is_open());
	expect_board(0, 0, false);
	assert_int_equal(spy_window_describe(records), 0);
	assert_int_equal(spy_window_closes(), 0);

	number = spy_window_state(&open);
	spy_recorded_set(false, 1000);
	assert_int_not_equal(spy_window_state(&open), number);
	assert_false(open);
	expect_board(1, 1000, true);
	assert_int_equal(spy_window_closes(), 1);
	assert_int_equal(spy_window_describe(records), 1);
	assert_int_equal(records[0].state, SPY_WINDOW_CLOSED);
	assert_int_equal(records[0].since, 1000);

	spy_recorded_set(true, 2000);
	expect_board(2, 2000, false);
	assert_int_equal(spy_window_closes(), 1);
	assert_int_equal(spy_window_opened_at(), 2000);
	spy_recorded_set(false, 3000);
	expect_board(2, 3000, true);
	assert_int_equal(spy_window_closes(), 2);
	assert_int_equal(spy_window_opened_at(), 2000);
}

/* In a window only; and the next window begins with recording. */
static void test_counting(void **state)
{
	struct spy_rec_window records[2];
	uint32_t turn;

	(void)state;
	spy_session = &session;
	session.board = &board;
	spy_recorded_reset(false);
	assert_false(counts(true, 10, SPY_WINDOW_COUNTING));
	spy_recorded_set(true, 20);
	turn = spy_window_turn();
	assert_false(counts(false, 25, SPY_WINDOW_RECORDING)); /* nothing changes */
	assert_int_equal(spy_window_turn(), turn);
	assert_true(counts(true, 30, SPY_WINDOW_COUNTING));
	assert_int_not_equal(spy_window_turn(), turn);
	assert_int_equal(spy_window_recorded_from(), SPY_COUNTED_ONLY);
	assert_int_equal(spy_window_opened_at(), 20);
	expect_board(1, 20, false);
	assert_int_equal(spy_window_describe(records), 2);
	assert_int_equal(records[0].state, SPY_WINDOW_OPEN);
	assert_int_equal(records[1].state, SPY_WINDOW_COUNTING);
	assert_true(counts(false, 40, SPY_WINDOW_RECORDING));
	assert_int_equal(spy_window_opened_at(), 40);
	assert_int_equal(spy_window_recorded_from(), SPY_RECORDED);

	assert_true(counts(true, 50, SPY_WINDOW_COUNTING));
	spy_recorded_set(false, 60);
	assert_int_equal(spy_window_recorded_from(), SPY_DORMANT);
	assert_int_equal(spy_window_describe(records), 1);
	spy_recorded_set(true, 70);
	assert_int_equal(spy_window_recorded_from(), SPY_RECORDED);
	assert_true(counts(true, 80, SPY_WINDOW_COUNTING));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_counting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
