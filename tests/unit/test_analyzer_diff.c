/*
 * tests/unit/test_analyzer_diff.c: what differs between runs, what is noise, and which findings are the
 * same one: made-up reports are compared, and what is said of them is read back as JSON.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "golden.h"
#include "diff/diff.h"
#include "render/render.h"

#define RUNS 4

/* As that renderer shows it; the caller frees. */
static char *show(const char *const *a, size_t n_a, const char *const *b, size_t n_b,
		  int (*render)(const struct report *report, FILE *out))
{
	const char *names[] = {"r1", "r2", "r3", "r4"};
	json_t *a_reports[RUNS], *b_reports[RUNS];
	struct diff_side x = {names, a_reports, n_a}, y = {names, b_reports, n_b};
	struct report report;
	char *text = NULL;
	size_t i, size;
	FILE *out = open_memstream(&text, &size);

	for (i = 0; i < n_a; i++)
		assert_non_null(a_reports[i] = json_loads(a[i], 0, NULL));
	for (i = 0; i < n_b; i++)
		assert_non_null(b_reports[i] = json_loads(b[i], 0, NULL));
	report_init(&report, "test");
	diff_report(&report, &x, &y);
	assert_int_equal(render(&report, out), 0);
	report_release(&report);
	fclose(out);
	for (i = 0; i < n_a; i++)
		json_decref(a_reports[i]);
	for (i = 0; i < n_b; i++)
		json_decref(b_reports[i]);
	return text;
}

static json_t *compare(const char *const *a, size_t n_a, const char *const *b, size_t n_b)
{
	char *text = show(a, n_a, b, n_b, render_json);
	json_t *said = json_loads(text, 0, NULL);

	assert_non_null(said);
	free(text);
	return said;
}

/* With one run on each side. */
static void expect_words(const char *a, const char *b, const char *words)
{
	char *text = show(&a, 1, &b, 1, render_text);

	if (!strstr(text, words))
		fail_msg("no '%s' in:\n%s", words, text);
	free(text);
}

/* The row of a table whose `key` is `value`. */
static const json_t *row(const json_t *said, const char *table, const char *key, const char *value)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(said, table), i,
			   one) if (!strcmp(json_string_value(json_object_get(one, key)) ?: "",
					    value)) return one;
	fail_msg("%s: no row with %s %s", table, key, value);
	return NULL;
}

static void expect_text(const json_t *one, const char *key, const char *wanted)
{
	const char *text = json_string_value(json_object_get(one, key));

	if (wanted)
		assert_string_equal(text ?: "null", wanted);
	else
		assert_null(text);
}

static void expect_number(const json_t *one, const char *key, long long wanted)
{
	assert_true(json_is_integer(json_object_get(one, key)));
	assert_int_equal(json_integer_value(json_object_get(one, key)), wanted);
}

/* ---- noise ---------------------------------------------------------------------------------- */

static void test_ranges(void **state)
{
	uint64_t odd[] = {30, 10, 20}, even[] = {40, 10, 30, 20}, one[] = {7};
	struct diff_range r = diff_range_of(odd, 3);

	(void)state;
	assert_int_equal(r.median, 20);
	assert_int_equal(r.low, 10);
	assert_int_equal(r.high, 30);
	assert_int_equal(diff_range_of(even, 4).median, 25);
	r = diff_range_of(one, 1);
	assert_int_equal(r.low, 7);
	assert_int_equal(r.high, 7);
}

static void test_noise(void **state)
{
	struct diff_range a = {100, 90, 110}, near = {115, 105, 125}, apart = {128, 115, 135},
			  far = {200, 190, 215}, point = {150, 150, 150}, close = {112, 112, 112};

	(void)state;
	assert_int_equal(diff_judge(&a, 3, &near, 3), DIFF_NOISE); /* they overlap */
	assert_int_equal(diff_judge(&a, 3, &apart, 3), DIFF_REAL);
	assert_int_equal(diff_judge(&a, 3, &far, 3), DIFF_REAL);
	assert_int_equal(diff_judge(&far, 3, &a, 3), DIFF_REAL);
	assert_int_equal(diff_judge(&a, 3, &a, 3), DIFF_NOISE);
	/* One run against several: apart, but no farther than the several are from each other. */
	assert_int_equal(diff_judge(&a, 3, &close, 1), DIFF_NOISE);
	assert_int_equal(diff_judge(&a, 3, &point, 1), DIFF_REAL);
	assert_int_equal(diff_judge(&point, 1, &close, 1), DIFF_UNKNOWN);
}

