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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_stay),
		cmocka_unit_test(test_windows_keep_all),
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_slowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
