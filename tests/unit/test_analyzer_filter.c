/*
 * tests/unit/test_analyzer_filter.c: reports on a part of a recording: how options are read, and that what is in and
 * what is left out are all there is, judged as in the whole report.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include "cmd_read/cmd_report.h"
#include "golden.h"
#include "report_sums.h"
#include "trace_text.h"
#include "filter/words.h"
#include "render/render.h"

/* ---- words ----------------------------------------------------------------------------------- */

static int parse(struct filter *filter, enum filter_kind kind, const char *word)
{
	struct filter_words words = {0};

	words.of[kind] = word;
	return filter_parse(filter, &words);
}

static void test_times(void **state)
{
	static const struct {
		const char *word;
		uint64_t ns;
	} times[] = {{"1.5s", 1500000000},
		     {"300ms", 300000000},
		     {"0.25us", 250},
		     {"7ns", 7},
		     {"2min", 120000000000},
		     {"0s", 0},
		     {"1.0000000005s", 1000000001}};
	static const struct {
		const char *word;
		double part;
	} parts[] = {{"25%", 0.25}, {"0%", 0}, {"100%", 1}, {"12.5%", 0.125}};
	struct filter filter;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(times); i++) {
		assert_int_equal(parse(&filter, FILTER_FROM, times[i].word), 0);
		assert_int_equal(filter.from.form, FILTER_TIME_NS);
		assert_int_equal(filter.from.ns, times[i].ns);
		assert_int_equal(filter.to.form, FILTER_TIME_NONE);
		filter_release(&filter);
	}
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		assert_int_equal(parse(&filter, FILTER_TO, parts[i].word), 0);
		assert_int_equal(filter.to.form, FILTER_TIME_PART);
		assert_true(filter.to.part == parts[i].part);
		filter_release(&filter);
	}
	assert_int_equal(parse(&filter, FILTER_TO, "phase"), 0);
	assert_int_equal(filter.to.form, FILTER_TIME_PHASE);
	filter_release(&filter);
}

static void test_wrong_words(void **state)
{
	static const struct {
		enum filter_kind kind;
		const char *word;
	} wrong[] = {
		{FILTER_FROM, "1.5"},    {FILTER_FROM, "s"},          {FILTER_FROM, "-1s"},
		{FILTER_FROM, "1e3s"},   {FILTER_FROM, "0x10s"},      {FILTER_FROM, "inf"},
		{FILTER_FROM, "1.2.3s"}, {FILTER_FROM, "101%"},       {FILTER_FROM, "1 s"},
		{FILTER_FROM, "phases"}, {FILTER_TO, "1h"},           {FILTER_TO, "99999999999s"},
		{FILTER_GPU, "a"},       {FILTER_GPU, "1-"},          {FILTER_GPU, "-1"},
		{FILTER_GPU, "3-1"},     {FILTER_GPU, "1,,2"},        {FILTER_GPU, "1,"},
		{FILTER_RANK, "0-1-2"},  {FILTER_RANK, "4294967296"}, {FILTER_RANK, "1.5"},
		{FILTER_THREAD, "a,,b"}, {FILTER_FUNCTION, ",a"},     {FILTER_PROCESS, ","},
	};
	struct filter filter;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		unsigned int said = warnings_count();

		if (parse(&filter, wrong[i].kind, wrong[i].word) != -EINVAL)
			fail_msg("%s is taken", wrong[i].word);
		assert_int_equal(warnings_count(), said + 1);
		filter_release(&filter);
	}
}

static void test_order_of_times(void **state)
{
	static const struct {
		const char *from, *to;
		int err;
	} pairs[] = {{"1s", "2s", 0},         {"2s", "2s", -EINVAL}, {"2s", "1500ms", -EINVAL},
		     {"20%", "10%", -EINVAL}, {"20%", "1ns", 0},     {"phase", "phase", 0},
		     {"0s", "0s", -EINVAL}};
	struct filter filter;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(pairs); i++) {
		struct filter_words words = {
			.of = {[FILTER_FROM] = pairs[i].from, [FILTER_TO] = pairs[i].to}};

		assert_int_equal(filter_parse(&filter, &words), pairs[i].err);
		filter_release(&filter);
	}
}

