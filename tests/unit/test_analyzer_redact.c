/*
 * tests/unit/test_analyzer_redact.c: texts that are sent on without paths and users' names; and that nothing else of
 * them changes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include "base/redact.h"
#include "base/report.h"

static void becomes(const char *text, const char *wanted)
{
	char *left = redacted(text);

	assert_string_equal(left, wanted);
	free(left);
}

static int begin(void **state)
{
	(void)state;
	setenv("USER", "jdoe7", 1);
	setenv("HOME", "/somewhere/jdoe8", 1);
	redact_begin();
	return 0;
}

static int end(void **state)
{
	(void)state;
	redact_end();
	return 0;
}

static void test_off(void **state)
{
	(void)state;
	assert_false(redact_is_on());
	redact_path("rel/x");
	becomes("/home/jane/x/train.py:22 rel/x", "/home/jane/x/train.py:22 rel/x");
	assert_null(redacted(NULL));
}

static void test_paths(void **state)
{
	static const char *const rows[][2] = {
		{"/opt/x/train.py:22", "train.py:22"},
		{"/opt/x/train.py:22 in step", "train.py:22 in step"},
		{" of kernel (/opt/x/app+0x1234)", " of kernel (app+0x1234)"},
		{"'/opt/x/a', \"/b/c\"; [/d/e] {/f/g}", "'a', \"c\"; [e] {g}"},
		{"CUDASPY_OUT=/opt/x/traces: no", "CUDASPY_OUT=traces: no"},
		{"py::step:/opt/x/train.py", "py::step:train.py"},
		{"/opt/a:/opt/b", "b"},
		{"/mnt/a:b/secret/x.py", "x.py"},
		{"/opt/a name/secret/x.py", "x.py"},
		{"/opt/x/", "x"},
		{"//opt//x//", "x"},
		{"file:///opt/x/a.cu", "file:a.cu"},
		{"./x/y ../x/y ~/x/y ~jane/x", "y y y x"},
		{"src/x/a.cu:3, src/b.so.13 src/c.so", "a.cu:3, b.so.13 c.so"},
		{"runtime /usr/local/cuda/lib64/libcudart.so.13", "runtime libcudart.so.13"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		becomes(rows[i][0], rows[i][1]);
	assert_null(redacted(NULL));
}

/* What only looks like a path. */
static void test_no_paths(void **state)
{
	static const char *const texts[] = {
		"",
		"/",
		"a / b",
		"3 calls/s, 1/4000 of it",
		"and/or",
		"5 %/s",
		"model/layer1/conv2.3",
		"libcuda.so and 3 calls/s.",
		"https://docs.nvidia.com/cuda/x.html#y, and more",
		"operator/(float, float) void k<(int)5>(float*)",
		"train.py:22 in step",
		"domain:step #",
		"root of the chain",
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(texts); i++)
		becomes(texts[i], texts[i]);
}

/* What is known to be one, though it does not look like it. */
static void test_known(void **state)
{
	(void)state;
	becomes("read traces/run1 and traces/run2/x", "read traces/run1 and traces/run2/x");
	redact_directory("traces/run1");
	redact_path("traces/run2/x");
	becomes("read traces/run1 and traces/run2/x", "read run1 and x");
	becomes("in traces/run1/metadata: no", "in metadata: no");
	redact_directory("/opt/my big (old) folder");
	becomes("/opt/my big (old) folder/sub/metadata: no", "metadata: no");
	becomes("/opt/my big (old) folder: no", "my big (old) folder: no");
	becomes("see '/opt/my big (old) folder'", "see 'my big (old) folder'");
}

static void test_users(void **state)
{
	(void)state;
	becomes("of jdoe7 and jdoe8, not jdoe77", "of [user] and [user], not jdoe77");
	becomes("jane's step", "jane's step");
	becomes("/home/jane/x/train.py", "train.py");
	becomes("jane's step of Jane_2, janes", "[user]'s step of [user]_2, janes");
	becomes("/home/jane", "[user]");
	redact_path("/mnt/nfs/users/bob-r/x.py");
	becomes("bob-r", "[user]");
	becomes("/home/root/x /home/1000/y /home/shared/z", "x y z");
	becomes("root 1000 shared", "root 1000 shared");
}

struct row {
	const char *name, *where;
	uint64_t n;
	const struct table *inner;
};

/* clang-format off */
static const struct column inner_columns[] = {
	COLUMN(struct row, name, "name", UNIT_TEXT),
};
static const struct table_kind inner_kind = {
	.key = "inner", .columns = inner_columns, .n_columns = ARRAY_SIZE(inner_columns), .row_bytes = sizeof(struct row),
};
static const struct column columns[] = {
	COLUMN(struct row, name, "name", UNIT_TEXT),
	COLUMN(struct row, n, "n", UNIT_COUNT),
	COLUMN_TEXT_LINE(struct row, where),
	COLUMN_TABLE(struct row, inner, &inner_kind),
};
static const struct table_kind kind = {
	.key = "outer", .columns = columns, .n_columns = ARRAY_SIZE(columns), .row_bytes = sizeof(struct row),
};
/* clang-format on */

/* Each text of a report, wherever it stands. */
static void test_report(void **state)
{
	struct row *rows = calloc(2, sizeof(*rows)), inner_row = {.name = "/home/jane/inner.py"};
	struct table inner = {
		.kind = &inner_kind, .rows = &inner_row, .n_rows = 1, .intro = "of /home/jane/i"};
	struct report report;

	(void)state;
	report_init(&report, "test");
	rows[0] = (struct row){"/home/jane/a", " at /home/jane/b:3", 7, &inner};
	report_add(&report, &kind, rows, 2)->intro = "jane's";
	report_redact(&report);
	assert_string_equal(rows[0].name, "a");
	assert_string_equal(rows[0].where, " at b:3");
	assert_int_equal(rows[0].n, 7);
	assert_string_equal(inner_row.name, "inner.py");
	assert_string_equal(inner.intro, "of i");
	assert_string_equal(report.tables[0].intro, "[user]'s");
	assert_null(rows[1].name);
	report_release(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_off),
		cmocka_unit_test_setup_teardown(test_paths, begin, end),
		cmocka_unit_test_setup_teardown(test_no_paths, begin, end),
		cmocka_unit_test_setup_teardown(test_known, begin, end),
		cmocka_unit_test_setup_teardown(test_users, begin, end),
		cmocka_unit_test_setup_teardown(test_report, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