/* ---- reports -------------------------------------------------------------------------------- */

#define FINDING(id, caller, offset, cost, severity) \
	"{\"id\":\"" id "\",\"title\":\"t\",\"function\":\"cudaFree\",\"module\":\"/app\"," \
	"\"caller\":" caller ",\"offset\":" offset ",\"cost_ns\":" cost ",\"count\":3," \
	"\"severity\":\"" severity "\"}"
#define REPORT(findings, own, lock, calls) \
	"{\"schema\":\"cudaspy-report-2\",\"summary\":{\"program\":\"app\",\"call_ns\":1000}," \
	"\"findings\":[" findings "],\"waits\":{\"total_ns\":1000,\"lost_ns\":" lock \
	",\"own_ns\":" own ",\"lock_ns\":" lock "},\"calls\":[" calls "]}"
#define CALL(function, count, total, median) \
	"{\"function\":\"" function "\",\"count\":" count ",\"total_ns\":" total \
	",\"median_ns\":" median "}"

static void test_one_run_each(void **state)
{
	static const char *const a[] = {
		REPORT(FINDING("x", "\"f\"", "10", "5000000",
			       "problem") "," FINDING("y", "\"g\"", "20", "4000000", "problem"),
		       "100", "900",
		       CALL("cudaLaunchKernel", "10", "100", "10") "," CALL("cudaFree", "3", "900",
									    "300"))};
	static const char *const b[] = {
		REPORT(FINDING("y", "\"g\"", "24", "9000000",
			       "problem") "," FINDING("z", "\"f\"", "10", "3000000", "problem"),
		       "100", "400", CALL("cudaLaunchKernel", "10", "100", "10"))};
	json_t *said = compare(a, 1, b, 1);
	const json_t *one;

	(void)state;
	one = row(said, "findings", "id", "x");
	expect_text(one, "verdict", "vanished");
	expect_number(one, "change_ns", -5000000);
	expect_text(one, "b_severity", NULL);
	expect_text(one, "noise", "unknown");
	/* The program was built again: the same function calls, from another address. */
	one = row(said, "findings", "id", "y");
	expect_text(one, "verdict", "grew");
	expect_number(one, "a_ns", 4000000);
	expect_number(one, "b_ns", 9000000);
	one = row(said, "findings", "id", "z");
	expect_text(one, "verdict", "appeared");
	expect_number(one, "a_runs", 0);
	one = json_object_get(said, "summary");
	expect_number(one, "appeared", 1);
	expect_number(one, "vanished", 1);
	expect_number(one, "grew", 1);
	expect_number(one, "shrank", 0);
	expect_number(one, "a_lost_ns", 900);
	expect_number(one, "b_lost_ns", 400);
	expect_text(row(said, "waits", "cause", "lock"), "verdict", "shrank");
	expect_text(row(said, "waits", "cause", "own"), "verdict", "same");
	expect_text(row(said, "calls", "function", "cudaLaunchKernel"), "verdict", "same");
	one = row(said, "calls", "function", "cudaFree");
	expect_number(one, "b_count", 0);
	expect_number(one, "b_median_ns", 0);
	json_decref(said);
}

/* With several runs: one that has a finding now and then, one that is always larger. */
static void test_several_runs(void **state)
{
	static const char *const a[] = {
		REPORT(FINDING("x", "\"f\"", "10", "5000000", "problem"), "100", "900", ""),
		REPORT(FINDING("x", "\"f\"", "10", "5500000", "problem"), "120", "800", ""),
		REPORT(FINDING("x", "\"f\"", "10", "5200000", "problem"), "110", "850", "")};
	static const char *const b[] = {
		REPORT(FINDING("x", "\"f\"", "10", "9000000", "problem"), "115", "300", ""),
		REPORT(FINDING("x", "\"f\"", "10", "8800000", "problem") "," FINDING(
			       "now-and-then", "\"f\"", "10", "2000000", "problem"),
		       "105", "310", "")};
	json_t *said = compare(a, 3, b, 2);
	const json_t *one = row(said, "findings", "id", "x");

	(void)state;
	expect_text(one, "verdict", "grew");
	expect_text(one, "noise", "no");
	expect_number(one, "a_ns", 5200000);
	expect_number(one, "b_ns", 8900000);
	expect_number(one, "b_low_ns", 8800000);
	one = row(said, "findings", "id", "now-and-then");
	expect_text(one, "noise", "yes");
	expect_number(one, "b_runs", 1);
	expect_text(row(said, "waits", "cause", "own"), "noise", "yes");
	one = row(said, "waits", "cause", "lock");
	expect_text(one, "noise", "no");
	expect_number(one, "change_ns", 305 - 850);
	one = json_object_get(said, "summary");
	expect_number(one, "grew", 1);
	expect_number(one, "appeared", 0);
	expect_text(one, "lost_noise", "no");
	json_decref(said);
}

