/*
 * tests/unit/test_analyzer_store.c: how the items of the HTML report's timeline stay few (analyzer/lanes/store.c).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdint.h>
#include "lanes/store.h"

#define MANY 300000
#define MANY_CALLS 1200000 /* of those more may stay */

static void fill(struct store *store, struct lane *lane)
{
	for (uint64_t i = 0; i < MANY; i++)
		store_add_item(store, lane, ITEMS_IDLE,
			       &(struct item){.begin_ns = 10 * i, .end_ns = 10 * i + 5});
}

static void test_few_stay(void **state)
{
	struct store store = {.run_ns = 10ull * MANY};
	struct lane *lane = store_add_lane(&store, LANE_GPU);

	(void)state;
	fill(&store, lane);
	assert_int_equal(store.items_seen[ITEMS_IDLE], MANY);
	assert_true(store.n_items[ITEMS_IDLE] <= 100000);
	assert_int_equal(store.n_items[ITEMS_IDLE] + store.dropped[ITEMS_IDLE], MANY);
	store_release(&store);
}

/* All of them stay; each that comes must not cost a look at all before it. */
static void test_windows_keep_all(void **state)
{
	struct store store = {.run_ns = 10ull * MANY, .windows = {{0, UINT64_MAX}}, .n_windows = 1};
	struct lane *lane = store_add_lane(&store, LANE_GPU);

	(void)state;
	fill(&store, lane);
	assert_int_equal(store.n_items[ITEMS_IDLE], MANY);
	for (uint64_t i = 0; i < MANY_CALLS; i++)
		store_add_call(
			&store, lane,
			(struct call_item){.begin_ns = 10 * i, .end_ns = 10 * i + 5, .count = 1},
			NULL, 0);
	assert_int_equal(store.n_calls, MANY_CALLS);
	/* Unless the windows are given up. */
	store.n_windows = 0;
	store_halve(&store);
	assert_true(store.n_items[ITEMS_IDLE] <= MANY / 2);
	assert_true(store.n_calls <= MANY_CALLS / 2);
	store_release(&store);
}

/* What NVML says is merged, and is as much in the mean; nothing is dropped. */
static void test_looks(void **state)
{
	struct store store = {.run_ns = 10ull * MANY};
	struct lane *lane = store_add_lane(&store, LANE_GPU);
	double busy = 0, clock = 0, ns = 0;
	size_t i, slowed = 0;

	(void)state;
	for (uint64_t k = 0; k < MANY; k++)
		store_add_item(&store, lane, ITEMS_LOOKS,
			       &(struct item){.begin_ns = 10 * k,
					      .end_ns = 10 * k + 10,
					      .values = {[LOOK_BUSY] = k % 2 ? 1 : 1001,
							 [LOOK_CLOCK] = k < MANY / 2 ? 1000 : 2000,
							 [LOOK_CLOCK_MOST] = 2000,
							 [LOOK_SLOWED] = k < MANY / 2 ? 7 : 0}});
	assert_true(store.n_items[ITEMS_LOOKS] <= 100000);
	assert_int_equal(store.dropped[ITEMS_LOOKS], 0);
	assert_int_equal(lane->items[ITEMS_LOOKS][0].begin_ns, 0);
	assert_int_equal(lane->items[ITEMS_LOOKS][lane->n_items[ITEMS_LOOKS] - 1].end_ns,
			 10 * MANY);
	for (i = 0; i < lane->n_items[ITEMS_LOOKS]; i++) {
		const struct item *item = &lane->items[ITEMS_LOOKS][i];
		double its = (double)(item->end_ns - item->begin_ns);

		ns += its;
		busy += its * (double)(item->values[LOOK_BUSY] - 1);
		clock += its * (double)item->values[LOOK_CLOCK];
		slowed += item->values[LOOK_SLOWED] == 7;
		assert_int_equal(item->values[LOOK_CLOCK_MOST], 2000);
	}
	assert_true(ns == 10.0 * MANY);
	assert_in_range((uint64_t)(busy / ns), 495, 505);
	assert_in_range((uint64_t)(clock / ns), 1495, 1505);
	assert_in_range(slowed, i / 2 - 1, i / 2 + 1);
	store_release(&store);
}

