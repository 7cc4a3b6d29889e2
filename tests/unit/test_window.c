/* links: shim/window/window.c shim/window/plan.c shim/state/recorded.c */
/*
 * tests/unit/test_window.c: windows that open and close at a time, or because a request on the board says so: when, with
 * which record, and what is done where there is no room for it, no session, or another thread was quicker.
 */
#include "parts/parts.h"
#include "process/options.h"
#include "process/own_stack.h"
#include "record/board.h"
#include "state/recorded.h"
#include "window/cost.h"
#include "window/plan.h"
#include "window/window.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

#define SECOND 1000000000ull
#define EPOCH (1700000000 * SECOND)

/* ---- the rest of the shim ---- */

struct spy_options spy_options;
struct spy_clock_pair spy_loaded;
static uint64_t ahead; /* of the trace's clock is the time of day */
static uint64_t cost_due;
static int cost_looks, cost_resets, rotate_error;
static struct {
	bool begins;
	uint64_t at;
	int n;
} span;

void spy_clock_read_pair(struct spy_clock_pair *pair)
{
	*pair = (struct spy_clock_pair){.clock = now, .realtime_ns = now + ahead};
}

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	work(data);
}

void *spy_session_offer(enum spy_event event, size_t bytes)
{
	return spy_session_append(event, bytes);
}

int spy_parts_rotate(void)
{
	return rotate_error;
}

void spy_cost_reset(void)
{
	cost_resets++;
}

void spy_cost_begin(void)
{
}

void spy_cost_span(bool begins, uint64_t at)
{
	span.begins = begins;
	span.at = at;
	span.n++;
}

uint64_t spy_cost_due(void)
{
	return cost_due;
}

void spy_cost_look(uint64_t at)
{
	assert_int_equal(at, now);
	cost_looks++;
}

/* ---- a process ---- */

static size_t records_from;

static void begin(struct spy_options options)
{
	begin_session();
	session.state = SPY_SESSION_NONE;
	spy_options = options;
	cost_due = UINT64_MAX;
	cost_looks = rotate_error = 0;
	memset(&span, 0, sizeof(span));
	ahead = EPOCH - now;
	spy_loaded = (struct spy_clock_pair){.clock = now};
	records_from = 0;
	spy_window_init();
	now += 5 * MS;
	session.state = SPY_SESSION_ACTIVE;
	spy_window_begin();
}

static void expect_window(enum spy_window_state state, uint64_t since, const char *why)
{
	const struct spy_rec_window *record = (void *)(session_records + records_from);

	records_from += sizeof(*record);
	assert_true(records_from <= session_bytes);
	assert_int_equal(record->head.event, SPY_EV_WINDOW);
	assert_int_equal(record->state, state);
	assert_int_equal(record->since, since);
	assert_string_equal(record->text, why);
	assert_int_equal(board.dormant, state == SPY_WINDOW_CLOSED);
}

static void expect_nothing(void)
{
	assert_int_equal(records_from, session_bytes);
}

static bool is_open(void)
{
	return spy_window_is_open();
}

/* Nothing changes before that time of the clock; at it, it does. */
static void change_at(uint64_t clock)
{
	bool open = is_open();

	now = clock - 1;
	spy_window_look(&thread, now, true);
	assert_int_equal(is_open(), open);
	assert_true(spy_window_has_time());
	now = clock;
	spy_window_look(&thread, now, true);
	assert_int_equal(is_open(), !open);
}

/* ---- by time ---- */

static void test_always(void **state)
{
	(void)state;
	begin((struct spy_options){0});
	expect_nothing();
	assert_true(is_open());
	assert_false(spy_window_has_time());
	now += 1000 * SECOND;
	spy_window_look(&thread, now, true);
	assert_true(is_open());
	assert_int_equal(cost_looks, 0);
	spy_window_end();
	assert_int_equal(span.n, 1);
	assert_false(span.begins);
	assert_int_equal(span.at, now);
	assert_int_equal(session.lock.owner, 0);
	/* What is due of cost windows is seen to. */
	cost_due = now + 10;
	assert_true(spy_window_has_time());
	now += 9;
	spy_window_look(&thread, now, true);
	assert_int_equal(cost_looks, 0);
	now++;
	spy_window_look(&thread, now, true);
	assert_int_equal(cost_looks, 1);
}

