/*
 * shim/window/plan.h: what the user's options say of windows. Read when the library is loaded, and in a forked child.
 */
#ifndef CUDASPY_SHIM_WINDOW_PLAN_H
#define CUDASPY_SHIM_WINDOW_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include "cudaspy/windows.h"

struct spy_plan {
	enum spy_capture capture;
	uint64_t delay_ns, duration_ns; /* 0: none */
	bool dormant; /* recording begins so */
	const char *why; /* it is dormant at first, or a window opens by time: the option */
	const char *range_name; /* that opens a window; with a * at its end all that begin so */
	uint64_t first_step, last_step; /* 0, 0: each range is a window */
	_Atomic uint64_t not_before; /* ranges that begin before are not recorded (cycles) */
};
extern struct spy_plan spy_plan;

/* Reads it anew. */
void spy_plan_read(void);

/* Is recording to be dormant at times, by an option? */
bool spy_window_is_planned(void);

/* What is wrong with the options, if anything is: one sentence into text. */
bool spy_plan_warning(char *text, size_t size);

#endif
