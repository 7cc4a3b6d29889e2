/*
 * tests/unit/test_analyzer_schema.c: docs/report.schema.json is what the tables of a report are, and docs/job.schema.json
 * what those of a report of digests are.
 *
 * The schema is written from the tables themselves, by a renderer that only this test has, and compared
 * with the files; with CUDASPY_BLESS=1 in the environment the files are written instead.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <jansson.h>
#include <limits.h>
#include "cmd_read/cmd_report.h"
#include "filter/words.h"
#include "job/sections.h"
#include "scratch.h"
#include "trace_text.h"
#include "render/render.h"

/* A path in the source tree, of which this file is tests/unit/NAME. */
static void in_source(char *path, const char *name)
{
	const char *slash = strrchr(__FILE__, '/');
	char folder[PATH_MAX], *whole;

	snprintf(folder, sizeof(folder), "%.*s/../..", (int)(slash - __FILE__), __FILE__);
	whole = realpath(folder, NULL);
	if (!whole) {
		printf("%s is not here: run this from the top of the source tree\n", folder);
		exit(77);
	}
	snprintf(path, PATH_MAX, "%s/%s", whole, name);
	free(whole);
}

static json_t *table_schema(const struct table_kind *kind);

static json_t *type_of(const struct column *column)
{
	if (column->unit == UNIT_TEXT)
		return json_pack("{s:[s,s]}", "type", "string", "null");
	if (column->unit == UNIT_TABLE)
		return table_schema(column->table);
	if (column->unit == UNIT_NS_IF_KNOWN || column->unit == UNIT_PLAIN_IF_KNOWN ||
	    column->unit == UNIT_PPM)
		return json_pack("{s:[s,s]}", "type", "integer", "null");
	return json_pack("{s:s}", "type", "integer");
}

/* A row is an object: all its keys are always there. */
static json_t *row_schema(const struct table_kind *kind)
{
	json_t *properties = json_object(), *required = json_array();
	size_t i;

	for (i = 0; i < kind->n_columns; i++) {
		const struct column *column = &kind->columns[i];

		if (!column->key)
			continue;
		json_object_set_new(properties, column->key, type_of(column));
		json_array_append_new(required, json_string(column->key));
	}
	return json_pack("{s:s, s:o, s:o}", "type", "object", "properties", properties, "required",
			 required);
}

static json_t *table_schema(const struct table_kind *kind)
{
	json_t *row = row_schema(kind), *empty;

	if (!kind->facts)
		return json_pack("{s:s, s:o}", "type", "array", "items", row);
	empty = json_pack("{s:s, s:i}", "type", "object", "maxProperties", 0);
	return json_pack("{s:[o,o]}", "anyOf", row, empty);
}

/* The renderer: a schema in place of each table. Those that are always there come first. */
static int render_schema(const struct report *report, FILE *out)
{
	json_t *properties = json_object();
	size_t i;

	for (i = 0; i < report->n_tables; i++) {
		const struct table_kind *kind = report->tables[i].kind;

		if (!kind->unlisted)
			json_object_set_new(properties, kind->key, table_schema(kind));
	}
	json_dumpf(properties, out, JSON_PRESERVE_ORDER);
	json_decref(properties);
	return 0;
}

/* all: with the tables that take an option. */
static json_t *tables(const char *dir, bool all)
{
	const struct renderer renderer = {.name = "schema", .render = render_schema};
	const struct filter_words words = {.of = {[FILTER_THREAD] = all ? "*" : NULL}};
	struct filter filter;
	struct report_options options = {.renderer = &renderer, .nested = all, .only = &filter};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *properties;

	assert_int_equal(filter_parse(&filter, &words), 0);
	assert_int_equal(report_show(&dir, 1, NULL, &options, out), 0);
	filter_release(&filter);
	fclose(out);
	properties = json_loads(text, 0, NULL);
	assert_non_null(properties);
	free(text);
	return properties;
}

/* Takes both. */
static json_t *schema_of(const char *name, const char *title, json_t *always, json_t *all)
{
	json_t *required = json_pack("[s]", "schema"), *properties = json_object();
	const char *key;
	json_t *value;

	json_object_foreach(always, key, value) json_array_append_new(required, json_string(key));
	json_decref(always);
	json_object_set_new(properties, "schema", json_pack("{s:s}", "const", name));
	json_object_update(properties, all);
	json_decref(all);
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "$schema",
			 "http://json-schema.org/draft-07/schema#", "title", title, "description",
			 "Written from the tables of a report by "
			 "tests/unit/test_analyzer_schema.c. What the "
			 "keys mean: docs/REPORT_FORMAT.md. New keys may appear at any time.",
			 "type", "object", "required", required, "properties", properties);
}

/* Takes the schema. */
static void check_file(const char *name, json_t *schema)
{
	char path[PATH_MAX], *now, *then;

	in_source(path, name);
	now = json_dumps(schema, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	if (getenv("CUDASPY_BLESS")) {
		scratch_write(path, now, strlen(now));
	} else {
		then = scratch_read(path, NULL);
		if (!then || strcmp(now, then))
			fail_msg("%s is not what the tables say: CUDASPY_BLESS=1 writes it", path);
		free(then);
	}
	free(now);
	json_decref(schema);
}

static void test_schema(void **state)
{
	char *dir = scratch_make(), log[PATH_MAX];

	(void)state;
	in_source(log, "tests/golden/pageable.log");
	tt_make(log, dir);
	check_file("docs/report.schema.json",
		   schema_of("cudaspy-report-2", "cudaspy report --format=json", tables(dir, false),
			     tables(dir, true)));
	scratch_remove(dir);
}

/* All of its tables are always there, of no rank, too. */
static json_t *job_tables(void)
{
	struct digest *digest = digest_new();
	struct report report;
	struct job job;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *properties;

	report_init(&report, JOB_SCHEMA);
	job_init(&job, digest);
	job_report(&report, &job);
	render_schema(&report, out);
	fclose(out);
	properties = json_loads(text, 0, NULL);
	assert_non_null(properties);
	free(text);
	report_release(&report);
	job_release(&job);
	digest_free(digest);
	return properties;
}

static void test_job_schema(void **state)
{
	(void)state;
	check_file("docs/job.schema.json",
		   schema_of(JOB_SCHEMA, "cudaspy report --format=json, of digests", job_tables(),
			     job_tables()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schema),
		cmocka_unit_test(test_job_schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
