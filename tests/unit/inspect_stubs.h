/*
 * tests/unit/inspect_stubs.h: a call made by hand, for tests of the inspectors, and stand-ins for
 * what inspectors ask of the rest of the shim. To be included by one file of a test.
 */
#ifndef CUDASPY_TESTS_INSPECT_STUBS_H
#define CUDASPY_TESTS_INSPECT_STUBS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "cudaspy/function_numbers.h"
#include "describe/describe.h"
#include "inspect/inspect_common.h"
#include "inspect/memory.h"
#include "nccl/profiler.h"
#include "probe/query.h"
#include "record/kernel_names.h"
#include "record/notes.h"
#include "state/session.h"
#include "window/capture.h"

static const uint16_t inspector_of[SPY_FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) [SPY_FN_##name] = SPY_INSPECTOR_##inspector,
#include "cudaspy/entrypoints.def"
};

static const uint8_t record_of[SPY_FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) [SPY_FN_##name] = SPY_##record,
#include "cudaspy/entrypoints.def"
};

/* ---- the rest of the shim ---- */

static void *real_driver[SPY_FN_COUNT]; /* what spy_resolve_driver answers */
static bool session_active = true;
static int driver_ready;
int spy_gpus;
static const char *kernel_names[64];

uint8_t spy_thread_device(struct spy_thread *thread)
{
	return (uint8_t)(thread->device - 1);
}

void spy_thread_set_device(struct spy_thread *thread, uint8_t device, uint16_t context)
{
	thread->device = (uint8_t)(device + 1);
	thread->context = context;
}

void *spy_resolve_driver(int fn)
{
	return real_driver[fn];
}

/* Functions on the host are tested as CUDA runs them (tests/e2e). Not all tests have the inspectors of streams. */
#pragma weak inspect_op

void inspect_host_function(struct spy_frame *frame, const struct spy_inspector *self)
{
	inspect_op(frame, self);
}

void inspect_host_function_done(struct spy_frame *frame, const struct spy_inspector *self)
{
	(void)frame;
	(void)self;
}

void inspect_host_node(struct spy_frame *frame, const struct spy_inspector *self)
{
	inspect_op(frame, self);
}

uint64_t spy_overhead_begin(void)
{
	return 0;
}

void spy_overhead_end(struct spy_thread *thread, uint64_t begun)
{
	(void)thread;
	(void)begun;
}

uint32_t spy_kernel_number(const char *name)
{
	if (!name)
		return 0;
	for (uint32_t i = 1; i < 64; i++) {
		if (!kernel_names[i])
			kernel_names[i] = strdup(name);
		if (!strcmp(kernel_names[i], name))
			return i;
	}
	return 0;
}

void spy_note(enum spy_note note, const char *format, ...)
{
	(void)note;
	(void)format;
}

static int answers; /* of GPUs that were asked whether they are done */

void spy_query_answered(struct spy_frame *frame, uint64_t object)
{
	(void)frame;
	(void)object;
	answers++;
}

bool spy_session_active(void)
{
	return session_active;
}

void spy_mps_driver_begins(void)
{
}

void spy_nccl_capture_began(void)
{
}

void spy_window_profiler(bool start)
{
	(void)start;
}

void spy_gpu_begin(void);
void spy_gpu_begin(void)
{
}

void spy_gpus_driver_ready(void)
{
	driver_ready++;
}

void *spy_wrap(const char *name, void *real)
{
	return !strcmp(name, "cuInit") ? (char *)real + 1 : real;
}

/* ---- a call ---- */

#define GARBAGE 0xdead000000000000ull /* in the upper half of an argument of 32 bits */

static struct spy_thread the_thread;
static struct spy_slot the_slot;
static uint64_t the_stack[16];
static struct spy_frame the_frame;