static void test_delay(void **state)
{
	uint64_t loaded, closed;

	(void)state;
	begin((struct spy_options){.delay = "2s", .duration = "3s"});
	loaded = spy_loaded.clock;
	expect_window(SPY_WINDOW_CLOSED, 0, "--delay");
	assert_int_equal(board.windows, 0);
	assert_int_equal(spy_plan.not_before, loaded + 2 * SECOND);
	assert_true(spy_window_has_time());
	spy_window_end();
	assert_int_equal(span.n, 0);
	change_at(loaded + 2 * SECOND); /* of the program, not of its first call */
	expect_window(SPY_WINDOW_OPEN, 0, "--delay");
	assert_int_equal(board.windows, 1);
	assert_int_equal(span.at, now);
	assert_true(span.begins);
	change_at(loaded + 5 * SECOND);
	closed = now;
	expect_window(SPY_WINDOW_CLOSED, loaded + 2 * SECOND, "--duration");
	assert_int_equal(board.state_since, closed);
	assert_false(span.begins);
	assert_false(spy_window_has_time());
	now += 100 * SECOND;
	spy_window_look(&thread, now, true);
	expect_nothing();
}

static void test_duration(void **state)
{
	uint64_t begun;

	(void)state;
	begin((struct spy_options){.duration = "500ms"});
	begun = now;
	expect_nothing();
	change_at(begun + 500 * MS);
	expect_window(SPY_WINDOW_CLOSED, 0, "--duration");
	assert_int_equal(board.windows, 1);
	expect_nothing();
	/* Longer than the clock counts: the longest time there is. */
	begin((struct spy_options){.duration = "100d", .capture_range = "command"});
	expect_window(SPY_WINDOW_CLOSED, 0, "--capture-range");
	assert_false(spy_window_has_time());
	spy_window_open("a range", NULL);
	expect_window(SPY_WINDOW_OPEN, 0, "a range");
	begun = now;
	change_at(begun + 100 * 86400 * SECOND);
	expect_window(SPY_WINDOW_CLOSED, begun, "--duration");
}

/* With ranges a delay opens nothing by itself. */
static void test_delay_of_ranges(void **state)
{
	(void)state;
	begin((struct spy_options){.delay = "2s", .capture_range = "cudaProfilerApi"});
	assert_int_equal(spy_plan.not_before, spy_loaded.clock + 2 * SECOND);
	assert_false(spy_window_has_time());
	expect_window(SPY_WINDOW_CLOSED, 0, "--capture-range");
}

/* ---- opened and closed ---- */

static bool yes(void)
{
	return true;
}

static bool no(void)
{
	return false;
}

static void test_changes(void **state)
{
	uint64_t first, second;

	(void)state;
	begin((struct spy_options){.capture_range = "command"});
	expect_window(SPY_WINDOW_CLOSED, 0, "--capture-range");
	spy_window_close("again", NULL);
	spy_window_close("again", yes);
	spy_window_open("too late", no);
	assert_false(is_open());
	expect_nothing();
	now += 10;
	first = now;
	spy_window_open("first", yes);
	expect_window(SPY_WINDOW_OPEN, 0, "first");
	assert_int_equal(board.state_since, first);
	assert_int_equal(spy_window_opened_at(), first);
	spy_window_open("again", NULL);
	spy_window_open("again", yes);
	spy_window_close("too late", no);
	expect_nothing();
	now += 10;
	second = now;
	spy_window_close("last", yes);
	expect_window(SPY_WINDOW_CLOSED, first, "last");
	assert_int_equal(board.state_since, second);
	expect_nothing();
	assert_int_equal(span.n, 2);
	assert_int_equal(session.lock.owner, 0);
}

/* Before there is a session: the next one begins so. */
static void test_early(void **state)
{
	(void)state;
	begin((struct spy_options){.capture_range = "command"});
	session.state = SPY_SESSION_NONE;
	session_bytes = records_from = 0;
	spy_window_open("too late", no);
	assert_false(is_open());
	spy_window_open("early", yes);
	assert_true(is_open());
	session.state = SPY_SESSION_ACTIVE;
	spy_window_begin();
	expect_window(SPY_WINDOW_OPEN, 0, "--capture-range");
	assert_int_equal(board.windows, 1);
}

