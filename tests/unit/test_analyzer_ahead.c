/*
 * tests/unit/test_analyzer_ahead.c: what threads read ahead comes as one reading would have it: all records in the same
 * order, calls inside others either with the one they were found behind, or when it is their time.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>
#include "cudaspy/function_numbers.h"
#include "ahead/ahead.h"
#include "base/hash.h"
#include "scratch.h"
#include "trace_writer.h"

#define STREAMS 7
#define CALLS 3000
#define NESTED_MOST 40 /* behind a call */

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t limit)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (random_state >> 33) % limit;
}

static void write_stream(struct tw_trace *w, unsigned int slot)
{
	uint64_t time = random_below(1000), pace = 1 + random_below(300), j, n;

	for (j = 0; j < CALLS; j++) {
		struct spy_rec_call call = {.head = {.time = time += random_below(pace),
						     .event = SPY_EV_CALL,
						     .fn = SPY_FN_cudaLaunchKernel},
					    .caller = j};
		struct spy_rec_inner inner = {
			.event = SPY_EV_INNER, .fn = SPY_FN_cuLaunchKernel, .duration = 1};

		tw_record(w, slot, &call, sizeof(call));
		for (n = random_below(8) ? 0 : random_below(NESTED_MOST); n; n--) {
			inner.time = time += random_below(20);
			tw_record(w, slot, &inner, sizeof(inner));
		}
	}
}

static void write_trace(const char *dir)
{
	static struct tw_trace w;
	unsigned int i;

	tw_open(&w, dir, 4096);
	tw_write_metadata(&w, &(struct tw_metadata){.frequency = 1000000000,
						    .offset_s = 1,
						    .env = "\ttracer_name = \"cudaspy\";\n"});
	for (i = 1; i <= STREAMS; i++)
		write_stream(&w, i);
	tw_close(&w);
}

/* What came: a number for each record in its order, and how many were counted. */
struct came {
	uint64_t order, records, nested;
};

static void take(struct came *came, const struct record *record)
{
	uint64_t seen[] = {came->order,
			   record->ns,
			   record->stream->index,
			   record->tid,
			   record->raw->call_head.fn,
			   record->raw->call_head.depth};

	came->order = hash_key(seen, sizeof(seen));
	came->records++;
}

static struct came read_plainly(const char *dir)
{
	struct trace_set set;
	struct merge merge;
	struct record record;
	struct came came = {0};

	trace_set_open(&set, &dir, 1, NULL);
	merge_init(&merge, &set, false);
	while (merge_next(&merge, &record))
		take(&came, &record);
	merge_release(&merge);
	trace_set_release(&set);
	return came;
}

/* nested_ns: as in struct ahead_wish; left: of so many calls, those behind one are left. most: records, then no more. */
static struct came read_ahead(const char *dir, unsigned int threads, uint64_t nested_ns,
			      uint64_t left, uint64_t most)
{
	struct trace_set set;
	struct merge merge;
	struct record record = {0};
	struct came came = {0};
	struct ahead *ahead;
	uint64_t last_ns = 0;

	trace_set_open(&set, &dir, 1, NULL);
	merge_init(&merge, &set, false);
	ahead = ahead_begin(&(struct ahead_wish){.merge = &merge,
						 .set = &set,
						 .record = &record,
						 .nested_ns = nested_ns,
						 .threads = threads});
	assert_non_null(ahead);
	assert_int_equal(ahead->n_threads, min_u64(threads, AHEAD_THREADS_MOST));
	while (came.records < most && ahead_next(ahead)) {
		assert_true(record.ns >= last_ns);
		last_ns = record.ns;
		take(&came, &record);
		if (!ahead_has_nested(ahead))
			continue;
		came.nested += ahead_count_nested(
			ahead, random_below(left) ? UINT64_MAX : record.ns + random_below(200));
		assert_int_equal(record.ns, last_ns); /* it is still there */
	}
	ahead_end(ahead);
	merge_release(&merge);
	trace_set_release(&set);
	return came;
}

static void test_order(void **state)
{
	char *dir = scratch_make();
	struct came plain, came;
	unsigned int threads;

	(void)state;
	write_trace(dir);
	plain = read_plainly(dir);
	assert_true(plain.records > STREAMS * CALLS);
	for (threads = 1; threads <= 3; threads++) {
		came = read_ahead(dir, threads, 0, 1, UINT64_MAX);
		assert_int_equal(came.records, plain.records);
		assert_int_equal(came.order, plain.order);
		assert_int_equal(came.nested, 0);
	}
	scratch_remove(dir);
}

static void test_nested(void **state)
{
	char *dir = scratch_make();
	struct came plain, came;
	unsigned int threads;
	uint64_t left;

	(void)state;
	write_trace(dir);
	plain = read_plainly(dir);
	for (threads = 1; threads <= 2; threads++)
		for (left = 1; left < 4; left++) {
			came = read_ahead(dir, threads, 1000000, left, UINT64_MAX);
			assert_int_equal(came.records + came.nested, plain.records);
			assert_true(came.nested > 0);
			assert_true(came.records > STREAMS * CALLS); /* some were left */
		}
	/* None is left: they are counted, but for those behind which a packet has ended. */
	came = read_ahead(dir, 2, 1000000, UINT64_MAX >> 33, UINT64_MAX);
	assert_int_equal(came.records + came.nested, plain.records);
	assert_true(came.nested > 9 * (came.records - STREAMS * CALLS));
	scratch_remove(dir);
}

/* Nothing more is wanted. */
static void test_given_up(void **state)
{
	char *dir = scratch_make();
	uint64_t most;

	(void)state;
	write_trace(dir);
	for (most = 0; most < 3000; most += 500)
		assert_int_equal(read_ahead(dir, 2, 1000000, 2, most).records, most);
	scratch_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
