/*
 * tests/unit/test_analyzer_digest_trees.c: merges of digests: whatever the order and the tree, the bytes are the same, also beyond
 * all bounds.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "digest_made.h"

static void check_trees(size_t n, unsigned int rows, unsigned int trees, uint64_t seed)
{
	struct file *files = calloc(n, sizeof(*files)), first, other;
	struct digest *all = digest_new();
	size_t i;

	for (i = 0; i < n; i++)
		files[i] = written(make(i, seed, rows));
	for (i = 0; i < n; i++)
		assert_int_equal(digest_read(all, "one", files[i].bytes, files[i].n), 0);
	assert_int_equal(all->n_ranks, n);
	assert_int_equal(all->level, digest_level(n));
	first = written(all);
	while (trees-- > 0) {
		state_of_chance = seed * 77 + trees;
		shuffle(files, n);
		other = written(merge_some(files, n));
		assert_same(&first, &other);
		free(other.bytes);
	}
	other = written(read_back(&first));
	assert_same(&first, &other);
	free(other.bytes);
	free(first.bytes);
	for (i = 0; i < n; i++)
		free(files[i].bytes);
	free(files);
}

static void test_trees(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 8; seed++)
		check_trees(2 + seed * 3, 60, 6, seed);
}

/* More ranks than have room for all rows: levels 1 and 2. */
static void test_trees_of_many(void **state)
{
	(void)state;
	check_trees(300, 60, 1, 101);
	check_trees(530, 30, 1, 102);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_trees_of_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
