/*
 * shim/window/control.h: with --overhead=PERCENT recording keeps to that: cost windows (cost.h) say what it takes, and the
 * time between them is spent with everything, without probes and stacks, or with counting alone, in such parts that the mean
 * is what was asked for. Used on the application's threads, in slow paths.
 */
#ifndef CUDASPY_SHIM_CONTROL_H
#define CUDASPY_SHIM_CONTROL_H

#include <stdint.h>
#include "cudaspy/cost_plan.h"
#include "cudaspy/trace_format.h"

/* When a session begins: so many millionths. 0: no control. */
void spy_control_begin(uint32_t ppm);

/* A thread made so many calls in what it had of a cost window. Any thread. */
void spy_control_count(uint64_t window, enum spy_cost_kind kind, uint64_t calls, uint64_t cycles);

/* What is to be done in a frame: how many of its blocks are measured, the first ones, and what is the rest of it spent on? */
struct spy_control_decision {
	uint32_t blocks;
	enum spy_cost_kind kind;
};

/* A frame begins: what was measured is evaluated. Under the session's lock. */
struct spy_control_decision spy_control_decide(const struct spy_cost_frame *frame);

/* The process has spent so many cycles on one kind, and after it so many without a call. Under the session's lock. */
void spy_control_spent(enum spy_cost_kind kind, uint64_t in, uint64_t idle);

#endif