/* Of looks that are one what slowed the GPU down is that of the longer one. */
static void test_slowed(void **state)
{
	struct store store = {.run_ns = 40ull * MANY};
	struct lane *lane = store_add_lane(&store, LANE_GPU);

	(void)state;
	for (uint64_t k = 0; k < MANY; k++) {
		store_add_item(&store, lane, ITEMS_LOOKS,
			       &(struct item){.begin_ns = 40 * k,
					      .end_ns = 40 * k + 30,
					      .values = {[LOOK_SLOWED] = 7}});
		store_add_item(&store, lane, ITEMS_LOOKS,
			       &(struct item){.begin_ns = 40 * k + 30, .end_ns = 40 * k + 40});
	}
	assert_true(store.n_items[ITEMS_LOOKS] <= 100000);
	for (size_t i = 0; i < lane->n_items[ITEMS_LOOKS]; i++)
		assert_int_equal(lane->items[ITEMS_LOOKS][i].values[LOOK_SLOWED], 7);
	store_release(&store);
}

/* ---- one by one -------------------------------------------------------------------------------- */

#define A 7
#define B 8

/* So many nanoseconds of it for a lock, the rest for its own work. */
static void add_call(struct store *store, struct lane *lane, uint64_t begin_ns, uint64_t end_ns,
		     uint32_t name, uint64_t lock_ns)
{
	const struct call_part parts[] = {{lock_ns, BUCKET_LOCK}, {1, BUCKET_IOCTL}};

	store_add_call(store, lane,
		       (struct call_item){.begin_ns = begin_ns,
					  .end_ns = end_ns,
					  .expected_ns = name == A ? 2 : UNKNOWN_NS,
					  .where = 3,
					  .about = 4,
					  .name = name,
					  .count = 1},
		       parts, lock_ns ? 2 : 0);
}

static void is_call(const struct lane *lane, size_t i, uint64_t begin_ns, uint64_t end_ns,
		    uint32_t count, uint32_t name)
{
	assert_true(i < lane->n_calls);
	assert_int_equal(lane->calls[i].begin_ns, begin_ns);
	assert_int_equal(lane->calls[i].end_ns, end_ns);
	assert_int_equal(lane->calls[i].count, count);
	assert_int_equal(lane->calls[i].name, name);
}

/* Calls that lie within 100 ns are one, whose name is that of the function with most of the time. */
static void test_merged_calls(void **state)
{
	struct store store = {.merged_ns = 100};
	struct lane *lane = store_add_lane(&store, LANE_THREAD);
	const struct call_item *call;

	(void)state;
	add_call(&store, lane, 1000, 1020, A, 5);
	add_call(&store, lane, 1030, 1045, B, 6);
	is_call(lane, 0, 1000, 1045, 2, A);
	add_call(&store, lane, 1060, 1070, B, 0);
	is_call(lane, 0, 1000, 1070, 3, B);
	add_call(&store, lane, 1080, 1100, A, 0);
	is_call(lane, 0, 1000, 1100, 4, A);
	call = &lane->calls[0];
	assert_int_equal(call->expected_ns, UNKNOWN_NS); /* as that of B is */
	assert_int_equal(call->where + call->about, 0);
	assert_int_equal(call->n_parts, 2);
	assert_int_equal(lane->parts[call->parts_at].bucket, BUCKET_LOCK);
	assert_int_equal(lane->parts[call->parts_at].ns, 11);
	assert_int_equal(lane->parts[call->parts_at + 1].bucket, BUCKET_IOCTL);
	assert_int_equal(lane->parts[call->parts_at + 1].ns, 2);
	/* Too far away; as it was. */
	add_call(&store, lane, 1099, 1101, B, 9);
	is_call(lane, 1, 1099, 1101, 1, B);
	assert_int_equal(lane->calls[1].where, 3);
	assert_int_equal(lane->parts[lane->calls[1].parts_at].ns, 9);
	/* Before the last one. */
	add_call(&store, lane, 1098, 1102, A, 0);
	is_call(lane, 2, 1098, 1102, 1, A);
	/* As many as can be counted. */
	lane->calls[2].count = UINT32_MAX - 2;
	add_call(&store, lane, 1103, 1104, A, 0);
	is_call(lane, 2, 1098, 1104, UINT32_MAX - 1, A);
	add_call(&store, lane, 1105, 1106, A, 0);
	is_call(lane, 3, 1105, 1106, 1, A);
	assert_int_equal(store.n_calls, 4);
	assert_int_equal(store.calls_seen, 8);
	store_release(&store);
}

