/*
 * tests/unit/test_analyzer_gate.c: which findings count: suppressions and where they match, what a
 * baseline calls new or worse, lists of --fail-on and --budget; and texts that XML and SARIF must escape.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include "golden.h"
#include "account/account.h"
#include "findings/detector.h"
#include "findings/gate.h"
#include "render/render.h"
#include "sections/sections.h"

#define TODAY "2026-11-20"

/* A finding of "pageable-copy" that costs `ms`. */
static struct finding finding(const char *caller, const char *file, uint64_t line, uint64_t ms)
{
	return (struct finding){
		.detector = detectors_find("pageable-copy"),
		.place = {.function = "cudaMemcpyAsync",
			  .module = "/opt/app/bin/app-1.2",
			  .caller = caller,
			  .file = file,
			  .line = line},
		.cost = {.own_ns = ms * 1000000,
			 .cost_share = {.share = (double)ms / 100, .whole = COST_SHARE_ALL}},
		.count = 2,
	};
}

/* ---- suppressions ----------------------------------------------------------------------------- */

/* Reads one line; returns suppress_read's answer. */
static int read_line(struct suppressions *s, const char *line)
{
	char *dir = scratch_make(), path[512];
	int err;

	*s = (struct suppressions){0};
	snprintf(path, sizeof(path), "%s/file", dir);
	scratch_write(path, line, strlen(line));
	err = suppress_read(s, path, TODAY);
	scratch_remove(dir);
	return err;
}

static void test_lines(void **state)
{
	static const struct {
		const char *line, *place, *until, *reason;
		bool expired;
	} good[] = {
		{"pageable-copy -- why", NULL, NULL, "why", false},
		{"\t pageable-copy   work \t--  why so -- really \r\n", "work", NULL,
		 "why so -- really", false},
		{"pageable-copy until 2026-11-20 -- today still", NULL, "2026-11-20", "today still",
		 false},
		{"pageable-copy a.c:7 until 2026-11-19 -- not any more", "a.c:7", "2026-11-19",
		 "not any more", true},
		{"pageable-copy ns::work(int, char*) until 2028-02-29 -- c++",
		 "ns::work(int, char*)", "2028-02-29", "c++", false},
		{"pageable-copy a b -- two words", "a b", NULL, "two words", false},
		{"\xef\xbb\xbfpageable-copy -- marked", NULL, NULL, "marked", false},
	};
	static const char *const bad[] = {
		"pageable-copy",
		"pageable-copy why",
		"pageable-copy --why",
		"pageable-copy -- \n",
		"-- why",
		"pageable_copy -- why",
		"pageable-copy until 2026-13-01 -- why",
		"pageable-copy until 2026-1-1 -- why",
		"pageable-copy until 2026-11-20T00 -- why",
		"pageable-copy until -- why",
		"pageable-copy a until -- why",
	};
	struct suppressions s;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(read_line(&s, good[i].line), 0);
		assert_int_equal(s.n, 1);
		assert_string_equal(s.all[0].id, "pageable-copy");
		assert_string_equal(s.all[0].place ?: "", good[i].place ?: "");
		assert_string_equal(s.all[0].until ?: "", good[i].until ?: "");
		assert_string_equal(s.all[0].reason, good[i].reason);
		assert_int_equal(s.all[0].expired, good[i].expired);
		suppress_release(&s);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_not_equal(read_line(&s, bad[i]), 0);
		suppress_release(&s);
	}
	assert_int_equal(read_line(&s, "# a comment\n\n   # -- \n"), 0);
	assert_int_equal(s.n, 0);
	suppress_release(&s);
}

static bool covers(const char *place, const struct finding *f)
{
	struct suppressions s;
	char line[256];
	bool found;

	snprintf(line, sizeof(line), "pageable-copy %s -- why\n", place);
	assert_int_equal(read_line(&s, line), 0);
	found = suppress_reason(&s, f);
	assert_int_equal(s.all[0].findings, found);
	suppress_release(&s);
	return found;
}

