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
};

void spy_plan_read(struct spy_plan *plan);

/* Ranges that begin before are not recorded (cycles). */
void spy_plan_wait_until(uint64_t at);

/* What is wrong with the options, if anything is: one sentence into text. */
bool spy_plan_warning(char *text, size_t size);

#endif
