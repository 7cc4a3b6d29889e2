/* links: shim/probe/waiters.c */
/*
 * tests/unit/test_waiters.c: who is counted as waiting for a lock, when a bucket of locks is contended, and when it pauses.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "lib/clock.h"
#include "probe/waiters.h"
#include "process/options.h"

#define FREQUENCY 1000000000 /* cycles are nanoseconds */
#define PACE 15000
#define BURST 64
#define LONGER 8 /* times as long at most */

bool spy_clock_is_counter;
struct spy_options spy_options;
static uint64_t now;
static struct spy_thread threads[3];
static char lock;

uint64_t spy_clock_monotonic(void)
{
	return now;
}

static struct spy_waiters *bucket(void)
{
	return spy_waiters_of(&lock);
}

static int begin(void **state)
{
	(void)state;
	spy_waiters_forget();
	memset(threads, 0, sizeof(threads));
	spy_waiters_begin(FREQUENCY);
	now = 1000000;
	return 0;
}

/* One in each `each` cycles; what a releaser does. */
static void hand_over(int n, uint64_t each)
{
	for (int i = 0; i < n; i++) {
		now += each;
		spy_waiters_count_handoff(bucket());
		spy_waiters_look(&threads[2], bucket(), now);
	}
}

static void test_counts(void **state)
{
	(void)state;
	assert_false(spy_waiters_likely(&lock));
	assert_true(spy_waiters_enter(&threads[0], &lock, now));
	assert_true(spy_waiters_enter(&threads[1], &lock, now));
	assert_true(spy_waiters_likely(&lock));
	assert_int_equal(bucket()->threads, 2);
	assert_true(spy_waiters_others(&threads[0], bucket(), now));
	spy_waiters_leave(&threads[1]);
	spy_waiters_leave(&threads[1]); /* once */
	assert_int_equal(bucket()->threads, 1);
	assert_ptr_equal(threads[1].waiting, NULL);
	now += 1;
	assert_false(spy_waiters_others(&threads[0], bucket(), now));
	assert_true(spy_waiters_others(&threads[0], bucket(), now - 1)); /* it left since */
	now += 1000000;
	spy_waiters_look(&threads[2], bucket(), now);
	assert_true(spy_waiters_likely(&lock)); /* it still has one */
	spy_waiters_leave(&threads[0]);
	assert_false(spy_waiters_likely(&lock));
	assert_int_equal(spy_waiters_pauses(&lock), 0);
}

/* Locks that lie beside each other, and those at the same place of blocks of 16 KiB, have buckets of their own. */
static void test_buckets(void **state)
{
	const uintptr_t from = 0x7f1234560000;

	(void)state;
	for (uintptr_t step = 16; step <= 16384; step *= 1024)
		for (uintptr_t i = 1; i < SPY_WAITERS_BUCKETS; i++)
			assert_int_not_equal(spy_waiters_bucket((const void *)from),
					     spy_waiters_bucket((const void *)(from + i * step)));
	for (uintptr_t i = 0; i < 16; i++) /* and the words of one only one */
		assert_int_equal(spy_waiters_bucket((const void *)from),
				 spy_waiters_bucket((const void *)(from + i)));
}

/* Not for the short time in which the next waiter comes. */
static void test_stays_contended(void **state)
{
	(void)state;
	spy_waiters_enter(&threads[0], &lock, now);
	now += 1000;
	spy_waiters_leave(&threads[0]);
	assert_int_equal(bucket()->threads, 0);
	assert_true(spy_waiters_likely(&lock));
	now += 100000;
	spy_waiters_look(&threads[2], bucket(), now);
	assert_false(spy_waiters_likely(&lock));
}

static void test_slow_lock_never_rests(void **state)
{
	(void)state;
	spy_waiters_enter(&threads[0], &lock, now);
	hand_over(100000, PACE + PACE / 10);
	assert_true(spy_waiters_likely(&lock));
	assert_int_equal(spy_waiters_pauses(&lock), 0);
	/* That saves nothing for later. */
	hand_over(2 * BURST, 1000);
	assert_int_equal(spy_waiters_pauses(&lock), 1);
}

/* A burst, a rest until the pace is kept, a burst. */
static void test_fast_lock_rests(void **state)
{
	uint64_t began = now, handoffs;

	(void)state;
	assert_true(spy_waiters_enter(&threads[0], &lock, now));
	hand_over(BURST - 2, 1000); /* and the one that entered */
	assert_true(spy_waiters_likely(&lock));
	hand_over(1, 1000);
	assert_false(spy_waiters_likely(&lock));
	assert_int_equal(spy_waiters_pauses(&lock), 1);
	assert_int_equal(bucket()->paused_until, began + BURST * PACE * LONGER);
	/* The waiter stays counted until it leaves; others are not counted. */
	assert_int_equal(bucket()->threads, 1);
	assert_false(spy_waiters_enter(&threads[1], &lock, now));
	assert_ptr_equal(threads[1].waiting, NULL);
	assert_int_equal(bucket()->threads, 1);
	hand_over(1000, 1); /* nobody looks again before the next waiter */
	assert_int_equal(spy_waiters_pauses(&lock), 1);
	spy_waiters_leave(&threads[0]);
	assert_int_equal(bucket()->threads, 0);
	now = began + BURST * PACE * LONGER - 1;
	assert_false(spy_waiters_enter(&threads[1], &lock, now));
	now++;
	assert_true(spy_waiters_enter(&threads[1], &lock, now));
	assert_true(spy_waiters_likely(&lock));
	handoffs = bucket()->handoffs;
	assert_int_equal(handoffs, 1);
	hand_over(BURST, 1000);
	assert_int_equal(spy_waiters_pauses(&lock), 2);
}

