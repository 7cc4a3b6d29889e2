/*
 * shim/inspect.c: the table of inspectors, expanded from inspectors.def, and what is known of a
 * function by its name. Data; spy_enter and spy_leave (call.c) look rows up on each call.
 */
#include "inspect_common.h"
#include "memory.h"

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
#include "inspectors.def"
};

/* "..._ptsz" or "..._ptds" */
#define PER_THREAD(text) \
	(sizeof(text) > 6 && (text)[sizeof(text) - 6] == '_' && (text)[sizeof(text) - 5] == 'p' && \
	 (text)[sizeof(text) - 4] == 't' && \
	 ((text)[sizeof(text) - 3] == 's' || (text)[sizeof(text) - 3] == 'd'))

const uint8_t spy_fn_per_thread[SPY_FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) [SPY_FN_##name] = PER_THREAD(#name),
#include "cudaspy/entrypoints.def"
};

/* The registry first: who has its lock takes those of two tables. */
void spy_inspect_hold(bool hold)
{
	spy_kernels_hold(hold);
	spy_memory_hold(hold);
	spy_arrays_hold(hold);
	spy_stream_hold(hold);
	spy_contexts_hold(hold);
}

void spy_inspect_reset(void)
{
	spy_inspect_hold(true);
	spy_memory_reset();
	spy_arrays_reset();
	spy_stream_reset();
	spy_contexts_reset();
	spy_kernels_reset();
	spy_inspect_hold(false);
}
