/*
 * tests/unit/test_analyzer_ranges.c: the program's own ranges (NVTX): what its calls did in them, in
 * the sums, in findings, and with --range.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include "story.h"
#include "account/ranges.h"
#include "filter/words.h"
#include "sections/sections.h"

static json_t *range_in(const json_t *root, const char *domain, const char *name)
{
	json_t *rows = json_object_get(root, "ranges"), *row;
	size_t i;

	json_array_foreach(rows, i, row) if (rs_is(row, "name", name) &&
					     rs_is(row, "domain", domain)) return row;
	return NULL;
}

static json_t *range(const struct story *s, const char *name)
{
	json_t *row = range_in(s->root, "", name);

	if (!row)
		fail_msg("no range %s", name);
	return row;
}

__attribute__((format(printf, 2, 3))) static void say(struct story *s, const char *format, ...)
{
	va_list arguments;

	fprintf(s->log, "%lluns ", (unsigned long long)s->ns);
	va_start(arguments, format);
	vfprintf(s->log, format, arguments);
	va_end(arguments);
	fputc('\n', s->log);
}

/* The report on the story with --range; the caller frees. NULL: there is no such range. */
static json_t *limited(const struct story *s, const char *pattern)
{
	struct filter_words words = {.of = {[FILTER_RANGE] = pattern}};
	struct filter filter;
	struct report_options options = {.renderer = renderer_find("json"), .only = &filter};
	char path[512], *text = NULL;
	const char *dirs[] = {path};
	json_t *root;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int err;

	assert_int_equal(filter_parse(&filter, &words), 0);
	snprintf(path, sizeof(path), "%s/a.%u", s->dir, s->told);
	err = report_show(dirs, 1, NULL, &options, out);
	filter_release(&filter);
	fclose(out);
	if (err) {
		assert_int_equal(err, -EINVAL);
		free(text);
		return NULL;
	}
	root = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(root);
	report_agrees(root);
	return root;
}

/* Two steps: in each a launch, and in a range inside a wait; a call in none behind each. */
static void tell_steps(struct story *s)
{
	begin(s);
	say(s, "range_name number=1 name=\"step\"");
	say(s, "range_name number=2 name=\"wait\" domain=\"layers\"");
	for (int i = 0; i < 2; i++) {
		say(s, "range what=push name=1");
		launch(s, 1000, 4000);
		say(s, "range what=push name=2");
		wait_for_stream(s, 20000, 0x20);
		say(s, "range what=pop name=2");
		launch(s, 2000, 4000);
		say(s, "range what=pop name=1");
		launch(s, 500, 3000);
	}
	conclude(s);
}

static void test_sums(void **state)
{
	struct story *s = *state;
	const json_t *wait;

	tell_steps(s);
	assert_int_equal(number(range(s, "step"), "count"), 2);
	assert_int_equal(number(range(s, "step"), "calls"), 6);
	assert_int_equal(number(range(s, "step"), "ns"), 64000);
	assert_int_equal(number(range(s, "step"), "longest_ns"), 32000);
	assert_int_equal(number(range(s, "step"), "calls_ns"), 56000);
	assert_int_equal(number(range(s, "step"), "own_ns"), 22000);
	assert_int_equal(number(range(s, "step"), "own_calls_ns"), 16000);
	wait = range_in(s->root, "layers", "wait");
	assert_non_null(wait);
	assert_int_equal(rs_number(wait, "count"), 2);
	assert_int_equal(rs_number(wait, "calls"), 2);
	assert_int_equal(rs_number(wait, "ns"), 42000);
	assert_int_equal(rs_number(wait, "own_ns"), 42000);
	assert_null(range_in(s->root, "", "wait"));
	assert_non_null(strstr(s->shown, "layers: wait"));
}

/* A range inside one of its name counts, and takes no time of its own; one that is open at the end
 * ends there, and what was begun by nobody does not end. */
