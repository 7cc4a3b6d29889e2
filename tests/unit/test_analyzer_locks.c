/*
 * tests/unit/test_analyzer_locks.c: locks are told apart by address and process, up to a number; what happened to one is
 * kept in the order of time, however late it is told, up to a number; sets of threads; names; what of a wait is due to
 * one holder.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "account/locks.h"
#include "account/waits.h"

#define RING 16384 /* events of a lock that are remembered */
#define LOCKS (1u << 17) /* that are told apart */

static struct trace traces[2] = {{.index = 0}, {.index = 1}};
static struct process processes[2] = {{.trace = &traces[0]}, {.trace = &traces[1]}};

static void add(struct lock *lock, uint64_t ns, bool released, bool shared)
{
	lock_add(lock, &(struct lock_event){.ns = ns, .released = released, .shared = shared});
}

/* ---- which lock ------------------------------------------------------------------------------ */

static void test_keys(void **state)
{
	struct locks l = {0};
	struct lock *a = locks_get(&l, &processes[0], 0x1000);
	struct lock *b = locks_get(&l, &processes[1], 0x1000);
	struct lock *c = locks_get(&l, &processes[1], 0x2000);

	(void)state;
	assert_ptr_not_equal(a, b);
	assert_ptr_not_equal(b, c);
	assert_ptr_equal(locks_get(&l, &processes[0], 0x1000), a);
	assert_ptr_equal(locks_get(&l, &processes[1], 0x1000), b);
	assert_ptr_equal(locks_get(&l, &processes[1], 0x2000), c);
	assert_ptr_equal(locks_get(&l, &processes[1], 0x2000), c);
	assert_int_equal(l.count, 3);
	assert_ptr_equal(l.all[0], a);
	assert_ptr_equal(l.all[2], c);
	assert_int_equal(c->index, 2);
	assert_ptr_equal(c->process, &processes[1]);
	locks_release(&l);
	assert_int_equal(l.count, 0);
	assert_null(l.all);
}

/* Beyond so many, new ones of a process are one, that of several locks. */
static void test_most_locks(void **state)
{
	struct locks l = {0};
	struct lock *several;
	uint64_t i;

	(void)state;
	for (i = 1; i <= LOCKS; i++)
		assert_int_equal(locks_get(&l, &processes[0], 8 * i)->key.address, 8 * i);
	assert_int_equal(l.count, LOCKS);
	several = locks_get(&l, &processes[0], 8 * i);
	assert_int_equal(several->key.address, 0);
	assert_ptr_equal(locks_get(&l, &processes[0], 8 * (i + 1)), several);
	assert_ptr_not_equal(locks_get(&l, &processes[1], 8), several);
	assert_int_equal(locks_get(&l, &processes[1], 8)->key.address, 0);
	assert_int_equal(locks_get(&l, &processes[0], 8)->key.address,
			 8); /* known ones are found */
	assert_int_equal(l.count, LOCKS + 2);
	locks_release(&l);
}

/* ---- what happened --------------------------------------------------------------------------- */

/* In every place of the ring's growth, in order and not. */
static void test_order(void **state)
{
	struct locks l = {0};
	struct lock *lock = locks_get(&l, &processes[0], 0x1000);
	uint64_t i, n;

	(void)state;
	assert_int_equal(lock_events_since(lock, 0), 0);
	assert_null(lock_event(lock, 0));
	/* 20, 10, 40, 30, 60, 50 ...: each second one is told late. */
	for (n = 0; n < 100; n += 2) {
		add(lock, 10 * n + 20, false, false);
		assert_int_equal(lock->events, n + 1);
		add(lock, 10 * n + 10, true, true);
		for (i = 0; i < n + 2; i++)
			assert_int_equal(lock_event(lock, i)->ns, 10 * (i + 1));
		assert_null(lock_event(lock, n + 2));
	}
	for (i = 0; i < 100; i++) {
		assert_int_equal(lock_events_since(lock, 10 * (i + 1) - 1), i);
		assert_int_equal(lock_events_since(lock, 10 * (i + 1)), i + 1);
		assert_int_equal(lock_event(lock, i)->released, i % 2 == 0);
	}
	assert_int_equal(lock_events_since(lock, 99999), 100);
	/* Of one moment: in the order in which they are told. */
	add(lock, 500, false, true);
	assert_int_equal(lock_event(lock, 49)->ns, 500);
	assert_true(lock_event(lock, 50)->shared && !lock_event(lock, 50)->released);
	assert_int_equal(lock_event(lock, 51)->ns, 510);
	/* Long before all others. */
	add(lock, 1, false, false);
	assert_int_equal(lock_event(lock, 0)->ns, 1);
	assert_int_equal(lock_event(lock, 1)->ns, 10);
	assert_int_equal(lock_event(lock, 101)->ns, 1000);
	locks_release(&l);
}