static void test_lists(void **state)
{
	struct filter filter;

	(void)state;
	assert_int_equal(parse(&filter, FILTER_RANK, "0,3-5,9"), 0);
	for (uint32_t i = 0; i < 12; i++)
		assert_int_equal(filter_fits_number(&filter, FILTER_RANK, i),
				 i == 0 || (i >= 3 && i <= 5) || i == 9);
	filter_release(&filter);
	assert_int_equal(parse(&filter, FILTER_THREAD, "main,load*,7"), 0);
	assert_true(filter_fits_name(&filter, FILTER_THREAD, "main"));
	assert_true(filter_fits_name(&filter, FILTER_THREAD, "loader"));
	assert_false(filter_fits_name(&filter, FILTER_THREAD, "mains"));
	assert_true(filter_fits_number(&filter, FILTER_THREAD, 7));
	assert_false(filter_fits_number(&filter, FILTER_THREAD, 77));
	filter_release(&filter);
	/* A range may be called so. */
	assert_int_equal(parse(&filter, FILTER_RANGE, "a,b"), 0);
	assert_int_equal(filter.n[FILTER_RANGE], 1);
	filter_release(&filter);
}

/* ---- parts and the whole --------------------------------------------------------------------- */

/* The report on the traces there; NULL: refused. json_decref frees it. */
static json_t *part_of(const char *dir, const struct filter_words *words)
{
	struct filter filter;
	struct report_options options = {.renderer = renderer_find("json"), .only = &filter};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *root = NULL;
	int err = filter_parse(&filter, words);

	assert_int_equal(err, 0);
	err = report_show(&dir, 1, NULL, &options, out);
	filter_release(&filter);
	fclose(out);
	if (err) {
		assert_int_equal(err, -EINVAL);
	} else {
		root = json_loads(text, 0, NULL);
		assert_non_null(root);
		report_agrees(root);
	}
	free(text);
	return root;
}

static char *made_of(const char *log)
{
	char *dir = scratch_make();

	tt_make(log, dir);
	return dir;
}

static char *golden(const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s.log", golden_dir, name);
	return made_of(path);
}

/* What a report says of the calls that are in it. */
struct sums {
	json_int_t calls, ns, lost_ns, lock_ns, getters;
};

static struct sums sums_of(const json_t *root)
{
	const json_t *waits = json_object_get(root, "waits");
	const json_t *summary = json_object_get(root, "summary");

	return (struct sums){rs_number(summary, "calls"), rs_number(summary, "call_ns"),
			     rs_number(waits, "lost_ns"), rs_number(waits, "lock_waited_ns"),
			     rs_number(summary, "counted")};
}

static void add(struct sums *sum, const struct sums *more)
{
	sum->calls += more->calls;
	sum->ns += more->ns;
	sum->lost_ns += more->lost_ns;
	sum->lock_ns += more->lock_ns;
	sum->getters += more->getters;
}

/* One part: with what is left out it is the whole. */
static struct sums look_at_part(const char *dir, const struct filter_words *words,
				const struct sums *whole)
{
	json_t *root = part_of(dir, words), *only = json_object_get(root, "only"), *option;
	struct sums in = sums_of(root);
	size_t i;

	assert_non_null(root);
	assert_int_equal(rs_number(only, "calls"), in.calls);
	assert_int_equal(rs_number(only, "calls_ns"), in.ns);
	assert_int_equal(in.calls + rs_number(only, "left_out"), whole->calls);
	assert_int_equal(in.ns + rs_number(only, "left_out_ns"), whole->ns);
	assert_int_equal(in.getters + rs_number(only, "left_out_counted"), whole->getters);
	json_array_foreach(json_object_get(only, "options"), i, option)
	{
		assert_true(rs_number(option, "calls") <= rs_number(only, "left_out"));
		assert_true(rs_number(option, "ns") <= rs_number(only, "left_out_ns"));
	}
	json_decref(root);
	return in;
}

/* Parts that are all there is, and have nothing in common: NULL behind the last one. */
static void look_at_parts(const char *dir, enum filter_kind kind, const char *const *parts,
			  bool timed)
{
	json_t *root = part_of(dir, &(struct filter_words){0});
	struct sums whole = sums_of(root), sum = {0}, in;

	assert_null(json_object_get(root, "only"));
	for (; *parts; parts++) {
		struct filter_words words = {0};

		words.of[kind] = *parts;
		in = look_at_part(dir, &words, &whole);
		add(&sum, &in);
	}
	assert_int_equal(sum.calls, whole.calls);
	assert_int_equal(sum.ns, whole.ns);
	assert_int_equal(sum.lost_ns, whole.lost_ns);
	assert_int_equal(sum.lock_ns, whole.lock_ns);
	if (!timed)
		assert_int_equal(sum.getters, whole.getters);
	json_decref(root);
}