/* An error costs nothing; it is gone all the same. What costs now little and now much is, too. */
static void test_gone(void **state)
{
	static const char *const a[] = {
		REPORT(FINDING("error", "\"f\"", "10", "0",
			       "note") "," FINDING("uneven", "\"f\"", "10", "1000000", "problem"),
		       "1", "1", ""),
		REPORT(FINDING("error", "\"f\"", "10", "0",
			       "note") "," FINDING("uneven", "\"f\"", "10", "9000000", "problem"),
		       "1", "1", "")};
	static const char *const b[] = {REPORT("", "1", "1", ""), REPORT("", "1", "1", "")};
	json_t *said = compare(a, 2, b, 2);

	(void)state;
	expect_text(row(said, "findings", "id", "error"), "noise", "no");
	expect_text(row(said, "findings", "id", "error"), "a_severity", "note");
	expect_text(row(said, "findings", "id", "uneven"), "noise", "no");
	expect_number(json_object_get(said, "summary"), "vanished", 2);
	json_decref(said);
}

#define UNKNOWN(id, cost) \
	"{\"id\":\"" id "\",\"title\":\"t\",\"cost_ns\":" cost \
	",\"cost_known\":\"no\",\"count\":3,\"severity\":\"note\"}"

#define KNOWN(id, cost) \
	"{\"id\":\"" id "\",\"title\":\"t\",\"cost_ns\":" cost \
	",\"count\":3,\"severity\":\"problem\"}"

/* What nobody knows is no number, in reports of today (null) and in older ones. */
static void test_unknown(void **state)
{
	static const char *const a[] = {
		REPORT(UNKNOWN("x", "7000000") "," UNKNOWN("y", "null") "," KNOWN("z", "9000000"),
		       "1", "1", "")};
	static const char *const b[] = {
		REPORT(UNKNOWN("x", "null") "," FINDING("y", "null", "0", "9000000",
							"problem") "," UNKNOWN("z", "null"),
		       "1", "1", "")};
	static const char nothing[] = REPORT("", "1", "1", "");
	json_t *said = compare(a, 1, b, 1);
	const json_t *one = row(said, "findings", "id", "x");

	(void)state;
	expect_text(one, "verdict", "unknown");
	assert_true(json_is_null(json_object_get(one, "a_ns")));
	assert_true(json_is_null(json_object_get(one, "b_high_ns")));
	expect_text(row(said, "findings", "id", "z"), "verdict", "unknown");
	one = json_object_get(said, "summary");
	expect_number(one, "grew", 0);
	expect_number(one, "shrank", 0);
	json_decref(said);
	expect_words(a[0], b[0], "0 shrank, 2 about");
	expect_words(nothing, a[0], "appeared: 0 cases in A, 3 in B");
}

/* Places of one function are one; without symbols the address tells them apart. */
static void test_places(void **state)
{
	static const char *const a[] = {
		REPORT(FINDING("x", "\"f\"", "10", "1000000", "minor") "," FINDING(
			       "x", "\"f\"", "20", "3000000",
			       "problem") "," FINDING("x", "null", "30", "7000000", "problem"),
		       "1", "1", "")};
	static const char *const b[] = {
		REPORT(FINDING("x", "\"f\"", "10", "4000000",
			       "problem") "," FINDING("x", "null", "31", "7000000", "problem"),
		       "1", "1", "")};
	json_t *said = compare(a, 1, b, 1);
	const json_t *one = row(said, "findings", "caller", "f");

	(void)state;
	assert_int_equal(json_array_size(json_object_get(said, "findings")), 3);
	expect_text(one, "verdict", "same");
	expect_text(one, "a_severity", "problem");
	expect_number(one, "a_count", 6);
	one = json_object_get(said, "summary");
	expect_number(one, "vanished", 1);
	expect_number(one, "appeared", 1);
	json_decref(said);
}