/* What touches a window stays by itself, and so does what is beside it. */
static void test_calls_in_windows(void **state)
{
	static const uint64_t calls[][2] = {{10, 20}, {15, 31}, {31, 38},
					    {39, 41}, {40, 45}, {46, 48}};
	struct store store = {.merged_ns = 100, .windows = {{30, 40}}, .n_windows = 1};
	struct lane *lane = store_add_lane(&store, LANE_THREAD);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		add_call(&store, lane, calls[i][0], calls[i][1], A, 0);
	is_call(lane, 0, 10, 20, 1, A);
	is_call(lane, 1, 15, 31, 1, A);
	is_call(lane, 2, 31, 38, 1, A);
	is_call(lane, 3, 39, 41, 1, A);
	is_call(lane, 4, 40, 48, 2, A);
	assert_int_equal(lane->n_calls, 5);
	store_release(&store);
}

/* Where there may be 1000, half as many are left, which stand for all: three that are within 2 us, and pairs. */
static void test_too_many_calls(void **state)
{
	struct store store = {.run_ns = 10 * 1000000, .share = 0.001};
	struct lane *lane = store_add_lane(&store, LANE_THREAD);
	uint64_t count = 0;

	(void)state;
	add_call(&store, lane, 0, 100, A, 0);
	add_call(&store, lane, 500, 600, A, 0);
	for (uint64_t i = 1; i <= 998; i++)
		add_call(&store, lane, 1000 * i, 1000 * i + 400, A, 0);
	assert_int_equal(store.n_calls, 1000);
	add_call(&store, lane, 1000 * 999, 1000 * 999 + 400, A, 0);
	assert_int_equal(store.merged_ns, 2000);
	assert_int_equal(store.n_calls, 500);
	is_call(lane, 0, 0, 1400, 3, A);
	assert_int_equal(lane->calls[0].expected_ns, 6);
	is_call(lane, 1, 2000, 3400, 2, A);
	store_halve(&store);
	assert_int_equal(store.merged_ns, 4000);
	assert_int_equal(store.n_calls, 250);
	for (size_t i = 0; i < lane->n_calls; i++)
		count += lane->calls[i].count;
	assert_int_equal(count, 1001);
	store_release(&store);
}

static void add_item(struct store *store, struct lane *lane, enum item_kind kind, uint64_t begin_ns,
		     uint64_t end_ns)
{
	store_add_item(store, lane, kind,
		       &(struct item){.begin_ns = begin_ns, .end_ns = end_ns, .values = {9}});
}

/* Of these the short ones are left out; of those that are not much longer every third one stays. */
static void test_left_out(void **state)
{
	struct store store = {.least_ns[ITEMS_GAPS] = 2000,
			      .one_in[ITEMS_GAPS] = 3,
			      .windows = {{90000, 100000}},
			      .n_windows = 1};
	struct lane *lane = store_add_lane(&store, LANE_THREAD);

	(void)state;
	add_item(&store, lane, ITEMS_GAPS, 1000, 2999);
	assert_int_equal(store.dropped[ITEMS_GAPS], 1);
	for (uint64_t i = 0; i < 6; i++)
		add_item(&store, lane, ITEMS_GAPS, 10000 * i, 10000 * i + (i % 2 ? 3999 : 2000));
	assert_int_equal(lane->n_items[ITEMS_GAPS], 2);
	assert_int_equal(store.dropped[ITEMS_GAPS], 5);
	add_item(&store, lane, ITEMS_GAPS, 80000, 84000);
	add_item(&store, lane, ITEMS_GAPS, 90000, 90001); /* in a window */
	add_item(&store, lane, ITEMS_GAPS, 89000, 90000);
	add_item(&store, lane, ITEMS_WAITS, 5, 3); /* ends before it begins: it took no time */
	assert_int_equal(lane->n_items[ITEMS_GAPS], 4);
	assert_int_equal(lane->items[ITEMS_WAITS][0].end_ns, 5);
	assert_int_equal(store.n_items[ITEMS_GAPS], 4);
	assert_int_equal(store.items_seen[ITEMS_GAPS], 10);
	assert_int_equal(store.dropped[ITEMS_GAPS], 6);
	store_release(&store);
}

/* Operations within 100 ns are one without a name. */
static void test_merged_operations(void **state)
{
	static const uint64_t expected[][3] = {{1000, 1100, 0},
					       {1050, 1151, 9},
					       {1040, 1041, 9},
					       {2000, 2001, 9},
					       {2002, 2003, 9}};
	struct store store = {
		.least_ns[ITEMS_OPS] = 100, .windows = {{2000, 2002}}, .n_windows = 1};
	struct lane *lane = store_add_lane(&store, LANE_STREAM);

	(void)state;
	add_item(&store, lane, ITEMS_OPS, 1000, 1060);
	add_item(&store, lane, ITEMS_OPS, 1000, 1100);
	add_item(&store, lane, ITEMS_OPS, 1010, 1050);
	add_item(&store, lane, ITEMS_OPS, 1050, 1151); /* 151 ns behind */
	add_item(&store, lane, ITEMS_OPS, 1040, 1041); /* before it */
	add_item(&store, lane, ITEMS_OPS, 2000, 2001);
	add_item(&store, lane, ITEMS_OPS, 2002, 2003); /* behind one in a window */
	assert_int_equal(lane->n_items[ITEMS_OPS], ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_int_equal(lane->items[ITEMS_OPS][i].begin_ns, expected[i][0]);
		assert_int_equal(lane->items[ITEMS_OPS][i].end_ns, expected[i][1]);
		assert_int_equal(lane->items[ITEMS_OPS][i].values[0], expected[i][2]);
	}
	store_release(&store);
}