/* Up to the real call. Words as in spy_word. */
static inline struct spy_details *before(enum spy_fn fn, enum spy_layer layer, unsigned int count,
					 const uint64_t *words)
{
	const struct spy_inspector *inspector = &spy_inspectors[inspector_of[fn]];

	memset(&the_frame, 0xa5, sizeof(the_frame));
	memset(the_stack, 0xa5, sizeof(the_stack));
	for (unsigned int i = 0; i < count; i++)
		*(i < 6 ? &the_frame.regs[i] : &the_stack[i - 6]) = words[i];
	the_slot = (struct spy_slot){
		.fn = fn, .record = record_of[fn], .layer = layer, .inspector = inspector_of[fn]};
	the_frame.stack = the_stack;
	the_frame.slot = &the_slot;
	the_frame.thread = &the_thread;
	the_frame.kind = record_of[fn] == SPY_TRACED    ? SPY_FRAME_TRACED
			 : record_of[fn] == SPY_COUNTED ? SPY_FRAME_COUNTED
							: SPY_FRAME_PASS;
	the_frame.details.event = SPY_EV_CALL;
	the_frame.details.captured = the_frame.details.pool = the_frame.details.pageable = false;
	the_frame.details.flags = 0;
	/* as begin_traced does */
	if (!the_thread.device && layer != SPY_LAYER_DRIVER)
		spy_thread_set_device(&the_thread, 0, 0);
	if (inspector->before)
		inspector->before(&the_frame, inspector);
	return &the_frame.details;
}

static inline struct spy_details *after(int result)
{
	const struct spy_inspector *inspector = &spy_inspectors[the_slot.inspector];

	the_frame.result = GARBAGE | (uint32_t)result;
	if (inspector->after)
		inspector->after(&the_frame, inspector);
	return &the_frame.details;
}

#define WORDS(...) \
	sizeof((uint64_t[]){__VA_ARGS__}) / 8, (uint64_t[]) \
	{ \
		__VA_ARGS__ \
	}
#define BEFORE(name, layer, ...) before(SPY_FN_##name, SPY_LAYER_##layer, WORDS(__VA_ARGS__))
#define CALL(name, layer, ...) (BEFORE(name, layer, __VA_ARGS__), after(0))
#define P(pointer) ((uint64_t)(uintptr_t)(pointer))

/* ---- a driver that answers cuPointerGetAttributes ---- */

static struct spy_memory driver_ranges[8];
static int asked;
static void (*during_ask)(void); /* what another thread does meanwhile */

static inline int get_attributes_stub(unsigned int n, const int *attributes, void **data,
				      uint64_t address)
{
	const struct spy_memory *range = NULL;

	asked += n == 4;
	if (during_ask)
		during_ask();
	for (int i = 0; i < 8; i++) {
		if (driver_ranges[i].lo <= address && address < driver_ranges[i].hi)
			range = &driver_ranges[i];
	}
	if (n == 2) { /* where memory of a GPU lies */
		assert_int_equal(attributes[0], 9);
		assert_int_equal(attributes[1], 17);
		*(int32_t *)data[0] = range ? range->device : -2;
		*(uint64_t *)data[1] = range && range->access == SPY_ACCESS_POOL ? 0x99 : 0;
		return 0;
	}
	assert_int_equal(n, 4);
	assert_int_equal(attributes[0], 2);
	*(uint32_t *)data[0] = !range ? 0 : range->kind == SPY_MEM_PINNED ? 1 : 2;
	*(uint32_t *)data[1] = range && range->kind == SPY_MEM_MANAGED;
	*(uint64_t *)data[2] = range ? range->lo : 0;
	*(uint64_t *)data[3] = range ? range->hi - range->lo : 0;
	return 0;
}

/* Everything as in a new process. */
static inline int fresh(void **state)
{
	(void)state;
	memset(&the_thread, 0, sizeof(the_thread));
	memset(driver_ranges, 0, sizeof(driver_ranges));
	memset(real_driver, 0, sizeof(real_driver));
	real_driver[SPY_FN_cuPointerGetAttributes] = (void *)get_attributes_stub;
	asked = spy_gpus = 0;
	during_ask = NULL;
	session_active = true;
	spy_inspect_reset();
	return 0;
}

#define TEST(function) cmocka_unit_test_setup(function, fresh)

#endif
