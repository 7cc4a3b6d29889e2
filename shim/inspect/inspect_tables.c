/*
 * shim/inspect/inspect_tables.c: all the inspectors' tables at once: after a fork, and when a
 * session begins in the child. Runs on the thread that is the child's first.
 */
#include "inspect/inspect_common.h"
#include "inspect/memory.h"

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