static void test_parts(void **state)
{
	char *dir = golden("locks");

	(void)state;
	look_at_parts(dir, FILTER_THREAD, (const char *[]){"app", "102", "103", NULL}, false);
	look_at_parts(dir, FILTER_THREAD, (const char *[]){"101", "w?rk*", NULL}, false);
	look_at_parts(dir, FILTER_GPU, (const char *[]){"0", "1-7", NULL}, true);
	look_at_parts(dir, FILTER_PROCESS, (const char *[]){"app", NULL}, false);
	look_at_parts(
		dir, FILTER_FUNCTION,
		(const char *[]){"cudaMemcpy*", "cudaL*", "cudaMalloc,cudaStreamCreate", NULL},
		false);
	scratch_remove(dir);
	dir = golden("turns");
	look_at_parts(dir, FILTER_PROCESS, (const char *[]){"a", "200", NULL}, false);
	scratch_remove(dir);
	dir = golden("sharing");
	look_at_parts(dir, FILTER_PROCESS, (const char *[]){"*", NULL}, false);
	scratch_remove(dir);
}

/* Windows one behind the other, in each of the logs. */
static void test_windows(void **state)
{
	static const char *const logs[] = {"locks", "turns", "sharing", "pageable", "killed"};
	static const char *const cuts[] = {NULL, "1%", "35%", "80.5%", "99%", NULL};
	size_t i, j;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(logs); i++) {
		char *dir = golden(logs[i]);
		json_t *root = part_of(dir, &(struct filter_words){0});
		struct sums whole = sums_of(root), sum = {0};

		json_decref(root);
		for (j = 0; j + 1 < ARRAY_SIZE(cuts); j++) {
			struct filter_words words = {
				.of = {[FILTER_FROM] = cuts[j], [FILTER_TO] = cuts[j + 1]}};
			struct sums in = look_at_part(dir, &words, &whole);

			add(&sum, &in);
		}
		assert_int_equal(sum.calls, whole.calls);
		assert_int_equal(sum.ns, whole.ns);
		assert_int_equal(sum.lost_ns, whole.lost_ns);
		assert_int_equal(sum.lock_ns, whole.lock_ns);
		scratch_remove(dir);
	}
}

/* All options at once leave out no more than all of them. */
static void test_combinations(void **state)
{
	char *dir = golden("locks");
	json_t *root = part_of(dir, &(struct filter_words){0});
	struct sums whole = sums_of(root), in;

	(void)state;
	json_decref(root);
	in = look_at_part(dir,
			  &(struct filter_words){.of = {[FILTER_THREAD] = "worker",
							[FILTER_FUNCTION] = "cudaM*",
							[FILTER_GPU] = "1",
							[FILTER_FROM] = "0.1s"}},
			  &whole);
	assert_int_equal(in.calls, 1); /* cudaMalloc of 103 */
	in = look_at_part(
		dir, &(struct filter_words){.of = {[FILTER_THREAD] = "app", [FILTER_TO] = "10ms"}},
		&whole);
	assert_int_equal(in.calls, 4);
	/* Nothing that they have in common. */
	in = look_at_part(
		dir,
		&(struct filter_words){
			.of = {[FILTER_THREAD] = "app", [FILTER_FUNCTION] = "cudaMalloc"}},
		&whole);
	assert_int_equal(in.calls, 0);
	assert_int_equal(in.lost_ns, 0);
	scratch_remove(dir);
}

/* What is in waits for what is left out: it is named all the same, and nothing of what that lost counts. */
static void test_holder_outside(void **state)
{
	char *dir = golden("locks");
	json_t *whole = part_of(dir, &(struct filter_words){0});
	json_t *root = part_of(dir, &(struct filter_words){.of = {[FILTER_THREAD] = "103"}});
	const json_t *edge, *row;
	size_t i, j;

	(void)state;
	assert_true(json_array_size(json_object_get(root, "blame")) > 0);
	json_array_foreach(json_object_get(root, "blame"), i, edge)
	{
		bool found = false;

		assert_int_equal(rs_number(edge, "waiter"), 103);
		json_array_foreach(json_object_get(whole, "blame"), j, row) found |=
			json_equal(row, edge);
		if (!found)
			fail_msg("not in the whole report: %s", json_dumps(edge, 0));
	}
	edge = json_array_get(json_object_get(root, "blame"), 0);
	assert_true(rs_number(edge, "holder") == 101 || rs_number(edge, "holder") == 102);
	assert_int_equal(rs_number(json_array_get(json_object_get(root, "locks"), 0), "waiters"),
			 1);
	json_decref(root);
	json_decref(whole);
	scratch_remove(dir);
}

