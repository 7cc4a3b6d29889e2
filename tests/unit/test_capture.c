/* links: shim/window/capture.c shim/window/plan.c */
/*
 * tests/unit/test_capture.c: which calls and ranges open windows: names, steps, a delay, ranges of several threads that
 * overlap, and what is beyond the table of those that any thread may end; and what the options say of windows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lib/clock.h"
#include "process/options.h"
#include "record/range_names.h"
#include "window/capture.h"
#include "window/plan.h"
#include "window/window.h"

#define STARTED_MOST 64 /* capture.c */

struct spy_options spy_options;
bool spy_clock_is_counter;
static uint64_t now;
static bool is_open;
static int opened, closed;
static char last_why[64];
static void (*meanwhile)(void); /* what another thread does before a window opens or closes */

uint64_t spy_clock_monotonic(void)
{
	return now;
}

static const char *const names[] = {NULL, "step", "step 2", "ste", "other"};
enum { NO_NAME, STEP, STEP_2, STE, OTHER };

const char *spy_range_text(uint32_t number, uint16_t *domain, bool *folded)
{
	*domain = 0;
	*folded = false;
	return number < sizeof(names) / sizeof(*names) ? names[number] : NULL;
}

static bool change(bool open, const char *why, bool (*holds)(void))
{
	void (*others)(void) = meanwhile;

	meanwhile = NULL;
	if (others)
		others();
	if (is_open == open || (holds && !holds()))
		return false;
	is_open = open;
	snprintf(last_why, sizeof(last_why), "%s", why);
	return true;
}

void spy_window_open(const char *why, bool (*holds)(void))
{
	opened += change(true, why, holds);
}

void spy_window_close(const char *why, bool (*holds)(void))
{
	closed += change(false, why, holds);
}

static void begin(const char *capture, const char *steps)
{
	spy_options = (struct spy_options){.capture_range = capture, .steps = steps};
	spy_plan_read();
	spy_capture_init();
	is_open = false;
	opened = closed = 0;
	now = 1000;
}

/* The windows so far, and whether one is open now. */
static void expect_windows(int begun, int ended)
{
	assert_int_equal(opened, begun);
	assert_int_equal(closed, ended);
	assert_int_equal(is_open, begun - ended);
}

/* ---- cudaProfilerStart ---- */

static void test_profiler(void **state)
{
	(void)state;
	begin("cudaProfilerApi", NULL);
	spy_window_profiler(false);
	expect_windows(0, 0);
	for (int i = 0; i < 3; i++) {
		spy_window_profiler(true);
		assert_string_equal(last_why, "cudaProfilerStart");
		spy_window_profiler(true);
		expect_windows(i + 1, i);
		spy_window_profiler(false);
		assert_string_equal(last_why, "cudaProfilerStop");
		spy_window_profiler(false);
		expect_windows(i + 1, i + 1);
	}
	/* Ranges open none then. */
	assert_false(spy_window_range_begins(STEP));
	spy_window_range_started(STEP, 1);
	expect_windows(3, 3);
	/* Another option: the calls open none. */
	begin("command", NULL);
	spy_window_profiler(true);
	expect_windows(0, 0);
	begin(NULL, NULL);
	spy_window_profiler(true);
	expect_windows(0, 0);
}

static void other_stops(void)
{
	spy_window_profiler(false);
}

static void other_starts(void)
{
	spy_window_profiler(true);
}

static void other_starts_and_stops(void)
{
	spy_window_profiler(true);
	spy_window_profiler(false);
}

/* Another thread is quicker: what it did last holds. */
static void test_profiler_races(void **state)
{
	(void)state;
	begin("cudaProfilerApi", NULL);
	meanwhile = other_stops;
	spy_window_profiler(true);
	expect_windows(0, 0);
	spy_window_profiler(true);
	expect_windows(1, 0);
	meanwhile = other_starts;
	spy_window_profiler(false);
	expect_windows(1, 0);
	meanwhile = other_starts_and_stops;
	spy_window_profiler(false);
	expect_windows(1, 1);
}

/* What is left out of a step does not count as open. */
static void test_profiler_steps(void **state)
{
	static const int begun[] = {0, 1, 1, 1, 1}, ended[] = {0, 0, 1, 1, 1};

	(void)state;
	begin("cudaProfilerApi", "2-3");
	for (int i = 0; i < 5; i++) {
		spy_window_profiler(true);
		assert_int_equal(opened, begun[i]);
		spy_window_profiler(false);
		assert_int_equal(closed, ended[i]);
	}
	begin("cudaProfilerApi", NULL);
	spy_plan.not_before = 2000;
	now = 1999;
	spy_window_profiler(true);
	spy_window_profiler(true);
	expect_windows(0, 0);
	now = 2000;
	spy_window_profiler(true);
	expect_windows(1, 0);
}