/* Without the record of its begin there is no window, and it is tried again; one that is open ends all the same. */
static void test_no_room(void **state)
{
	uint64_t opened;

	(void)state;
	begin((struct spy_options){.delay = "1s", .duration = "2s"});
	records_from = session_bytes;
	session_full = true;
	now = spy_loaded.clock + SECOND;
	spy_window_look(&thread, now, true);
	assert_false(is_open());
	assert_true(spy_window_has_time());
	session_full = false;
	change_at(now + 100 * MS);
	expect_window(SPY_WINDOW_OPEN, 0, "--delay");
	opened = now;
	session_full = true;
	change_at(now + 2 * SECOND);
	assert_true(board.dormant);
	assert_int_equal(board.state_since, now);
	assert_false(spy_window_has_time());
	expect_nothing();
	session_full = false;
	spy_window_open("next", NULL);
	expect_window(SPY_WINDOW_OPEN, opened + 2 * SECOND, "next");
	/* Only to learn whether it is so a record is not written, and none is lost. */
	session_full = true;
	spy_window_open("again", yes);
	assert_true(is_open());
	expect_nothing();
}

/* ---- requests ---- */

static void request(enum spy_wanted wanted, uint64_t at_ns, uint64_t every_ns, uint64_t for_ns)
{
	board.wanted = wanted;
	board.wanted_at_ns = at_ns;
	board.wanted_every_ns = every_ns;
	board.wanted_for_ns = for_ns;
	board.request++;
	assert_true(spy_window_is_asked());
	spy_window_look(&thread, now, true);
	assert_int_equal(board.answered, board.request);
	assert_false(spy_window_is_asked());
}

static void test_start_and_stop(void **state)
{
	uint64_t begun;

	(void)state;
	begin((struct spy_options){.capture_range = "command"});
	records_from = session_bytes;
	request(SPY_WANTED_START, 0, 0, 0);
	expect_window(SPY_WINDOW_OPEN, 0, "cudaspy start");
	assert_false(spy_window_has_time());
	begun = now;
	now += SECOND;
	request(SPY_WANTED_STOP, 0, 0, 0);
	expect_window(SPY_WINDOW_CLOSED, begun, "cudaspy stop");
	/* For a time; a second request while it is open is about its end. */
	begun = now;
	request(SPY_WANTED_START, 0, 0, 2 * SECOND);
	expect_window(SPY_WINDOW_OPEN, begun, "cudaspy start");
	now += SECOND;
	request(SPY_WANTED_START, 0, 0, 5 * SECOND);
	expect_nothing();
	change_at(now + 5 * SECOND);
	expect_window(SPY_WINDOW_CLOSED, begun, "cudaspy start --for");
	assert_false(spy_window_has_time());
	/* A stop ends what was to come, too. */
	request(SPY_WANTED_START, now + ahead + SECOND, 0, 0);
	expect_nothing();
	assert_true(spy_window_has_time());
	request(SPY_WANTED_STOP, 0, 0, 0);
	assert_false(spy_window_has_time());
	expect_nothing();
}

/* At a time of day, that all programs that were asked have in common: the clock's frequency is not exact. */
static void test_start_at(void **state)
{
	uint64_t closed, at_ns;

	(void)state;
	begin((struct spy_options){0});
	at_ns = now + ahead + 160 * SECOND;
	request(SPY_WANTED_START, at_ns, 0, 3 * SECOND);
	expect_window(SPY_WINDOW_CLOSED, 0, "cudaspy start --at");
	closed = now;
	/* The time of day is late by a second at the end: it is waited for. */
	ahead -= SECOND;
	for (int i = 0; i < 20 && !is_open(); i++) {
		now += (at_ns - (now + ahead)) - (at_ns - (now + ahead)) / 16;
		assert_true(now + ahead <= at_ns);
		spy_window_look(&thread, now, true);
		assert_int_equal(is_open(), now + ahead >= at_ns);
		if (at_ns - (now + ahead) < MS)
			break;
	}
	assert_false(is_open());
	now = at_ns - ahead - 1;
	spy_window_look(&thread, now, true);
	assert_false(is_open());
	now++;
	spy_window_look(&thread, now, true);
	assert_true(is_open());
	expect_window(SPY_WINDOW_OPEN, closed, "cudaspy start --at");
	change_at(now + 3 * SECOND);
	expect_window(SPY_WINDOW_CLOSED, at_ns - ahead, "cudaspy start --for");
	assert_false(spy_window_has_time());
	/* A time that has passed is now, as is this one: what is open stays open. */
	for (uint64_t past = 0; past <= 5; past += 5) {
		begin((struct spy_options){.capture_range = "command"});
		records_from = session_bytes;
		request(SPY_WANTED_START, now + ahead - past, 0, 0);
		expect_window(SPY_WINDOW_OPEN, 0, "cudaspy start");
		request(SPY_WANTED_START, now + ahead - past, 0, 0);
		expect_nothing();
	}
}