/* How often it was acquired so far, also of what is told late. */
static void test_acquired(void **state)
{
	static const struct {
		uint64_t ns;
		bool released, shared;
	} told[] = {
		{10, false, false}, {20, true, false}, {30, false, true}, {50, true, true},
		{60, false, false}, {40, false, true}, {5, true, false},  {70, true, false},
	};
	static const uint32_t acquired[] = {0, 1, 1, 2, 3, 3, 4, 4};
	static const uint32_t exclusive[] = {0, 1, 1, 1, 1, 1, 2, 2};
	struct locks l = {0};
	struct lock *lock = locks_get(&l, &processes[0], 0x1000);
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(told); i++)
		add(lock, told[i].ns, told[i].released, told[i].shared);
	for (i = 0; i < ARRAY_SIZE(told); i++) {
		assert_int_equal(lock_event(lock, i)->acquired, acquired[i]);
		assert_int_equal(lock_event(lock, i)->acquired_exclusive, exclusive[i]);
	}
	locks_release(&l);
}

/* Old ones are forgotten, but not their number; what is told too late becomes the oldest that is known. */
static void test_forgotten(void **state)
{
	struct locks l = {0};
	struct lock *lock = locks_get(&l, &processes[0], 0x1000);
	uint64_t i;

	(void)state;
	for (i = 1; i <= RING + 100; i++)
		add(lock, 10 * i, i % 2 == 0, false);
	assert_int_equal(lock->events, RING + 100);
	assert_null(lock_event(lock, 99));
	assert_int_equal(lock_event(lock, 100)->ns, 1010);
	assert_int_equal(lock_event(lock, RING + 99)->ns, 10 * (RING + 100));
	assert_int_equal(lock_event(lock, RING + 99)->acquired, (RING + 100) / 2);
	assert_null(lock_event(lock, RING + 100));
	assert_int_equal(lock_events_since(lock, 0), 100);
	assert_int_equal(lock_events_since(lock, 1010), 101);
	assert_int_equal(lock_events_since(lock, 1020), 102);
	add(lock, 3, false, false);
	assert_int_equal(lock_event(lock, 101)->ns, 3);
	assert_int_equal(lock_event(lock, 102)->ns, 1020);
	assert_int_equal(lock->ring_size, RING);
	locks_release(&l);
}

/* Several locks have no one order. */
static void test_several(void **state)
{
	struct locks l = {0};
	struct lock *lock = locks_get(&l, &processes[0], 0);

	(void)state;
	add(lock, 10, false, false);
	assert_int_equal(lock->events, 0);
	locks_release(&l);
}

/* ---- sets of threads ------------------------------------------------------------------------ */

#define THREADS 5000