static void test_places(void **state)
{
	static const char *const yes[] = {
		"",
		"cudaMemcpyAsync",
		"cudaMem*",
		"ns::work(int, char*)",
		"ns::work",
		"ns::*",
		"src/my app/a.c:12",
		"a.c:12",
		"a.c",
		"src/*",
		"a.c:1?",
		"app-1.2",
		"/opt/app/bin/app-1.2",
		"app-*",
	};
	static const char *const no[] = {
		"work", "a.c:1", "a.c:120", "b.c", "app", "cudaMemcpy", "ns::work(int)", "src",
	};
	struct finding f = finding("ns::work(int, char*)", "src/my app/a.c", 12, 1);
	struct finding nowhere = {.detector = f.detector};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(yes); i++)
		if (!covers(yes[i], &f))
			fail_msg("'%s' does not match", yes[i]);
	for (i = 0; i < ARRAY_SIZE(no); i++)
		if (covers(no[i], &f))
			fail_msg("'%s' matches", no[i]);
	assert_true(covers("", &nowhere));
	assert_false(covers("*", &nowhere));
	f.detector = detectors_find("hidden-sync");
	assert_false(covers("", &f));
}

/* What one of NVIDIA's libraries calls for the program. */
static struct finding in_library(const char *caller, const char *library_caller, const char *file)
{
	struct finding f = finding(caller, file, file ? 7 : 0, 100);

	f.place.module = "/usr/local/cuda/lib64/libcublasLt.so.13";
	f.place.library = "/usr/local/cuda/lib64/libcublas.so.13";
	f.place.library_caller = library_caller;
	return f;
}

static void test_places_in_library(void **state)
{
	static const char *const yes[] = {"cudaMemcpyAsync", "cublasCreate_v2",  "ns::work",
					  "a.c:7",           "libcublasLt.so.*", "libcublas.so.13"};
	struct finding f = in_library("cublasCreate_v2", "ns::work(int)", "src/a.c");
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(yes); i++)
		if (!covers(yes[i], &f))
			fail_msg("'%s' does not match", yes[i]);
	assert_false(covers("libcudnn.so.9", &f));
}

/* ---- baseline --------------------------------------------------------------------------------- */

#define OLD(caller, file, line, ms) OLD_FIELDS(caller, file, line, ms) "}"
#define OLD_ELSEWHERE(caller, file, line, ms) \
	OLD_FIELDS(caller, file, line, ms) ", \"elsewhere\": \"yes\"}"
#define OLD_FIELDS(caller, file, line, ms) \
	"{\"id\": \"pageable-copy\", \"function\": \"cudaMemcpyAsync\", " \
	"\"module\": \"/build/7/app-1.2\", \"caller\": \"" caller "\", " \
	"\"file\": \"/build/7/" file "\", \"line\": " #line ", \"cost_ns\": " #ms "000000"

static void compare(struct baseline *b, const char *old, struct finding *findings, size_t n)
{
	char text[2048];

	*b = (struct baseline){0};
	snprintf(text, sizeof(text), "{\"schema\": \"cudaspy-report-2\", \"findings\": [%s]}", old);
	assert_int_equal(baseline_take(b, "old", json_loads(text, 0, NULL)), 0);
	baseline_compare(b, findings, n);
}

