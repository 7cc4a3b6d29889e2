/* links: shim/nccl/arrange.c */
/*
 * tests/unit/test_nccl_arrange.c: NCCL finds the recorder, unless the user has a profiler for it: in the environment, in a
 * file that NCCL reads, where it looks for a library, or in the program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "nccl/operations.h"
#include "nccl/profiler.h"
#include "nvtx/inject.h"
#include "process/options.h"
#include "scratch.h"
#include "state/session.h"

#define VARIABLE "NCCL_PROFILER_PLUGIN"

struct spy_options spy_options;
bool spy_nccl_serving;
static bool early, failed, has_other;
static int state_said;
static char text_said[1200];
static char *dir;

bool spy_nvtx_is_early(void)
{
	return early;
}

bool spy_session_failed(void)
{
	return failed;
}

bool spy_nccl_has_other(void)
{
	return has_other;
}

void spy_nccl_state(uint16_t state, const char *text)
{
	state_said = state;
	snprintf(text_said, sizeof(text_said), "%s", text);
}

static int begin(void **state)
{
	(void)state;
	dir = scratch_make();
	setenv("HOME", dir, 1);
	unsetenv(VARIABLE);
	unsetenv("NCCL_CONF_FILE");
	unsetenv("LD_LIBRARY_PATH");
	spy_options = (struct spy_options){0};
	spy_nccl_serving = failed = has_other = false;
	early = true;
	state_said = -1;
	return 0;
}

static int end(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

static const char *path_of(const char *name)
{
	static char path[1024];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void make_file(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "w");

	fputs(text, file);
	fclose(file);
}

static void expect_serving(void)
{
	spy_nccl_serving = false;
	state_said = -1;
	spy_nccl_arrange();
	assert_true(spy_nccl_serving);
	assert_int_equal(state_said, -1);
	assert_string_equal(getenv(VARIABLE), "STATIC_PLUGIN");
}

static void expect_taken(const char *text)
{
	const char *before = getenv(VARIABLE);

	spy_nccl_serving = false;
	state_said = -1;
	spy_nccl_arrange();
	assert_false(spy_nccl_serving);
	assert_int_equal(state_said, SPY_NCCL_TAKEN);
	assert_string_equal(text_said, text);
	assert_ptr_equal(getenv(VARIABLE), before);
}

static void test_serves(void **state)
{
	(void)state;
	expect_serving();
	/* Inherited from a parent, which has looked: nothing else is asked. */
	make_file(".nccl.conf", VARIABLE "=mine\n");
	expect_serving();
}

static void test_not_wanted(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		early = i > 0;
		failed = i == 1;
		spy_options.nonccl = i == 2 ? "1" : NULL;
		state_said = -1;
		spy_nccl_arrange();
		assert_false(spy_nccl_serving);
		assert_null(getenv(VARIABLE));
		assert_int_equal(state_said, i ? SPY_NCCL_OFF : -1); /* too late to say anything */
		if (i)
			assert_string_equal(text_said, "not wanted");
	}
}

static void test_in_the_environment(void **state)
{
	(void)state;
	setenv(VARIABLE, "none", 1);
	expect_taken(VARIABLE "=none");
	setenv(VARIABLE, "", 1);
	expect_taken(VARIABLE "=");
	/* A profiler that is linked into the program, however the variable is set. */
	setenv(VARIABLE, "STATIC_PLUGIN", 1);
	has_other = true;
	expect_taken("a profiler that is linked into the program");
	unsetenv(VARIABLE);
	expect_taken("a profiler that is linked into the program");
}

static void test_in_files(void **state)
{
	static const struct {
		const char *text;
		bool sets;
	} cases[] = {
		{"", false},
		{"NCCL_DEBUG=INFO\n", false},
		{VARIABLE "=x", true}, /* without an end of the line */
		{VARIABLE, true},
		{"NCCL_DEBUG=INFO\n" VARIABLE "=x\n", true},
		{"#\n\n" VARIABLE " = x\nNCCL_DEBUG=INFO", true},
		{"# " VARIABLE "=x\n", false},
		{"MY_" VARIABLE "=x\n", false},
		{"NCCL_PROFILER_PLUGI", false},
		{"\nNCCL_PROFILER_PLUGI", false},
	};
	char text[1200];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (int by_name = 0; by_name < 2; by_name++) {
			const char *name = by_name ? "conf" : ".nccl.conf";

			begin(state);
			make_file(name, cases[i].text);
			if (by_name)
				setenv("NCCL_CONF_FILE", path_of(name), 1);
			snprintf(text, sizeof(text), VARIABLE " in %s", path_of(name));
			if (cases[i].sets)
				expect_taken(text);
			else
				expect_serving();
			end(state);
		}
	begin(state);
	/* No home, or one whose name is too long; a folder and a fifo in the place of a file. */
	unsetenv("HOME");
	expect_serving();
	memset(text, 'h', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	unsetenv(VARIABLE);
	setenv("HOME", text, 1);
	expect_serving();
	unsetenv(VARIABLE);
	setenv("HOME", dir, 1);
	mkdir(path_of(".nccl.conf"), 0700);
	mkfifo(path_of("fifo"), 0600);
	setenv("NCCL_CONF_FILE", path_of("fifo"), 1);
	expect_serving();
	end(state);
}

/* Where the loader looks for a library. An empty folder is the current one. */
static void test_libraries(void **state)
{
	char before[1024], text[1200], path[1400];

	(void)state;
	mkdir(path_of("lib"), 0700);
	make_file("lib/libnccl-profiler.so", "");
	snprintf(text, sizeof(text), "%s/libnccl-profiler.so", path_of("lib"));
	for (int i = 0; i < 5; i++) {
		static const char *const around[][2] = {{"", ""},
							{"/none:", ""},
							{"", ":/none"},
							{"/none;", ":/none"},
							{"/none:", ";"}};

		snprintf(path, sizeof(path), "%s%s%s", around[i][0], path_of("lib"), around[i][1]);
		setenv("LD_LIBRARY_PATH", path, 1);
		expect_taken(text);
	}
	/* Not a part of its name. */
	snprintf(path, sizeof(path), "%s/li", dir);
	setenv("LD_LIBRARY_PATH", path, 1);
	expect_serving();
	unsetenv(VARIABLE);
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(path_of("lib")), 0);
	for (int i = 0; i < 2; i++) {
		setenv("LD_LIBRARY_PATH", i ? "/none::/none" : ":", 1);
		expect_taken("./libnccl-profiler.so");
	}
	assert_int_equal(chdir(before), 0);
	/* A path that is too long is none. */
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	setenv("LD_LIBRARY_PATH", path, 1);
	expect_serving();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_serves),
		TEST(test_not_wanted),
		TEST(test_in_the_environment),
		cmocka_unit_test(test_in_files),
		TEST(test_libraries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
