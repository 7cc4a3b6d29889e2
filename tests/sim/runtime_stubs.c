/*
 * tests/sim/runtime_stubs.c: every runtime entry point of this generation that no other file defines,
 * as a weak function that answers "not supported"; see driver_stubs.c.
 */
#include "runtime.h"

static int stub(enum sim_fn fn)
{
	struct sim_span span;

	if (rt_prepare(RT_DRIVER))
		return rt_fail(SIM_NOT_SUPPORTED);
	if (!*rt_private->spans_on) {
		rt_private->unimplemented(fn);
		return rt_fail(SIM_NOT_SUPPORTED);
	}
	rt_private->span_open(&span, fn);
	rt_private->unimplemented(fn);
	return rt_fail(rt_private->span_close(&span, SIM_NOT_SUPPORTED));
}

#define MAKE_STUB(name) \
	SIM_PUBLIC __attribute__((weak)) int name(void); \
	int name(void) \
	{ \
		return stub(FN_##name); \
	}
#define RUNTIME_ENTRY MAKE_STUB
#include "runtime_entries.h"