static void test_odd_ones(void **state)
{
	struct story *s = *state;

	begin(s);
	say(s, "range_name number=1 name=\"deep\"");
	say(s, "range what=pop name=1");
	say(s, "range what=push name=1");
	launch(s, 0, 1000);
	say(s, "range what=push name=1");
	launch(s, 0, 1000);
	say(s, "range what=pop name=1");
	launch(s, 0, 1000);
	say(s, "range what=pop name=1");
	say(s, "range what=push name=9");
	say(s, "range what=mark name=1");
	say(s, "range_value what=end id=99");
	launch(s, 0, 1000);
	conclude(s);
	assert_int_equal(number(range(s, "deep"), "count"), 2);
	assert_int_equal(number(range(s, "deep"), "marks"), 1);
	assert_int_equal(number(range(s, "deep"), "ns"), 3000);
	assert_int_equal(number(range(s, "deep"), "calls"), 3);
	assert_int_equal(number(range(s, "(names that are not known)"), "unended"), 1);
	assert_int_equal(number(range(s, "(names that are not known)"), "ns"), 1000);
	assert_non_null(strstr(s->shown, "2 ranges not followed"));
	/* More than can be followed. */
	begin(s);
	say(s, "range_name number=1 name=\"deep\"");
	for (int i = 0; i < RANGES_OPEN_MOST + 10; i++)
		say(s, "range what=push name=1");
	launch(s, 0, 1000);
	conclude(s);
	assert_int_equal(number(range(s, "deep"), "count"), RANGES_OPEN_MOST);
	assert_int_equal(number(range(s, "deep"), "calls"), 1);
}

/* A GPU that has nothing to do until a call in a range. And an end that was lost: the range ends with
 * the one around it, but not with one of another domain. */
static void test_idle_and_lost(void **state)
{
	struct story *s = *state;
	const json_t *gpu;

	begin(s);
	say(s, "range_name number=1 name=\"step\"");
	say(s, "range_name number=2 name=\"lost\"");
	say(s, "range_name number=3 name=\"lost\" domain=\"other\"");
	for (int i = 0; i < 20; i++) {
		say(s, "range what=push name=1");
		say(s, "range what=push name=2");
		if (!i)
			say(s, "range what=push name=3");
		launch(s, 1000, 4000);
		wait_for_stream(s, MS, 0x20);
		say(s, "range what=pop name=1");
		s->ns += 2 * MS;
	}
	launch(s, 1000, 4000);
	conclude(s);
	assert_int_equal(number(range(s, "lost"), "count"), 20);
	assert_int_equal(number(range(s, "lost"), "unended"), 0);
	assert_int_equal(number(range(s, "lost"), "calls"), 40);
	assert_int_equal(number(range(s, "step"), "calls"), 40);
	assert_int_equal(rs_number(range_in(s->root, "other", "lost"), "unended"), 1);
	gpu = json_array_get(json_object_get(s->root, "gpus"), 0);
	assert_true(rs_number(gpu, "idle_ns") > 30 * MS);
	assert_true(number(range(s, "lost"), "gpu_idle_ns") +
			    rs_number(range_in(s->root, "other", "lost"), "gpu_idle_ns") >
		    30 * MS);
	assert_true(rs_sum(s->root, "ranges", "gpu_idle_ns") <= rs_number(gpu, "idle_ns"));
}

/* One that another thread ends, of which the calls of its own thread are. */
static void test_started(void **state)
{
	struct story *s = *state;

	begin(s);
	say(s, "range_name number=1 name=\"request\"");
	say(s, "range_name number=2 name=\"inside\"");
	say(s, "range_value what=start name=1 id=5 payload_type=u64 payload=3");
	launch(s, 0, 1000);
	say(s, "range what=push name=2");
	launch(s, 0, 1000);
	fprintf(s->log, "slot 2 tid=8\n");
	say(s, "thread tid=8 name=\"a\"");
	say(s, "op cudaStreamSynchronize stream=8 duration=0ns");
	say(s, "range_value what=end id=5");
	fprintf(s->log, "slot 1 tid=7\n");
	launch(s, 1000, 1000);
	say(s, "range what=pop name=2");
	launch(s, 0, 1000);
	conclude(s);
	assert_int_equal(number(range(s, "request"), "calls"), 2);
	assert_int_equal(number(range(s, "request"), "ns"), 2000);
	assert_int_equal(number(range(s, "request"), "unended"), 0);
	assert_int_equal(number(range(s, "inside"), "calls"), 2);
	assert_int_equal(number(range(s, "inside"), "ns"), 3000);
}

