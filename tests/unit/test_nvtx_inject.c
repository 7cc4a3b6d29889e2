/* links: shim/nvtx/inject.c shim/lib/lock.c */
/*
 * tests/unit/test_nvtx_inject.c: the program's NVTX finds the recorder, and behind it the user's tool: what becomes of both
 * variables, and which functions come into the slots of an object, with a tool, without one, with one that fails, and where
 * two objects have different ones.
 */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "nvtx/callbacks.h"
#include "nvtx/inject.h"
#include "nvtx/nvtx_layout.h"
#include "process/options.h"
#include "state/session.h"

#define NEXT "CUDASPY_NVTX_NEXT"

/* ---- the rest of the shim, and the loader ---- */

struct spy_options spy_options;
struct spy_session *spy_session;
static struct spy_session session;
static struct spy_board board;
static bool failed;
nvtx_function *spy_nvtx_next[SPY_NVTX_MODULES][SPY_NVTX_FUNCTIONS];

bool spy_session_failed(void)
{
	return failed;
}

bool spy_session_active(void)
{
	return true;
}

/* Ours: an address for each module, function and mode; some functions are left alone. */
static char ours[SPY_NVTX_MODULES][SPY_NVTX_FUNCTIONS][3];
#define LEFT_ALONE 3

nvtx_function *spy_nvtx_callback(int module, unsigned int function, enum spy_nvtx_mode mode)
{
	return function == LEFT_ALONE ? NULL
				      : (nvtx_function *)(void *)&ours[module][function][mode];
}

/* This library before the C library, or behind it. */
static bool is_early, is_nameless;

int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data)
{
	for (int i = 0; i < 2; i++) {
		bool us = (i == 0) == is_early;
		uintptr_t at = us ? (uintptr_t)&spy_nvtx_is_early & ~(uintptr_t)0xfffff
				  : (uintptr_t)gnu_get_libc_version;
		ElfW(Phdr) segments[2] = {
			{.p_type = PT_NOTE, .p_vaddr = 0, .p_memsz = ~(size_t)0 >> 1},
			{.p_type = PT_LOAD, .p_vaddr = 16, .p_memsz = us ? 0x400000 : 1}};
		struct dl_phdr_info info = {.dlpi_addr = at - 16,
					    .dlpi_name = us && !is_nameless ? "/proc/self/exe" : "",
					    .dlpi_phdr = segments,
					    .dlpi_phnum = 2};

		if (visit(&info, sizeof(info), data))
			return 1;
	}
	return 0;
}

/* The user's tool. */
static int tools_answer, n_asked;
static bool has_tool;
static const char *opened;
static nvtx_function **tool_fills[4]; /* slots that it fills, with these */
static nvtx_function *tool_function;

static int tool_init(nvtx_get_table *get)
{
	(void)get;
	n_asked++;
	for (int i = 0; i < 4; i++)
		if (tool_fills[i])
			*tool_fills[i] = tool_function;
	return tools_answer;
}

void *dlopen(const char *path, int flags)
{
	assert_int_equal(flags, RTLD_LAZY);
	opened = path;
	return has_tool ? &n_asked : NULL;
}

void *dlsym(void *handle, const char *name)
{
	assert_ptr_equal(handle, &n_asked);
	return strcmp(name, NVTX_INIT_NAME) == 0 || strcmp(name, "InitializeInjectionNvtx") == 0
		       ? (void *)tool_init
		       : NULL;
}

static char self[PATH_MAX];

static void arrange(const char *variable, const char *kept)
{
	if (variable)
		setenv(NVTX_TOOL_VARIABLE, variable, 1);
	else
		unsetenv(NVTX_TOOL_VARIABLE);
	if (kept)
		setenv(NEXT, kept, 1);
	else
		unsetenv(NEXT);
	spy_nvtx_arrange();
}

static void expect_variables(const char *variable, const char *kept)
{
	assert_string_equal(getenv(NVTX_TOOL_VARIABLE) ?: "(none)", variable ?: "(none)");
	assert_string_equal(getenv(NEXT) ?: "(none)", kept ?: "(none)");
}

static int begin(void **state)
{
	(void)state;
	spy_session = &session;
	session.board = &board;
	board.nvtx_left = 0;
	spy_options = (struct spy_options){0};
	failed = is_nameless = false;
	is_early = true;
	has_tool = true;
	tools_answer = 1;
	n_asked = 0;
	memset(tool_fills, 0, sizeof(tool_fills));
	memset(spy_nvtx_next, 0, sizeof(spy_nvtx_next));
	assert_non_null(realpath("/proc/self/exe", self));
	return 0;
}

/* ---- the variables ---- */

