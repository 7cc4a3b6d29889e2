/*
 * tests/unit/test_analyzer_table.c: values as people read them; tables as text and as JSON.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "base/format.h"
#include "render/render.h"

static void test_formats(void **state)
{
	static const struct {
		void (*format)(char *text, size_t size, uint64_t value);
		uint64_t value;
		const char *text;
	} rows[] = {
		{format_ns, 0, "0 ns"},
		{format_ns, 999, "999 ns"},
		{format_ns, 1234, "1.234 us"},
		{format_ns, 12345, "12.35 us"},
		{format_ns, 123456789, "123.5 ms"},
		{format_ns, 4000000000, "4.000 s"},
		{format_ns, 1234567890123, "1235 s"},
		{format_bytes, 0, "0 B"},
		{format_bytes, 1023, "1023 B"},
		{format_bytes, 1024, "1.00 KiB"},
		{format_bytes, 1536 << 10, "1.50 MiB"},
		{format_bytes, 100ull << 30, "100.0 GiB"},
		{format_bytes, UINT64_MAX, "16.0 EiB"},
		{format_count, 0, "0"},
		{format_count, 999, "999"},
		{format_count, 1000, "1,000"},
		{format_count, 12345678, "12,345,678"},
		{format_count, UINT64_MAX, "18,446,744,073,709,551,615"},
	};
	char text[64];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		rows[i].format(text, sizeof(text), rows[i].value);
		assert_string_equal(text, rows[i].text);
	}
}

static void test_percent(void **state)
{
	static const struct {
		double part, whole;
		const char *text;
	} rows[] = {
		{0, 10, "0 %"},      {0, 0, "0 %"},         {1, 10000, "under 0.1 %"},
		{1, 1000, "0.1 %"},  {9.94, 100, "9.9 %"},  {9.96, 100, "10 %"},
		{67.4, 100, "67 %"}, {99.6, 100, "99.6 %"}, {99999, 100000, "over 99.9 %"},
		{100, 100, "100 %"}, {398, 100, "398 %"},
	};
	char text[32];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		format_percent(text, sizeof(text), rows[i].part, rows[i].whole);
		assert_string_equal(text, rows[i].text);
	}
}

struct row {
	const char *name, *below, *note;
	uint64_t count, time_ns;
};

/* clang-format off */
static const struct column columns[] = {
	COLUMN(struct row, name, "name", UNIT_TEXT),
	COLUMN(struct row, count, "count", UNIT_COUNT),
	COLUMN_LINE(struct row, below, UNIT_TEXT),
	COLUMN(struct row, note, "note", UNIT_TEXT),
	COLUMN_JSON(struct row, time_ns, UNIT_NS),
};
/* clang-format on */

static const struct table_kind kind = {
	.key = "things",
	.title = "THINGS",
	.columns = columns,
	.n_columns = ARRAY_SIZE(columns),
	.row_bytes = sizeof(struct row),
	.text_rows = 3,
};

static const struct row rows[] = {
	{"first", "indented", "short", 1, 11},
	{"a name that is so long that it has to give way to the rest of the line", NULL,
	 "a text so long that it has to go on in a line of its own, where it is easy to read",
	 1234567, 12},
	{"\xff not UTF-8", NULL, NULL, 0, 13},
	{"beyond text_rows", NULL, "", 0, 14},
};

static char *show(int (*render)(const struct report *report, FILE *out))
{
	struct report report;
	struct row *copy = malloc(sizeof(rows));
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	memcpy(copy, rows, sizeof(rows));
	report_init(&report, "test-1");
	report_add(&report, &kind, copy, ARRAY_SIZE(rows))->intro = "What it is about.";
	assert_int_equal(render(&report, out), 0);
	fclose(out);
	report_release(&report);
	return text;
}

static void test_text(void **state)
{
	char *text = show(render_text), *line;

	(void)state;
	assert_non_null(strstr(text, "THINGS\n  What it is about.\n  name "));
	assert_non_null(strstr(text, "short\n    indented\n"));
	assert_non_null(strstr(text, ".."));
	assert_non_null(strstr(text, "1,234,567"));
	assert_null(strstr(text, "beyond"));
	assert_non_null(strstr(text, "and 1 more"));
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		assert_in_range(strlen(line), 1, 80);
		assert_int_not_equal(line[strlen(line) - 1], ' ');
	}
	free(text);
}

static void test_json(void **state)
{
	char *text = show(render_json);
	json_t *root = json_loads(text, 0, NULL), *things;

	(void)state;
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "schema")), "test-1");
	things = json_object_get(root, "things");
	assert_int_equal(json_array_size(things), 4);
	assert_string_equal(json_string_value(json_object_get(json_array_get(things, 0), "below")),
			    "indented");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(things, 1), "time_ns")),
			 12);
	assert_true(json_is_null(json_object_get(json_array_get(things, 2), "note")));
	assert_string_equal(json_string_value(json_object_get(json_array_get(things, 2), "name")),
			    "? not UTF-8");
	json_decref(root);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_percent),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
