/* links: shim/process/options.c shim/entry/selection.c shim/window/plan.c shim/process/text.c shim/process/heap.c */
/*
 * tests/unit/test_option_values.c: what the environment's variables come to: numbers, times, bounds, patterns of functions, and
 * what is said of those that are wrong; and texts that grow.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "cudaspy/function_numbers.h"
#include "entry/selection.h"
#include "hook/slots.h"
#include "process/folder.h"
#include "process/heap.h"
#include "process/options.h"
#include "process/text.h"
#include "record/message.h"
#include "record/notes.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

#define MIB ((uint64_t)1 << 20)

/* ---- the rest of the shim ---- */

const char *const spy_names[SPY_FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) [SPY_FN_##name] = #name,
#include "cudaspy/entrypoints.def"
};

static char chosen[SPY_FN_COUNT]; /* 'c' counted, 't' traced, 'b' both, in that order */
static char message[512], note[512];
static int group_error;

void spy_slots_count(uint16_t fn)
{
	assert_int_equal(chosen[fn], 0);
	chosen[fn] = 'c';
}

void spy_slots_trace(uint16_t fn)
{
	chosen[fn] = chosen[fn] ? 'b' : 't';
}

void spy_message(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
}

void spy_note(enum spy_note what, const char *format, ...)
{
	va_list args;

	assert_int_equal(what, SPY_NOTE_OTHER);
	va_start(args, format);
	vsnprintf(note, sizeof(note), format, args);
	va_end(args);
}

int spy_folder_group_error(void)
{
	return group_error;
}

static int begin(void **state)
{
	(void)state;
	begin_session();
#define OPTION(name, flag, variable, argument, text) unsetenv(variable);
#include "cudaspy/options.def"
	spy_options_read();
	memset(chosen, 0, sizeof(chosen));
	message[0] = note[0] = '\0';
	group_error = 0;
	return 0;
}

static void set(const char *variable, const char *value)
{
	setenv(variable, value, 1);
	spy_options_read();
}

/* ---- the environment ---- */

static void test_environment(void **state)
{
	(void)state;
#define OPTION(name, flag, variable, argument, text) assert_null(spy_options.name);
#include "cudaspy/options.def"
#define OPTION(name, flag, variable, argument, text) \
	set(variable, "x"); \
	assert_string_equal(spy_options.name, "x"); \
	set(variable, ""); \
	assert_null(spy_options.name);
#include "cudaspy/options.def"
	/* A longer name, or a shorter one, is another variable. */
	set("CUDASPY_KEEPS", "7");
	set("CUDASPY_KEE", "7");
	assert_null(spy_options.keep);
	unsetenv("CUDASPY_KEEPS");
	unsetenv("CUDASPY_KEE");
}

/* "0" switches these off; to the others it is a value. */
static void test_switches(void **state)
{
	int off = 0, values = 0;

	(void)state;
#define OPTION(name, flag, variable, argument, text) \
	set(variable, "0"); \
	off += !spy_options.name; \
	values += spy_options.name && strcmp(spy_options.name, "0") == 0; \
	set(variable, "00"); \
	assert_non_null(spy_options.name); \
	unsetenv(variable);
#include "cudaspy/options.def"
	assert_int_equal(off, 12);
	set("CUDASPY_QUIET", "0");
	set("CUDASPY_SAMPLE", "0");
	set("CUDASPY_MEASURE_COST", "0");
	assert_null(spy_options.quiet);
	assert_string_equal(spy_options.sample, "0");
	assert_string_equal(spy_options.measure_cost, "0");
	assert_true(values > 0);
}

/* ---- numbers ---- */

