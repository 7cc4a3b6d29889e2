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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks_with_a_guard),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_stacks_without_one),
		cmocka_unit_test(test_the_first_thread),
	};

	spy_bounds_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
