/*
 * tests/unit/report_json.h: the report on a log (trace_text.h), for tests that look at its numbers, which are
 * in the JSON, or at its words.
 */
#ifndef CUDASPY_TESTS_REPORT_JSON_H
#define CUDASPY_TESTS_REPORT_JSON_H

#include <jansson.h>
#include "cmd_report.h"
#include "scratch.h"
#include "trace_text.h"
#include "report/render.h"

/* Whatever is found: no cure gives back more than there was lost, and no more was lost than calls took. */
static void gains_fit(const json_t *root)
{
	json_t *rows = json_object_get(root, "findings"), *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		bool known = !strcmp(json_string_value(json_object_get(row, "cost_known")), "yes");
		json_int_t gain = json_integer_value(json_object_get(row, "gain_high_ns"));
		json_int_t total = json_integer_value(json_object_get(row, "total_ns"));

		/* What nobody knows is no number. */
		if (json_is_integer(json_object_get(row, "cost_ns")) != known ||
		    (!known && json_is_integer(json_object_get(row, "gain_high_ns"))))
			fail_msg("an unknown cost: %s", json_dumps(row, 0));
		if (gain > json_integer_value(json_object_get(row, "cost_ns")) ||
		    json_integer_value(json_object_get(row, "gain_low_ns")) > gain)
			fail_msg("a gain above the cost: %s", json_dumps(row, 0));
		if (total && json_integer_value(json_object_get(row, "own_ns")) > total)
			fail_msg("a cost above the time in the calls: %s", json_dumps(row, 0));
	}
}

/* In that format; the caller frees. */
static char *report_in(const char *format, const char *log)
{
	struct report_options options = {.renderer = renderer_find(format)};
	char *dir = scratch_make(), path[256], *text = NULL;
	const char *dirs[] = {dir};
	size_t size;
	FILE *out = open_memstream(&text, &size);

	snprintf(path, sizeof(path), "%s/log", dir);
	scratch_write(path, log, strlen(log));
	tt_make(path, dir);
	assert_int_equal(report_show(dirs, 1, NULL, &options, out), 0);
	fclose(out);
	scratch_remove(dir);
	return text;
}

/* json_decref frees it. */
static json_t *report_on(const char *log)
{
	char *text = report_in("json", log);
	json_t *root = json_loads(text, 0, NULL);

	assert_non_null(root);
	gains_fit(root);
	free(text);
	return root;
}

#endif