static void test_baseline(void **state)
{
	struct finding now[] = {
		finding("work", "src/a.c", 10, 100), finding("work", "src/a.c", 20, 100),
		finding("work", "src/a.c", 31, 100), finding("work", "src/a.c", 40, 100),
		finding("play", "src/a.c", 50, 100),
	};
	struct baseline b;

	(void)state;
	/* 31 has moved from 30; of 20, 30 and 31 none may take another's; 40 is new. */
	compare(&b,
		OLD("work", "a.c", 30, 70) "," OLD("work", "a.c", 10, 84) "," OLD(
			"work", "a.c", 20, 83) "," OLD("rest", "a.c", 1, 1),
		now, ARRAY_SIZE(now));
	assert_int_equal(now[0].gate.compared, COMPARED_SAME); /* 19 % more */
	assert_int_equal(now[1].gate.compared, COMPARED_WORSE);
	assert_int_equal(now[1].gate.before_ns, 83000000);
	assert_int_equal(now[2].gate.compared, COMPARED_WORSE);
	assert_int_equal(now[2].gate.before_ns, 70000000);
	assert_int_equal(now[3].gate.compared, COMPARED_NEW);
	assert_int_equal(now[4].gate.compared, COMPARED_NEW);
	assert_int_equal(b.fresh, 2);
	assert_int_equal(b.worse, 2);
	assert_int_equal(b.same, 1);
	assert_int_equal(b.gone, 1);
	baseline_release(&b);
}

/* Of calls that CUDA's code makes for several places: which place is told may change, but first comes the same. */
static void test_elsewhere(void **state)
{
	struct finding now[] = {finding("work", "a.c", 10, 100), finding("rest", "a.c", 30, 50),
				finding("play", "a.c", 20, 10)};
	struct baseline b;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(now); i++)
		now[i].place.elsewhere = true;
	compare(&b,
		OLD_ELSEWHERE("play", "a.c", 20, 10) "," OLD_ELSEWHERE(
			"work", "a.c", 10, 100) "," OLD_ELSEWHERE("home", "b.c", 7, 50),
		now, ARRAY_SIZE(now));
	for (i = 0; i < ARRAY_SIZE(now); i++) {
		assert_int_equal(now[i].gate.compared, COMPARED_SAME);
		assert_int_equal(now[i].gate.before_ns, cost_ns(&now[i].cost));
	}
	baseline_release(&b);
}

#define OLD_LIBRARY(more) \
	"{\"id\": \"pageable-copy\", \"function\": \"cudaMemcpyAsync\", " \
	"\"module\": \"/old/libcublasLt.so.13\", \"cost_ns\": 100000000" more "}"
#define OLD_CALLER(caller, library_caller, file) \
	", \"caller\": \"" caller "\", \"library_caller\": \"" library_caller \
	"\", \"file\": \"" file "\", \"line\": 7"

/* Who called the library must be the same where both know it; older reports did not tell. */
static void test_library(void **state)
{
	static const struct {
		const char *old, *caller, *library_caller, *file;
		enum compared compared;
	} cases[] = {
		{OLD_LIBRARY(OLD_CALLER("create", "work", "a.c")), "create", "work", "a.c",
		 COMPARED_SAME},
		{OLD_LIBRARY(OLD_CALLER("create", "work", "a.c")), "create", "play", "a.c",
		 COMPARED_NEW},
		{OLD_LIBRARY(OLD_CALLER("create", "work", "a.c")), "resize", "work", "a.c",
		 COMPARED_NEW},
		{OLD_LIBRARY(OLD_CALLER("create", "work", "a.c")), NULL, NULL, NULL, COMPARED_SAME},
		{OLD_LIBRARY(""), "create", "work", "a.c", COMPARED_SAME},
		{OLD("create", "a.c", 7, 100), "create", "work", "a.c",
		 COMPARED_NEW}, /* of no library */
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct finding now =
			in_library(cases[i].caller, cases[i].library_caller, cases[i].file);
		struct baseline b;

		compare(&b, cases[i].old, &now, 1);
		assert_int_equal(now.gate.compared, cases[i].compared);
		baseline_release(&b);
	}
}