static void test_sets(void **state)
{
	static bool has[2][THREADS];
	struct thread_set sets[2] = {{0}, {0}};
	struct thread thread = {0};
	uint32_t count[2] = {0}, both = 0, i, s, random = 1;

	(void)state;
	assert_false(thread_set_has(&sets[0], &thread));
	for (i = 0; i < 3 * THREADS / 2; i++) {
		random = random * 1103515245u + 12345;
		thread.index = (random >> 8) % THREADS;
		s = random >> 30 & 1;
		assert_int_equal(thread_set_has(&sets[s], &thread), has[s][thread.index]);
		thread_set_add(&sets[s], &thread);
		assert_true(thread_set_has(&sets[s], &thread));
		count[s] += !has[s][thread.index];
		has[s][thread.index] = true;
		assert_int_equal(sets[s].count, count[s]);
		/* No place is empty in vain, and some always is. */
		assert_true(sets[s].n_places > sets[s].count);
		assert_true(sets[s].n_places <= 4 * sets[s].count);
	}
	thread_set_join(&sets[0], &sets[1]);
	for (i = 0; i < THREADS; i++) {
		thread.index = i;
		both += has[0][i] || has[1][i];
		assert_int_equal(thread_set_has(&sets[0], &thread), has[0][i] || has[1][i]);
		assert_int_equal(thread_set_has(&sets[1], &thread), has[1][i]);
	}
	assert_int_equal(sets[0].count, both);
	thread_set_release(&sets[0]);
	thread_set_release(&sets[1]);
	assert_int_equal(sets[1].count, 0);
	assert_false(thread_set_has(&sets[1], &thread));
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Longest first; the first one waited for, where two are equal; those that nobody waited for have none. */
static void test_names(void **state)
{
	static const uint64_t waited[] = {5, 9, 0, 9, 7};
	static const char *const names[] = {"L4", "L1", NULL, "L2", "L3"};
	struct locks l = {0};
	struct lock **named;
	size_t i, n, round;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(waited); i++) {
		struct lock *lock = locks_get(&l, &processes[0], i == 4 ? 0 : 0x1000 * (i + 1));

		lock->waits = waited[i];
		lock->waited_ns = waited[i];
	}
	for (round = 0; round < 2; round++) { /* names may be asked for again */
		named = locks_name(&l, &n);
		assert_int_equal(n, 4);
		for (i = 0; i < n; i++)
			assert_int_equal(named[i]->rank, i + 1);
		for (i = 0; i < ARRAY_SIZE(waited); i++)
			if (names[i])
				assert_string_equal(l.all[i]->name, names[i]);
			else
				assert_null(l.all[i]->name);
		assert_string_equal(l.all[0]->place, "heap");
		assert_string_equal(l.all[4]->place, "several locks");
		free(named);
	}
	locks_release(&l);
}

/* A hand-over is of the holder that has released the lock, and of none before it. */
static void test_next_holder(void **state)
{
	struct thread a = {.index = 1}, b = {.index = 2};
	struct hold_interval intervals[] = {
		{.begin_ns = 10, .end_ns = 20},
		{.begin_ns = 20, .end_ns = 50, .holder = &a, .handover = true},
		{.begin_ns = 50, .end_ns = 60, .holder = &b},
		{.begin_ns = 60, .end_ns = 64, .holder = &b, .handover = true},
		{.begin_ns = 64, .end_ns = 65, .holder = &a},
	};
	static const uint64_t wanted[][4] = {
		/* first interval, begin, end, release */
		{0, 10, 20, 0},
		{1, 20, 50, 30},
		{2, 50, 64, 4},
		{4, 64, 65, 0},
	};
	struct wait w = {.intervals = intervals, .n_intervals = ARRAY_SIZE(intervals)};
	struct holder_part part;
	size_t next = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		assert_int_equal(next, wanted[i][0]);
		next = wait_next_holder(&w, next, &part);
		assert_ptr_equal(part.by, &intervals[wanted[i][0]]);
		assert_int_equal(part.begin_ns, wanted[i][1]);
		assert_int_equal(part.end_ns, wanted[i][2]);
		assert_int_equal(part.release_ns, wanted[i][3]);
	}
	assert_int_equal(next, ARRAY_SIZE(intervals));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),        cmocka_unit_test(test_most_locks),
		cmocka_unit_test(test_order),       cmocka_unit_test(test_acquired),
		cmocka_unit_test(test_forgotten),   cmocka_unit_test(test_several),
		cmocka_unit_test(test_sets),        cmocka_unit_test(test_names),
		cmocka_unit_test(test_next_holder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
