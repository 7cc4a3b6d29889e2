/*
 * shim/inspect/inspect.c: the table of inspectors, expanded from inspectors.def, and what is known of a
 * function by its name. Data; spy_enter and spy_leave (call.c) look rows up on each call.
 */
#include "inspect/inspect_common.h"
#include "inspect/memory.h"

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

/* "..._ptsz" or "..._ptds" */
#define PER_THREAD(text) \
	(sizeof(text) > 6 && (text)[sizeof(text) - 6] == '_' && (text)[sizeof(text) - 5] == 'p' && \
	 (text)[sizeof(text) - 4] == 't' && \
	 ((text)[sizeof(text) - 3] == 's' || (text)[sizeof(text) - 3] == 'd'))

const uint8_t spy_fn_per_thread[SPY_FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) [SPY_FN_##name] = PER_THREAD(#name),
#include "cudaspy/entrypoints.def"
};

static void each_lock(spy_visit_lock *visit)
{
	spy_kernels_locks(visit);
	spy_memory_locks(visit);
	spy_arrays_locks(visit);
	spy_stream_locks(visit);
	spy_contexts_locks(visit);
}

void spy_inspect_forked(void)
{
	each_lock(spy_lock_forget);
}

static bool some_held;

static void look_at_lock(struct spy_lock *lock)
{
	some_held |= spy_lock_is_held(lock);
}

bool spy_inspect_reset(void)
{
	some_held = false;
	each_lock(look_at_lock);
	if (some_held)
		return false;
	spy_memory_reset();
	spy_arrays_reset();
	spy_stream_reset();
	spy_contexts_reset();
	spy_kernels_reset();
	return true;
}