/* Of 100 ns that are one: what is known of 30 ns and of 10 ns, or of one of both. */
static void test_merged_looks(void **state)
{
	struct store store = {.least_ns[ITEMS_LOOKS] = 100};
	struct lane *lane = store_add_lane(&store, LANE_GPU);
	const uint64_t *values;

	(void)state;
	store_add_item(&store, lane, ITEMS_LOOKS,
		       &(struct item){.begin_ns = 0,
				      .end_ns = 30,
				      .values = {[LOOK_BUSY] = 1000,
						 [LOOK_CLOCK] = 11,
						 [LOOK_POWER] = 5,
						 [LOOK_SLOWED] = 6}});
	store_add_item(&store, lane, ITEMS_LOOKS,
		       &(struct item){.begin_ns = 30,
				      .end_ns = 40,
				      .values = {[LOOK_BUSY] = 2000,
						 [LOOK_CLOCK] = 12,
						 [LOOK_TEMPERATURE] = 70,
						 [LOOK_SLOWED] = 8}});
	assert_int_equal(lane->n_items[ITEMS_LOOKS], 1);
	values = lane->items[ITEMS_LOOKS][0].values;
	assert_int_equal(values[LOOK_BUSY], 1250);
	assert_int_equal(values[LOOK_CLOCK], 11); /* 11.25 */
	assert_int_equal(values[LOOK_POWER], 5);
	assert_int_equal(values[LOOK_TEMPERATURE], 70);
	assert_int_equal(values[LOOK_CLOCK_MOST], 0);
	assert_int_equal(values[LOOK_SLOWED], 6);
	store_add_item(&store, lane, ITEMS_LOOKS,
		       &(struct item){.begin_ns = 40,
				      .end_ns = 81,
				      .values = {[LOOK_CLOCK] = 12, [LOOK_SLOWED] = 8}});
	values = lane->items[ITEMS_LOOKS][0].values;
	assert_int_equal(values[LOOK_CLOCK], 12); /* 11.5 */
	assert_int_equal(values[LOOK_SLOWED], 8);
	store_release(&store);
}

/* Where 100 may be, the longer ones stay; of some that are all alike a sample. */
static void test_too_many_items(void **state)
{
	struct store store = {.run_ns = 10 * 1000000, .share = 0.0005};
	struct lane *lane = store_add_lane(&store, LANE_THREAD);

	(void)state;
	for (uint64_t i = 0; i < 101; i++)
		add_item(&store, lane, ITEMS_WAITS, 100000 * i, 100000 * i + 100 * (i + 1));
	/* 50 of them are no shorter than 5.2 us; of a power of two of 1 us 21 are. */
	assert_int_equal(store.least_ns[ITEMS_WAITS], 8000);
	assert_int_equal(store.one_in[ITEMS_WAITS], 0);
	assert_int_equal(store.n_items[ITEMS_WAITS], 22);
	assert_int_equal(store.dropped[ITEMS_WAITS], 79);
	for (uint64_t i = 0; i < 51; i++)
		add_item(&store, lane, ITEMS_IDLE, 100000 * i, 100000 * i + 500);
	assert_int_equal(store.least_ns[ITEMS_IDLE], 0);
	assert_int_equal(store.one_in[ITEMS_IDLE], 2);
	assert_in_range(store.n_items[ITEMS_IDLE], 12, 25);
	assert_int_equal(store.n_items[ITEMS_IDLE] + store.dropped[ITEMS_IDLE], 51);
	store_release(&store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_stay),
		cmocka_unit_test(test_windows_keep_all),
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_slowed),
		cmocka_unit_test(test_merged_calls),
		cmocka_unit_test(test_calls_in_windows),
		cmocka_unit_test(test_too_many_calls),
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_merged_operations),
		cmocka_unit_test(test_merged_looks),
		cmocka_unit_test(test_too_many_items),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