/* What is begun a second time, ended without a begin, or the 65th of a thread at a time, is lost, and nothing else. */
static void test_not_followed(void **state)
{
	struct story *s = *state;
	unsigned int i;

	begin(s);
	say(s, "range_name number=1 name=\"request\"");
	say(s, "range_name number=2 name=\"deep\"");
	say(s, "range_value what=start name=1 id=5");
	say(s, "range_value what=start name=1 id=5");
	say(s, "range_value what=end id=6");
	for (i = 0; i < 70; i++)
		say(s, "range what=push name=2");
	launch(s, 0, 1000);
	for (i = 0; i < 63; i++)
		say(s, "range what=pop name=2");
	launch(s, 0, 1000);
	say(s, "range_value what=end id=5");
	conclude(s);
	assert_true(is_said(s, "9 ranges"));
	assert_int_equal(number(range(s, "request"), "count"), 1);
	assert_int_equal(number(range(s, "request"), "calls"), 2);
	assert_int_equal(number(range(s, "request"), "unended"), 0);
	assert_int_equal(number(range(s, "deep"), "count"), 63);
	assert_int_equal(number(range(s, "deep"), "calls"), 1);
	assert_int_equal(number(range(s, "deep"), "unended"), 0);
}

/* What was open before the thread's stream began, told once or in each packet. */
static void test_open(void **state)
{
	struct story *s = *state;

	begin(s);
	s->ns = 10000;
	say(s, "range_name number=1 name=\"early\"");
	say(s, "range_value what=open name=1 id=4000");
	launch(s, 0, 1000);
	say(s, "range_value what=open name=1 id=4000");
	launch(s, 0, 1000);
	say(s, "range what=pop name=1");
	conclude(s);
	assert_int_equal(number(range(s, "early"), "count"), 1);
	assert_int_equal(number(range(s, "early"), "calls"), 2);
	assert_int_equal(number(range(s, "early"), "ns"), 8000);
	assert_int_equal(number(range(s, "early"), "own_ns"), 8000);
}

/* Names that differ in numbers only: few stay apart. */
static void test_families(void **state)
{
	struct story *s = *state;

	begin(s);
	for (int i = 1; i <= RANGE_FAMILY_MOST + 1; i++) {
		say(s, "range_name number=%d name=\"step %d\"", i, i);
		say(s, "range what=push name=%d", i);
		launch(s, 0, 1000);
		say(s, "range what=pop name=%d", i);
	}
	for (int i = 1; i <= RANGE_FAMILY_MOST; i++) {
		say(s, "range_name number=%d name=\"stage %d\"", 100 + i, i);
		say(s, "range what=push name=%d", 100 + i);
		launch(s, 0, 1000);
		say(s, "range what=pop name=%d", 100 + i);
	}
	say(s, "range_name number=50 name=\"step #\" folded=1");
	say(s, "range what=push name=50");
	launch(s, 0, 1000);
	say(s, "range what=pop name=50");
	conclude(s);
	assert_int_equal(number(range(s, "step #"), "count"), RANGE_FAMILY_MOST + 2);
	assert_int_equal(number(range(s, "step #"), "calls"), RANGE_FAMILY_MOST + 2);
	assert_null(range_in(s->root, "", "step 1"));
	assert_int_equal(number(range(s, "stage 1"), "count"), 1);
	assert_null(range_in(s->root, "", "stage #"));
}