/* Of several places of a function the dearest is shown; the program may lie elsewhere. */
#define AT(module, where, cost) \
	"{\"id\":\"x\",\"title\":\"t\",\"function\":\"cudaFree\",\"module\":\"" module \
	"\",\"caller\":\"f\",\"where\":\"" where "\",\"cost_ns\":" cost ",\"count\":3," \
	"\"severity\":\"problem\"}"

static void test_dearest(void **state)
{
	static const char a[] = REPORT(
		AT("/old/app", "at a.c:1", "90000000") "," AT("/old/app", "at a.c:2", "10000000"),
		"1", "1", "");
	static const char b[] = REPORT(AT("/new/app", "at b.c:1", "20000000"), "1", "1", "");

	(void)state;
	expect_words(b, a, "grew: 3 cases in A, 6 in B, at 2 places, here most");
	expect_words(b, a, "at a.c:1");
	expect_words(a, b, "shrank: 6 cases in A, 3 in B, at 2 places, here most");
	expect_words(a, b, "at a.c:1"); /* not where the little is that was left */
}

/* A report has the keys; a damaged one is compared as far as it goes. */
static void test_poor_reports(void **state)
{
	static const char *const a[] = {"{}"};
	static const char *const b[] = {"{\"calls\":[{}],\"findings\":[{}],\"waits\":7}"};

	static const char *const less_than_nothing[] = {
		REPORT(AT("/app", "at a.c:1", "-5"), "1", "1", "")};
	json_t *said;
	char *text;

	(void)state;
	json_decref(compare(a, 1, b, 1));
	said = compare(less_than_nothing, 1, a, 1);
	text = json_dumps(said, 0);
	assert_null(strstr(text, "-5"));
	free(text);
	json_decref(said);
}

/* ---- words ---------------------------------------------------------------------------------- */

static void test_words(void **state)
{
	static const char nothing[] = REPORT("", "0", "0", "");
	static const char once[] =
		"{\"schema\":\"cudaspy-report-2\",\"findings\":[{\"id\":\"x\",\"title\":\"t\",\"module\":\"/app\",\"cost_ns\":5000000,\"count\":1,\"severity\":\"problem\"}],\"waits\":{},\"calls\":[]}";
	static const char much[] = REPORT("", "1000000000", "3000000000", "");
	static const char little[] = REPORT("", "1000100000", "5000", "");
	static const char hundredth[] = REPORT("", "10000000", "3000000000", "");

	(void)state;
	expect_words(once, nothing, "vanished: 1 case in A, 0 in B");
	expect_words(nothing, once, "appeared: 0 cases in A, 1 in B");
	/* Something is left; something was added. */
	expect_words(much, little, "-3.000 s (over 99.9 %)");
	expect_words(much, little, "+100.0 us (under 0.1 %)");
	expect_words(much, nothing, "-3.000 s (-100 %)");
	/* A ratio of six digits says nothing. */
	expect_words(little, much, "+3.000 s (from 5.000 us)");
	expect_words(hundredth, much, "+990.0 ms (100 times)");
}

/* ---- all of it ------------------------------------------------------------------------------ */

#define WAITS(total, lost, own, gpu, hidden, lock, ioctl, queue) \
	"\"waits\":{\"total_ns\":" total ",\"lost_ns\":" lost ",\"own_ns\":" own \
	",\"gpu_intended_ns\":" gpu ",\"gpu_hidden_ns\":" hidden ",\"lock_ns\":" lock \
	",\"ioctl_ns\":" ioctl ",\"queue_ns\":" queue "}"
#define RUN(program, lost_records, findings, waits, calls) \
	"{\"schema\":\"cudaspy-report-2\",\"summary\":{\"program\":\"" program \
	"\",\"processes\":2,\"calls\":70,\"duration_ns\":9000000000,\"call_ns\":4100000000," \
	"\"lost_records\":" lost_records "},\"findings\":[" findings "]," waits \
	",\"calls\":[" calls "]}"

