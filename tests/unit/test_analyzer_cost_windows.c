/*
 * tests/unit/test_analyzer_cost_windows.c: what the report says of cost windows (analyzer/cost/, sections/cost.c) in a log in
 * which each window takes 10 ms, so that all of it follows from the numbers of calls in them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "cmd_files/cmd_digest.h"
#include "cudaspy/cost_plan.h"
#include "report_json.h"

#define BLOCKS \
	28 /* half of them without probes in the third window, half without stacks: 12 at least of each */
#define WINDOW_NS 10000000ull
#define AWAY_NS \
	2000000ull /* while calls are counted a thread has no CPU for so long, which counts for nothing */

/* Calls in a window: launches and records of events by thread 101, launches by thread 102. */
struct window {
	const char *kind;
	unsigned int launches, events, others;
};

struct windows_log {
	char *text;
	size_t size;
	FILE *out;
	uint64_t ns;
};

static void put_call(FILE *out, uint64_t ns, const char *call, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		fprintf(out, "%llu %s duration=1us\n", (unsigned long long)(ns + 100000 * i), call);
}

static void put_thread(struct windows_log *log, int slot, const struct window *window,
		       uint64_t number, unsigned int launches, unsigned int events)
{
	bool counting = !strcmp(window->kind, "counting");
	uint64_t away = counting ? AWAY_NS : 0, end = log->ns + WINDOW_NS + away;

	fprintf(log->out, "slot %d tid=%d\n", slot, 100 + slot);
	if (!counting) {
		put_call(log->out, log->ns + 2000, "launch cudaLaunchKernel kernel=1", launches);
		put_call(log->out, log->ns + 5000000, "op cudaEventRecord", events);
	}
	fprintf(log->out, "%llu cost kind=%s window=%llu begin=%llu end=%llu delay=%llu calls=%u",
		(unsigned long long)end, window->kind, (unsigned long long)number,
		(unsigned long long)log->ns, (unsigned long long)end, (unsigned long long)away,
		launches + events);
	if (counting)
		fprintf(log->out, " counted=cudaLaunchKernel:%u", launches);
	if (counting && events)
		fprintf(log->out, ",cudaEventRecord:%u", events);
	fputc('\n', log->out);
}

static void put_window(struct windows_log *log, const struct window *window, uint64_t number)
{
	put_thread(log, 1, window, number, window->launches, window->events);
	put_thread(log, 2, window, number, window->others, 0);
	log->ns += WINDOW_NS + AWAY_NS;
}

/* With all that is recorded, thread 101 gets through 40 calls in 10 ms, thread 102 through 20; while they are counted, through 52 and
 * 20; without probes 5 % more; without stacks as many. */
static const struct window counted = {"counting", 22, 30, 20};

static void put_block(struct windows_log *log, uint64_t frame, uint64_t block, unsigned int n,
		      const struct window *counting)
{
	static const struct window all = {"all", 20, 20, 20},
				   lean[] = {{"no_probes", 21, 21, 21}, {"no_stacks", 20, 20, 20}};
	uint64_t number = spy_cost_window(frame, block, 0);

	put_window(log, &all, number);
	put_window(log, counting, number + 1);
	put_window(log, &lean[n % 2], number + 2);
}

/* The caller frees. */
static char *windows_with(const struct window *counting)
{
	struct windows_log log = {.ns = 1000000};
	unsigned int n = 0;

	log.out = open_memstream(&log.text, &log.size);
	fputs("trace app.100 pid=100 program=\"/bin/app\" probes=1\n"
	      "slot 1 tid=101\n1us thread tid=101 name=\"app\"\n"
	      "slot 2 tid=102\n1us thread tid=102 name=\"app\"\n",
	      log.out);
	for (uint64_t frame = 0; n < BLOCKS; frame++)
		for (uint64_t block = 0; block < spy_cost_frame(frame).blocks && n < BLOCKS;
		     block++)
			put_block(&log, frame, block, n++, counting);
	fclose(log.out);
	return log.text;
}

static json_t *report_on_windows(void)
{
	char *text = windows_with(&counted);
	json_t *root = report_on(text);

	free(text);
	return root;
}

static const json_t *row_of(const json_t *root, const char *kind, const char *key,
			    const char *value)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "recording_cost"), i, row)
	{
		if (rs_is(row, "kind", kind) && (!key || strstr(rs_text(row, key), value)))
			return row;
	}
	fail_msg("no row %s %s", kind, value ?: "");
	return NULL;
}

/* All blocks say the same: the interval is as wide as nothing. */
static void costs(const json_t *row, json_int_t ppm, json_int_t comparisons)
{
	assert_int_equal(rs_number(row, "cost_ppm"), ppm);
	assert_int_equal(rs_number(row, "low_ppm"), ppm);
	assert_int_equal(rs_number(row, "high_ppm"), ppm);
	assert_int_equal(rs_number(row, "comparisons"), comparisons);
	assert_int_equal(rs_number(row, "left_out"), 0);
	assert_null(json_string_value(json_object_get(row, "unknown")));
}