static void test_arranged(void **state)
{
	static const struct {
		const char *variable, *kept, *next;
	} cases[] = {
		{NULL, NULL, ""},
		{"", NULL, ""},
		{"/x/tool.so", NULL, "/x/tool.so"},
		{"/x/tool.so", "/y/old.so", "/x/tool.so"}, /* what is set now is newer */
		{"/y/libcudaspy.so", "/x/tool.so", "/x/tool.so"}, /* a parent was recorded, too */
		{"libcudaspy.so.1", "/x/tool.so", "/x/tool.so"},
		{"", "/x/tool.so", "/x/tool.so"},
		{NULL, "/x/tool.so", "/x/tool.so"},
		{"/y/libcudaspy.so", NULL, ""},
		{"/libcudaspy.so/tool.so", NULL, "/libcudaspy.so/tool.so"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		arrange(cases[i].variable, cases[i].kept);
		expect_variables(self, cases[i].next);
		assert_true(spy_nvtx_is_early());
	}
}

/* Nothing is to be recorded: as it was before a parent set it. */
static void test_not_wanted(void **state)
{
	(void)state;
	for (int why = 0; why < 3; why++) {
		begin(state);
		failed = why == 0;
		spy_options.nonvtx = why == 1 ? "1" : NULL;
		is_nameless = why == 2;
		arrange("/y/libcudaspy.so", "/x/tool.so");
		expect_variables("/x/tool.so", NULL);
		arrange("/y/libcudaspy.so", "");
		expect_variables(NULL, NULL);
		arrange("/x/tool.so", NULL);
		expect_variables("/x/tool.so", NULL);
		arrange(NULL, NULL);
		expect_variables(NULL, NULL);
	}
}

/* Loaded later it is a tool among others; a path that is too long is none. */
static void test_left_alone(void **state)
{
	char longest[SPY_PATH_MAX + 1];

	(void)state;
	is_early = false;
	arrange("/y/libcudaspy.so", "/x/tool.so");
	expect_variables("/y/libcudaspy.so", "/x/tool.so");
	assert_false(spy_nvtx_is_early());
	is_early = true;
	memset(longest, 'l', sizeof(longest) - 1);
	longest[SPY_PATH_MAX] = '\0';
	arrange(longest, NULL);
	expect_variables(longest, NULL);
	longest[SPY_PATH_MAX - 1] = '\0';
	arrange(longest, NULL);
	expect_variables(self, longest);
}

/* ---- slots ---- */

static nvtx_function
	*functions[2][SPY_NVTX_FUNCTIONS + 2]; /* of two objects: of their module CORE */
static nvtx_function **slots[2][SPY_NVTX_FUNCTIONS + 2];
static nvtx_function **no_slots[SPY_NVTX_FUNCTIONS];
static int object;
static unsigned int n_slots;
static size_t table_bytes;

static int give_module(int module, nvtx_function ****at, unsigned int *n)
{
	*at = module == NVTX_MODULE_CORE    ? slots[object]
	      : module == NVTX_MODULE_CORE2 ? no_slots
					    : NULL;
	*n = module == NVTX_MODULE_CORE ? n_slots : 10;
	return module != NVTX_MODULE_CUDA;
}

static const void *get_table(uint32_t table)
{
	static struct nvtx_callbacks callbacks = {.module = give_module};

	callbacks.bytes = table_bytes;
	assert_int_equal(table, NVTX_TABLE_CALLBACKS);
	return &callbacks;
}

static void programs_own(void)
{
}

static void begin_object(int which)
{
	object = which;
	n_slots = NVTX_CORE_END + 1; /* a later version has more */
	table_bytes = sizeof(struct nvtx_callbacks);
	for (unsigned int i = 0; i < SPY_NVTX_FUNCTIONS + 2; i++) {
		functions[which][i] = programs_own;
		slots[which][i] = &functions[which][i];
	}
	slots[which][5] = NULL; /* a function that it does not have */
}

int InitializeInjectionNvtx2(nvtx_get_table *get);
int InitializeInjectionNvtx(nvtx_get_table *get);

#define OURS(i, mode) ((nvtx_function *)(void *)&ours[NVTX_MODULE_CORE][i][mode])

static void test_without_tool(void **state)
{
	(void)state;
	arrange(NULL, NULL);
	begin_object(0);
	assert_int_equal(InitializeInjectionNvtx2(get_table), 1);
	assert_int_equal(n_asked, 0);
	for (unsigned int i = 1; i < NVTX_CORE_END; i++)
		assert_ptr_equal(functions[0][i], i == LEFT_ALONE || i == 5
							  ? programs_own
							  : OURS(i, SPY_NVTX_ALONE));
	assert_ptr_equal(functions[0][0], programs_own);
	assert_ptr_equal(functions[0][NVTX_CORE_END], programs_own);
	/* An object that has fewer; a table that makes no sense. */
	begin_object(1);
	n_slots = 3;
	assert_int_equal(InitializeInjectionNvtx2(get_table), 1);
	assert_ptr_equal(functions[1][2], OURS(2, SPY_NVTX_ALONE));
	assert_ptr_equal(functions[1][4], programs_own);
	begin_object(1);
	n_slots = 0;
	assert_int_equal(InitializeInjectionNvtx2(get_table), 0);
	begin_object(1);
	table_bytes--;
	assert_int_equal(InitializeInjectionNvtx2(get_table), 0);
	assert_int_equal(InitializeInjectionNvtx2(NULL), 0);
	assert_ptr_equal(functions[1][1], programs_own);
	assert_int_equal(InitializeInjectionNvtx(get_table), 0);
}

/* Both see each call; what the tool does not have, is answered as without it. */
static void test_with_tool(void **state)
{
	(void)state;
	arrange("/x/tool.so", NULL);
	begin_object(0);
	tool_function = (nvtx_function *)(void *)&n_asked;
	tool_fills[0] = &functions[0][1];
	tool_fills[1] = &functions[0][LEFT_ALONE];
	tools_answer = 7;
	assert_int_equal(InitializeInjectionNvtx2(get_table), 7);
	assert_string_equal(opened, "/x/tool.so");
	assert_int_equal(n_asked, 1);
	assert_ptr_equal(functions[0][1], OURS(1, SPY_NVTX_CHAINED));
	assert_ptr_equal(spy_nvtx_next[NVTX_MODULE_CORE][1], tool_function);
	assert_ptr_equal(functions[0][2], OURS(2, SPY_NVTX_MUTE));
	assert_null(spy_nvtx_next[NVTX_MODULE_CORE][2]);
	assert_ptr_equal(functions[0][LEFT_ALONE], tool_function);
	assert_int_equal(board.nvtx_left, 0);
	/* Another object with the same function of the tool's, and with another one: that stays the tool's. */
	begin_object(1);
	tool_fills[0] = &functions[1][1];
	tool_fills[1] = NULL;
	InitializeInjectionNvtx2(get_table);
	assert_ptr_equal(functions[1][1], OURS(1, SPY_NVTX_CHAINED));
	begin_object(1);
	tool_function = (nvtx_function *)(void *)&has_tool;
	InitializeInjectionNvtx2(get_table);
	assert_ptr_equal(functions[1][1], tool_function);
	assert_ptr_equal(functions[1][2], OURS(2, SPY_NVTX_MUTE));
	assert_int_equal(board.nvtx_left, 1);
	assert_int_equal(InitializeInjectionNvtx(get_table), 7);
}

/* One that fails, or is not there, is no tool: what it has put into slots is taken out. */
static void test_failing_tool(void **state)
{
	(void)state;
	arrange("/x/tool.so", NULL);
	begin_object(0);
	tool_function = (nvtx_function *)(void *)&n_asked;
	tool_fills[0] = &functions[0][1];
	tool_fills[1] = &functions[0][LEFT_ALONE];
	tools_answer = 0;
	assert_int_equal(InitializeInjectionNvtx2(get_table), 1);
	assert_ptr_equal(functions[0][1], OURS(1, SPY_NVTX_ALONE));
	assert_ptr_equal(functions[0][LEFT_ALONE], programs_own);
	assert_null(spy_nvtx_next[NVTX_MODULE_CORE][1]);
	has_tool = false;
	begin_object(1);
	assert_int_equal(InitializeInjectionNvtx2(get_table), 1);
	assert_ptr_equal(functions[1][1], OURS(1, SPY_NVTX_ALONE));
}

/* Where NVTX loads this library though nothing is recorded, it passes on to the other tool; a copy of ours is none. */
static void test_passes_on(void **state)
{
	(void)state;
	is_early = false;
	arrange("/y/libcudaspy.so", "/x/tool.so");
	begin_object(0);
	/* Whether it records was said when it was loaded: by the tests before. */
	has_tool = true;
	tools_answer = 5;
	assert_int_equal(InitializeInjectionNvtx(get_table), 5);
	arrange("/y/libcudaspy.so", "/z/libcudaspy.so");
	n_asked = 0;
	assert_int_equal(InitializeInjectionNvtx(get_table), 0);
	assert_int_equal(n_asked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_not_wanted, begin),
		cmocka_unit_test_setup(test_arranged, begin),
		cmocka_unit_test_setup(test_left_alone, begin),
		cmocka_unit_test_setup(test_without_tool, begin),
		cmocka_unit_test_setup(test_with_tool, begin),
		cmocka_unit_test_setup(test_failing_tool, begin),
		cmocka_unit_test_setup(test_passes_on, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