/* Worse is what costs more than a fifth more: a fifth is none. */
static void test_a_fifth(void **state)
{
	struct finding now[] = {finding("work", "a.c", 1, 120), finding("work", "a.c", 2, 121)};
	struct baseline b;

	(void)state;
	compare(&b, OLD("work", "a.c", 1, 100) "," OLD("work", "a.c", 2, 100), now,
		ARRAY_SIZE(now));
	assert_int_equal(now[0].gate.compared, COMPARED_SAME);
	assert_int_equal(now[1].gate.compared, COMPARED_WORSE);
	baseline_release(&b);
}

/* Less than a millisecond more is noise, whatever part it is. */
static void test_noise(void **state)
{
	struct finding now[] = {finding("work", "a.c", 1, 2), finding("work", "a.c", 2, 3)};
	struct baseline b;

	(void)state;
	compare(&b, OLD("work", "a.c", 1, 1) "," OLD("work", "a.c", 2, 1), now, ARRAY_SIZE(now));
	assert_int_equal(now[0].gate.compared, COMPARED_SAME);
	assert_int_equal(now[1].gate.compared, COMPARED_WORSE);
	baseline_release(&b);
}

#define OLD_UNKNOWN(line, rest) \
	"{\"id\": \"pageable-copy\", \"function\": \"cudaMemcpyAsync\", " \
	"\"module\": \"app-1.2\", \"caller\": \"work\", \"file\": \"a.c\", " \
	"\"line\": " #line ", \"cost_known\": \"no\", \"cost_ns\": " rest "}"

/* What nobody knows is no number: not in reports of today (null) nor in older ones. */
static void test_unknown(void **state)
{
	struct finding now[] = {finding("work", "a.c", 1, 2), finding("work", "a.c", 2, 2),
				finding("work", "a.c", 3, 200)};
	struct baseline b;

	(void)state;
	now[2].cost.unknown = true;
	compare(&b,
		OLD_UNKNOWN(1, "null") "," OLD_UNKNOWN(2, "300000000") "," OLD("work", "a.c", 3, 1),
		now, ARRAY_SIZE(now));
	assert_int_equal(now[0].gate.compared, COMPARED_SAME); /* somebody knows, that is all */
	assert_true(now[0].gate.before_ns == UNKNOWN_NS);
	assert_int_equal(now[1].gate.compared, COMPARED_SAME);
	assert_true(now[1].gate.before_ns == UNKNOWN_NS);
	assert_int_equal(now[2].gate.compared, COMPARED_SAME);
	assert_int_equal(now[2].gate.before_ns, 1000000);
	baseline_release(&b);
}

/* Of 100 ms. */
static const struct callstats stats = {.run_ns = 100000000};
static const struct accounting run = {.stats = &stats};

/* ---- the gate --------------------------------------------------------------------------------- */

/* Failures of two findings that cost 6 and 2 of 100 ms, 4 calls; -1: the options are wrong. */
static int failures(const char *fail_on, const char *budget)
{
	struct finding findings[] = {finding("work", "a.c", 1, 6), finding("work", "a.c", 2, 2)};
	struct gate gate;
	int n = -1;

	if (!gate_init(&gate, fail_on, budget, NULL, 0)) {
		gate_judge(&gate, &run, findings, ARRAY_SIZE(findings));
		assert_int_equal(gate_failed(&gate), gate.n_failures != 0);
		n = (int)gate.n_failures;
		assert_true(!gate_failed(&gate) || findings[0].gate.fails);
	}
	gate_release(&gate);
	return n;
}

static void test_fail_on(void **state)
{
	(void)state;
	assert_int_equal(failures(NULL, NULL), 0);
	assert_int_equal(failures("any", NULL), 2);
	assert_int_equal(failures("problem", NULL), 2);
	assert_int_equal(failures("hidden-sync", NULL), 0);
	assert_int_equal(failures("hidden-sync,pageable-copy,any", NULL), 2);
	assert_int_equal(failures("", NULL), -1);
	assert_int_equal(failures("any,", NULL), -1);
	assert_int_equal(failures("Any", NULL), -1);
}

