/*
 * tests/unit/test_lock.c: a waiter gives a lock up after a timeout. No other thread then waits for the same turn of
 * the holder; the next holder is waited for anew.
 */
/* links: shim/lib/lock.c */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include "lib/lock.h"

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

#define TICK_MS 10 /* of the coarse clock, at most */

static uint64_t tried_ms(struct spy_lock *lock)
{
	uint64_t begun = now_ms();

	assert_false(spy_lock_slowly(lock));
	return now_ms() - begun;
}

static void test_patience(void **state)
{
	struct spy_lock lock = {.owner = 1}; /* no thread's */
	uint64_t given_up = spy_lock_timeouts;

	(void)state;
	errno = 4711;
	assert_true(tried_ms(&lock) >= SPY_LOCK_TIMEOUT_MS - TICK_MS);
	assert_true(tried_ms(&lock) <
		    SPY_LOCK_TIMEOUT_MS); /* no thread waits for that turn any more */
	lock.turns++;
	assert_true(tried_ms(&lock) >= SPY_LOCK_TIMEOUT_MS - TICK_MS); /* it is another's */
	assert_int_equal(spy_lock_timeouts, given_up + 3);
	assert_int_equal(errno, 4711);
	lock.owner = 0;
	assert_true(spy_lock_slowly(&lock));
	assert_true(spy_lock_is_mine(&lock));
	assert_true(tried_ms(&lock) < SPY_LOCK_TIMEOUT_MS); /* ours: it would last for ever */
	spy_unlock(&lock);
	assert_int_equal(lock.turns, 2);
}

static void *give_back_soon(void *data)
{
	const struct timespec a_while = {.tv_nsec = 20000000};

	nanosleep(&a_while, NULL);
	spy_unlock(data);
	return NULL;
}

/* A table's lock is waited for, unless the thread has it already. */
static void test_table(void **state)
{
	struct spy_lock lock = {.owner = 1};
	pthread_t other;

	(void)state;
	assert_int_equal(pthread_create(&other, NULL, give_back_soon, &lock), 0);
	assert_true(spy_lock_table(&lock));
	pthread_join(other, NULL);
	assert_true(spy_lock_is_mine(&lock));
	assert_int_equal(lock.turns, 1);
	assert_true(spy_lock_table(&lock));
	assert_true(spy_lock_is_mine(&lock));
	spy_unlock(&lock);
	assert_true(spy_lock_table(&lock));
	assert_true(spy_lock_is_held(&lock));
	spy_lock_forget(&lock); /* in a child: it is ours */
	assert_true(spy_lock_is_mine(&lock));
	lock.owner = 1;
	spy_lock_forget(&lock); /* a thread's that is not there */
	assert_false(spy_lock_is_held(&lock));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_patience),
					   cmocka_unit_test(test_table)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