static void test_numbers(void **state)
{
	static const struct {
		const char *text;
		bool is;
		unsigned long long number;
	} cases[] = {{"0", true, 0},
		     {"7", true, 7},
		     {"99", true, 99},
		     {"100", false, 0},
		     {"-1", false, 0},
		     {" 1", false, 0},
		     {"1 ", false, 0},
		     {"1x", false, 0},
		     {"", false, 0},
		     {NULL, false, 0},
		     {"+1", false, 0},
		     {"007", true, 7},
		     {"99999999999999999999999", false, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned long long number = 0;

		assert_int_equal(spy_options_number(cases[i].text, 100, &number), cases[i].is);
		if (cases[i].is)
			assert_int_equal(number, cases[i].number);
	}
	assert_int_equal(spy_options_mib("1048576"), 1048576);
	assert_int_equal(spy_options_mib("1099511627775"), 1099511627775);
	assert_int_equal(spy_options_mib("1099511627776"), 0);
	assert_int_equal(spy_options_mib("x"), 0);
	assert_int_equal(spy_options_time("2m"), 120000000000);
	assert_int_equal(spy_options_time("2"), 0);
	assert_int_equal(spy_options_time(NULL), 0);
	assert_int_equal(spy_options_group(), SPY_NO_GROUP);
	set("CUDASPY_GROUP", "4294967294");
	assert_int_equal(spy_options_group(), 4294967294);
	set("CUDASPY_GROUP", "4294967295"); /* that means none */
	assert_int_equal(spy_options_group(), SPY_NO_GROUP);
	set("CUDASPY_GROUP", "0");
	assert_int_equal(spy_options_group(), 0);
}

/* A twentieth of the file system, a GiB at most, or what is asked for. */
static void test_floor(void **state)
{
	(void)state;
	assert_int_equal(spy_options_floor_bytes(2000 * MIB), 100 * MIB);
	assert_int_equal(spy_options_floor_bytes(20480 * MIB - 20), 1024 * MIB - 1);
	assert_int_equal(spy_options_floor_bytes(20480 * MIB), 1024 * MIB);
	assert_int_equal(spy_options_floor_bytes(100000 * MIB), 1024 * MIB);
	set("CUDASPY_FLOOR", "0");
	assert_int_equal(spy_options_floor_bytes(2000 * MIB), 0);
	set("CUDASPY_FLOOR", "5000");
	assert_int_equal(spy_options_floor_bytes(2000 * MIB), 5000 * MIB);
	set("CUDASPY_FLOOR", "much");
	assert_int_equal(spy_options_floor_bytes(2000 * MIB), 100 * MIB);
}

static void test_parts(void **state)
{
	static const struct {
		const char *keep, *size, *every, *keep_for;
		struct spy_part_options parts;
		bool are, packets; /* the oldest packets are deleted */
	} cases[] = {
		{NULL, NULL, NULL, NULL, {0}, false, false},
		{"80", NULL, NULL, NULL, {0}, false, true},
		{NULL, "16", NULL, NULL, {16 * MIB, 0, 0}, true, false},
		{"80", "16", NULL, NULL, {16 * MIB, 0, 0}, true, false},
		{"80",
		 "60",
		 NULL,
		 NULL,
		 {40 * MIB, 0, 0},
		 true,
		 false}, /* half of what is kept at most */
		{"80", NULL, "10m", NULL, {10 * MIB, 600000000000, 0}, true, false}, /* an eighth */
		{NULL, NULL, "10m", NULL, {0, 600000000000, 0}, true, false},
		{NULL, NULL, NULL, "80s", {0, 10000000000, 80000000000}, true, false},
		{NULL, NULL, "1s", "80s", {0, 1000000000, 80000000000}, true, false},
		{"80", NULL, NULL, "80s", {10 * MIB, 10000000000, 80000000000}, true, false},
		{"80", "x", NULL, NULL, {0}, false, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct spy_part_options parts;

		begin(state);
		set("CUDASPY_KEEP", cases[i].keep ?: "");
		set("CUDASPY_ROTATE_SIZE", cases[i].size ?: "");
		set("CUDASPY_ROTATE_EVERY", cases[i].every ?: "");
		set("CUDASPY_KEEP_FOR", cases[i].keep_for ?: "");
		assert_int_equal(spy_options_keep_bytes(), cases[i].keep ? 80 * MIB : 0);
		assert_int_equal(spy_options_parts(&parts), cases[i].are);
		assert_int_equal(parts.bytes, cases[i].parts.bytes);
		assert_int_equal(parts.ns, cases[i].parts.ns);
		assert_int_equal(parts.keep_ns, cases[i].parts.keep_ns);
		assert_int_equal(spy_options_keeps_packets(), cases[i].packets);
	}
}

/* ---- functions ---- */

static int n_chosen(char how)
{
	int n = 0;

	for (int fn = 0; fn < SPY_FN_COUNT; fn++)
		n += chosen[fn] == how;
	return n;
}

static void test_selection(void **state)
{
	char longest[300] = "";

	(void)state;
	spy_options_select();
	assert_int_equal(n_chosen(0), SPY_FN_COUNT);
	set("CUDASPY_COUNT", "cudaMalloc,,cuInit");
	set("CUDASPY_TRACE", "cudaMallo?,cudaFree");
	spy_options_select();
	assert_int_equal(chosen[SPY_FN_cudaMalloc], 'b');
	assert_int_equal(chosen[SPY_FN_cuInit], 'c');
	assert_int_equal(chosen[SPY_FN_cudaFree], 't');
	assert_int_equal(n_chosen(0), SPY_FN_COUNT - 3);
	/* A pattern, and one that is too long for any name. */
	memset(chosen, 0, sizeof(chosen));
	set("CUDASPY_COUNT", "");
	memset(longest, '*', 127);
	set("CUDASPY_TRACE", longest);
	spy_options_select();
	assert_int_equal(n_chosen('t'), SPY_FN_COUNT);
	memset(chosen, 0, sizeof(chosen));
	memset(longest, '*', 128);
	strcat(longest, ",cu*Launch*");
	set("CUDASPY_TRACE", longest);
	spy_options_select();
	assert_int_equal(chosen[SPY_FN_cuLaunchKernel], 't');
	assert_int_equal(chosen[SPY_FN_cudaLaunchKernel], 't');
	assert_int_equal(chosen[SPY_FN_cudaMalloc], 0);
	assert_true(n_chosen('t') < SPY_FN_COUNT / 2);
}

/* ---- what is wrong ---- */

static void test_warnings(void **state)
{
	static const struct {
		const char *variable, *right, *wrong, *said;
	} cases[] = {
		{"CUDASPY_KEEP", "1", "0",
		 "CUDASPY_KEEP=0 is no number of MiB: the trace is not bounded"},
		{"CUDASPY_FLOOR", "0", "x", "CUDASPY_FLOOR=x is no number of MiB: 5 % stay free"},
		{"CUDASPY_FLOOR", "1099511627775", "1099511627776",
		 "CUDASPY_FLOOR=1099511627776 is no"},
		{"CUDASPY_ROTATE_SIZE", "1", "0",
		 "CUDASPY_ROTATE_SIZE=0 is no number of MiB: parts are not bounded"},
		{"CUDASPY_ROTATE_EVERY", "1m", "1", "CUDASPY_ROTATE_EVERY=1 is no time"},
		{"CUDASPY_KEEP_FOR", "1m", "0s", "CUDASPY_KEEP_FOR=0s is no time"},
		{"CUDASPY_GROUP", "0", "staff", "CUDASPY_GROUP=staff is no group's number"},
		{"CUDASPY_CLOCK", "monotonic", "tsc", "CUDASPY_CLOCK=tsc: the only clock"},
		{"CUDASPY_SAMPLE", "1000", "1001",
		 "CUDASPY_SAMPLE=1001 is no number from 0 to 1000: threads are looked at 100 times a second"},
		{"CUDASPY_DELAY", "1s", "1", "CUDASPY_DELAY=1 is no time"},
		{"CUDASPY_TRACE", "cuda*,cuInit", "cuInit,cudaNothing*,x",
		 "CUDASPY_TRACE: there is no function 'cudaNothing*'"},
		{"CUDASPY_COUNT", ",", "cuInit,,x", "CUDASPY_COUNT: there is no function 'x'"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		begin(state);
		set(cases[i].variable, cases[i].right);
		spy_options_warn();
		assert_string_equal(message, "");
		assert_string_equal(note, "");
		set(cases[i].variable, cases[i].wrong);
		spy_options_warn();
		assert_memory_equal(message, cases[i].said, strlen(cases[i].said));
		assert_string_equal(note, message);
	}
	begin(state);
	set("CUDASPY_GROUP", "7");
	group_error = EPERM;
	spy_options_warn();
	assert_string_equal(
		message,
		"CUDASPY_GROUP=7: Operation not permitted; only its owner may read the trace");
	assert_string_equal(note, "");
}

/* ---- texts ---- */

static void test_text(void **state)
{
	static char expected[100000];
	struct spy_text text = {0};
	size_t length = 0;

	(void)state;
	for (int i = 0; length < 90000; i++) {
		length += (size_t)snprintf(expected + length, sizeof(expected) - length, "%d %s;",
					   i, "text");
		spy_text_print(&text, "%d %s", i, "text");
		spy_text_add(&text, ";more", 1);
		assert_int_equal(text.length, length);
		assert_int_equal(text.chars[length], '\0');
		assert_true(text.room > length);
	}
	assert_string_equal(text.chars, expected);
	assert_false(text.failed);
	/* What it had has been given back, and goes to others. */
	assert_int_equal(board.heap, text.room);
	spy_text_free(&text);
	assert_int_equal(board.heap, 0);
	assert_null(text.chars);
	assert_int_equal(text.length + text.room, 0);
	/* To the last character of its room. */
	memset(expected, 'x', 4096);
	spy_text_add(&text, expected, 4095);
	assert_int_equal(text.room, 4096);
	spy_text_add(&text, "y", 1);
	assert_int_equal(text.room, 8192);
	assert_int_equal(text.chars[4095], 'y');
	/* No memory: what there is stays, and no more comes to it, though it would fit. */
	assert_non_null(spy_heap_take(SPY_HEAP_MOST / 2));
	spy_text_add(&text, expected, 20 << 20);
	assert_true(text.failed);
	assert_int_equal(text.length, 4096);
	spy_text_print(&text, "z");
	assert_int_equal(text.length, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_environment, begin),
		cmocka_unit_test_setup(test_switches, begin),
		cmocka_unit_test_setup(test_numbers, begin),
		cmocka_unit_test_setup(test_floor, begin),
		cmocka_unit_test(test_parts),
		cmocka_unit_test_setup(test_selection, begin),
		cmocka_unit_test(test_warnings),
		cmocka_unit_test_setup(test_text, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
