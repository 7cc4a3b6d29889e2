/* links: shim/inspect/inspect.c shim/inspect/inspect_tables.c shim/inspect/inspect_lookup.c shim/inspect/per_thread.c */
/* links: shim/inspect/inspect_copy.c shim/inspect/inspect_memory.c shim/inspect/inspect_stream.c */
/* links: shim/inspect/inspect_launch.c shim/inspect/inspect_context.c shim/inspect/memory.c shim/lib/handle_map.c shim/lib/lock.c */
/*
 * tests/unit/test_inspect_context.c: the shadow of a thread's device and context, what goes away
 * with a context, and look-ups of functions.
 */
#include "cudaspy/function_numbers.h"
#include "inspect_stubs.h"

static uint64_t current; /* what cuCtxGetCurrent answers */
static int current_device;

static int get_current(uint64_t *context)
{
	asked++;
	*context = current;
	return 0;
}

static int get_device(int *device)
{
	asked++;
	*device = current_device;
	return 0;
}

static int with_driver(void **state)
{
	fresh(state);
	current = 0;
	real_driver[SPY_FN_cuCtxGetCurrent] = (void *)get_current;
	real_driver[SPY_FN_cuCtxGetDevice] = (void *)get_device;
	return 0;
}

static int device(void)
{
	return spy_thread_device(&the_thread);
}

static void test_driver_contexts(void **state)
{
	uint64_t out = 0xc1, popped = 0;

	(void)state;
	assert_int_equal(device(), SPY_DEVICE_NONE);
	assert_int_equal(CALL(cuCtxCreate_v2, DRIVER, P(&out), 0, 3)->object, 0xc1);
	assert_int_equal(device(), 3);
	assert_int_equal(the_thread.context, 1);
	out = 0xc2;
	CALL(cuCtxCreate_v4, DRIVER, P(&out), 0, 0, GARBAGE | 4);
	assert_int_equal(device(), 4);
	assert_int_equal(the_thread.context, 2);
	out = 0xc3;
	CALL(cuCtxCreate_v3, DRIVER, P(&out), 0, 0, 0, 5);
	assert_int_equal(device(), 5);
	current = 0xc2;
	popped = 0xc3;
	assert_int_equal(CALL(cuCtxPopCurrent_v2, DRIVER, P(&popped))->object, 0xc3);
	assert_int_equal(device(), 4);
	CALL(cuCtxPushCurrent, DRIVER, 0xc1);
	assert_int_equal(device(), 3);
	assert_int_equal(the_thread.context, 1);
	CALL(cuCtxSetCurrent, DRIVER, 0xc2);
	assert_int_equal(device(), 4);
	BEFORE(cuCtxSetCurrent, DRIVER, 0xc1);
	after(201);
	assert_int_equal(device(), 4);
	current = 0;
	CALL(cuCtxSetCurrent, DRIVER, 0);
	assert_int_equal(device(), SPY_DEVICE_NONE);
	assert_int_equal(asked, 2); /* only where a call does not name what it uncovers */
	current_device = 6;
	CALL(cuCtxSetCurrent, DRIVER, 0xc9); /* never seen before: asked for its device, once */
	assert_int_equal(device(), 6);
	CALL(cuCtxSetCurrent, DRIVER, 0xc1);
	CALL(cuCtxSetCurrent, DRIVER, 0xc9);
	assert_int_equal(device(), 6);
	assert_int_equal(asked, 3);
	assert_int_equal(spy_context_device(0xc9), 6);
	current = 0xc1;
	BEFORE(cuCtxDestroy_v2, DRIVER, 0xc9);
	after(201);
	assert_int_equal(the_frame.details.flags, 0);
	assert_int_equal(CALL(cuCtxDestroy_v2, DRIVER, 0xc9)->flags, 4);
	assert_int_equal(spy_context_device(0xc9), SPY_DEVICE_NONE);
	assert_int_equal(device(), 3);
}

static uint8_t kind_at(uint64_t address)
{
	struct spy_memory found;

	spy_memory_find(address, &found);
	return found.kind;
}

static void test_memory_goes_with_its_context(void **state)
{
	uint64_t out = 0xc1, a = 0x10000, b = 0x20000;

	(void)state;
	CALL(cuCtxCreate_v2, DRIVER, P(&out), 0, 0);
	CALL(cuMemHostAlloc, DRIVER, P(&a), 0x1000, 0);
	out = 0xc2;
	CALL(cuCtxCreate_v2, DRIVER, P(&out), 0, 0);
	CALL(cuMemHostAlloc, DRIVER, P(&b), 0x1000, 0);
	CALL(cuCtxDestroy_v2, DRIVER, 0xc1);
	assert_int_equal(kind_at(a), SPY_MEM_UNKNOWN);
	assert_int_equal(kind_at(b), SPY_MEM_PINNED);
}

