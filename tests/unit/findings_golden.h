/*
 * tests/unit/findings_golden.h: each number of each finding in the logs of a test, and the sentence with it, compared with
 * tests/golden/NAME.findings (golden.h). A test asserts what it is about; this notices what it does not look at: a bound of
 * a gain, a count, the longest call. A blank line ends a log. Before a difference is blessed, the log has to say why.
 */
#ifndef CUDASPY_TESTS_FINDINGS_GOLDEN_H
#define CUDASPY_TESTS_FINDINGS_GOLDEN_H

#include <errno.h>
#include <jansson.h>
#include "golden.h"

static struct {
	FILE *out;
	char *text;
	size_t size;
} findings_seen;

static inline void findings_note_one(const json_t *finding, FILE *out)
{
	const json_t *value;
	const char *key;

	fprintf(out, "%s %s:", json_string_value(json_object_get(finding, "id")),
		json_string_value(json_object_get(finding, "severity")));
	json_object_foreach((json_t *)finding, key, value)
	{
		if (json_integer_value(value))
			fprintf(out, " %s=%lld", key, json_integer_value(value));
	}
	fprintf(out, "\n  %s\n", json_string_value(json_object_get(finding, "what")));
}

/* Of a report in JSON. */
static inline void findings_note(const json_t *root)
{
	const json_t *finding;
	size_t i;

	if (!findings_seen.out)
		findings_seen.out = open_memstream(&findings_seen.text, &findings_seen.size);
	json_array_foreach(json_object_get(root, "findings"), i, finding)
		findings_note_one(finding, findings_seen.out);
	fputc('\n', findings_seen.out);
}

static inline void findings_compare(void **state)
{
	(void)state;
	golden_find();
	assert_non_null(findings_seen.out);
	fclose(findings_seen.out);
	golden_compare(program_invocation_short_name + strlen("test_analyzer_"), "findings",
		       findings_seen.text);
	free(findings_seen.text);
}

/* When all tests of the program have passed: a group of its own, for cmocka makes no failure of what a group ends with. */
static inline int findings_are_as_before(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(findings_compare)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#define RUN_WITH_FINDINGS(tests) \
	(cmocka_run_group_tests(tests, NULL, NULL) ?: findings_are_as_before())

#endif