/* ---- ranges ---- */

static void test_names(void **state)
{
	static const struct {
		const char *capture;
		bool wanted[sizeof(names) / sizeof(*names) + 1];
	} cases[] = {
		{"nvtx:step", {false, true, false, false, false, false}},
		{"nvtx:step*", {false, true, true, false, false, false}},
		{"nvtx:ste", {false, false, false, true, false, false}},
		{"nvtx:*", {false, true, true, true, true, false}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (uint32_t name = 0; name < sizeof(cases[i].wanted); name++) {
			bool wanted = cases[i].wanted[name];

			begin(cases[i].capture, NULL);
			assert_int_equal(spy_window_range_begins(name), wanted);
			expect_windows(wanted, 0);
			begin(cases[i].capture, NULL);
			spy_window_range_started(name, 5);
			expect_windows(wanted, 0);
		}
	assert_string_equal(last_why, "range *");
}

/* From the first one's begin to the last one's end. */
static void test_overlap(void **state)
{
	(void)state;
	begin("nvtx:step", NULL);
	assert_true(spy_window_range_begins(STEP));
	assert_true(spy_window_range_begins(STEP));
	spy_window_range_started(STEP, 7);
	expect_windows(1, 0);
	spy_window_range_ends();
	spy_window_range_ended(7);
	expect_windows(1, 0);
	spy_window_range_ended(7); /* it has ended already */
	spy_window_range_ended(8);
	spy_window_range_ended(0);
	expect_windows(1, 0);
	spy_window_range_ends();
	expect_windows(1, 1);
	assert_string_equal(last_why, "range step");
	/* One too many is no debt. */
	spy_window_range_ends();
	assert_true(spy_window_range_begins(STEP));
	expect_windows(2, 1);
	spy_window_range_ends();
	expect_windows(2, 2);
}

static void other_ends(void)
{
	spy_window_range_ends();
}

static void other_begins(void)
{
	assert_true(spy_window_range_begins(STEP));
}

static void test_range_races(void **state)
{
	(void)state;
	begin("nvtx:step", NULL);
	meanwhile = other_ends;
	assert_true(spy_window_range_begins(STEP));
	expect_windows(0, 0);
	assert_true(spy_window_range_begins(STEP));
	meanwhile = other_begins;
	spy_window_range_ends();
	expect_windows(1, 0);
	spy_window_range_ends();
	expect_windows(1, 1);
}

/* One window for the steps; ranges behind them are not even counted as open. */
static void test_range_steps(void **state)
{
	(void)state;
	begin("nvtx:step", "2-3");
	for (int i = 1; i <= 5; i++) {
		assert_int_equal(spy_window_range_begins(STEP), i <= 3);
		assert_int_equal(opened, i >= 2);
		if (i <= 3)
			spy_window_range_ends();
		assert_int_equal(closed, i >= 3);
	}
	/* Those that overlap count by their begins. */
	begin("nvtx:step", "2");
	spy_window_range_begins(STEP);
	spy_window_range_begins(STEP);
	expect_windows(1, 0);
	assert_false(spy_window_range_begins(STEP));
	spy_window_range_started(STEP, 1);
	spy_window_range_ends();
	expect_windows(1, 0);
	spy_window_range_ended(1);
	expect_windows(1, 0);
	spy_window_range_ends();
	expect_windows(1, 1);
	/* Another name is no step. */
	begin("nvtx:step", "1");
	assert_false(spy_window_range_begins(OTHER));
	assert_true(spy_window_range_begins(STEP));
	expect_windows(1, 0);
}

/* Of more than are known by number none opens a window, for its end would not be known; a place is free again. */
static void test_started_most(void **state)
{
	(void)state;
	begin("nvtx:step", NULL);
	spy_window_range_started(STEP, 0); /* no number */
	expect_windows(0, 0);
	for (uint64_t id = 1; id <= STARTED_MOST + 1; id++)
		spy_window_range_started(STEP, id);
	expect_windows(1, 0);
	for (uint64_t id = 2; id <= STARTED_MOST; id++)
		spy_window_range_ended(id);
	spy_window_range_ended(STARTED_MOST + 1);
	expect_windows(1, 0);
	spy_window_range_started(STEP, 1000);
	spy_window_range_ended(1);
	expect_windows(1, 0);
	spy_window_range_ended(1000);
	expect_windows(1, 1);
	/* What was open before a fork is not open behind it. */
	spy_window_range_started(STEP, 3);
	begin("nvtx:step", NULL);
	spy_window_range_started(STEP, 4);
	spy_window_range_ended(3);
	expect_windows(1, 0);
	spy_window_range_ended(4);
	expect_windows(1, 1);
	/* Beyond the steps no place is taken. */
	begin("nvtx:step", "1");
	assert_true(spy_window_range_begins(STEP));
	for (uint64_t id = 1; id <= STARTED_MOST + 1; id++) {
		spy_window_range_started(STEP, id);
		spy_window_range_ended(id);
	}
	expect_windows(1, 0);
}

/* ---- the plan ---- */

static void test_plan(void **state)
{
	static const struct {
		struct spy_options options;
		struct spy_plan plan;
		const char *warning; /* words of it; NULL: none */
		bool planned;
	} cases[] = {
		{{0}, {.why = ""}, NULL, false},
		{{.delay = "2s"},
		 {.why = "--delay", .delay_ns = 2000000000, .dormant = true},
		 NULL,
		 true},
		{{.delay = "2"}, {.why = ""}, "CUDASPY_DELAY=2 ", false},
		{{.duration = "5ms"}, {.why = "", .duration_ns = 5000000}, NULL, true},
		{{.duration = "0s"}, {.why = ""}, "CUDASPY_DURATION=0s ", false},
		{{.duration = "x"}, {.why = ""}, "CUDASPY_DURATION=x ", false},
		{{.capture_range = "command", .delay = "1s"},
		 {.why = "--capture-range",
		  .capture = SPY_CAPTURE_COMMAND,
		  .delay_ns = 1000000000,
		  .dormant = true},
		 NULL,
		 true},
		{{.capture_range = "nvtx:a", .steps = "3-4"},
		 {.why = "--capture-range",
		  .capture = SPY_CAPTURE_RANGE,
		  .range_name = "a",
		  .first_step = 3,
		  .last_step = 4,
		  .dormant = true},
		 NULL,
		 true},
		{{.capture_range = "nvtx:a", .nonvtx = "1"},
		 {.why = "--capture-range",
		  .capture = SPY_CAPTURE_RANGE,
		  .range_name = "a",
		  .dormant = true},
		 "no window will open",
		 true},
		{{.capture_range = "cudaProfilerApi", .nonvtx = "1", .steps = "4-3"},
		 {.why = "--capture-range", .capture = SPY_CAPTURE_PROFILER, .dormant = true},
		 "CUDASPY_STEPS=4-3 is not like",
		 true},
		{{.capture_range = "nvtx"},
		 {.why = ""},
		 "CUDASPY_CAPTURE_RANGE=nvtx is none of",
		 false},
		{{.steps = "3"},
		 {.why = "", .first_step = 3, .last_step = 3},
		 "CUDASPY_STEPS needs ranges",
		 false},
		{{.steps = "3", .capture_range = "command"},
		 {.why = "--capture-range",
		  .capture = SPY_CAPTURE_COMMAND,
		  .first_step = 3,
		  .last_step = 3,
		  .dormant = true},
		 "CUDASPY_STEPS needs ranges",
		 true},
		{{.overhead = "1%"}, {.why = ""}, NULL, false},
		{{.overhead = "1%", .gpu = "1"},
		 {.why = ""},
		 "CUDASPY_OVERHEAD=1% is not to be had with",
		 false},
		{{.overhead = "0"}, {.why = ""}, "CUDASPY_OVERHEAD=0 is no part", false},
		{{.measure_cost = "1"}, {.why = ""}, NULL, false},
		{{.measure_cost = "0", .gpu = "1"}, {.why = ""}, NULL, false},
		{{.measure_cost = "1", .gpu = "1"},
		 {.why = ""},
		 "CUDASPY_MEASURE_COST is not",
		 false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct spy_plan *plan = &cases[i].plan;
		char text[256] = "";

		spy_options = cases[i].options;
		spy_plan.not_before = 1;
		spy_plan_read();
		assert_int_equal(spy_plan.capture, plan->capture);
		assert_int_equal(spy_plan.delay_ns, plan->delay_ns);
		assert_int_equal(spy_plan.duration_ns, plan->duration_ns);
		assert_int_equal(spy_plan.dormant, plan->dormant);
		assert_string_equal(spy_plan.why, plan->why);
		assert_string_equal(spy_plan.range_name ?: "", plan->range_name ?: "");
		assert_int_equal(spy_plan.first_step, plan->first_step);
		assert_int_equal(spy_plan.last_step, plan->last_step);
		assert_int_equal(spy_plan.not_before, 0);
		assert_int_equal(spy_window_is_planned(), cases[i].planned);
		assert_int_equal(spy_plan_warning(text, sizeof(text)), cases[i].warning != NULL);
		if (cases[i].warning)
			assert_non_null(strstr(text, cases[i].warning));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_profiler),       cmocka_unit_test(test_profiler_races),
		cmocka_unit_test(test_profiler_steps), cmocka_unit_test(test_names),
		cmocka_unit_test(test_overlap),        cmocka_unit_test(test_range_races),
		cmocka_unit_test(test_range_steps),    cmocka_unit_test(test_started_most),
		cmocka_unit_test(test_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