/* ---- what there is not ------------------------------------------------------------------------- */

static void test_nothing_found(void **state)
{
	static const struct filter_words wrong[] = {
		{.of = {[FILTER_THREAD] = "nobody"}},
		{.of = {[FILTER_THREAD] = "app,104"}},
		{.of = {[FILTER_GPU] = "2"}},
		{.of = {[FILTER_GPU] = "0,5-9"}},
		{.of = {[FILTER_RANK] = "0"}},
		{.of = {[FILTER_PROCESS] = "b"}},
		{.of = {[FILTER_FUNCTION] = "cuInit"}},
		{.of = {[FILTER_RANGE] = "*"}},
		{.of = {[FILTER_FROM] = "1s"}},
		{.of = {[FILTER_TO] = "0s"}},
		{.of = {[FILTER_FROM] = "90%", [FILTER_TO] = "1ms"}},
	};
	char *dir = golden("locks");
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		unsigned int said = warnings_count();

		assert_null(part_of(dir, &wrong[i]));
		assert_int_equal(warnings_count(), said + 1);
	}
	scratch_remove(dir);
}

/* ---- names, ranks, ranges ---------------------------------------------------------------------- */

#define TWO_RANKS \
	"trace a.100 pid=100 program=\"a\" boot_id=b clock_source=tsc rank=0 world_size=2\n" \
	"slot 0 tid=100\n" \
	"8ms nvtx_name what=thread object=101 name=\"feeder\"\n" \
	"slot 1 tid=100\n1us thread tid=100 name=\"python\"\n" \
	"1ms launch cudaLaunchKernel duration=4us kernel=1 stream=8 caller=0x10\n" \
	"2ms launch cudaLaunchKernel duration=5us kernel=1 stream=8 caller=0x10\n" \
	"3ms count function=cudaGetDevice tid=100 count=7\n" \
	"slot 2 tid=101\n1us thread tid=101 name=\"python\"\n" \
	"1ms launch cudaLaunchKernel duration=6us kernel=1 stream=9 caller=0x10\n" \
	"9ms launch cudaLaunchKernel duration=7us kernel=1 stream=9 caller=0x10\n" \
	"trace b.200 pid=200 program=\"b\" boot_id=b clock_source=tsc rank=1 world_size=2\n" \
	"slot 1 tid=200\n1us thread tid=200 name=\"python\"\n" \
	"1ms launch cudaLaunchKernel duration=8us kernel=1 stream=8 caller=0x10\n" \
	"4ms count function=cudaGetDevice tid=200 count=5\n"

static char *made_of_text(const char *text)
{
	char *dir = scratch_make(), path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/log", dir);
	scratch_write(path, text, strlen(text));
	tt_make(path, dir);
	return dir;
}

static void test_ranks_and_names(void **state)
{
	char *dir = made_of_text(TWO_RANKS);
	json_t *root = part_of(dir, &(struct filter_words){0});
	struct sums whole = sums_of(root), in;

	(void)state;
	assert_int_equal(whole.getters, 12);
	json_decref(root);
	look_at_parts(dir, FILTER_RANK, (const char *[]){"0", "1", NULL}, false);
	look_at_parts(dir, FILTER_RANK, (const char *[]){"0-1", NULL}, false);
	look_at_parts(dir, FILTER_PROCESS, (const char *[]){"100", "b", NULL}, false);
	look_at_parts(dir, FILTER_THREAD, (const char *[]){"python", NULL}, false);
	/* Also its calls before the program gave it that name. */
	in = look_at_part(dir, &(struct filter_words){.of = {[FILTER_THREAD] = "feeder"}}, &whole);
	assert_int_equal(in.calls, 2);
	in = look_at_part(dir, &(struct filter_words){.of = {[FILTER_RANK] = "1"}}, &whole);
	assert_int_equal(in.calls, 1);
	assert_int_equal(in.getters, 5);
	/* When calls were made that were only counted is unknown. */
	in = look_at_part(dir, &(struct filter_words){.of = {[FILTER_FROM] = "0s"}}, &whole);
	assert_int_equal(in.calls, 5);
	assert_int_equal(in.getters, 0);
	assert_null(part_of(dir, &(struct filter_words){.of = {[FILTER_RANK] = "2"}}));
	scratch_remove(dir);
}