static void test_budgets(void **state)
{
	static const char *const kept[] = {
		"all:8ms", "all:8",    "all:8000us", "all:0.008s",          "all:8%",
		"all:4x",  "all:8.1%", "all:1s",     "hidden-sync:0,all:8", "pageable-copy:8",
	};
	static const char *const broken[] = {
		"all:7.9ms", "all:7",           "all:7999us",          "all:7.99%",
		"all:3x",    "pageable-copy:0", "hidden-sync:0,all:7",
	};
	static const char *const wrong[] = {
		"",
		"all",
		"all:",
		"all:ms",
		"all:-1",
		"all:1 ms",
		"all:1m",
		"all:+1",
		"all:nan",
		"all:1e30",
		"none:1",
		":1",
		"all:1,",
		"all:0x10",
		"all:1e999s",
		"all:1.2.3",
		"all:99999999999999999999s",
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(kept); i++)
		if (failures(NULL, kept[i]) != 0)
			fail_msg("%s is not kept", kept[i]);
	for (i = 0; i < ARRAY_SIZE(broken); i++)
		if (failures(NULL, broken[i]) != 1)
			fail_msg("%s is kept", broken[i]);
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		if (failures(NULL, wrong[i]) != -1)
			fail_msg("%s is understood", wrong[i]);
}

/* What is only a note fails for "any", and for its detector. */
static void test_notes(void **state)
{
	struct finding all[] = {finding("work", "a.c", 1, 90), finding("work", "a.c", 2, 90)};
	struct finding findings[2];
	static const char *const rules[] = {"problem", "any", "pageable-copy", "any,problem"};
	static const int failing[] = {1, 2, 2, 2};
	struct gate gate;
	size_t i;

	(void)state;
	all[1].remarks.maybe_harmless = true;
	all[1].cost.gain_known = true;
	for (i = 0; i < ARRAY_SIZE(rules); i++) {
		memcpy(findings, all, sizeof(all));
		assert_int_equal(gate_init(&gate, rules[i], NULL, NULL, 0), 0);
		gate_judge(&gate, &run, findings, ARRAY_SIZE(findings));
		assert_int_equal(gate.n_failures, failing[i]);
		assert_true(findings[0].gate.fails);
		assert_int_equal(findings[1].gate.fails, failing[i] == 2);
		gate_release(&gate);
	}
}

/* Each option alone asks for a verdict; suppressions and a baseline do not. */
static void test_asked(void **state)
{
	static const struct {
		const char *fail_on, *budget;
		bool asked;
	} cases[] = {
		{NULL, NULL, false},         {"any", NULL, true},   {"problem", NULL, true},
		{"hidden-sync", NULL, true}, {NULL, "all:1", true},
	};
	struct gate gate;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(gate_init(&gate, cases[i].fail_on, cases[i].budget, NULL, 0), 0);
		assert_int_equal(gate_asked(&gate), cases[i].asked);
		assert_int_equal(gate_used(&gate), cases[i].asked);
		gate_release(&gate);
	}
	gate = (struct gate){.suppressions = {.n = 1}};
	assert_true(gate_used(&gate) && !gate_asked(&gate));
	gate = (struct gate){.baseline = {.path = (char *)"old"}};
	assert_true(gate_used(&gate) && !gate_asked(&gate));
}

/* Everything that a gate says, and in which order the findings come: problems, notes, minor and accepted ones; of each
 * first what counts. */
