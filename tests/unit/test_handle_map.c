/* links: shim/lib/handle_map.c shim/lib/lock.c */
/*
 * tests/unit/test_handle_map.c: the map of handles against a naive model, and its readers against
 * its writers.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "lib/handle_map.h"

static struct spy_handle_map map;

static int empty(void **state)
{
	(void)state;
	spy_handle_reset(&map);
	return 0;
}

static void test_model(void **state)
{
	enum { KEYS = 3000 };
	static uint64_t model[KEYS];
	uint64_t seed = 99;

	(void)state;
	for (int step = 0; step < 300000; step++) {
		uint64_t key, value;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		key = (seed >> 33) % KEYS;
		value = (seed >> 20) % 4; /* 0 forgets */
		model[key] = value;
		assert_true(spy_handle_set(&map, 0x7f0000000000 + key * 64, value));
		key = (seed >> 13) % KEYS;
		assert_int_equal(spy_handle_get(&map, 0x7f0000000000 + key * 64), model[key]);
	}
	assert_int_equal(spy_handle_get(&map, 0), 0);
	assert_false(spy_handle_set(&map, 0, 1));
}

/* Handles that come and go for ever do not make it grow for ever: it moves between two tables. */
static void test_churn(void **state)
{
	(void)state;
	for (uint64_t i = 1; i < 2000000; i++) {
		spy_handle_set(&map, i * 16, i);
		if (i > 50)
			spy_handle_set(&map, (i - 50) * 16, 0);
	}
	for (uint64_t i = 1; i < 2000000; i++)
		assert_int_equal(spy_handle_get(&map, i * 16), i > 2000000 - 51 ? i : 0);
}

static _Atomic bool stop;

static void *churn(void *data)
{
	uint64_t base = (uintptr_t)data << 40;

	for (uint64_t i = 1; i < 150000; i++) {
		spy_handle_set(&map, base + i * 16, base + i * 16);
		if (i > 300)
			spy_handle_set(&map, base + (i - 300) * 16, 0);
	}
	return NULL;
}

static void *look(void *data)
{
	uint64_t i = (uintptr_t)data;

	while (!stop) {
		uint64_t key = 16 + i++ % 100 * 16, value = spy_handle_get(&map, key);

		if (value != key + 1)
			abort();
		key = (1ull << 40) + i % 150000 * 16;
		value = spy_handle_get(&map, key);
		if (value && value != key)
			abort();
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[4];

	(void)state;
	stop = false;
	for (uint64_t i = 0; i < 100; i++)
		spy_handle_set(&map, 16 + i * 16, 17 + i * 16);
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, i < 2 ? churn : look, (void *)(i % 2 + 1));
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	stop = true;
	pthread_join(threads[2], NULL);
	pthread_join(threads[3], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_model, empty),
		cmocka_unit_test_setup(test_churn, empty),
		cmocka_unit_test_setup(test_threads, empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
