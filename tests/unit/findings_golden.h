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

/* Its numbers; what is 0 or not known, and lists, are left out. */
static inline void findings_note_numbers(const json_t *row, FILE *out)
{
	const json_t *value;
	const char *key;

	json_object_foreach((json_t *)row, key, value)
	{
		if (json_integer_value(value))
			fprintf(out, " %s=%lld", key, json_integer_value(value));
	}
	fputc('\n', out);
}

static inline const char *findings_text(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key)) ?: "-";
}

static inline FILE *findings_out(void)
{
	if (!findings_seen.out)
		findings_seen.out = open_memstream(&findings_seen.text, &findings_seen.size);
	return findings_seen.out;
}

/* Of a report in JSON. */
static inline void findings_note(const json_t *root)
{
	FILE *out = findings_out();
	const json_t *finding;
	size_t i;

	json_array_foreach(json_object_get(root, "findings"), i, finding)
	{
		fprintf(out, "%s %s:", findings_text(finding, "id"),
			findings_text(finding, "severity"));
		findings_note_numbers(finding, out);
		fprintf(out, "  %s\n", findings_text(finding, "what"));
	}
	fputc('\n', out);
}

/* And of another table of it, the numbers of each row. */
static inline void findings_note_table(const json_t *root, const char *table)
{
	FILE *out = findings_out();
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, table), i, row)
	{
		fprintf(out, "%s:", table);
		findings_note_numbers(row, out);
	}
}

static inline void findings_compare(void **state)
{
	(void)state;
	fclose(findings_out());
	golden_find();
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
