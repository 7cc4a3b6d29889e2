/*
 * tests/unit/report_json.h: the report on a log (trace_text.h), for tests that look at its numbers, which are
 * in the JSON, or at its words.
 */
#ifndef CUDASPY_TESTS_REPORT_JSON_H
#define CUDASPY_TESTS_REPORT_JSON_H

#include <jansson.h>
#include "cmd_read/cmd_report.h"
#include "findings_golden.h"
#include "scratch.h"
#include "trace_text.h"
#include "report_sums.h"
#include "render/render.h"

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

/* Of a log made by chance, whose findings mean nothing. json_decref frees it. */
static json_t *report_on_any(const char *log)
{
	char *text = report_in("json", log);
	json_t *root = json_loads(text, 0, NULL);

	assert_non_null(root);
	report_agrees(root);
	free(text);
	return root;
}

/* json_decref frees it. */
static json_t *report_on(const char *log)
{
	json_t *root = report_on_any(log);

	findings_note(root);
	return root;
}

#endif
