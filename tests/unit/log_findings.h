/*
 * tests/unit/log_findings.h: a log in pieces, and what is found in one: for the tests of what is found in a run as
 * a whole (test_analyzer_findings_*.c).
 */
#ifndef CUDASPY_TESTS_LOG_FINDINGS_H
#define CUDASPY_TESTS_LOG_FINDINGS_H

#include "report_json.h"

#define MS 1000000

/* The one finding of that detector; NULL: none. */
static inline json_t *find(const json_t *root, const char *id)
{
	json_t *rows = json_object_get(root, "findings"), *row, *found = NULL;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "id")), id) != 0)
			continue;
		assert_null(found);
		found = row;
	}
	return found;
}

static inline const char *text(const json_t *finding, const char *key)
{
	const char *value = json_string_value(json_object_get(finding, key));

	return value ? value : "";
}

static inline int64_t number(const json_t *finding, const char *key)
{
	return json_integer_value(json_object_get(finding, key));
}

static inline void says(const json_t *finding, const char *key, const char *words)
{
	if (!strstr(text(finding, key), words))
		fail_msg("%s of %s is '%s', not '%s'", key, text(finding, "id"), text(finding, key),
			 words);
}

/* Nothing is said of it in that log. */
static inline void silent(const char *log, const char *id)
{
	json_t *root = report_on(log);
	const json_t *finding = find(root, id);

	if (finding)
		fail_msg("%s: %s", id, text(finding, "what"));
	json_decref(root);
}

/* A log in pieces. */
struct log {
	char text[1 << 17];
	size_t used;
};

__attribute__((format(printf, 2, 3))) static inline void add(struct log *log, const char *format,
							     ...)
{
	va_list args;

	va_start(args, format);
	log->used += (size_t)vsnprintf(log->text + log->used, sizeof(log->text) - log->used, format,
				       args);
	va_end(args);
	assert_true(log->used < sizeof(log->text));
}

#endif
