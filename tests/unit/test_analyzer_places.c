/*
 * tests/unit/test_analyzer_places.c: which objects have an address, compared with a look at each of them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "model/places.h"

#define PLACES 2000

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_below(uint64_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % limit;
}

/* Side by side, as they lie in a process, of all sizes; or where some lay before. */
static struct place_of_module at_random(uint64_t *end, const struct place_of_module *before,
					uint32_t n)
{
	uint64_t pages = 1 + random_below(1ull << random_below(18));
	struct place_of_module place = {.base = *end};

	if (n && !random_below(8))
		return before[random_below(n)];
	*end += (pages + random_below(4)) * 4096;
	place.span_end = place.base + pages * 4096;
	place.begin = place.base + random_below(pages) * 4096;
	place.end = place.span_end;
	return place;
}

struct asked {
	uint64_t address, seen; /* sum of the numbers of those that have it */
};

static bool add_up(const struct place_of_module *place, void *context)
{
	struct asked *asked = context;

	if (asked->address >= place->base && asked->address < place->span_end)
		asked->seen += place->module + 1;
	return true;
}

static void test_same_as_a_look_at_each(void **state)
{
	static struct place_of_module all[PLACES];
	struct places places = {0};
	uint64_t end = 0x7f0000000000;
	uint32_t i, j, n = 0;

	(void)state;
	for (i = 0; i < PLACES; i++) {
		struct place_of_module like = at_random(&end, all, n), *place;

		like.module = n;
		place = places_get(&places, &like);
		if (place->module == n)
			all[n++] = like;
	}
	assert_int_equal(places.n, n);
	for (i = 0; i < 20000; i++) {
		struct asked asked = {0x7f0000000000 + random_below(end - 0x7f0000000000), 0};
		uint64_t sum = 0;

		if (i % 2) /* their first and last bytes */
			asked.address = i % 4 == 1 ? all[i % n].base : all[i % n].span_end - 1;
		places_at(&places, asked.address, add_up, &asked);
		for (j = 0; j < n; j++)
			if (asked.address >= all[j].base && asked.address < all[j].span_end)
				sum += all[j].module + 1;
		assert_int_equal(asked.seen, sum);
	}
	places_release(&places);
}

/* What a damaged trace says: of all of memory, of nothing, and thousands across each other. */
static void test_hostile(void **state)
{
	struct places places = {0};
	struct asked asked = {0x7f0000000000, 0};
	uint32_t i;

	(void)state;
	places_at(&places, 1, add_up, &asked);
	assert_int_equal(asked.seen, 0);
	places_get(&places, &(struct place_of_module){.span_end = UINT64_MAX, .module = 0});
	places_get(&places, &(struct place_of_module){.base = UINT64_MAX, .module = 1});
	for (i = 2; i < 10000; i++)
		places_get(&places, &(struct place_of_module){.base = 0x7f0000000000 - i,
							      .span_end = 0x7f0000000000 + i,
							      .module = i});
	assert_int_equal(places.n, 10000);
	places_at(&places, asked.address, add_up, &asked);
	assert_true(asked.seen >= 10000); /* the last one is found */
	places_release(&places);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_a_look_at_each),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
