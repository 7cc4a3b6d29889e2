/*
 * shim/window/plan.c: what the user's options say of windows. Read when the library is loaded, in a forked child, and where
 * options are checked.
 */
#include <stdio.h>
#include <string.h>
#include "process/options.h"
#include "window/plan.h"

struct spy_plan spy_plan;

void spy_plan_read(void)
{
	struct spy_plan *plan = &spy_plan;

	*plan = (struct spy_plan){.why = ""};
	if (spy_options.duration && !spy_parse_time(spy_options.duration, &plan->duration_ns))
		plan->duration_ns = 0;
	if (spy_options.delay && !spy_parse_time(spy_options.delay, &plan->delay_ns))
		plan->delay_ns = 0;
	if (plan->delay_ns)
		plan->why = "--delay";
	if (spy_options.capture_range &&
	    spy_parse_capture(spy_options.capture_range, &plan->capture, &plan->range_name))
		plan->why = "--capture-range";
	if (spy_options.steps &&
	    !spy_parse_steps(spy_options.steps, &plan->first_step, &plan->last_step))
		plan->first_step = plan->last_step = 0;
	plan->dormant = plan->delay_ns || plan->capture != SPY_CAPTURE_ALL;
}

bool spy_window_is_planned(void)
{
	return spy_plan.dormant || spy_plan.duration_ns;
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
