/* links: shim/inspect/inspect.c shim/inspect/inspect_tables.c shim/inspect/inspect_lookup.c shim/inspect/per_thread.c */
/* links: shim/inspect/inspect_copy.c shim/inspect/inspect_memory.c shim/inspect/inspect_stream.c */
/* links: shim/inspect/inspect_launch.c shim/inspect/inspect_context.c shim/inspect/memory.c shim/lib/handle_map.c shim/lib/lock.c */
/*
 * tests/unit/test_inspect_null.c: every function that has an inspector, called with nothing but zeros, and with one
 * argument that is a pointer to zeros or a huge number: CUDA answers that with an error, and the program lives.
 */
#include "cudaspy/function_numbers.h"
#include "inspect_stubs.h"

#define ARGUMENTS 14

static const char *const names[SPY_FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) [SPY_FN_##name] = #name,
#include "cudaspy/entrypoints.def"
};

static uint64_t zeros[1024];
static const char *calling; /* for a debugger */

static void call_with(enum spy_fn fn, unsigned int place, uint64_t value, int result)
{
	static const enum spy_layer layers[] = {SPY_LAYER_DRIVER, SPY_LAYER_RT11, SPY_LAYER_RT12,
						SPY_LAYER_RT13};
	uint64_t words[ARGUMENTS] = {0};

	if (place < ARGUMENTS)
		words[place] = value;
	calling = names[fn];
	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		before(fn, layers[i], ARGUMENTS, words);
		after(result);
		memset(zeros, 0, sizeof(zeros));
	}
}

static void test_zeros(void **state)
{
	unsigned int n = 0;

	(void)state;
	for (int fn = 0; fn < SPY_FN_COUNT; fn++) {
		if (!inspector_of[fn])
			continue;
		n++;
		for (int result = 0; result < 2; result++) {
			call_with(fn, ARGUMENTS, 0, result);
			for (unsigned int place = 0; place < ARGUMENTS; place++)
				call_with(fn, place, P(zeros), result);
		}
	}
	assert_true(n > 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_zeros)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
