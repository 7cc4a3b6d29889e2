/*
 * shim/window/plan.c: who opens a window: cudaProfilerStart, a range of NVTX, or the time; and which of them. Runs on
 * the application's threads, within those calls.
 *
 * A range is one from a cudaProfilerStart to the next cudaProfilerStop, or one of NVTX that is open in some thread. Where
 * several are open at a time, the window lasts from the first one's begin to the last one's end. With steps, ranges are
 * counted by their begins, in the process.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "lib/clock.h"
#include "nvtx/names.h"
#include "process/options.h"
#include "window/plan.h"
#include "window/window.h"

#define STARTED_MOST 64 /* ranges that any thread may end, open at one time */

bool spy_window_by_ranges;

static enum spy_capture capture;
static const char *range_name; /* that opens a window; with a * at its end all that begin so */
static uint64_t first_step, last_step; /* 0, 0: each range is a window */
static _Atomic uint64_t not_before; /* cycles */
static _Atomic uint64_t steps; /* ranges that have begun */
static _Atomic uint32_t open_ranges;
static _Atomic uint64_t started[STARTED_MOST]; /* ids; 0: free */

/* ---- options --------------------------------------------------------------------------------- */

void spy_plan_read(struct spy_plan *plan)
{
	*plan = (struct spy_plan){.why = ""};
	capture = SPY_CAPTURE_ALL;
	range_name = NULL;
	first_step = last_step = 0;
	not_before = steps = 0;
	open_ranges = 0;
	for (int i = 0; i < STARTED_MOST; i++)
		started[i] = 0;
	if (spy_options.duration && !spy_parse_time(spy_options.duration, &plan->duration_ns))
		plan->duration_ns = 0;
	if (spy_options.delay && !spy_parse_time(spy_options.delay, &plan->delay_ns))
		plan->delay_ns = 0;
	if (plan->delay_ns)
		plan->why = "--delay";
	if (spy_options.capture_range &&
	    spy_parse_capture(spy_options.capture_range, &capture, &range_name))
		plan->why = "--capture-range";
	if (spy_options.steps && !spy_parse_steps(spy_options.steps, &first_step, &last_step))
		first_step = last_step = 0;
	plan->capture = capture;
	plan->dormant = plan->delay_ns || capture != SPY_CAPTURE_ALL;
	spy_window_by_ranges = capture == SPY_CAPTURE_RANGE;
}

void spy_plan_wait_until(uint64_t at)
{
	not_before = at;
}

