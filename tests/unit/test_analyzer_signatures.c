/*
 * tests/unit/test_analyzer_signatures.c: which calls are of one kind, and what is known of a kind.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include "cudaspy/function_numbers.h"
#include "expect/signatures.h"
#include "as_record.h"

struct fixture {
	uint32_t functions[SPY_FN_COUNT];
	struct trace trace;
	struct trace_set set;
	struct expect expect;
	struct signature_cache signatures;
};

static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	uint32_t i;

	for (i = 0; i < SPY_FN_COUNT; i++)
		f->functions[i] = i;
	f->trace = (struct trace){.functions = f->functions, .n_functions = SPY_FN_COUNT};
	functions_init(&f->set.functions);
	f->expect.set = &f->set;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	signatures_release(&f->signatures);
	functions_release(&f->set.functions);
	free(f);
	return 0;
}

static struct call_signature *find(struct fixture *f, const union spy_any *raw)
{
	return signature_find(&f->signatures, &f->expect, &f->trace, AS_RECORD(raw));
}

static union spy_any launch(uint32_t kernel, uint64_t stream)
{
	return (union spy_any){
		.launch = {.head = {.event = SPY_EV_LAUNCH, .fn = SPY_FN_cudaLaunchKernel},
			   .kernel_lo = kernel & 0xffff,
			   .kernel_hi = kernel >> 16,
			   .stream = stream}};
}

static union spy_any copy(enum spy_direction direction, enum spy_memory_kind src,
			  enum spy_memory_kind dst, uint64_t bytes)
{
	return (union spy_any){
		.copy = {.head = {.event = SPY_EV_COPY, .fn = SPY_FN_cudaMemcpyAsync},
			 .stream = 0xabcdef123456,
			 .direction = direction,
			 .src_kind = src,
			 .dst_kind = dst,
			 .bytes = bytes}};
}

static union spy_any op(enum spy_fn fn)
{
	return (union spy_any){
		.op = {.head = {.event = SPY_EV_OP, .fn = fn}, .stream = 0x7fffffff0010}};
}

/* Is it of a kind of its own? It is found again in any case. */
static bool is_new(struct fixture *f, const union spy_any *raw)
{
	size_t before = f->signatures.n;
	bool new;

	find(f, raw);
	new = f->signatures.n > before;
	find(f, raw);
	assert_int_equal(f->signatures.n, before + new);
	return new;
}

static void test_same(void **state)
{
	struct fixture *f = *state;
	union spy_any raw = launch(70000, 3);

	assert_true(is_new(f, &raw));
	raw.call_head.time = 5;
	raw.call_head.duration = 6;
	raw.call_head.context = 7;
	raw.launch.caller = 8;
	raw.launch.stream = 9;
	assert_false(is_new(f, &raw));
	raw = copy(SPY_DIR_H2D, SPY_MEM_PINNED, SPY_MEM_DEVICE, 4096);
	assert_true(is_new(f, &raw));
	raw.copy.stream = 10;
	raw.copy.bytes = 5000;
	assert_false(is_new(f, &raw));
}

static void test_other(void **state)
{
	struct fixture *f = *state;
	union spy_any memory = {.memory = {.head = {.event = SPY_EV_MEMORY, .fn = SPY_FN_cudaFree},
					   .op = SPY_MEMOP_FREE}};
	union spy_any raw = launch(70000, 3);

	assert_true(is_new(f, &raw));
	raw.call_head.result = 1;
	assert_true(is_new(f, &raw));
	raw.call_head.device = 1;
	assert_true(is_new(f, &raw));
	raw.call_head.depth = 1;
	assert_true(is_new(f, &raw));
	raw = launch(70000 - 65536, 3);
	assert_true(is_new(f, &raw));
	raw = copy(SPY_DIR_H2D, SPY_MEM_PINNED, SPY_MEM_DEVICE, 4096);
	assert_true(is_new(f, &raw));
	raw.copy.bytes = 0;
	assert_true(is_new(f, &raw));
	raw.copy.captured = true;
	assert_true(is_new(f, &raw));
	raw.copy.dst_kind = SPY_MEM_PAGEABLE;
	assert_true(is_new(f, &raw));
	raw.copy.form = SPY_FORM_PEER;
	assert_true(is_new(f, &raw));
	raw.copy.dst_device = 1;
	assert_true(is_new(f, &raw));
	assert_true(is_new(f, &memory));
	memory.memory.address = 1;
	assert_true(is_new(f, &memory));
	memory.memory.pool = true;
	assert_true(is_new(f, &memory));
	raw = op(SPY_FN_cudaEventRecord);
	assert_true(is_new(f, &raw));
	raw = op(SPY_FN_cudaStreamSynchronize);
	assert_true(is_new(f, &raw));
}

