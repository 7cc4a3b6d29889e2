/*
 * tests/unit/test_analyzer_lists.c: lists that are kept in two places agree: the files of the
 * detectors, their table and docs/USAGE.md; the options of the recording and docs/USAGE.md; the formats and the help; the
 * keys of a report and docs/REPORT_FORMAT.md; the kinds of records and docs/TRACE_FORMAT.md.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dirent.h>
#include <jansson.h>
#include <limits.h>
#include "cmd/command.h"
#include "cudaspy/metadata_layout.h"
#include "scratch.h"
#include "findings/detector.h"
#include "render/render.h"

/* A path in the source tree, of which this file is tests/unit/NAME. */
static const char *in_source(const char *name)
{
	static char path[PATH_MAX];
	const char *slash = strrchr(__FILE__, '/');

	snprintf(path, sizeof(path), "%.*s/../../%s", (int)(slash - __FILE__), __FILE__, name);
	if (access(path, F_OK)) {
		printf("%s is not here: run this from the top of the source tree\n", path);
		exit(77);
	}
	return path;
}

/* Not what detectors share, nor their table. */
static bool has_detector(const char *file)
{
	char name[PATH_MAX], *text;
	bool has;

	snprintf(name, sizeof(name), "analyzer/detectors/%s", file);
	text = scratch_read(in_source(name), NULL);
	has = strstr(text, "\nconst struct detector detector_");
	free(text);
	return has;
}

/* Is there a row of that file? pageable_copy.c is the detector "pageable-copy". */
static bool has_row(const char *file)
{
	size_t i, j, n = strlen(file) - 2;

	for (i = 0; detectors_row(i); i++) {
		const char *name = detectors_row(i)->id;

		for (j = 0; j < n && name[j] == (file[j] == '_' ? '-' : file[j]); j++)
			;
		if (j == n && !name[n])
			return true;
	}
	return false;
}

static void test_detectors(void **state)
{
	DIR *dir = opendir(in_source("analyzer/detectors"));
	struct dirent *entry;
	size_t files = 0, rows = 0;

	(void)state;
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		size_t n = strlen(entry->d_name);

		if (n < 3 || strcmp(entry->d_name + n - 2, ".c") || !has_detector(entry->d_name))
			continue;
		files++;
		if (!has_row(entry->d_name))
			fail_msg("analyzer/detectors/%s has no row of its name in detectors.def",
				 entry->d_name);
	}
	closedir(dir);
	for (; detectors_row(rows); rows++) {
		const struct detector *d = detectors_row(rows);

		if (!d->judge != !(d->failures || d->always || d->when_long))
			fail_msg("%s judges calls and sees none, or sees some and judges none",
				 d->id);
	}
	assert_int_equal(files, rows);
}

static const struct {
	const char *name, *symptom, *cure;
} detectors_in_list[] = {
#define DETECTOR(name, symptom, cure) {#name, symptom, cure},
#include "detectors/detectors.def"
};

/* The row that a table of the docs has of that detector. */
static const char *row_of_detector(size_t i)
{
	static char row[400];
	char *c;

	snprintf(row, sizeof(row), "\n| `%s` | %s | %s |\n", detectors_in_list[i].name,
		 detectors_in_list[i].symptom, detectors_in_list[i].cure);
	for (c = row; *c != ' ' || c[1] != '`'; c++)
		;
	for (c += 2; *c != '`'; c++)
		if (*c == '_')
			*c = '-';
	return row;
}

/* How many rows of detectors there are in that text. */
static size_t count_rows(const char *text)
{
	size_t n = 0;

	for (; (text = strstr(text, "\n| `")); text++)
		n++;
	return n;
}

/* A part of that file from its heading to the next one. */
static char *read_section(const char *name, const char *heading)
{
	char *text = scratch_read(in_source(name), NULL), *begin, *end, *section;

	assert_non_null(text);
	begin = strstr(text, heading);
	if (!begin)
		fail_msg("%s has no heading '%s'", name, heading);
	end = strstr(begin + 1, "\n## ");
	section = strndup(begin, end ? (size_t)(end - begin) : strlen(begin));
	free(text);
	return section;
}

