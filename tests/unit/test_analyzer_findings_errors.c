/*
 * tests/unit/test_analyzer_findings_errors.c: errors: ignored ones, those that stay, and captures that
 * break. For each detector a log in which it speaks, and a near twin in which it is silent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "story.h"

/* ---- errors ---------------------------------------------------------------------------------- */

static void test_ignored_error(void **state)
{
	struct story *s = *state;
	json_t *finding;
	int i;

	begin(s);
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "launch cudaLaunchKernel kernel=2 stream=8 caller=0x12 result=9");
	launch(s, 1000, 4000);
	conclude(s);
	finding = only(s, "ignored-error",
		       "1 call returned cudaErrorInvalidConfiguration, first at t = 6.000 us");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "problem");
	assert_true(is_shown(s, finding)); /* although it costs nothing */
	assert_non_null(strstr(s->shown, "1 problem: ignored-error: a call failed, and"));

	begin(s); /* who tunes kernels tries */
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "launch cudaLaunchKernel kernel=2 stream=8 caller=0x12 result=701");
	launch(s, 1000, 4000);
	conclude(s);
	finding = only(s, "ignored-error", "cudaErrorLaunchOutOfResources");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "note");

	begin(s); /* a hint: not all systems take it */
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "call cudaMemPrefetchAsync caller=0x13 result=101");
	launch(s, 1000, 4000);
	conclude(s);
	finding = only(s, "ignored-error", "cudaErrorInvalidDevice");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "note");

	begin(s); /* the program gives up */
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "launch cudaLaunchKernel kernel=2 stream=8 caller=0x12 result=9");
	call(s, 1000, 9000, "memory cudaFree op=free kind=device bytes=4096 caller=0x50");
	conclude(s);
	nothing(s);

	begin(s); /* it gave up in the end, but had gone on before */
	for (i = 0; i < 3; i++) {
		launch(s, 1000, 4000);
		call(s, 1000, 2000,
		     "launch cudaLaunchKernel kernel=2 stream=8 caller=0x12 result=9");
	}
	conclude(s);
	only(s, "ignored-error", "3 calls returned cudaErrorInvalidConfiguration");

	begin(s); /* an answer */
	call(s, 1000, 2000, "call cudaDeviceEnablePeerAccess caller=0x51 result=704");
	launch(s, 1000, 4000);
	conclude(s);
	finding = only(s, "ignored-error", "peer access was enabled already");
	assert_false(is_shown(s, finding));

	begin(s); /* one that was asked for long */
	for (i = 0; i < 40; i++) {
		call(s, 1000, 50000,
		     "memory cudaHostRegister op=register kind=pinned bytes=4096 caller=0x51 "
		     "result=712");
		launch(s, 1000, 4000);
	}
	conclude(s);
	finding =
		only(s, "ignored-error", "40 calls returned cudaErrorHostMemoryAlreadyRegistered");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "note");

	begin(s); /* a library looks for the kernels that it has for this GPU ... */
	call(s, 1000, 2000, "call cuLibraryGetKernel caller=0x51 result=209");
	launch(s, 1000, 4000);
	conclude(s);
	finding = only(s, "ignored-error", "code for this GPU was asked for");
	assert_false(is_shown(s, finding));

	begin(s); /* ... but does not launch what it has not */
	call(s, 1000, 2000, "launch cudaLaunchKernel kernel=2 stream=8 caller=0x12 result=209");
	launch(s, 1000, 4000);
	conclude(s);
	finding = only(s, "ignored-error", "cudaErrorNoKernelImageForDevice");
	assert_true(is_shown(s, finding));

	begin(s); /* memory that another node can reach, which the machine does not allow ... */
	call(s, 1000, 2000, "memory cuMemCreate op=alloc kind=device caller=0x51 result=800");
	launch(s, 1000, 4000);
	conclude(s);
	finding = only(s, "ignored-error", "memory of some kind was asked for");
	assert_false(is_shown(s, finding));

	begin(s); /* ... but not a call that a host function makes */
	call(s, 1000, 2000, "memory cudaMalloc op=alloc kind=device caller=0x51 result=800");
	launch(s, 1000, 4000);
	conclude(s);
	finding = only(s, "ignored-error", "cudaErrorNotPermitted");
	assert_true(is_shown(s, finding));

	begin(s); /* and what is none at all */
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "op cudaStreamQuery stream=8 caller=0x51 result=600");
	launch(s, 1000, 4000);
	conclude(s);
	nothing(s);
}