/* The faster it changes hands, the smaller a part of the time it is followed. */
static void test_rests_longer(void **state)
{
	static const struct {
		uint64_t each, longer;
	} rows[] = {{10000, 1}, {7000, 2}, {5000, 3}, {2500, 6}, {1000, LONGER}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t began;

		begin(NULL);
		began = now;
		spy_waiters_enter(&threads[0], &lock, now);
		while (!spy_waiters_pauses(&lock))
			hand_over(1, rows[i].each);
		assert_int_equal((bucket()->paused_until - began) / BURST / PACE, rows[i].longer);
	}
}

/* A wait that lasts: whoever let the lock rest has it followed again, at the end of a call of its own. */
static void test_long_wait(void **state)
{
	(void)state;
	spy_waiters_enter(&threads[0], &lock, now);
	hand_over(BURST, 1000);
	assert_false(spy_waiters_likely(&lock));
	assert_true(spy_waiters_unsettled(&threads[2]));
	spy_waiters_settle(&threads[2], bucket()->paused_until - 1);
	assert_false(spy_waiters_likely(&lock));
	now = bucket()->paused_until;
	spy_waiters_settle(&threads[2], now);
	assert_true(spy_waiters_likely(&lock));
	assert_false(spy_waiters_unsettled(&threads[2]));
	hand_over(BURST, 1000);
	assert_int_equal(spy_waiters_pauses(&lock), 2);
	/* Nobody waits any more. */
	spy_waiters_leave(&threads[0]);
	now = bucket()->paused_until;
	spy_waiters_settle(&threads[2], now);
	assert_false(spy_waiters_likely(&lock));
	assert_false(spy_waiters_unsettled(&threads[2]));
	/* The thread waited itself. */
	assert_true(spy_waiters_enter(&threads[2], &lock, now));
	assert_true(spy_waiters_unsettled(&threads[2]));
	spy_waiters_settle(&threads[2], now);
	assert_int_equal(bucket()->threads, 0);
}

/* It looked before the lock began to rest, and counts itself after it: at the next look the lock pauses again. */
static void test_late_waiter(void **state)
{
	(void)state;
	spy_waiters_enter(&threads[0], &lock, now);
	hand_over(BURST, 1000);
	assert_false(spy_waiters_likely(&lock));
	bucket()->paused_until = 0;
	assert_true(spy_waiters_enter(&threads[1], &lock, now));
	assert_int_equal(bucket()->threads, 2);
	hand_over(BURST, 1000);
	assert_false(spy_waiters_likely(&lock));
	spy_waiters_leave(&threads[0]);
	spy_waiters_leave(&threads[1]);
	assert_int_equal(bucket()->threads, 0);
}

static void test_all(void **state)
{
	(void)state;
	spy_options.all_locks = "1";
	spy_waiters_begin(FREQUENCY);
	spy_options.all_locks = NULL;
	spy_waiters_enter(&threads[0], &lock, now);
	hand_over(100000, 1);
	assert_true(spy_waiters_likely(&lock));
	assert_int_equal(spy_waiters_pauses(&lock), 0);
}

/* A signal handler forked while its thread waited: in the child nobody is counted. */
static void test_child(void **state)
{
	(void)state;
	spy_waiters_enter(&threads[0], &lock, now);
	spy_waiters_forget();
	spy_waiters_leave(&threads[0]);
	assert_int_equal(bucket()->threads, 0);
}

/* ---- at once ---- */

#define ROUNDS 20000

static void *wait_often(void *data)
{
	struct spy_thread *thread = data;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t at = 2000000 + i * 100;

		spy_waiters_enter(thread, &lock, at);
		spy_waiters_count_handoff(bucket());
		spy_waiters_look(thread, bucket(), at + 50);
		spy_waiters_leave_at(thread, at + 60);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t ids[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		pthread_create(&ids[i], NULL, wait_often, &threads[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(ids[i], NULL);
	assert_int_equal(bucket()->threads, 0);
	assert_true(spy_waiters_pauses(&lock) > 0);
	now = 2000000 + ROUNDS * 100 + BURST * 4 * PACE * LONGER;
	assert_true(spy_waiters_enter(&threads[0], &lock, now));
	now += 1000000;
	spy_waiters_leave(&threads[0]);
	assert_false(spy_waiters_likely(&lock));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_counts, begin),
		cmocka_unit_test(test_buckets),
		cmocka_unit_test_setup(test_stays_contended, begin),
		cmocka_unit_test_setup(test_slow_lock_never_rests, begin),
		cmocka_unit_test_setup(test_fast_lock_rests, begin),
		cmocka_unit_test_setup(test_rests_longer, begin),
		cmocka_unit_test_setup(test_long_wait, begin),
		cmocka_unit_test_setup(test_late_waiter, begin),
		cmocka_unit_test_setup(test_all, begin),
		cmocka_unit_test_setup(test_child, begin),
		cmocka_unit_test_setup(test_threads, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