/* The table of docs/USAGE.md has all rows of the list, and that of README.md some, and their number. */
static void test_detectors_in_docs(void **state)
{
	char *usage = read_section("docs/USAGE.md", "## What the report finds");
	char *readme = read_section("README.md", "## What it finds"), number[40];
	size_t i, in_readme = 0;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(detectors_in_list); i++) {
		if (!strstr(usage, row_of_detector(i)))
			fail_msg("docs/USAGE.md lacks this row:%s", row_of_detector(i));
		in_readme += !!strstr(readme, row_of_detector(i));
	}
	assert_int_equal(count_rows(usage), i);
	if (in_readme != count_rows(readme))
		fail_msg("README.md has a row of a detector that detectors.def has not");
	snprintf(number, sizeof(number), "Some of %zu;", i);
	if (!strstr(readme, number))
		fail_msg("README.md does not say '%s'", number);
	free(usage);
	free(readme);
}

static void test_options(void **state)
{
	static const struct {
		const char *flag, *variable;
	} options[] = {
#define OPTION(name, flag, variable, argument, text) {"--" #flag, variable},
#include "cudaspy/options.def"
	};
	char *usage = scratch_read(in_source("docs/USAGE.md"), NULL);
	size_t i;

	(void)state;
	assert_non_null(usage);
	for (i = 0; i < ARRAY_SIZE(options); i++) {
		/* `cudaspy run` sets that one; it is not for people. */
		if (!strcmp(options[i].flag, "--run"))
			continue;
		if (!strstr(usage, options[i].flag) || !strstr(usage, options[i].variable))
			fail_msg("docs/USAGE.md does not name %s and %s", options[i].flag,
				 options[i].variable);
	}
	free(usage);
}

static const char *help_of_format(const struct command *command)
{
	size_t i;

	for (i = 0; i < command->n_options; i++)
		if (!strcmp(command->options[i].name, "format"))
			return command->options[i].help;
	fail_msg("%s has no --format", command->name);
	return "";
}

static void test_formats(void **state)
{
	char *readme = scratch_read(in_source("README.md"), NULL);
	size_t i;

	(void)state;
	assert_non_null(readme);
	for (i = 0; i < n_renderers; i++) {
		const struct renderer *r = &renderers[i];

		if (!strstr(help_of_format(&command_report), r->name) ||
		    !strstr(help_of_format(&command_run), r->name) ||
		    (!r->findings && !strstr(help_of_format(&command_info), r->name)))
			fail_msg("the help does not name the format %s: render.h", r->name);
		if (i && !strstr(readme, r->name)) /* row 0 is what there is without --format */
			fail_msg("README.md does not name the format %s", r->name);
	}
	free(readme);
}

/* Every key that the schema has stands in `format`, as `key`. */
static void look_for_keys(json_t *schema, const char *format, size_t *found)
{
	const char *key;
	json_t *below;
	size_t i;

	if (!schema)
		return;
	json_array_foreach(schema, i, below) look_for_keys(below, format, found);
	json_object_foreach(json_object_get(schema, "properties"), key, below)
	{
		char quoted[128];

		snprintf(quoted, sizeof(quoted), "`%s`", key);
		if (!strstr(format, quoted))
			fail_msg("docs/REPORT_FORMAT.md does not name the key %s", quoted);
		++*found;
		look_for_keys(below, format, found);
	}
	look_for_keys(json_object_get(schema, "items"), format, found);
	look_for_keys(json_object_get(schema, "anyOf"), format, found);
}

/* test_analyzer_schema says that the schema is what the tables are. */
static void test_report_keys(void **state)
{
	char *format = scratch_read(in_source("docs/REPORT_FORMAT.md"), NULL);
	json_t *schema;
	size_t found = 0;

	(void)state;
	assert_non_null(format);
	schema = json_load_file(in_source("docs/report.schema.json"), 0, NULL);
	assert_non_null(schema);
	look_for_keys(schema, format, &found);
	assert_true(found > 100);
	json_decref(schema);
	free(format);
}

/* The tables of docs/TRACE_FORMAT.md have each kind of record: | number | name |. */
static void test_events(void **state)
{
	static const struct {
		int number;
		const char *name;
	} events[] = {
#define EVENT(number, type, name, texts) {number, #name},
		SPY_EVENTS(EVENT)
#undef EVENT
	};
	char *format = scratch_read(in_source("docs/TRACE_FORMAT.md"), NULL);
	char row[80];
	size_t i;

	(void)state;
	assert_non_null(format);
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		snprintf(row, sizeof(row), "\n| %d | %s |", events[i].number, events[i].name);
		if (!strstr(format, row))
			fail_msg("docs/TRACE_FORMAT.md has no row '%s'", row + 1);
	}
	free(format);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_detectors),   cmocka_unit_test(test_detectors_in_docs),
		cmocka_unit_test(test_options),     cmocka_unit_test(test_formats),
		cmocka_unit_test(test_report_keys), cmocka_unit_test(test_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