bool spy_plan_warning(char *text, size_t size)
{
	enum spy_capture kind = SPY_CAPTURE_ALL;
	const char *name;
	uint64_t a, b;
	uint32_t ppm;

	if (spy_options.capture_range &&
	    !spy_parse_capture(spy_options.capture_range, &kind, &name))
		snprintf(text, size,
			 "CUDASPY_CAPTURE_RANGE=%s is none of cudaProfilerApi, nvtx:NAME, command: "
			 "everything is recorded",
			 spy_options.capture_range);
	else if (kind == SPY_CAPTURE_RANGE && spy_options.nonvtx)
		snprintf(text, size,
			 "CUDASPY_CAPTURE_RANGE=%s with CUDASPY_NONVTX: no window will open",
			 spy_options.capture_range);
	else if (spy_options.steps && !spy_parse_steps(spy_options.steps, &a, &b))
		snprintf(text, size, "CUDASPY_STEPS=%s is not like 10-20: all ranges are recorded",
			 spy_options.steps);
	else if (spy_options.steps && kind != SPY_CAPTURE_PROFILER && kind != SPY_CAPTURE_RANGE)
		snprintf(text, size,
			 "CUDASPY_STEPS needs ranges (CUDASPY_CAPTURE_RANGE): it has no effect");
	else if (spy_options.delay && !spy_parse_time(spy_options.delay, &a))
		snprintf(text, size, "CUDASPY_DELAY=%s is no time like 500ms, 30s or 10m: no delay",
			 spy_options.delay);
	else if (spy_options.overhead &&
		 (spy_options.gpu || !spy_parse_percent(spy_options.overhead, &ppm)))
		snprintf(text, size, "CUDASPY_OVERHEAD=%s is %s: it has no effect",
			 spy_options.overhead,
			 spy_options.gpu ? "not to be had with CUDASPY_GPU"
					 : "no part like 1% or 0.5%");
	else if (spy_options.measure_cost && spy_options.gpu &&
		 strcmp(spy_options.measure_cost, "0") != 0)
		snprintf(
			text, size,
			"CUDASPY_MEASURE_COST is not to be had with CUDASPY_GPU: it has no effect");
	else if (spy_options.duration && (!spy_parse_time(spy_options.duration, &a) || !a))
		snprintf(text, size,
			 "CUDASPY_DURATION=%s is no time like 500ms, 30s or 10m: no end",
			 spy_options.duration);
	else
		return false;
	return true;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* For a window that the first range opens, or the last one closes: another thread's may have begun or ended meanwhile. */
static bool is_one_open(void)
{
	return atomic_load(&open_ranges);
}

static bool is_none_open(void)
{
	return !atomic_load(&open_ranges);
}

/* One begins. False: it is none of those that are recorded. */
static bool count_step(uint64_t *step)
{
	if (not_before && spy_clock() < not_before)
		return false;
	*step = atomic_fetch_add(&steps, 1) + 1;
	return !last_step || *step <= last_step;
}

static void open_in(uint64_t step, const char *why, bool first)
{
	if (!first_step || step >= first_step)
		spy_window_open(why, first ? is_one_open : NULL);
}

/* The last one has ended. */
static void close_behind(const char *why)
{
	if (!last_step || atomic_load(&steps) >= last_step)
		spy_window_close(why, is_none_open);
}

/* Between two starts without a stop nothing begins anew, whatever the threads. */
void spy_window_profiler(bool start)
{
	uint32_t none = 0;
	uint64_t step;

	if (capture != SPY_CAPTURE_PROFILER)
		return;
	if (!start) {
		if (atomic_exchange(&open_ranges, 0))
			close_behind("cudaProfilerStop");
	} else if (atomic_compare_exchange_strong(&open_ranges, &none, 1)) {
		if (count_step(&step))
			open_in(step, "cudaProfilerStart", true);
		else
			atomic_store(&open_ranges, 0);
	}
}

/* One of NVTX that began has ended. */
static void end_range(const char *why)
{
	uint32_t open = atomic_load(&open_ranges);

	while (open && !atomic_compare_exchange_weak(&open_ranges, &open, open - 1))
		;
	if (open <= 1)
		close_behind(why);
}

static bool is_wanted(uint32_t name)
{
	size_t length = strlen(range_name);
	const char *text;
	uint16_t domain;
	bool folded;

	text = name ? spy_range_text(name, &domain, &folded) : NULL;
	if (!text)
		return false;
	if (range_name[length - 1] == '*')
		return strncmp(text, range_name, length - 1) == 0;
	return strcmp(text, range_name) == 0;
}

static bool range_begins(uint32_t name)
{
	char why[64];
	uint64_t step;

	if (!is_wanted(name) || !count_step(&step))
		return false;
	snprintf(why, sizeof(why), "range %s", range_name);
	open_in(step, why, !atomic_fetch_add(&open_ranges, 1));
	return true;
}

bool spy_window_range_begins(uint32_t name)
{
	return spy_window_by_ranges && range_begins(name);
}

void spy_window_range_ends(void)
{
	char why[64];

	snprintf(why, sizeof(why), "range %s", range_name ? range_name : "");
	end_range(why);
}

/* What has no place among the started ones opens no window: its end would not be known. */
void spy_window_range_started(uint32_t name, uint64_t id)
{
	uint64_t none = 0;

	if (!spy_window_by_ranges || !id || !is_wanted(name))
		return;
	for (int i = 0; i < STARTED_MOST; i++, none = 0)
		if (atomic_compare_exchange_strong(&started[i], &none, id)) {
			if (!range_begins(name))
				atomic_store(&started[i], 0);
			return;
		}
}

void spy_window_range_ended(uint64_t id)
{
	for (int i = 0; spy_window_by_ranges && i < STARTED_MOST; i++) {
		uint64_t open = id;

		if (id && atomic_compare_exchange_strong(&started[i], &open, 0)) {
			spy_window_range_ends();
			return;
		}
	}
}
