/*
 * tests/unit/test_analyzer_edges.c: each pair of calls has one edge, found again however many there are, and they stay
 * in the order they came up.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "blame/edges.h"

#define EDGES 20000

/* Keys that differ in one field only, in whichever. */
static union blame_key key_of(uint32_t i)
{
	union blame_key key = {.waiter = 1, .waiter_fn = 1};
	uint32_t value = 2 + i / 6;

	switch (i % 6) {
	case 0:
		key.waiter = value;
		break;
	case 1:
		key.waiter_fn = value;
		break;
	case 2:
		key.holder = value;
		break;
	case 3:
		key.holder_fn = value;
		break;
	case 4:
		key.lock = value;
		break;
	default:
		key.waiter_device = (uint8_t)value;
		key.holder_device = (uint8_t)(value >> 8);
		key.cause = 1;
		break;
	}
	return key;
}

static void test_edges(void **state)
{
	struct blame_edges edges = {0};
	const struct blame_edge *edge;
	uint32_t i, round;

	(void)state;
	EDGES_ITER (edge, &edges)
		fail_msg("there is none yet");
	for (round = 0; round < 3; round++)
		for (i = 0; i < EDGES; i++) {
			union blame_key key = key_of(i);

			edges_get(&edges, &key)->waits += i;
		}
	assert_int_equal(edges.n, EDGES);
	i = 0;
	EDGES_ITER (edge, &edges) {
		union blame_key key = key_of(i);

		assert_memory_equal(&edge->key, &key, sizeof(key));
		assert_int_equal(edge->waits, 3 * i);
		i++;
	}
	assert_int_equal(i, EDGES);
	edges_release(&edges);
	assert_int_equal(edges.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
