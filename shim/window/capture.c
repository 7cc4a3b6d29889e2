/*
 * shim/window/capture.c: who opens a window: cudaProfilerStart, or a range of NVTX; and which of them. Runs on
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
#include "record/range_names.h"
#include "window/capture.h"
#include "window/plan.h"
#include "window/window.h"

#define STARTED_MOST 64 /* ranges that any thread may end, open at one time */

bool spy_window_by_ranges;

static _Atomic uint64_t steps; /* ranges that have begun */
static _Atomic uint32_t open_ranges;
static _Atomic uint64_t started[STARTED_MOST]; /* ids; 0: free */

void spy_capture_init(void)
{
	steps = 0;
	open_ranges = 0;
	for (int i = 0; i < STARTED_MOST; i++)
		started[i] = 0;
	spy_window_by_ranges = spy_plan.capture == SPY_CAPTURE_RANGE;
}

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
	if (spy_clock() < atomic_load(&spy_plan.not_before))
		return false;
	*step = atomic_fetch_add(&steps, 1) + 1;
	return !spy_plan.last_step || *step <= spy_plan.last_step;
}

static void open_in(uint64_t step, const char *why, bool first)
{
	if (!spy_plan.first_step || step >= spy_plan.first_step)
		spy_window_open(why, first ? is_one_open : NULL);
}

/* The last one has ended. */
static void close_behind(const char *why)
{
	if (!spy_plan.last_step || atomic_load(&steps) >= spy_plan.last_step)
		spy_window_close(why, is_none_open);
}

/* Between two starts without a stop nothing begins anew, whatever the threads. */
void spy_window_profiler(bool start)
{
	uint32_t none = 0;
	uint64_t step;

	if (spy_plan.capture != SPY_CAPTURE_PROFILER)
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
	size_t length = strlen(spy_plan.range_name);
	const char *text;
	uint16_t domain;
	bool folded;

	text = name ? spy_range_text(name, &domain, &folded) : NULL;
	if (!text)
		return false;
	if (spy_plan.range_name[length - 1] == '*')
		return strncmp(text, spy_plan.range_name, length - 1) == 0;
	return strcmp(text, spy_plan.range_name) == 0;
}

static bool range_begins(uint32_t name)
{
	char why[64];
	uint64_t step;

	if (!is_wanted(name) || !count_step(&step))
		return false;
	snprintf(why, sizeof(why), "range %s", spy_plan.range_name);
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

	snprintf(why, sizeof(why), "range %s", spy_plan.range_name ? spy_plan.range_name : "");
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
