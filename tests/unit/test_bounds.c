/*
 * tests/unit/test_bounds.c: where a thread's stack is, without asking pthread_getattr_np, is what that says: for
 * stacks of any size, side by side, without a guard, and for memory that the program brought itself.
 */
/* links: shim/lib/bounds.c */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "lib/bounds.h"

#define PAGE 4096ul

struct seen {
	struct spy_bounds ours, theirs;
};

static struct spy_bounds asked(void)
{
	pthread_attr_t attributes;
	void *begin;
	size_t bytes;

	if (pthread_getattr_np(pthread_self(), &attributes))
		abort();
	pthread_attr_getstack(&attributes, &begin, &bytes);
	pthread_attr_destroy(&attributes);
	return (struct spy_bounds){(uintptr_t)begin, (uintptr_t)begin + bytes};
}

static void *look(void *argument)
{
	struct seen *seen = argument;

	seen->ours = spy_bounds_of_self((uintptr_t)__builtin_frame_address(0));
	seen->theirs = asked();
	return NULL;
}

/* What a thread of those attributes sees. */
static struct seen run(const pthread_attr_t *attributes)
{
	struct seen seen = {.ours.begin = 1};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, attributes, look, &seen), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return seen;
}

static struct seen run_sized(size_t bytes, size_t guard)
{
	pthread_attr_t attributes;
	struct seen seen;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, bytes);
	pthread_attr_setguardsize(&attributes, guard);
	seen = run(&attributes);
	pthread_attr_destroy(&attributes);
	return seen;
}

static struct seen run_on(char *memory, size_t bytes)
{
	pthread_attr_t attributes;
	struct seen seen;

	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstack(&attributes, memory, bytes), 0);
	seen = run(&attributes);
	pthread_attr_destroy(&attributes);
	return seen;
}

static void assert_same(struct seen seen)
{
	assert_int_equal(seen.ours.begin, seen.theirs.begin);
	assert_int_equal(seen.ours.end, seen.theirs.end);
}

static void test_stacks_with_a_guard(void **state)
{
	(void)state;
	assert_same(run(NULL));
	assert_same(run_sized(16 * PAGE, PAGE));
	assert_same(run_sized(1025 * PAGE, 3 * PAGE));
}

/* Several at a time lie side by side: nobody may get his neighbour's. */
static void test_neighbours(void **state)
{
	enum { MANY = 40 };
	struct seen seen[MANY];
	pthread_t threads[MANY];
	pthread_attr_t attributes;

	(void)state;
	pthread_attr_init(&attributes);
	for (size_t i = 0; i < MANY; i++) {
		pthread_attr_setstacksize(&attributes, (i % 3 ? 16 : 31) * PAGE);
		assert_int_equal(pthread_create(&threads[i], &attributes, look, &seen[i]), 0);
	}
	for (size_t i = 0; i < MANY; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_same(seen[i]);
	}
	pthread_attr_destroy(&attributes);
}

static void test_stacks_without_one(void **state)
{
	char *memory =
		mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(memory != MAP_FAILED);
	assert_same(run_sized(32 * PAGE, 0));
	assert_same(run_on(memory + PAGE, 32 * PAGE));
	assert_same(run_on(memory + 64, 32 * PAGE - 128));
	munmap(memory, 64 * PAGE);
}

static void test_the_first_thread(void **state)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	struct spy_bounds bounds = spy_bounds_of_self(here);

	(void)state;
	assert_true(bounds.begin < here && here < bounds.end);
	assert_true(bounds.end <= asked().end);
}

/* As much as it may grow to, 8 MiB at most. */
static void test_limits(void **state)
{
	static const size_t mib[][2] = {{4, 4}, {8, 8}, {64, 8}};
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	struct rlimit before, limit;

	(void)state;
	getrlimit(RLIMIT_STACK, &before);
	for (size_t i = 0; i < sizeof(mib) / sizeof(*mib); i++) {
		struct spy_bounds bounds;

		limit = before;
		limit.rlim_cur = mib[i][0] << 20;
		if (limit.rlim_cur > limit.rlim_max)
			continue;
		assert_int_equal(setrlimit(RLIMIT_STACK, &limit), 0);
		bounds = spy_bounds_of_self(here);
		assert_int_equal(bounds.end - bounds.begin, mib[i][1] << 20);
	}
	limit = before;
	limit.rlim_cur = limit.rlim_max; /* perhaps none */
	if (limit.rlim_cur > 8 << 20 && !setrlimit(RLIMIT_STACK, &limit)) {
		struct spy_bounds bounds = spy_bounds_of_self(here);

		assert_int_equal(bounds.end - bounds.begin, 8 << 20);
	}
	setrlimit(RLIMIT_STACK, &before);
}

static struct spy_bounds of_first;

/* A thread that stands on the first one's stack, as coroutines do, and right beside it. */
static void *look_from_elsewhere(void *argument)
{
	struct spy_bounds *bounds = argument;

	bounds[0] = spy_bounds_of_self(of_first.begin + 1);
	bounds[1] = spy_bounds_of_self(of_first.end - 1);
	bounds[2] = spy_bounds_of_self(of_first.begin);
	bounds[3] = spy_bounds_of_self(of_first.end);
	bounds[4] = asked();
	return NULL;
}

static void test_on_the_first_stack(void **state)
{
	struct spy_bounds bounds[5];
	pthread_t thread;

	(void)state;
	of_first = spy_bounds_of_self((uintptr_t)__builtin_frame_address(0));
	assert_int_equal(pthread_create(&thread, NULL, look_from_elsewhere, bounds), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(bounds[i].begin, i < 2 ? of_first.begin : bounds[4].begin);
		assert_int_equal(bounds[i].end, i < 2 ? of_first.end : bounds[4].end);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks_with_a_guard),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_stacks_without_one),
		cmocka_unit_test(test_the_first_thread),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_on_the_first_stack),
	};

	spy_bounds_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
