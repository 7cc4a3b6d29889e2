/*
 * shim/inspect/inspect.c: the table of inspectors, expanded from inspectors.def. Data;
 * spy_enter and spy_leave (call.c) look rows up on each call.
 */
#include "inspect/inspect.h"
#include "inspect/inspect_common.h"

#define inspect_nothing NULL

#define INSPECTOR(name_, before_, after_, stateful_, a0, a1, a2, a3, a4, a5, a6, a7, a_, b_) \
	[SPY_INSPECTOR_##name_] = { \
		.name = #name_, \
		.before = inspect_##before_, \
		.after = inspect_##after_, \
		.stateful = stateful_, \
		.at = {a0, a1, a2, a3, a4, a5, a6, a7}, \
		.a = a_, \
		.b = b_, \
	},
#define NO SPY_NO_ARG

const struct spy_inspector spy_inspectors[SPY_INSPECTOR_COUNT] = {
	[SPY_INSPECTOR_none] = {.name = "none"},
#include "inspect/inspectors.def"
};
