/* links: shim/inspect/inspect.c shim/inspect/inspect_tables.c shim/inspect/inspect_lookup.c shim/inspect/per_thread.c */
/* links: shim/inspect/inspect_copy.c shim/inspect/inspect_memory.c shim/inspect/inspect_stream.c */
/* links: shim/inspect/inspect_launch.c shim/inspect/inspect_context.c shim/inspect/memory.c shim/lib/handle_map.c shim/lib/lock.c */
/*
 * tests/unit/test_inspect_stream.c: operations on streams, events and graphs, captures, and the
 * names of kernels.
 */
#include "cudaspy/function_numbers.h"
#include "inspect_stubs.h"
#include "inspect/cuda_layout.h"

static void expect(const struct spy_details *d, uint64_t stream, uint64_t object, uint16_t flags)
{
	assert_int_equal(d->event, SPY_EV_OP);
	assert_int_equal(d->stream, stream);
	assert_int_equal(d->object, object);
	assert_int_equal(d->flags, flags);
}

static void test_operations(void **state)
{
	uint64_t out = 0x77;

	(void)state;
	expect(CALL(cudaStreamCreate, RT13, P(&out)), 0, 0x77, 0);
	expect(CALL(cudaStreamCreateWithPriority, RT13, P(&out), GARBAGE | 1, 5), 0, 0x77, 1);
	expect(CALL(cuStreamCreate, DRIVER, 0, 1), 0, 0, 1); /* an output of NULL */
	BEFORE(cuStreamCreate, DRIVER, P(&out), 1);
	after(2);
	expect(&the_frame.details, 0, 0, 1);
	expect(CALL(cudaStreamSynchronize, RT13, 0), SPY_STREAM_LEGACY, 0, 0);
	expect(CALL(cudaStreamSynchronize_ptsz, RT13, 0), SPY_STREAM_PER_THREAD, 0, 0);
	expect(CALL(cudaStreamSynchronize_ptsz, RT13, 1), SPY_STREAM_LEGACY, 0, 0);
	expect(CALL(cudaStreamDestroy, RT13, 0x77), 0, 0x77, 0);
	expect(CALL(cudaEventRecord, RT13, 0xe1, 0x77, GARBAGE), 0x77, 0xe1, 0);
	expect(CALL(cudaEventRecordWithFlags, RT13, 0xe1, 0x77, 1), 0x77, 0xe1, 1);
	expect(CALL(cudaStreamWaitEvent, RT13, 0x77, 0xe1, 1), 0x77, 0xe1, 1);
	expect(CALL(cudaEventSynchronize, RT13, 0xe1), 0, 0xe1, 0);
	expect(CALL(cuEventCreate, DRIVER, P(&out), 2), 0, 0x77, 2);
	expect(CALL(cudaDeviceSynchronize, RT13, 0), 0, 0, 0);
	expect(CALL(cuCtxSynchronize_v2, DRIVER, 0xc1), 0, 0xc1, 0);
	expect(CALL(cudaGraphLaunch, RT13, 0x61, 0), SPY_STREAM_LEGACY, 0x61, 0);
	expect(CALL(cudaGraphInstantiate, RT13, P(&out), 0x60, 0), 0, 0x77, 0);
	expect(CALL(cudaGraphInstantiate, RT11, P(&out), 0x60, 1, 2, 3), 0, 0x77, 0);
	expect(CALL(cuStreamWaitValue32_v2, DRIVER, 0x77, 0xaddd, 1, 0), 0x77, 0xaddd, 0);
	expect(CALL(cuMemBatchDecompressAsync, DRIVER, 1, 2, 3, 4, 0x77), 0x77, 0, 0);
	expect(CALL(cuSignalExternalSemaphoresAsync, DRIVER, 1, 2, 3, 0x77), 0x77, 0, 0);
	expect(CALL(cudaGraphicsMapResources, RT13, 1, 2, 0x77), 0x77, 0, 0);
	expect(CALL(cuGreenCtxStreamCreate, DRIVER, P(&out), 1, 1, 0), 0, 0x77, 1);
}

static bool captured(uint64_t stream)
{
	return BEFORE(cudaMemcpyAsync, RT13, 0x1000, 0x2000, 10, 1, stream)->captured;
}

