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
#include "golden.h"
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
	assert_null(strstr(text, ".."));
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

/* ---- all that a report may have -------------------------------------------------------------- */

struct inner_row {
	const char *text;
	uint64_t number;
};

/* clang-format off */
static const struct column inner_columns[] = {
	COLUMN(struct inner_row, text, "", UNIT_TEXT),
	COLUMN_JSON(struct inner_row, number, UNIT_PLAIN),
};
/* clang-format on */

static const struct table_kind inner_kind = {
	.key = "inner",
	.columns = inner_columns,
	.n_columns = ARRAY_SIZE(inner_columns),
	.row_bytes = sizeof(struct inner_row),
	.text_rows = 2,
};

struct full_row {
	const char *name, *cause, *line, *words, *last;
	uint64_t plain, count, time_ns, known_ns, change_ns, bytes, device;
	const struct table *inner;
};

/* clang-format off */
static const struct column full_columns[] = {
	COLUMN(struct full_row, plain, "id", UNIT_PLAIN),
	COLUMN(struct full_row, name, "name", UNIT_TEXT),
	COLUMN(struct full_row, count, "count", UNIT_COUNT),
	COLUMN(struct full_row, cause, "cause", UNIT_TEXT),
	COLUMN(struct full_row, time_ns, "time", UNIT_NS),
	COLUMN(struct full_row, known_ns, "gain", UNIT_NS_IF_KNOWN),
	COLUMN(struct full_row, bytes, "bytes", UNIT_BYTES),
	COLUMN(struct full_row, device, "GPU", UNIT_DEVICE),
	COLUMN_LINE(struct full_row, line, UNIT_TEXT),
	COLUMN_TEXT_WORDS(struct full_row, words),
	COLUMN_TABLE(struct full_row, inner, &inner_kind),
	COLUMN_JSON(struct full_row, change_ns, UNIT_NS_CHANGE),
	COLUMN(struct full_row, last, "last", UNIT_TEXT),
};
#define FULL_KIND(...) \
	{.columns = full_columns, .n_columns = ARRAY_SIZE(full_columns), \
	 .row_bytes = sizeof(struct full_row), __VA_ARGS__}
/* clang-format on */

static const struct inner_row inner_rows[] = {
	{"the first of the inner ones", 1}, {NULL, 2}, {"the second", 3}, {"one too many", 4}};
static const struct table inner = {.kind = &inner_kind,
				   .rows = inner_rows,
				   .n_rows = ARRAY_SIZE(inner_rows),
				   .intro = "What lies below it:"};

#define LONG_TEXT \
	"a text that goes on for so long that it takes more than one line of a screen that is " \
	"not " \
	"wide, and even of one that is wide, for it has hundreds of characters, or nearly so"

static const struct full_row full_rows[] = {
	{"one", "locks", "at a.c:1", "In short words.", "end", 1, 1000, 1500, 2000, 5, 1024, 0,
	 &inner},
	{"a name that is longer than most", "kernel module", "at " LONG_TEXT, LONG_TEXT, LONG_TEXT,
	 22, 1234567, 12345678901, UNKNOWN_NS, UINT64_MAX, 1ull << 40, 255, NULL},
	{NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 7, NULL},
	{"minor", "other", NULL, NULL, "m", 3, 3, 3, 3, 3, 3, 3, NULL},
	{"minor, too", "other", NULL, NULL, "m", 4, 4, 4, 4, 4, 4, 4, NULL},
};

static struct table *add_full(struct report *report, const struct table_kind *of, size_t first,
			      size_t n)
{
	struct full_row *copy = xcalloc(n + 1, sizeof(*copy));

	memcpy(copy, full_rows + first, n * sizeof(*copy));
	return report_add(report, of, copy, n);
}

static char *show_all(struct view view, int (*render)(const struct report *report, FILE *out))
{
	static const struct table_kind
		facts = FULL_KIND(.key = "facts", .title = "FACTS", .facts = true),
		table = FULL_KIND(.key = "table", .title = "TABLE", .advice = LONG_TEXT),
		few = FULL_KIND(.key = "few", .title = "FEW of them", .text_rows = 2),
		mixed = FULL_KIND(.key = "mixed", .title = "MIXED", .text_rows = 1),
		minor = FULL_KIND(.key = "minor", .title = "MINOR"),
		none = FULL_KIND(.key = "none", .title = "NONE", .when_empty = "there is none",
				 .advice = "not shown"),
		nothing = FULL_KIND(.key = "nothing", .title = "NOTHING"),
		detail = FULL_KIND(.key = "detail", .title = "DETAIL", .detail = true),
		machine = FULL_KIND(.key = "machine", .title = "MACHINE", .json_only = true),
		unlisted = FULL_KIND(.key = "unlisted", .title = "UNLISTED", .unlisted = true);
	struct report report;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct table *t;

	report_init(&report, "test-2");
	report.view = view;
	add_full(&report, &facts, 1, 1);
	add_full(&report, &table, 0, 3)->intro = LONG_TEXT;
	add_full(&report, &few, 0, 4);
	t = add_full(&report, &few, 2, 3);
	t->minor_rows = 2;
	t = add_full(&report, &mixed, 0, 5);
	t->minor_rows = 2;
	t = add_full(&report, &minor, 3, 1);
	t->minor_rows = 1;
	t->minor_name = "unused";
	t = add_full(&report, &minor, 3, 2);
	t->minor_rows = 2;
	add_full(&report, &none, 0, 0);
	add_full(&report, &nothing, 0, 0);
	add_full(&report, &detail, 3, 1);
	add_full(&report, &machine, 3, 1);
	add_full(&report, &unlisted, 3, 1);
	assert_int_equal(render(&report, out), 0);
	fclose(out);
	report_release(&report);
	return text;
}

/* Each unit and place of a column, tables of each kind, on screens of several widths. */
static void test_all(void **state)
{
	static const struct view views[] = {
		{0}, {.width = 40}, {.width = 60, .verbose = true}, {.width = 160, .colour = true}};
	static const char *const names[] = {"80", "40", "60", "160"};
	char *text;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(views); i++) {
		text = show_all(views[i], render_text);
		golden_compare("render", names[i], text);
		free(text);
	}
	text = show_all(views[0], render_json);
	golden_compare("render", "json", text);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats), cmocka_unit_test(test_percent),
		cmocka_unit_test(test_text),    cmocka_unit_test(test_json),
		cmocka_unit_test(test_all),
	};

	golden_find();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
