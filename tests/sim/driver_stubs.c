/*
 * tests/sim/driver_stubs.c: every driver entry point of entrypoints.def, as a weak function that
 * answers "not supported" and says so in the truth file. Whatever driver_*.c defines wins over it at
 * link time, so there is no list of what is implemented. Called on any thread.
 */
#include "sim.h"

static int stub(enum sim_fn fn)
{
	struct sim_span span;

	if (!sim_spans_on) {
		sim_unimplemented(fn);
		return SIM_NOT_SUPPORTED;
	}
	sim_span_open(&span, fn);
	sim_unimplemented(fn);
	return sim_span_close(&span, SIM_NOT_SUPPORTED);
}

#define STUB_DRIVER(name) \
	SIM_PUBLIC __attribute__((weak)) int name(void); \
	int name(void) \
	{ \
		return stub(FN_##name); \
	}
#define STUB_RT(name)
#define STUB_RT11(name)
#define STUB_RT12(name)
#define STUB_RT13(name)
#define STUB_RT11_12(name)
#define STUB_RT12_13(name)
#define ENTRY(name, layer, record, contract, inspector) STUB_##layer(name)
#include "cudaspy/entrypoints.def"