/* The calls in all of them, and those outside, are all there are. */
static void test_only(void **state)
{
	struct story *s = *state;
	static const struct {
		const char *pattern;
		int64_t calls, ns, names;
	} limits[] = {
		{"step", 6, 56000, 1}, {"layers:wait", 2, 40000, 1}, {"wait", 2, 40000, 1},
		{"*", 6, 56000, 2},    {"st?p", 6, 56000, 1},
	};

	tell_steps(s);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		json_t *root = limited(s, limits[i].pattern);
		json_t *only = json_object_get(root, "only");

		assert_int_equal(rs_sum(root, "calls", "count"), limits[i].calls);
		assert_int_equal(rs_sum(root, "calls", "total_ns"), limits[i].ns);
		assert_int_equal(number(only, "calls"), limits[i].calls);
		assert_int_equal(number(only, "names"), limits[i].names);
		assert_int_equal(number(only, "left_out"), 8 - limits[i].calls);
		assert_int_equal(number(only, "left_out_ns"), 62000 - limits[i].ns);
		assert_int_equal(number(json_object_get(root, "waits"), "total_ns"), limits[i].ns);
		json_decref(root);
	}
	assert_null(json_object_get(s->root, "only"));
	assert_null(limited(s, "other:wait"));
	assert_null(limited(s, "nothing"));
}

/* Copies of pageable memory, three of four in a range. */
static void test_findings(void **state)
{
	struct story *s = *state;
	const json_t *ranges, *first;
	json_t *finding, *root;

	begin(s);
	say(s, "range_name number=1 name=\"load\" domain=\"data\"");
	for (int i = 0; i < 40; i++) {
		if (i % 4 == 1)
			say(s, "range what=push name=1");
		launch(s, 1000, 4000);
		call(s, 1000, MS,
		     "copy cudaMemcpyAsync stream=8 direction=h2d src=pageable dst=device "
		     "bytes=1000000 caller=0x30");
		wait_for_stream(s, MS, 0x20);
		if (i % 4 == 3)
			say(s, "range what=pop name=1");
	}
	conclude(s);
	finding = found(s, "pageable-copy");
	assert_non_null(finding);
	ranges = json_object_get(finding, "ranges");
	assert_int_equal(json_array_size(ranges), 1);
	first = json_array_get(ranges, 0);
	assert_true(rs_is(first, "name", "load") && rs_is(first, "domain", "data"));
	assert_int_equal(rs_number(first, "count"), 30);
	assert_true(rs_number(first, "ns") <= number(finding, "own_ns"));
	assert_true(rs_number(first, "ns") > number(finding, "own_ns") / 2);
	assert_non_null(strstr(s->shown, "in range data: load (7"));
	root = limited(s, "load");
	assert_int_equal(number(json_array_get(json_object_get(root, "findings"), 0), "count"), 30);
	json_decref(root);
}

/* A call that lost much says in which range it was. */
static void test_worst(void **state)
{
	struct story *s = *state;
	const json_t *worst;

	begin(s);
	say(s, "range_name number=1 name=\"reset\" domain=\"pool\"");
	for (int i = 0; i < 20; i++)
		call(s, 1000, 5000, "memory cudaFree op=free kind=device address=4096 caller=0x30");
	launch(s, 0, 4000);
	say(s, "range what=push name=1");
	call(s, 1000, 20 * MS, "memory cudaFree op=free kind=device address=4096 caller=0x30");
	say(s, "range what=pop name=1");
	launch(s, 0, 4000);
	conclude(s);
	worst = json_array_get(json_object_get(s->root, "worst_calls"), 0);
	assert_string_equal(rs_text(worst, "range"), "pool: reset");
	assert_non_null(strstr(s->shown, "in range pool: reset"));
}

/* A thread's name is what the program calls it, whoever says so first. */
static void test_threads(void **state)
{
	struct story *s = *state;
	const json_t *row;

	begin(s);
	launch(s, 0, 1000);
	fprintf(s->log, "slot 0\n");
	say(s, "nvtx_name what=thread object=7 name=\"the loader of all data\"");
	say(s, "nvtx_name what=stream object=8 name=\"copies\"");
	fprintf(s->log, "slot 1 tid=7\n");
	launch(s, 0, 1000);
	conclude(s);
	row = json_array_get(json_object_get(s->root, "threads"), 0);
	assert_string_equal(rs_text(row, "name"), "the loader of all data");
}