/* The time at which the next window begins, as far as it can be waited for. */
static void open_next(uint64_t at_ns)
{
	uint64_t open_at = at_ns - ahead;

	while (now < open_at - MS) {
		now += (open_at - now) - (open_at - now) / 16;
		spy_window_look(&thread, now, true);
		assert_false(is_open());
	}
	now = open_at - 1;
	spy_window_look(&thread, now, true);
	assert_false(is_open());
	now = open_at;
	spy_window_look(&thread, now, true);
	assert_true(is_open());
}

/* One in each ten seconds, counted from the first one. One that was late puts off no other. */
static void test_start_every(void **state)
{
	uint64_t first;

	(void)state;
	begin((struct spy_options){.capture_range = "command"});
	first = now + ahead + 4 * SECOND;
	request(SPY_WANTED_START, first, 10 * SECOND, 2 * SECOND);
	open_next(first);
	change_at(now + 2 * SECOND);
	open_next(first + 10 * SECOND);
	now += 7 * SECOND; /* no calls for so long */
	spy_window_look(&thread, now, true);
	assert_false(is_open());
	open_next(first + 20 * SECOND);
	now += 12 * SECOND; /* over the next one's begin */
	spy_window_look(&thread, now, true);
	assert_false(is_open());
	open_next(first + 40 * SECOND);
	/* Without a time of the first one: from now on. */
	begin((struct spy_options){.capture_range = "command"});
	first = now + ahead;
	request(SPY_WANTED_START, 0, 10 * SECOND, 2 * SECOND);
	assert_true(is_open());
	change_at(now + 2 * SECOND);
	open_next(first + 10 * SECOND);
}

static void test_mark_and_rotate(void **state)
{
	(void)state;
	begin((struct spy_options){0});
	memset(board.wanted_text, 'x', sizeof(board.wanted_text)); /* without an end */
	request(SPY_WANTED_MARK, 0, 0, 0);
	{
		const struct spy_rec_window *record = (void *)session_records;

		assert_int_equal(record->state, SPY_WINDOW_MARK);
		assert_int_equal(strspn(record->text, "x"), strlen(record->text));
		assert_true(strlen(record->text) >= sizeof(board.wanted_text) - 1 ||
			    strlen(record->text) == sizeof(record->text) - 1);
		records_from = sizeof(*record);
	}
	expect_nothing();
	rotate_error = 0;
	request(SPY_WANTED_ROTATE, 0, 0, 0);
	assert_int_equal(board.rotated, board.request);
	assert_int_equal(board.rotate_error, 0);
	rotate_error = -28;
	request(SPY_WANTED_ROTATE, 0, 0, 0);
	assert_int_equal(board.rotated, board.request);
	assert_int_equal(board.rotate_error, 28);
	request((enum spy_wanted)77, 0, 0,
		0); /* of a later version: it is answered, and nothing happens */
	assert_true(is_open());
	assert_int_not_equal(board.rotated, board.request);
	expect_nothing();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_always),          cmocka_unit_test(test_delay),
		cmocka_unit_test(test_duration),        cmocka_unit_test(test_delay_of_ranges),
		cmocka_unit_test(test_changes),         cmocka_unit_test(test_early),
		cmocka_unit_test(test_no_room),         cmocka_unit_test(test_start_and_stop),
		cmocka_unit_test(test_start_at),        cmocka_unit_test(test_start_every),
		cmocka_unit_test(test_mark_and_rotate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
