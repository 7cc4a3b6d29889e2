/* links: shim/inspect/inspect.c shim/inspect/inspect_tables.c shim/inspect/inspect_lookup.c shim/inspect/per_thread.c */
/* links: shim/inspect/inspect_copy.c shim/inspect/inspect_memory.c shim/inspect/inspect_stream.c */
/* links: shim/inspect/inspect_launch.c shim/inspect/inspect_context.c shim/inspect/memory.c shim/lib/handle_map.c shim/lib/lock.c */
/*
 * tests/unit/test_entrypoints.c: the list of entry points: its order, its limits, and that it has
 * every function that the toolkit and the driver of this machine export.
 */
#include <glob.h>
#include "cudaspy/function_numbers.h"
#include "inspect_stubs.h"

static const struct row {
	const char *name;
	int layer, record, inspector;
} rows[] = {
#define DRIVER SPY_LAYER_DRIVER
#define RT SPY_LAYER_RT
#define RT11 SPY_LAYER_RT11
#define RT12 SPY_LAYER_RT12
#define RT13 SPY_LAYER_RT13
#define RT11_12 SPY_LAYER_RT11_12
#define RT12_13 SPY_LAYER_RT12_13
#define ENTRY(name, layer, record, contract, inspector) \
	{#name, layer, SPY_##record, SPY_INSPECTOR_##inspector},
#include "cudaspy/entrypoints.def"
};

static const struct row *row_of(const char *name)
{
	for (int i = 0; i < SPY_FN_COUNT; i++) {
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	}
	return NULL;
}

static void test_order(void **state)
{
	int drivers = 0;

	(void)state;
	for (int i = 1; i < SPY_FN_COUNT; i++) {
		bool driver = rows[i].layer == SPY_LAYER_DRIVER;

		drivers += driver;
		if (driver == (rows[i - 1].layer == SPY_LAYER_DRIVER) &&
		    strcmp(rows[i - 1].name, rows[i].name) >= 0)
			fail_msg("%s comes before %s", rows[i - 1].name, rows[i].name);
		if (!driver && drivers)
			fail_msg("%s comes after the driver's", rows[i].name);
		if (driver == (!strncmp(rows[i].name, "cuda", 4) || rows[i].name[0] == '_'))
			fail_msg("%s is in the wrong part", rows[i].name);
	}
}

static void test_limits(void **state)
{
	int counted = 0;

	(void)state;
	for (int i = 0; i < SPY_FN_COUNT; i++)
		counted += rows[i].record == SPY_COUNTED || rows[i].record == SPY_INSTANT;
	print_message("%d rows, %d of them counted\n", SPY_FN_COUNT, counted);
	assert_true(counted <= SPY_BOARD_COUNTERS);
	assert_true(SPY_FN_COUNT < UINT16_MAX);
}

/* Arguments in the largest place a row names, in bytes of stack: what the trampoline has to hand on. */
static void test_places(void **state)
{
	int largest = 0;

	(void)state;
	for (int i = 1; i < SPY_INSPECTOR_COUNT; i++) {
		const struct spy_inspector *inspector = &spy_inspectors[i];

		assert_true(inspector->before || inspector->after);
		for (int k = 0; k < 8; k++) {
			assert_in_range(inspector->at[k] + 1, 0, 32);
			largest = inspector->at[k] > largest ? inspector->at[k] : largest;
		}
	}
	assert_in_range(largest, 6, 12); /* cudaMemset3D: 56 bytes, seven words, 6 to 12 */
}

/* Every row of inspectors.def is some entry point's. */
static void test_inspectors_are_used(void **state)
{
	(void)state;
	for (int i = 1; i < SPY_INSPECTOR_COUNT; i++) {
		bool used = false;

		for (int k = 0; k < SPY_FN_COUNT; k++)
			used |= rows[k].inspector == i;
		if (!used)
			fail_msg("no entry point has the inspector %s", spy_inspectors[i].name);
	}
}

static void test_per_thread_names(void **state)
{
	(void)state;
	assert_true(spy_fn_per_thread[SPY_FN_cudaMemcpyAsync_ptsz]);
	assert_true(spy_fn_per_thread[SPY_FN_cuMemcpyHtoD_v2_ptds]);
	assert_false(spy_fn_per_thread[SPY_FN_cudaMemcpyAsync]);
	assert_false(spy_fn_per_thread[SPY_FN_cuInit]);
	for (int i = 0; i < SPY_FN_COUNT; i++) {
		const char *pt = strstr(rows[i].name, "_pt");

		assert_int_equal(spy_fn_per_thread[i], pt && strlen(pt) == 5);
	}
}

/* A runtime's function inspected in different ways by its two flavours would be a slip. */
static void test_flavours_agree(void **state)
{
	(void)state;
	for (int i = 0; i < SPY_FN_COUNT; i++) {
		char base[128];
		const struct row *row;

		if (!spy_fn_per_thread[i])
			continue;
		snprintf(base, sizeof(base), "%.*s", (int)strlen(rows[i].name) - 5, rows[i].name);
		row = row_of(base);
		if (row && (row->inspector != rows[i].inspector || row->record != rows[i].record))
			fail_msg("%s and %s differ", base, rows[i].name);
	}
}

/* ---- against the libraries of this machine ---- */

struct library {
	const char *pattern;
	int layer; /* of its functions, -1: any of the runtime's */
};

static const struct library libraries[] = {
	{"/usr/local/cuda*/lib64/libcudart.so.13", SPY_LAYER_RT13},
	{"/usr/local/cuda*/lib64/libcudart.so.12", SPY_LAYER_RT12},
	{"/usr/local/cuda*/lib64/libcudart.so.11.0", SPY_LAYER_RT11},
	{"/usr/local/cuda*/lib64/stubs/libcuda.so", SPY_LAYER_DRIVER},
	{"/usr/lib/x86_64-linux-gnu/libcudart.so.1[123]*", -1},
	{"/usr/lib/x86_64-linux-gnu/libcuda.so.1", SPY_LAYER_DRIVER},
	{"/usr/local/nvidia/lib64/libcuda.so.1", SPY_LAYER_DRIVER},
};

/* cudbg* are the debugger's. */
static bool is_cuda(const char *name)
{
	if (!strncmp(name, "cudbg", 5))
		return false;
	return !strncmp(name, "cu", 2) || !strncmp(name, "__cuda", 6);
}

/* Checks what one library exports; marks the rows it has. */
static int check_library(const char *path, int layer, bool *has)
{
	char command[512], line[512], name[256], type;
	int known = 0, unknown = 0;
	FILE *nm;

	snprintf(command, sizeof(command), "nm -D --defined-only '%s' 2>/dev/null", path);
	nm = popen(command, "r");
	while (nm && fgets(line, sizeof(line), nm)) {
		const struct row *row;

		if (sscanf(line, "%*s %c %255[^@ \n]", &type, name) != 2 || type == 'A' ||
		    !is_cuda(name))
			continue;
		row = row_of(name);
		if (row && (layer < 0 ? row->layer > 0
			    : layer   ? row->layer & layer
				      : !row->layer)) {
			has[row - rows] = true;
			known++;
			continue;
		}
		print_message("%s exports %s, which has no row of that library\n", path, name);
		unknown++;
	}
	if (nm)
		pclose(nm);
	print_message("%s: %d functions\n", path, known + unknown);
	assert_int_equal(unknown, 0);
	return known;
}

static void test_exports(void **state)
{
	static bool has[SPY_FN_COUNT];
	int checked = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++) {
		glob_t found;

		if (glob(libraries[i].pattern, 0, NULL, &found))
			continue;
		memset(has, 0, sizeof(has));
		for (size_t k = 0; k < found.gl_pathc; k++)
			checked += check_library(found.gl_pathv[k], libraries[i].layer, has) > 0;
		globfree(&found);
		/* a runtime of 13.0 has all rows of its generation; older toolkits may lack some */
		for (int k = 0; i == 0 && k < SPY_FN_COUNT; k++) {
			if (rows[k].layer & SPY_LAYER_RT13 && !has[k])
				fail_msg("libcudart.so.13 does not export %s", rows[k].name);
		}
	}
	if (!checked) {
		print_message("no CUDA library here: nothing to hold the list against\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_order),          TEST(test_limits),
		TEST(test_places),         TEST(test_inspectors_are_used),
		TEST(test_flavours_agree), TEST(test_per_thread_names),
		TEST(test_exports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