/* The driver's functions have names of their own for errors. */
static void test_driver_error(void **state)
{
	struct story *s = *state;

	begin(s);
	call(s, 1000, 2000, "op cuStreamWaitEvent stream=8 caller=0x51 result=400");
	launch(s, 1000, 4000);
	conclude(s);
	only(s, "ignored-error", "CUDA_ERROR_INVALID_HANDLE");
	begin(s);
	call(s, 1000, 2000, "op cuStreamWaitEvent stream=8 caller=0x51 result=333");
	launch(s, 1000, 4000);
	conclude(s);
	only(s, "ignored-error", "returned #333");
}

/* An error that stays is one finding, at the place where it showed first. */
static void test_error_that_stays(void **state)
{
	struct story *s = *state;
	json_t *finding;
	int i;

	begin(s);
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "op cudaStreamSynchronize stream=8 caller=0x20 result=700");
	for (i = 0; i < 5; i++) {
		call(s, 1000, 2000,
		     "launch cudaLaunchKernel kernel=1 stream=8 caller=0x10 result=700");
		call(s, 1000, 2000, "op cudaStreamSynchronize stream=8 caller=0x21 result=700");
	}
	conclude(s);
	finding = only(s, "ignored-error", "1 calls here and 10 elsewhere");
	assert_string_equal(json_string_value(json_object_get(finding, "function")),
			    "cudaStreamSynchronize");
	begin(s);
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "op cudaStreamSynchronize stream=8 caller=0x20 result=700");
	conclude(s);
	nothing(s);
}

/* It comes before what only costs time. */
static void test_error_that_stays_is_first(void **state)
{
	struct story *s = *state;
	const json_t *findings;
	int i;

	begin(s);
	for (i = 0; i < 20; i++) {
		launch(s, 1000, 4000);
		call(s, 1000, 5000000,
		     "copy cudaMemcpyAsync stream=8 direction=d2h src=device dst=pageable bytes=4096 "
		     "caller=0x30");
	}
	for (i = 0; i < 5; i++)
		call(s, 1000, 2000, "op cudaStreamSynchronize stream=8 caller=0x20 result=700");
	conclude(s);
	findings = json_object_get(s->root, "findings");
	assert_true(json_array_size(findings) >= 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(findings, 0), "id")),
			    "ignored-error");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(findings, 1), "severity")),
		"problem");
}

static void test_capture_break(void **state)
{
	struct story *s = *state;
	json_t *finding;

	begin(s);
	call(s, 1000, 2000, "op cudaStreamBeginCapture stream=8 caller=0x60");
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "call cudaDeviceSynchronize caller=0x61 result=900");
	call(s, 1000, 2000, "launch cudaLaunchKernel kernel=1 stream=8 caller=0x10 result=901");
	call(s, 1000, 2000, "op cudaStreamEndCapture stream=8 caller=0x62 result=901");
	conclude(s);
	finding = only(s, "capture-break", "cudaErrorStreamCaptureUnsupported");
	says(finding, "2 later calls found the capture broken");
	assert_string_equal(json_string_value(json_object_get(finding, "function")),
			    "cudaDeviceSynchronize");
	assert_true(is_shown(s, finding));

	begin(s); /* nobody knows who did it */
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "op cudaStreamEndCapture stream=8 caller=0x62 result=901");
	conclude(s);
	only(s, "capture-break", "which call broke it is not in the trace");

	begin(s);
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "op cudaStreamEndCapture stream=8 caller=0x62");
	call(s, 1000, 2000, "call cudaDeviceSynchronize caller=0x61");
	conclude(s);
	nothing(s);
}

