/*
 * tests/unit/test_analyzer_cold.c: of which kernel, contract and function a call is the first one on a device, and that
 * the short question (cold_marks_know) is never answered with yes for such a call.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "expect/cold.h"
#include "as_record.h"

/* A call; kernel 0: no launch. */
static union spy_any call_on(uint8_t device, uint32_t kernel)
{
	union spy_any raw = {.call_head = {.device = device}};

	raw.other.event = kernel ? SPY_EV_LAUNCH : SPY_EV_CALL;
	if (kernel) {
		raw.launch.kernel_lo = (uint16_t)kernel;
		raw.launch.kernel_hi = (uint16_t)(kernel >> 16);
	}
	return raw;
}

struct fixture {
	struct cold_marks marks;
	uint32_t value;
};

/* What begins with it; and what it says that it knows agrees with that. */
static enum cold_kind first(struct fixture *f, uint8_t device, uint32_t kernel, uint32_t fn,
			    uint8_t contract)
{
	union spy_any raw = call_on(device, kernel);
	bool known = cold_marks_know(&f->marks, AS_RECORD(&raw), contract);
	enum cold_kind kind;

	f->value = UINT32_MAX;
	kind = cold_first(&f->marks, AS_RECORD(&raw), fn, contract, &f->value);
	if (known)
		assert_int_equal(kind, COLD_NOT);
	return kind;
}

static bool knows(const struct fixture *f, uint8_t device, uint32_t kernel, uint8_t contract)
{
	union spy_any raw = call_on(device, kernel);

	return cold_marks_know(&f->marks, AS_RECORD(&raw), contract);
}

static void test_kernels(void **state)
{
	static const uint32_t kernels[] = {
		1, 2, COLD_PAGE - 1, COLD_PAGE, COLD_PAGE + 1, COLD_KERNELS - 1};
	struct fixture f = {0};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(kernels); i++) {
		assert_false(knows(&f, 0, kernels[i], SPY_CONTRACT_LAUNCH));
		assert_int_equal(first(&f, 0, kernels[i], 5, SPY_CONTRACT_LAUNCH), COLD_KERNEL);
		assert_int_equal(f.value, kernels[i]);
		assert_true(knows(&f, 0, kernels[i], SPY_CONTRACT_LAUNCH));
		assert_int_equal(first(&f, 0, kernels[i], 6, SPY_CONTRACT_LAUNCH), COLD_NOT);
		/* On another device it is another one. */
		assert_int_equal(first(&f, 1, kernels[i], 5, SPY_CONTRACT_LAUNCH), COLD_KERNEL);
		assert_int_equal(first(&f, 1, kernels[i], 5, SPY_CONTRACT_LAUNCH), COLD_NOT);
	}
	/* Numbers that no kernel has. */
	for (i = 0; i < 2; i++) {
		assert_int_equal(first(&f, 0, COLD_KERNELS + (uint32_t)i, 5, SPY_CONTRACT_LAUNCH),
				 COLD_NOT);
		assert_false(knows(&f, 0, COLD_KERNELS + (uint32_t)i, SPY_CONTRACT_LAUNCH));
	}
	cold_marks_forget(&f.marks);
	assert_false(knows(&f, 0, 2, SPY_CONTRACT_LAUNCH));
	assert_int_equal(first(&f, 0, 2, 5, SPY_CONTRACT_LAUNCH), COLD_KERNEL);
	assert_int_equal(first(&f, 0, 2, 5, SPY_CONTRACT_LAUNCH), COLD_NOT);
	cold_marks_release(&f.marks);
}

/* Each has its own mark up to the 63rd; those behind it share one. */
static void test_devices(void **state)
{
	struct fixture f = {0};
	unsigned int device;

	(void)state;
	for (device = 0; device < 64; device++) {
		assert_int_equal(first(&f, (uint8_t)device, 7, 5, SPY_CONTRACT_LAUNCH),
				 COLD_KERNEL);
		assert_true(knows(&f, (uint8_t)device, 7, SPY_CONTRACT_LAUNCH));
	}
	assert_int_equal(first(&f, 64, 7, 5, SPY_CONTRACT_LAUNCH), COLD_NOT);
	assert_true(knows(&f, 64, 7, SPY_CONTRACT_LAUNCH));
	assert_int_equal(first(&f, 255, 7, 5, SPY_CONTRACT_LAUNCH), COLD_NOT);
	cold_marks_release(&f.marks);
	f = (struct fixture){0};
	assert_int_equal(first(&f, 62, 7, 5, SPY_CONTRACT_LAUNCH), COLD_KERNEL);
	assert_int_equal(first(&f, 100, 7, 5, SPY_CONTRACT_LAUNCH), COLD_KERNEL);
	assert_int_equal(first(&f, 63, 7, 5, SPY_CONTRACT_LAUNCH), COLD_NOT);
	assert_true(knows(&f, 100, 7, SPY_CONTRACT_LAUNCH));
	assert_true(knows(&f, 63, 7, SPY_CONTRACT_LAUNCH));
	cold_marks_release(&f.marks);
}

/* The first of each contract on each device, a launch of a kernel without a number among them. */
static void test_contracts(void **state)
{
	struct fixture f = {0};
	uint8_t contract;

	(void)state;
	for (contract = 0; contract < SPY_CONTRACT_COUNT; contract++) {
		if (contract == SPY_CONTRACT_INIT)
			continue;
		assert_false(knows(&f, 3, 0, contract));
		assert_int_equal(first(&f, 3, 0, 5, contract), COLD_CONTRACT);
		assert_int_equal(f.value, contract);
		assert_true(knows(&f, 3, 0, contract));
		assert_false(knows(&f, 4, 0, contract));
		assert_int_equal(first(&f, 3, 0, 5, contract), COLD_NOT);
		assert_int_equal(first(&f, 255, 0, 5, contract), COLD_CONTRACT);
	}
	cold_marks_forget(&f.marks);
	assert_int_equal(first(&f, 3, 0, 5, SPY_CONTRACT_LAUNCH), COLD_CONTRACT);
	cold_marks_release(&f.marks);
}

/* What starts a device up does so function by function, and is always asked about. */
static void test_starts(void **state)
{
	struct fixture f = {0};
	int round;

	(void)state;
	for (round = 0; round < 2; round++) {
		assert_int_equal(first(&f, 0, 0, 5, SPY_CONTRACT_INIT), COLD_START);
		assert_int_equal(f.value, 5);
		assert_false(knows(&f, 0, 0, SPY_CONTRACT_INIT));
		assert_int_equal(first(&f, 0, 0, 5, SPY_CONTRACT_INIT), COLD_NOT);
		assert_int_equal(first(&f, 1, 0, 5, SPY_CONTRACT_INIT), COLD_START);
		assert_int_equal(first(&f, 0, 0, 6, SPY_CONTRACT_INIT), COLD_START);
		assert_int_equal(first(&f, 0, 0, 5, SPY_CONTRACT_INIT), COLD_NOT);
		assert_int_equal(first(&f, 0, 0, 6, SPY_CONTRACT_INIT), COLD_NOT);
		cold_marks_forget(&f.marks);
	}
	cold_marks_release(&f.marks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_contracts),
		cmocka_unit_test(test_starts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