/* Without a launcher a communicator numbers the GPUs of a process. */
#define TWO_GPUS \
	"trace a.100 pid=100 program=\"a\" boot_id=b clock_source=tsc\n" \
	"slot 1 tid=7\n1us thread tid=7 name=\"a\"\n" \
	"1ms launch cudaLaunchKernel duration=4us kernel=1 stream=8 device=0 caller=0x10\n" \
	"2ms launch cudaLaunchKernel duration=5us kernel=1 stream=9 device=1 caller=0x10\n" \
	"3ms launch cudaLaunchKernel duration=6us kernel=1 stream=9 device=1 caller=0x10\n" \
	"4ms nccl_comm interface=6 number=1 hash=0xab rank=5 ranks=8 tid=7 device=0\n" \
	"4ms nccl_comm interface=6 number=2 hash=0xab rank=6 ranks=8 tid=7 device=1\n" \
	"5ms nccl_comm interface=6 number=3 hash=0xcd rank=1 ranks=2 tid=7 device=0\n"

static void test_ranks_of_one_process(void **state)
{
	char *dir = made_of_text(TWO_GPUS);
	json_t *root = part_of(dir, &(struct filter_words){0});
	struct sums whole = sums_of(root), in;

	(void)state;
	json_decref(root);
	look_at_parts(dir, FILTER_RANK, (const char *[]){"5", "6", NULL}, true);
	in = look_at_part(dir, &(struct filter_words){.of = {[FILTER_RANK] = "6"}}, &whole);
	assert_int_equal(in.calls, 2);
	assert_int_equal(in.ns, 11000);
	assert_null(
		part_of(dir, &(struct filter_words){
				     .of = {[FILTER_RANK] = "0-4,7"}})); /* nor by a smaller one */
	scratch_remove(dir);
}

/* What an option does not limit is named: time limits all but what is expected of calls; a GPU, a rank or a process is all
 * that there is of GPUs; and ranks are told of as they are, if there are any. */
static void test_not_limited(void **state)
{
#define GPUS "GPUS and findings about idle GPUs"
#define REST "what calls are expected to cost"
	static const struct {
		struct filter_words words;
		bool ranks;
		const char *text;
	} rows[] = {
		{{.of = {[FILTER_FROM] = "0s"}}, false, REST},
		{{.of = {[FILTER_TO] = "3ms"}}, false, REST},
		{{.of = {[FILTER_GPU] = "0"}}, false, REST},
		{{.of = {[FILTER_PROCESS] = "100"}}, false, REST},
		{{.of = {[FILTER_THREAD] = "7"}}, false, GPUS "; " REST},
		{{.of = {[FILTER_THREAD] = "7", [FILTER_GPU] = "0"}}, false, GPUS "; " REST},
		{{.of = {[FILTER_THREAD] = "7", [FILTER_TO] = "3ms"}},
		 false,
		 GPUS ", but by time; " REST},
		{{.of = {[FILTER_FROM] = "0s"}}, true, "COLLECTIVES and STEPS; " REST},
		{{.of = {[FILTER_RANK] = "0"}}, true, "RANKS; COLLECTIVES and STEPS; " REST},
		{{.of = {[FILTER_RANK] = "0", [FILTER_TO] = "3ms"}},
		 true,
		 "RANKS, but by time; COLLECTIVES and STEPS; " REST},
		{{.of = {[FILTER_THREAD] = "python"}},
		 true,
		 GPUS "; RANKS; COLLECTIVES and STEPS; " REST},
	};
	static const char without[] =
		"trace a.100 pid=100 program=\"a\" boot_id=b clock_source=tsc\n"
		"slot 1 tid=7\n1us thread tid=7 name=\"a\"\n"
		"1ms launch cudaLaunchKernel duration=4us kernel=1 stream=8 device=0 caller=0x10\n"
		"2ms launch cudaLaunchKernel duration=4us kernel=1 stream=8 device=0 caller=0x10\n";
	char *dirs[] = {made_of_text(without), made_of_text(TWO_RANKS)};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *root = part_of(dirs[rows[i].ranks], &rows[i].words);

		if (strcmp(rs_text(json_object_get(root, "only"), "not_limited"), rows[i].text))
			fail_msg("%zu: %s", i,
				 rs_text(json_object_get(root, "only"), "not_limited"));
		json_decref(root);
	}
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		scratch_remove(dirs[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_wrong_words),
		cmocka_unit_test(test_order_of_times),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_combinations),
		cmocka_unit_test(test_holder_outside),
		cmocka_unit_test(test_nothing_found),
		cmocka_unit_test(test_ranks_and_names),
		cmocka_unit_test(test_ranks_of_one_process),
		cmocka_unit_test(test_not_limited),
	};

	golden_find();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