/* A library pushes a range and does not pop it, and one that it does: calls behind it are in the program's range, or in
 * none. The program's own, left open in the same way, is where they are. */
static void test_librarys(void **state)
{
	static const char *const domains[] = {"NCCL", "layers"};
	struct story *s = *state;

	for (int own = 0; own < 2; own++) {
		const json_t *made, *init;

		begin(s);
		say(s, "range_name number=1 name=\"step\"");
		say(s, "range_name number=2 name=\"init\" domain=\"%s\"", domains[own]);
		say(s, "range_name number=3 name=\"sum\" domain=\"%s\"", domains[own]);
		say(s, "range what=push name=2");
		launch(s, 0, 1000);
		say(s, "range what=push name=1");
		say(s, "range what=push name=3");
		launch(s, 0, 1000);
		say(s, "range what=pop name=3");
		launch(s, 0, 1000);
		say(s, "range what=pop name=1");
		launch(s, 0, 1000);
		conclude(s);
		init = range_in(s->root, domains[own], "init");
		made = range_in(s->root, domains[own], "sum");
		assert_int_equal(rs_number(made, "calls"), 1);
		assert_int_equal(rs_number(made, "own_ns"), 1000);
		assert_int_equal(number(range(s, "step"), "ns"), 2000);
		assert_int_equal(number(range(s, "step"), "own_ns"), own ? 1000 : 2000);
		assert_int_equal(init != NULL, own);
		assert_int_equal(strstr(s->shown,
					"left out, because the library did not end them: 1 of "
					"NCCL: init") != NULL,
				 !own);
		if (own)
			assert_int_equal(rs_number(init, "unended"), 1);
	}
}

/* Of many that were left open some are named. */
static void test_left_open(void **state)
{
	static const char *const words[] = {
		"left out, because the library did not end them: 1 of NCCL: n1",
		"left out, because the library did not end them: 1 of NCCL: n1, 2 of NCCL: n2",
		"did not end them: 1 of NCCL: n1, 2 of NCCL: n2, 3 of NCCL: n3",
		"did not end them: 1 of NCCL: n1, 2 of NCCL: n2, 3 of NCCL: n3 and 1 more names",
		"did not end them: 1 of NCCL: n1, 2 of NCCL: n2, 3 of NCCL: n3 and 2 more names",
	};
	struct story *s = *state;

	for (unsigned int n = 1; n <= ARRAY_SIZE(words); n++) {
		begin(s);
		say(s, "range_name number=10 name=\"step\"");
		for (unsigned int i = 1; i <= n; i++) {
			say(s, "range_name number=%u name=\"n%u\" domain=\"NCCL\"", i, i);
			for (unsigned int j = 0; j < i; j++)
				say(s, "range what=push name=%u", i);
			launch(s, 0, 1000);
		}
		say(s, "range what=push name=10");
		launch(s, 0, 1000);
		say(s, "range what=pop name=10");
		launch(s, 0, 1000);
		conclude(s);
		if (!strstr(scratch_squeeze(s->shown), words[n - 1]))
			fail_msg("%u: %s", n, s->shown);
		assert_int_equal(strstr(s->shown, "more names") != NULL, n > 3);
	}
}

/* What the calls of a finding cost in ranges: the most costly name first, of those that cost as much the one of more calls,
 * then the one that came up first. */