/* A call in code of which every library is gone by then, as far as is known, was in the last one. */
static void test_in_gone_code(void **state)
{
	static const char *const names[] = {"old", "mid"};
	struct story *s = *state;
	json_t *finding;

	begin(s);
	for (unsigned int i = 0; i < 2; i++)
		fprintf(s->log,
			"%ums module base=0x7f00000000 begin=0x7f00001000 end=0x7f00009000 "
			"span_pages=32 path=\"/lib/lib%s.so\"\n"
			"%ums module begin=0x7f00001000 gone=1\n",
			1 + 19 * i, names[i], 10 + 20 * i);
	s->ns = 60 * MS;
	call(s, 1000, 2000,
	     "launch cudaLaunchKernel kernel=2 stream=8 caller=0x7f00002000 result=9");
	launch(s, 1000, 4000);
	conclude(s);
	finding = only(s, "ignored-error", "1 call returned");
	assert_non_null(strstr(json_string_value(json_object_get(finding, "where")), "libmid.so"));
}

static const char *failures(const struct story *s)
{
	return json_string_value(json_object_get(json_object_get(s->root, "summary"), "failures"));
}

/* Kernels are looked for in a library, so many in vain; then there is work, or none. */
static void tell_lookups(struct story *s, unsigned int in_vain, unsigned int n, bool works)
{
	unsigned int i;

	begin(s);
	launch(s, 1000, 4000);
	for (i = 0; i < n; i++)
		call(s, 1000, 2000, "op cuLibraryGetKernel caller=0x51 object=0x70 result=%d",
		     i + in_vain < n ? 0 : 209);
	if (works)
		launch(s, 1000, 4000);
	conclude(s);
}

/* The head of the report: the last call that failed, which an answer to a question is not; nor is a call that did not fail. */
static void test_last_failure(void **state)
{
	struct story *s = *state;

	begin(s);
	call(s, 1000, 2000, "memory cudaMalloc op=alloc kind=device caller=0x50 result=2");
	call(s, 1000, 2000, "call cudaSetDevice caller=0x52 result=101");
	call(s, 1000, 2000, "call cudaDeviceEnablePeerAccess caller=0x51 result=704");
	launch(s, 1000, 4000);
	conclude(s);
	assert_string_equal(failures(s), "2 of these calls returned an error, the last one "
					 "cudaSetDevice, cudaErrorInvalidDevice");

	begin(s);
	call(s, 1000, 2000, "call cudaDeviceEnablePeerAccess caller=0x51 result=704");
	call(s, 1000, 2000, "call cuInit caller=0x51 result=12345");
	conclude(s);
	assert_string_equal(failures(s), "1 of these calls returned an error: cuInit, #12345");

	begin(s);
	launch(s, 1000, 4000);
	call(s, 1000, 2000, "call cudaDeviceEnablePeerAccess caller=0x51 result=704");
	conclude(s);
	assert_null(failures(s));

	/* NCCL looks for kernels, some of which are for other GPUs; a program whose only kernel is one of those has failed. */
	tell_lookups(s, 1, 2, true);
	assert_null(failures(s));
	tell_lookups(s, 1, 2, false);
	assert_string_equal(failures(s), "1 of these calls returned an error: cuLibraryGetKernel, "
					 "CUDA_ERROR_NO_BINARY_FOR_GPU");
	tell_lookups(s, 2, 3, true);
	assert_string_equal(failures(s), "2 of these calls returned an error, the last one "
					 "cuLibraryGetKernel, CUDA_ERROR_NO_BINARY_FOR_GPU");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY_TEST(test_ignored_error),
		STORY_TEST(test_in_gone_code),
		STORY_TEST(test_driver_error),
		STORY_TEST(test_error_that_stays),
		STORY_TEST(test_error_that_stays_is_first),
		STORY_TEST(test_capture_break),
		STORY_TEST(test_last_failure),
	};

	return RUN_WITH_FINDINGS(tests);
}