static void test_runtime(void **state)
{
	uint64_t primary0 = 0xc0, primary1 = 0xc1, out = 0x10000;

	(void)state;
	CALL(cudaStreamSynchronize, RT12, 0);
	assert_int_equal(device(), 0); /* where the runtime begins */
	CALL(cudaSetDevice, RT11, GARBAGE | 1);
	assert_int_equal(device(), 1);
	assert_int_equal(the_thread.context, 0);
	/* the driver calls inside a runtime call */
	CALL(cuDevicePrimaryCtxRetain, DRIVER, P(&primary1), 1);
	CALL(cuCtxSetCurrent, DRIVER, 0xc1);
	assert_int_equal(the_thread.context, 1);
	CALL(cuDevicePrimaryCtxRetain, DRIVER, P(&primary0), 0);
	CALL(cudaSetDevice, RT13, 0);
	assert_int_equal(device(), 0);
	assert_int_equal(the_thread.context, 2);
	BEFORE(cudaSetDevice, RT13, 7);
	after(101);
	assert_int_equal(device(), 0);
	assert_int_equal(asked, 0);
	CALL(cudaMallocHost, RT13, P(&out), 0x1000);
	assert_int_equal(CALL(cudaDeviceReset, RT13, 0)->object, 0);
	assert_int_equal(kind_at(out), SPY_MEM_UNKNOWN);
	CALL(cudaMallocHost, RT13, P(&out), 0x1000);
	CALL(cuDevicePrimaryCtxReset_v2, DRIVER, 1);
	assert_int_equal(kind_at(out), SPY_MEM_PINNED);
	CALL(cuDevicePrimaryCtxRetain, DRIVER, P(&primary0), 0);
	CALL(cuDevicePrimaryCtxRelease_v2, DRIVER, 0);
	assert_int_equal(kind_at(out), SPY_MEM_PINNED); /* retained once more */
	CALL(cuDevicePrimaryCtxRelease_v2, DRIVER, 0);
	assert_int_equal(kind_at(out), SPY_MEM_UNKNOWN);
}

/* The device that another one may reach: named, or by its context. */
static void test_peer_access(void **state)
{
	uint64_t out = 0xc3;
	const struct spy_details *details;

	(void)state;
	CALL(cuCtxCreate_v2, DRIVER, P(&out), 0, 3);
	details = CALL(cudaDeviceEnablePeerAccess, RT12, GARBAGE | 2, 0);
	assert_int_equal(details->event, SPY_EV_OP);
	assert_int_equal(details->object, 2);
	assert_int_equal(details->stream, 0);
	assert_int_equal(CALL(cudaDeviceDisablePeerAccess, RT13, 1)->object, 1);
	details = CALL(cuCtxEnablePeerAccess, DRIVER, 0xc3, 0);
	assert_int_equal(details->object, 3);
	assert_int_equal(details->flags, 1); /* the context's number */
	assert_int_equal(CALL(cuCtxDisablePeerAccess, DRIVER, 0xc9)->object, SPY_DEVICE_NONE);
}

static void test_lookups(void **state)
{
	void *out = (void *)0x1000;

	(void)state;
	driver_ready = 0;
	BEFORE(cuInit, DRIVER, 0);
	after(100);
	assert_int_equal(driver_ready, 0);
	CALL(cuInit, DRIVER, 0);
	assert_int_equal(driver_ready, 1);
	CALL(cuGetProcAddress_v2, DRIVER, P("cuInit"), P(&out), 12000, 0, 0);
	assert_ptr_equal(out, (void *)0x1001);
	out = (void *)0x1000;
	BEFORE(cuGetProcAddress, DRIVER, P("cuInit"), P(&out), 12000, 0);
	after(500);
	assert_ptr_equal(out, (void *)0x1000);
	out = NULL;
	CALL(cudaGetDriverEntryPoint, RT12, P("cuInit"), P(&out), 0, 0);
	assert_null(out);
	CALL(cudaGetDriverEntryPointByVersion, RT13, P("cuInit"), 0, 12000, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_driver_contexts, with_driver),
		cmocka_unit_test_setup(test_memory_goes_with_its_context, with_driver),
		cmocka_unit_test_setup(test_runtime, with_driver),
		cmocka_unit_test_setup(test_peer_access, with_driver),
		cmocka_unit_test_setup(test_lookups, with_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