static void test_shares(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d", "e"};
	static const uint64_t ns[] = {10, 20, 20, 20, 30}, counts[] = {9, 1, 2, 2, 1};
	struct range_name *all[ARRAY_SIZE(names)];
	struct range_shares shares = {0};
	struct arena texts = {0};
	const struct table *table;

	(void)state;
	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
		all[i] = calloc(1, sizeof(*all[i]) + 1);
		all[i]->index = i;
		all[i]->domain = i == 4 ? "loader" : "";
		all[i]->name = names[i];
		range_shares_add(&shares, all[i], counts[i], ns[i]);
	}
	table = report_range_shares(&texts, &shares, 200);
	assert_int_equal(table->n_rows, ARRAY_SIZE(names));
	assert_string_equal(table->intro,
			    "in range loader: e (15 %), c (10 %), d (10 %), and 2 more");
	assert_string_equal(report_range_shares(&texts, &shares, 0)->intro,
			    "in range loader: e, c, d, and 2 more");
	arena_release(&texts);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		free(all[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- more names than rows -------------------------------------------------------------------- */

#define NAMES 1010
#define ROWS_MOST 1000

/* Letters alone: numbers would make them a family. The later ones are the longer ones. */
static void tell_many(struct story *s)
{
	begin(s);
	for (unsigned int i = 1; i <= NAMES; i++) {
		say(s, "range_name number=%u name=\"%c%c%c\"", i, 'a' + i / 26 / 26,
		    'a' + i / 26 % 26, 'a' + i % 26);
		say(s, "range what=mark name=%u", i);
		say(s, "range what=push name=%u", i);
		s->ns += 100 * i;
		wait_for_stream(s, 20000, 0x20);
		fprintf(s->log,
			"%lluns wait kind=mutex fn=cuMemAlloc_v2 outer_fn=cudaMalloc duration=5us "
			"object=0x10 device=0\n",
			(unsigned long long)s->ns + 9000);
		call(s, 0, 10000, "memory cudaMalloc op=alloc kind=device bytes=64 caller=0x30");
		say(s, "range what=pop name=%u", i);
	}
	conclude(s);
}

static int64_t sum_of(const struct story *s, const char *key)
{
	const json_t *row;
	int64_t sum = 0;
	size_t i;

	json_array_foreach(json_object_get(s->root, "ranges"), i, row) sum += rs_number(row, key);
	return sum;
}

/* What has no row of its own is in the last one, with all of its numbers. */
static void test_many_names(void **state)
{
	static const int64_t calls_ns = NAMES * 30000;
	static const int64_t ns = calls_ns + NAMES * 1000 + 100 * (NAMES * (NAMES + 1) / 2);
	struct story *s = *state;

	tell_many(s);
	assert_int_equal(json_array_size(json_object_get(s->root, "ranges")), ROWS_MOST);
	assert_int_equal(number(range(s, "(all others)"), "names"), NAMES - ROWS_MOST + 1);
	/* The longest of what is in it, which was the eleventh. */
	assert_int_equal(number(range(s, "(all others)"), "longest_ns"), 31000 + 1100);
	assert_int_equal(sum_of(s, "names"), NAMES);
	assert_int_equal(sum_of(s, "count"), NAMES);
	assert_int_equal(sum_of(s, "marks"), NAMES);
	assert_int_equal(sum_of(s, "calls"), 2 * NAMES);
	assert_int_equal(sum_of(s, "ns"), ns);
	assert_int_equal(sum_of(s, "own_ns"), ns);
	assert_int_equal(sum_of(s, "calls_ns"), calls_ns);
	assert_int_equal(sum_of(s, "own_calls_ns"), calls_ns);
	assert_int_equal(sum_of(s, "lock_ns"), NAMES * 5000);
	assert_int_equal(sum_of(s, "gpu_ns"),
			 rs_number(json_object_get(s->root, "waits"), "gpu_intended_ns"));
	assert_int_equal(sum_of(s, "lost_ns"),
			 rs_number(json_object_get(s->root, "waits"), "lost_ns"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sums),         TEST(test_odd_ones),
		TEST(test_started),      TEST(test_open),
		TEST(test_families),     TEST(test_only),
		TEST(test_findings),     TEST(test_threads),
		TEST(test_worst),        TEST(test_idle_and_lost),
		TEST(test_librarys),     TEST(test_many_names),
		TEST(test_left_open),    cmocka_unit_test(test_shares),
		TEST(test_not_followed),
	};

	return RUN_WITH_FINDINGS(tests);
}