static void test_capture(void **state)
{
	uint64_t graph = 0x60;

	(void)state;
	assert_false(captured(0x77));
	CALL(cudaStreamBeginCapture, RT13, 0x77, 0);
	assert_true(captured(0x77));
	assert_false(captured(0x78));
	assert_false(BEFORE(cudaMemcpyAsync, RT13, 0x1000, 0x2000, 10, 1, 0x77)->pageable);
	CALL(cudaEventRecord, RT13, 0xe1, 0x78); /* outside */
	CALL(cudaStreamWaitEvent, RT13, 0x79, 0xe1, 0);
	assert_false(captured(0x79));
	CALL(cudaEventRecord, RT13, 0xe1, 0x77); /* inside: those who wait for it join */
	CALL(cudaStreamWaitEvent, RT13, 0x79, 0xe1, 0);
	assert_true(captured(0x79));
	assert_true(BEFORE(cudaLaunchKernel, RT13, 1, 1, 1, 1, 1, 0, 0, 0x79)->captured);
	CALL(cuStreamBeginCapture_v2_ptsz, DRIVER, 0, 0); /* a second one, of another stream */
	assert_true(captured(SPY_STREAM_PER_THREAD));
	assert_false(captured(0x78));
	CALL(cudaEventRecord, RT13, 0xe1, 0x78); /* outside again */
	CALL(cudaStreamWaitEvent, RT13, 0x7a, 0xe1, 0);
	assert_false(captured(0x7a));
	BEFORE(cudaStreamEndCapture, RT13, 0x77, P(&graph));
	expect(after(0), 0x77, 0x60, 0);
	assert_false(captured(0x77));
	assert_false(captured(0x79));
	assert_true(captured(SPY_STREAM_PER_THREAD));
	BEFORE(cuStreamEndCapture_ptsz, DRIVER, 0, P(&graph));
	after(901); /* a failed one has ended, too */
	assert_false(captured(SPY_STREAM_PER_THREAD));
	assert_int_equal(spy_captures, 0);
	BEFORE(cudaStreamBeginCapture, RT13, 0x77, 0);
	after(1);
	assert_false(captured(0x77));
}

/* In the wrong place nothing ends; with its stream a capture does; an event that is gone is outside of all. */
static void test_capture_ends(void **state)
{
	static const struct {
		uint64_t result;
		bool ends;
	} cases[] = {{0, true}, {1, true}, {901, true}, {903, false}, {908, false}};
	uint64_t graph = 0x60;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CALL(cudaStreamBeginCapture, RT13, 0x77, 0);
		BEFORE(cudaStreamEndCapture, RT13, 0x77, P(&graph));
		after(cases[i].result);
		assert_int_equal(captured(0x77), !cases[i].ends);
		CALL(cudaStreamEndCapture, RT13, 0x77, P(&graph));
		assert_int_equal(spy_captures, 0);
	}
	CALL(cudaStreamBeginCapture, RT13, 0x77, 0);
	CALL(cudaEventRecord, RT13, 0xe1, 0x77);
	BEFORE(cudaEventDestroy, RT13, 0xe1);
	after(1); /* it is there still */
	CALL(cudaStreamWaitEvent, RT13, 0x78, 0xe1, 0);
	assert_true(captured(0x78));
	CALL(cudaEventDestroy, RT13, 0xe1);
	CALL(cudaStreamWaitEvent, RT13, 0x79, 0xe1, 0);
	assert_false(captured(0x79));
	BEFORE(cudaStreamDestroy, RT13, 0x77);
	after(1);
	assert_true(captured(0x77));
	CALL(cudaStreamDestroy, RT13, 0x77);
	assert_false(captured(0x77));
	assert_false(captured(0x78)); /* which took part in it */
	assert_int_equal(spy_captures, 0);
}

static void test_capture_overflow(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		CALL(cudaStreamBeginCapture, RT13, 0x1000 + i, 0);
	assert_true(captured(0x1000));
	assert_false(captured(0x1000 + 999));
	for (uint64_t i = 0; i < 1000; i++)
		CALL(cudaStreamEndCapture, RT13, 0x1000 + i, 0);
	assert_int_equal(spy_captures, 0);
}

/* ---- kernels ---- */

#define LAUNCH(function, stream) CALL(cudaLaunchKernel, RT13, function, 1, 1, 1, 1, 0, 0, stream)

static const char *name_of(const struct spy_details *d)
{
	assert_int_equal(d->event, SPY_EV_LAUNCH);
	return d->kernel ? kernel_names[d->kernel] : "";
}