static void test_known(void **state)
{
	struct fixture *f = *state;
	union spy_any raw = launch(1, 3);
	const struct call_signature *signature = find(f, &raw);

	assert_int_equal(signature->contract, SPY_CONTRACT_LAUNCH);
	assert_true(signature->submits && signature->only_submits && signature->is_work &&
		    signature->progress_calls);
	assert_false(signature->waited || signature->host_visible || signature->copy ||
		     signature->failed);
	raw = copy(SPY_DIR_D2H, SPY_MEM_DEVICE, SPY_MEM_PAGEABLE, 4096);
	signature = find(f, &raw);
	assert_true(signature->submits && signature->waited && signature->to_host &&
		    signature->host_visible && signature->blocks_on_pageable);
	assert_false(signature->only_submits);
	raw = copy(SPY_DIR_H2D, SPY_MEM_PAGEABLE, SPY_MEM_DEVICE, 4096);
	signature = find(f, &raw);
	assert_true(signature->submits && !signature->waited && !signature->to_host &&
		    !signature->blocks_on_pageable);
	raw.copy.captured = true;
	assert_false(find(f, &raw)->submits);
	raw = op(SPY_FN_cudaEventRecord);
	signature = find(f, &raw);
	assert_int_equal(signature->does, FUNCTION_RECORDS_EVENT);
	assert_true(signature->submits && !signature->is_work && !signature->only_submits);
	raw = op(SPY_FN_cudaStreamSynchronize);
	signature = find(f, &raw);
	assert_true(signature->waited && !signature->submits);
	assert_int_equal(signature->waits->what, GPU_WAIT_STREAM);
	raw.call_head.result = 700;
	assert_true(find(f, &raw)->failed);
}

static void test_stream(void **state)
{
	struct fixture *f = *state;
	union spy_any all[] = {
		launch(UINT32_MAX, 0xabcdef987654),
		copy(SPY_DIR_H2H, SPY_MEM_MIXED, SPY_MEM_MIXED, 1),
		op(SPY_FN_cudaStreamSynchronize),
		{.memory = {.head = {.event = SPY_EV_MEMORY, .fn = SPY_FN_cudaMallocAsync},
			    .stream = 0xfedcba9876543210}},
		{.call = {.head = {.event = SPY_EV_CALL, .fn = SPY_FN_cudaMalloc}}},
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		assert_int_equal(signature_stream(find(f, &all[i]), AS_RECORD(&all[i])),
				 record_stream(AS_RECORD(&all[i])));
}

/* There may be any number of them: then some are forgotten, and found out again. */
static void test_many(void **state)
{
	struct fixture *f = *state;
	uint32_t kernel;

	for (kernel = 1; kernel < 50000; kernel++) {
		union spy_any raw = launch(kernel, 3);

		assert_int_equal(find(f, &raw)->fn, SPY_FN_cudaLaunchKernel);
		assert_true(f->signatures.n <= 8192);
		raw = op(SPY_FN_cudaStreamSynchronize);
		assert_true(find(f, &raw)->waited);
	}
	signatures_release(&f->signatures);
	assert_int_equal(f->signatures.n, 0);
	test_same(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other, setup, teardown),
		cmocka_unit_test_setup_teardown(test_known, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