static void test_said(void **state)
{
	static const char entries[] = "pageable-copy accepted -- fine\n"
				      "pageable-copy [ao][cv]* -- twice in the sums\n"
				      "pageable-copy accepted until 2020-01-02 -- hoped\n"
				      "pageable-copy unknown -- who knows\n"
				      "hidden-sync x.c until 2999-01-02 -- not there\n";
	static const char *const order[] = {"worse", "new",     "same",     "cheap",
					    "note",  "overlap", "accepted", "unknown"};
	struct finding findings[] = {
		finding("overlap", "a.c", 1, 8), finding("accepted", "a.c", 2, 6),
		finding("cheap", "a.c", 3, 0),   finding("same", "a.c", 4, 20),
		finding("note", "a.c", 5, 7),    finding("worse", "a.c", 6, 30),
		finding("new", "a.c", 7, 5),     finding("unknown", "a.c", 8, 5),
	};
	char *dir = scratch_make(), path[512], *text = NULL;
	const char *paths[] = {path};
	struct report report;
	struct gate gate;
	size_t i, size;
	FILE *out = open_memstream(&text, &size);
	json_t *root, *row;

	(void)state;
	snprintf(path, sizeof(path), "%s/accepted", dir);
	scratch_write(path, entries, strlen(entries));
	assert_int_equal(
		gate_init(&gate, "problem", "all:35ms,pageable-copy:7x,all:1000x", paths, 1), 0);
	assert_int_equal(
		baseline_take(&gate.baseline, "old",
			      json_loads("{\"schema\": \"cudaspy-report-2\", \"findings\": [" OLD(
						 "same", "a.c", 4,
						 20) "," OLD("worse", "a.c", 6,
							     10) "," OLD("gone", "a.c", 9, 10) "]}",
					 0, NULL)),
		0);
	findings[0].cost.overlaps = true;
	findings[4].remarks.maybe_harmless = true;
	findings[4].place.words = " here";
	findings[4].cost.gain_known = true;
	findings[4].cost.gain_high_ns = 7000000;
	findings[5].place.words = " there";
	findings[7].cost.unknown = true;
	gate_judge(&gate, &run, findings, ARRAY_SIZE(findings));
	for (i = 0; i < ARRAY_SIZE(order); i++)
		assert_string_equal(findings[i].place.caller, order[i]);
	report_init(&report, "test");
	report_gate(&report, &gate);
	assert_int_equal(render_json(&report, out), 0);
	fclose(out);
	root = json_loads(text, 0, NULL);
	free(text);
	json_array_foreach(json_object_get(root, "suppressions"), i, row)
		json_object_del(row, "file");
	json_object_del(root, "detectors");
	text = json_dumps(root, JSON_PRESERVE_ORDER | JSON_INDENT(1));
	golden_compare("gate", "json", text);
	free(text);
	out = open_memstream(&text, &size);
	assert_int_equal(render_text(&report, out), 0);
	fclose(out);
	golden_compare("gate", "report", text);
	free(text);
	json_decref(root);
	report_release(&report);
	gate_release(&gate);
	scratch_remove(dir);
}

/* It is in no sum, and counted. */
static void test_unknown_in_budget(void **state)
{
	struct finding findings[] = {finding("work", "a.c", 1, 6), finding("work", "a.c", 2, 2)};
	struct report report;
	struct gate gate;
	const struct table *t;

	(void)state;
	findings[0].cost.unknown = true;
	assert_int_equal(gate_init(&gate, NULL, "all:2ms", NULL, 0), 0);
	gate_judge(&gate, &run, findings, ARRAY_SIZE(findings));
	assert_false(gate_failed(&gate));
	report_init(&report, "test");
	report_gate(&report, &gate);
	t = report_find(&report, "gate");
	assert_int_equal(table_number_at(t, 0, "counted"), 2);
	assert_int_equal(table_number_at(t, 0, "counted_unknown"), 1);
	assert_int_equal(table_number_at(t, 0, "counted_ns"), 2000000);
	report_release(&report);
	gate_release(&gate);
}

/* ---- odd texts -------------------------------------------------------------------------------- */

struct row {
	const char *id, *title, *what, *fix, *where, *caller, *module, *file, *severity, *sees,
		*blind;
	uint64_t line;
};