static void test_registered(void **state)
{
	uint64_t kernel = 0x4000, function = 0x5000, last = 0;

	(void)state;
	session_active = false; /* constructors run first */
	CALL(__cudaRegisterFunction, RT13, 0xfa1, 0x100, 1, P("first"));
	CALL(__cudaRegisterFunction, RT13, 0xfa1, 0x200, 1, P("second"));
	for (uint64_t i = 0; i < 10000; i++)
		CALL(__cudaRegisterFunction, RT13, 0xfb0 + i / 100, 0x100000 + i, 1, P("many"));
	CALL(__cudaGetKernel, RT13, P(&kernel), 0x200);
	session_active = true;
	spy_inspect_reset(); /* as a session that begins in a forked child does */
	assert_string_equal(name_of(LAUNCH(0x100, 0)), "first");
	assert_int_equal(the_frame.details.stream, SPY_STREAM_LEGACY);
	BEFORE(cudaLaunchKernel, RT13, 0x100, 1, 1, 1, 1, 0, 0, 0x77);
	assert_string_equal(name_of(&the_frame.details), "first"); /* known beforehand now */
	assert_string_equal(
		name_of(CALL(__cudaLaunchKernel_ptsz, RT13, 0x4000, 1, 1, 1, 1, 0, 0, 0)),
		"second");
	assert_int_equal(the_frame.details.stream, SPY_STREAM_PER_THREAD);
	CALL(cudaGetFuncBySymbol, RT13, P(&function), 0x100);
	assert_int_equal(the_frame.details.object, 0x5000);
	assert_string_equal(
		name_of(CALL(cuLaunchKernel, DRIVER, 0x5000, 1, 1, 1, 1, 1, 1, 0, 0x77)), "first");
	assert_int_equal(the_frame.details.stream, 0x77);
	last = 0x100000 + 9999;
	assert_string_equal(name_of(LAUNCH(last, 0)), "many");
	assert_string_equal(name_of(LAUNCH(0x999, 0)), ""); /* nobody can say */
	LAUNCH(0x100, 0); /* so that the thread has it at hand when it goes */
	CALL(__cudaUnregisterFatBinary, RT13, 0xfa1);
	BEFORE(cudaLaunchKernel, RT13, 0x100, 1, 1, 1, 1, 0, 0, 0);
	assert_string_equal(name_of(&the_frame.details), "");
	assert_string_equal(name_of(LAUNCH(last, 0)), "many"); /* of another binary */
	CALL(__cudaGetKernel, RT13, P(&kernel), last); /* more can be registered behind it */
	CALL(__cudaRegisterFunction, RT13, 0xfc1, 0x100, 1,
	     P("third")); /* another library, same place */
	assert_string_equal(name_of(LAUNCH(0x100, 0)), "third");
	assert_string_equal(name_of(LAUNCH(0x200, 0)), "");
}

static int get_function_name(const char **name, uint64_t handle)
{
	asked++;
	if (handle != 0xf1)
		return 400;
	*name = "asked_function";
	return 0;
}

static int get_kernel_name(const char **name, uint64_t handle)
{
	asked++;
	if (handle != 0xf2)
		return 400;
	*name = "asked_kernel";
	return 0;
}

static void test_named(void **state)
{
	struct layout_launch_config config = {.stream = 0x77};
	struct layout_cu_launch_params many[2] = {{.function = 0xf0, .stream = 0x78}};
	uint64_t out = 0xf0;
	char name[] = "temporary";

	(void)state;
	CALL(cuModuleGetFunction, DRIVER, P(&out), 0x40, P(name));
	name[0] = 'x'; /* names are copied */
	assert_string_equal(name_of(CALL(cuLaunchKernelEx, DRIVER, P(&config), 0xf0)), "temporary");
	assert_int_equal(the_frame.details.stream, 0x77);
	assert_string_equal(
		name_of(CALL(cuLaunchCooperativeKernelMultiDevice, DRIVER, P(many), 2, 0)),
		"temporary");
	assert_int_equal(the_frame.details.stream, 0x78);
	out = 0xf5;
	CALL(cuKernelGetFunction, DRIVER, P(&out), 0xf0);
	assert_int_equal(the_frame.details.object, 0xf5);
	assert_string_equal(name_of(CALL(cuLaunchGridAsync, DRIVER, 0xf5, 1, 1, 0x79)),
			    "temporary");
	assert_int_equal(the_frame.details.stream, 0x79);
	assert_string_equal(name_of(CALL(cuLaunch, DRIVER, 0xf5)), "temporary");
	CALL(cuModuleUnload, DRIVER, 0x40);
	out = 0xf0; /* the same handle for another kernel */
	CALL(cuLibraryGetKernel, DRIVER, P(&out), 0x41, P("another"));
	assert_string_equal(name_of(CALL(cudaLaunchKernelExC, RT13, P(&config), 0xf0, 0)),
			    "another");
	BEFORE(cuLibraryGetKernel, DRIVER, P(&out), 0x41, P("failed"));
	after(500);
	assert_string_equal(name_of(CALL(cuLaunch, DRIVER, 0xf0)), "another");
	real_driver[SPY_FN_cuFuncGetName] = (void *)get_function_name;
	real_driver[SPY_FN_cuKernelGetName] = (void *)get_kernel_name;
	for (int i = 0; i < 3; i++) {
		assert_string_equal(name_of(CALL(cuLaunch, DRIVER, 0xf1)), "asked_function");
		assert_string_equal(name_of(CALL(cuLaunch, DRIVER, 0xf2)), "asked_kernel");
		assert_string_equal(name_of(CALL(cuLaunch, DRIVER, 0xf3)), "");
	}
	assert_int_equal(asked, 1 + 2 + 2); /* once each, also for the one without a name */
	BEFORE(cuLaunch, DRIVER, 0xf4);
	after(700); /* a launch that failed: nothing is asked about its handle */
	assert_int_equal(asked, 5);
	assert_int_equal(CALL(cudaLaunchKernelExC, RT13, 0, 0xf0, 0)->stream, SPY_STREAM_LEGACY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_operations),       TEST(test_capture),    TEST(test_capture_ends),
		TEST(test_capture_overflow), TEST(test_registered), TEST(test_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