/* What people and programs read of three runs against two, and of one against one. */
static void test_all(void **state)
{
	static const char *const a[] = {
		RUN("app.1", "0",
		    AT("/app", "at a.c:1", "90000000") "," AT(
			    "/app", "at a.c:9",
			    "30000000") "," FINDING("grows", "\"g\"", "10", "5000000",
						    "problem") "," FINDING("same", "\"g\"", "10",
									   "5000000", "note"),
		    WAITS("4100000000", "1500000000", "1000000000", "1600000000", "500000000",
			  "700000000", "300000000", "0"),
		    CALL("cudaLaunchKernel", "50", "500000000", "10000000") "," CALL(
			    "cudaFree", "10", "3000000000",
			    "300000000") "," CALL("cudaGetDevice", "10", "100", "10")),
		RUN("app.2", "3",
		    AT("/app", "at a.c:1", "95000000") "," AT(
			    "/app", "at a.c:9",
			    "30000000") "," FINDING("grows", "\"g\"", "10", "5500000",
						    "problem") "," FINDING("gone", "\"h\"", "10",
									   "2500000", "problem"),
		    WAITS("4000000000", "1400000000", "1100000000", "1500000000", "400000000",
			  "700000000", "300000000", "0"),
		    CALL("cudaLaunchKernel", "52", "520000000",
			 "10000000") "," CALL("cudaFree", "10", "2900000000", "290000000")),
		RUN("app.3", "0",
		    AT("/app", "at a.c:1", "85000000") "," FINDING(
			    "grows", "\"g\"", "10", "5200000",
			    "problem") "," FINDING("gone", "\"h\"", "10", "2600000", "problem"),
		    WAITS("4200000000", "1600000000", "1050000000", "1550000000", "450000000",
			  "800000000", "350000000", "0"),
		    CALL("cudaLaunchKernel", "51", "510000000",
			 "10000000") "," CALL("cudaFree", "10", "3100000000", "310000000"))};
	static const char *const b[] = {
		RUN("app.4", "0",
		    AT("/app", "at a.c:1", "20000000") "," FINDING(
			    "grows", "\"g\"", "11", "25000000",
			    "problem") "," FINDING("new", "null", "30", "15000000",
						   "note") "," FINDING("same", "\"g\"", "10",
								       "5000000", "note"),
		    WAITS("2100000000", "500000000", "1000000000", "600000000", "100000000",
			  "300000000", "100000000", "7000000"),
		    CALL("cudaLaunchKernel", "50", "500000000", "10000000") "," CALL(
			    "cudaFree", "10", "1000000000",
			    "100000000") "," CALL("cudaMalloc", "1", "600000000", "600000000")),
		RUN("app.5", "0",
		    AT("/app", "at a.c:1", "22000000") "," FINDING(
			    "grows", "\"g\"", "11", "26000000",
			    "problem") "," FINDING("new", "null", "30", "16000000", "note"),
		    WAITS("2200000000", "550000000", "1020000000", "630000000", "120000000",
			  "300000000", "130000000", "9000000"),
		    CALL("cudaLaunchKernel", "50", "505000000",
			 "10000000") "," CALL("cudaFree", "10", "1100000000", "110000000"))};
	char *text;

	(void)state;
	text = show(a, 3, b, 2, render_text);
	golden_compare("diff", "report", text);
	free(text);
	text = show(a, 3, b, 2, render_json);
	golden_compare("diff", "json", text);
	free(text);
	text = show(a, 1, b, 1, render_text);
	golden_compare("diff", "first", text);
	free(text);
	text = show(a, 1, b, 2, render_text);
	assert_non_null(strstr(text, "2 runs: r1, r2 (app.4)"));
	free(text);
}

/* Of ranges of n and m runs of one program, two in (n + m choose n) lie apart. */
static void test_chance(void **state)
{
	static const char one[] = REPORT("", "0", "0", "");
	static const char *const runs[] = {one, one, one, one};
	static const struct {
		size_t n, m;
		const char *says;
	} cases[] = {
		{1, 1, "not known, with one run on each side"},
		{1, 2, "up to 67 %"},
		{2, 1, "up to 67 %"},
		{2, 2, "up to 33 %"},
		{3, 2, "up to 20 %"},
		{4, 4, "up to 2.9 %"},
	};
	char *text, *words;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		text = show(runs, cases[i].n, runs, cases[i].m, render_text);
		for (words = text; (words = strchr(words, '\n'));) /* however lines are broken */
			*words = ' ';
		for (words = text; (words = strstr(words, "  "));)
			memmove(words, words + 1, strlen(words));
		if (!strstr(text, cases[i].says))
			fail_msg("no '%s' in: %s", cases[i].says, text);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),        cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_noise),        cmocka_unit_test(test_one_run_each),
		cmocka_unit_test(test_several_runs), cmocka_unit_test(test_gone),
		cmocka_unit_test(test_unknown),      cmocka_unit_test(test_places),
		cmocka_unit_test(test_dearest),      cmocka_unit_test(test_poor_reports),
		cmocka_unit_test(test_all),          cmocka_unit_test(test_chance),
	};

	golden_find();
	unsetenv("COLUMNS");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