#define TEXT(member) COLUMN_JSON(struct row, member, UNIT_TEXT)
static const struct column columns[] = {
	TEXT(id),    TEXT(title),    TEXT(what),   TEXT(fix),
	TEXT(where), TEXT(caller),   TEXT(module), TEXT(file),
	TEXT(sees),  TEXT(severity), TEXT(blind),  COLUMN_JSON(struct row, line, UNIT_COUNT),
};

static char *rendered_as(const char *format, const char *odd, const char *severity)
{
	static const struct table_kind findings = {.key = "findings",
						   .columns = columns,
						   .n_columns = ARRAY_SIZE(columns),
						   .row_bytes = sizeof(struct row)};
	static const struct table_kind detectors = {.key = "detectors",
						    .columns = columns,
						    .n_columns = ARRAY_SIZE(columns),
						    .row_bytes = sizeof(struct row)};
	struct row one = {"id", odd, odd, odd, odd, odd, odd, odd, severity, odd, odd, 3};
	struct report report;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	void *rows;

	report_init(&report, "test");
	rows = xcalloc(1, sizeof(one));
	memcpy(rows, &one, sizeof(one));
	report_add(&report, &findings, rows, 1);
	rows = xcalloc(1, sizeof(one));
	memcpy(rows, &one, sizeof(one));
	report_add(&report, &detectors, rows, 1);
	assert_int_equal(renderer_find(format)->render(&report, out), 0);
	fclose(out);
	report_release(&report);
	return text;
}

static char *rendered(const char *format, const char *odd)
{
	return rendered_as(format, odd, "problem");
}

/* Where no gate was asked for, what is no problem fails nothing. */
static void test_severities(void **state)
{
	static const struct {
		const char *severity, *junit, *sarif;
	} all[] = {
		{"problem", "failures=\"1\"", "\"level\": \"warning\""},
		{"minor", "failures=\"0\"", "\"level\": \"note\""},
		{"note", "failures=\"0\"", "\"level\": \"note\""},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		char *xml = rendered_as("junit", "text", all[i].severity);
		char *sarif = rendered_as("sarif", "text", all[i].severity);

		assert_non_null(strstr(xml, all[i].junit));
		assert_non_null(strstr(sarif, all[i].sarif));
		free(xml);
		free(sarif);
	}
}

static void test_odd_texts(void **state)
{
	static const struct {
		const char *odd, *xml;
	} texts[] = {
		{"a<b>&\"c\"", "a&#60;b&#62;&#38;&#34;c&#34;"},
		{"two\nlines", "two&#10;lines"},
		{"\x01\x1b[0m", "??[0m"},
		{"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		 "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"\xff \xc3 \xc0\x80 \xed\xa0\x80 \xef\xbf\xbf", "? ? ?? ??? ???"},
		{"end \xe2\x82", "end ??"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		char *xml = rendered("junit", texts[i].odd),
		     *sarif = rendered("sarif", texts[i].odd);
		json_t *root = json_loads(sarif, 0, NULL);

		if (!strstr(xml, texts[i].xml))
			fail_msg("'%s' is not in %s", texts[i].xml, xml);
		assert_non_null(root);
		json_decref(root);
		free(xml);
		free(sarif);
	}
}

static void test_uri(void **state)
{
	char *sarif = rendered("sarif", "/no where/a#%.c");

	(void)state;
	assert_non_null(strstr(sarif, "\"uri\": \"file:///no%20where/a%23%25.c\""));
	free(sarif);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_baseline),
		cmocka_unit_test(test_a_fifth),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_unknown_in_budget),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_asked),
		cmocka_unit_test(test_said),
		cmocka_unit_test(test_places_in_library),
		cmocka_unit_test(test_library),
		cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_fail_on),
		cmocka_unit_test(test_budgets),
		cmocka_unit_test(test_odd_texts),
		cmocka_unit_test(test_uri),
		cmocka_unit_test(test_severities),
	};

	golden_find();
	unsetenv("COLUMNS");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