/* 60 calls with everything, 72 counted: a call takes 72/60 as long. */
static void test_the_whole(void **state)
{
	json_t *root = report_on_windows();
	const json_t *all = row_of(root, "all", NULL, NULL);

	(void)state;
	costs(all, 200000, BLOCKS);
	assert_string_equal(
		rs_text(all, "sentence"),
		"recording cost this program 20.000 % (20.000 to 20.000 %); cudaEventRecord, and "
		"what is done until the next, took 1.50 times as long while recorded (1.50 to 1.50)");
	costs(row_of(root, "probes", NULL, NULL), 50000, BLOCKS / 2);
	costs(row_of(root, "stacks", NULL, NULL), 0, BLOCKS / 2);
	json_decref(root);
}

/* 52 calls over 40, and as many as before; 42 launches over 40, 30 records of events over 20. */
static void test_threads_and_functions(void **state)
{
	json_t *root = report_on_windows();
	const json_t *launch = row_of(root, "function", "function", "cudaLaunchKernel"),
		     *event = row_of(root, "function", "function", "cudaEventRecord");

	(void)state;
	costs(row_of(root, "thread", "thread", "101"), 300000, BLOCKS);
	costs(row_of(root, "thread", "thread", "102"), 0, BLOCKS);
	costs(launch, 50000, BLOCKS);
	assert_int_equal(rs_number(launch, "only_counted"), 42 * BLOCKS);
	assert_null(json_string_value(json_object_get(launch, "sentence")));
	costs(event, 500000, BLOCKS);
	assert_int_equal(rs_number(event, "only_counted"), 30 * BLOCKS);
	assert_non_null(strstr(rs_text(event, "sentence"), "took 1.50 times as long"));
	json_decref(root);
}

/* Rates are of the windows' length by the plan, for which they stand. Counting costs 20 ns a call. */
static void test_rates(void **state)
{
	json_t *root = report_on_windows();
	const json_t *counting = row_of(root, "counting", NULL, NULL);
	double ns = 0, calls = BLOCKS * (60 + 72) + BLOCKS / 2 * (63 + 60);
	unsigned int n = 0;

	(void)state;
	for (uint64_t frame = 0; n < BLOCKS; frame++)
		for (uint64_t i = 0; i < spy_cost_frame(frame).blocks && n < BLOCKS; i++, n++)
			ns += 3 * (double)spy_cost_frame(frame).length_ns;
	assert_int_equal(rs_number(row_of(root, "all", NULL, NULL), "calls_per_s"),
			 (json_int_t)(calls * 1e9 / ns));
	assert_int_equal(rs_number(counting, "calls_per_s"), (json_int_t)(calls * 1e9 / ns));
	assert_int_equal(rs_number(counting, "only_counted"), 72 * BLOCKS);
	assert_in_range(rs_number(counting, "cost_ppm"), (json_int_t)(calls * 20 * 1e6 / ns),
			(json_int_t)(calls * 20 * 1e6 / ns) + 1);
	json_decref(root);
}

/* A digest has the same of the rank, as far as recording costs it anything, and no more than all of its time. */
static void test_digest(void **state)
{
	static const struct {
		struct window counting;
		uint64_t ppm;
	} cases[] = {{{"counting", 22, 30, 20}, 200000},
		     {{"counting", 10, 10, 10}, 0},
		     {{"counting", 60, 60, 60}, 1000000}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = windows_with(&cases[i].counting), *dir = scratch_make(), path[256];
		struct digest *digest = digest_new();
		struct digest_rank **ranks;
		struct digest_data data;
		size_t n;

		snprintf(path, sizeof(path), "%s/log", dir);
		scratch_write(path, text, strlen(text));
		tt_make(path, dir);
		assert_int_equal(digest_traces(digest, (const char *[]){dir}, 1, NULL, NULL), 0);
		ranks = digest_ranks(digest, &n);
		digest_rank_data(digest, ranks[0], &data);
		assert_int_equal(digest_cell(&data, D_RANK, 0, D_RANK_cost_ppm), cases[i].ppm + 1);
		assert_int_equal(digest_cell(&data, D_RANK, 0, D_RANK_cost_low_ppm), cases[i].ppm);
		assert_int_equal(digest_cell(&data, D_RANK, 0, D_RANK_cost_high_ppm), cases[i].ppm);
		digest_data_release(&data);
		free(ranks);
		digest_free(digest);
		scratch_remove(dir);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_whole),
		cmocka_unit_test(test_threads_and_functions),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_digest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
