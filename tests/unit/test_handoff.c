/* links: shim/probe/handoff.c shim/probe/waiters.c shim/probe/caller.c */
/*
 * tests/unit/test_handoff.c: how a lock changes hands, on the thread that gives it back: when that leaves a record, of
 * what, and since when the lock was held; and when it leaves none.
 */
#include "probe/handoff.h"
#include "probe/waiters.h"
#include "process/options.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

#define FN 50
#define OUTER_FN 40

struct spy_options spy_options;
bool spy_probing;
static int n_lost;
static char locks[2][1024]; /* in different buckets */
#define LOCK locks[0]

void spy_thread_count_lost(struct spy_thread *of)
{
	assert_ptr_equal(of, &thread);
	n_lost++;
}

static struct spy_waiters *bucket(void)
{
	return spy_waiters_of(LOCK);
}

/* A thread in two calls, one inside the other; another one that waits for the lock. */
static int begin(void **state)
{
	(void)state;
	begin_session();
	spy_waiters_forget();
	spy_waiters_begin(FREQUENCY);
	spy_probing = true;
	n_lost = 0;
	thread.depth = 2;
	thread.calls[0] = (struct spy_progress){.frame = UINTPTR_MAX, .fn = OUTER_FN, .start = now};
	thread.calls[1] = (struct spy_progress){.frame = UINTPTR_MAX, .fn = FN, .start = now};
	page.fn = FN;
	now += 1000;
	spy_waiters_enter(&other_thread, LOCK, now);
	return 0;
}

static void be_alone(void)
{
	spy_waiters_leave(&other_thread);
	now += 100;
}

static void acquire(const void *lock)
{
	spy_handoff_acquired(&thread, lock, now);
	now += 300;
}

static const struct spy_rec_held *next_held(void)
{
	return next_record(&thread, SPY_EV_HELD, sizeof(struct spy_rec_held));
}

static const struct spy_rec_taken *next_taken(void)
{
	return next_record(&thread, SPY_EV_TAKEN, sizeof(struct spy_rec_taken));
}

/* ---- released ---- */

static void test_released(void **state)
{
	uint64_t acquired, released;
	const struct spy_rec_held *record;

	(void)state;
	now += 100;
	acquired = now;
	acquire(LOCK);
	released = now;
	now += 10 * SPY_SPAN_UNIT; /* as long it took to wake the other one */
	spy_handoff_released(SPY_WAIT_WRITE, LOCK, released, false);
	record = next_held();
	assert_int_equal(record->time, released);
	assert_int_equal(record->kind, SPY_WAIT_WRITE);
	assert_int_equal(record->depth, 1);
	assert_int_equal(record->fn, FN);
	assert_int_equal(record->outer_fn, OUTER_FN);
	assert_int_equal(record->object, (uintptr_t)LOCK);
	assert_int_equal(record->span, 10);
	assert_int_equal(record->held, released - acquired);
	no_record(&thread);
	assert_int_equal(bucket()->handoffs, 2); /* the waiter's, and this one */
	/* Once: how it was acquired is known no more. */
	now += 100;
	spy_handoff_released(SPY_WAIT_WRITE, LOCK, now, false);
	assert_int_equal(next_held()->held, 0);
	no_record(&thread);
}

/* Not before what has been recorded since; a long time to wake the other one. */
static void test_times(void **state)
{
	uint64_t released = now;
	const struct spy_rec_held *record;

	(void)state;
	thread.packet->time_end = released + 5;
	thread.calls[1].start = 0; /* a call that is only counted */
	now += (uint64_t)SPY_SPAN_UNIT * UINT16_MAX * 2;
	spy_handoff_released(SPY_WAIT_MUTEX, LOCK, released, false);
	record = next_held();
	assert_int_equal(record->time, released + 5);
	assert_int_equal(record->span, UINT16_MAX);
	assert_int_equal(thread.calls[1].start, released + 5);
}

/* Since when it was held is known of an acquisition in this call, while the lock was contended. */
static void test_held_since(void **state)
{
	enum {
		KNOWN,
		BEFORE_THE_CALL,
		AT_ITS_BEGIN,
		BEFORE_CONTENDED,
		AT_THAT_TIME,
		OTHER_LOCK,
		OVERWRITTEN,
		LATER,
		CASES
	};

	for (int i = 0; i < CASES; i++) {
		uint64_t acquired;
		bool known = i == KNOWN || i == AT_ITS_BEGIN || i == AT_THAT_TIME;

		begin(state);
		now += 100;
		acquired = now;
		if (i == BEFORE_THE_CALL || i == AT_ITS_BEGIN)
			thread.calls[0].start = acquired + (i == BEFORE_THE_CALL);
		if (i == BEFORE_CONTENDED || i == AT_THAT_TIME)
			bucket()->since = acquired + (i == BEFORE_CONTENDED);
		acquire(i == OTHER_LOCK ? locks[1] : LOCK);
		for (int k = 0; i == OVERWRITTEN && k < SPY_ACQUIRED; k++)
			acquire(locks[1]);
		spy_handoff_released(SPY_WAIT_MUTEX, LOCK, i == LATER ? acquired : now, false);
		assert_int_equal(next_held()->held, known ? now - acquired : 0);
		no_record(&thread);
	}
	/* The last acquisition counts; as many as there is room for are known. */
	begin(state);
	acquire(LOCK);
	acquire(LOCK);
	for (int k = 0; k < SPY_ACQUIRED - 1; k++)
		acquire(locks[1]);
	spy_handoff_released(SPY_WAIT_MUTEX, LOCK, now, false);
	assert_int_equal(next_held()->held, 300 * SPY_ACQUIRED);
}

/* When others wait, or have done so since; or the lock itself says that a thread sleeps for it. */
static void test_whether(void **state)
{
	enum { WAITED_FOR, WAITED, ALONE, SURE, SURE_AT_ONCE, MARKED, NOT_RELEASED, CASES };

	for (int i = 0; i < CASES; i++) {
		uint64_t released;

		begin(state);
		now += 100;
		if (i >= ALONE && i <= MARKED)
			be_alone();
		if (i != SURE_AT_ONCE)
			spy_handoff_acquired(&thread, LOCK, now)->marked = i == MARKED;
		now += 300;
		released = now;
		if (i == WAITED)
			spy_waiters_leave(&other_thread);
		now += 50;
		spy_handoff_released(SPY_WAIT_MUTEX, LOCK, i == NOT_RELEASED ? 0 : released,
				     i >= SURE && i <= MARKED);
		if (i == WAITED_FOR || i == WAITED || i == SURE)
			next_held();
		no_record(&thread);
		assert_int_equal(thread.reentry_frame, 0);
	}
}

/* The one that releases it had waited itself: it is counted out. */
static void test_leaves(void **state)
{
	for (int unlocked = 0; unlocked < 2; unlocked++) {
		begin(state);
		spy_waiters_enter(&thread, LOCK, now);
		assert_int_equal(bucket()->threads, 2);
		now += 100;
		if (unlocked)
			spy_handoff_unlocked(LOCK);
		else
			spy_handoff_released(SPY_WAIT_MUTEX, LOCK, now, false);
		assert_int_equal(bucket()->threads, 1);
		assert_null(thread.waiting);
		assert_int_equal(bucket()->last_leave_time, now);
		if (!unlocked)
			next_held(); /* the other one waits */
		no_record(&thread);
	}
}

/* ---- unlocked without a sleeper ---- */

static void test_unlocked(void **state)
{
	uint64_t acquired;
	const struct spy_rec_taken *record;

	(void)state;
	now += 100;
	acquired = now;
	acquire(LOCK);
	spy_handoff_unlocked(LOCK);
	record = next_taken();
	assert_int_equal(record->time, acquired);
	assert_int_equal(record->kind, SPY_WAIT_MUTEX);
	assert_int_equal(record->depth, 1);
	assert_int_equal(record->fn, FN);
	assert_int_equal(record->outer_fn, OUTER_FN);
	assert_int_equal(record->object, (uintptr_t)LOCK);
	assert_int_equal(bucket()->handoffs, 2);
	/* Acquired in a way that is not known, or without others: nothing. */
	spy_handoff_unlocked(LOCK);
	no_record(&thread);
	be_alone();
	acquire(LOCK);
	spy_handoff_unlocked(LOCK);
	no_record(&thread);
	assert_int_equal(bucket()->handoffs, 4);
}

/* Without waiters a lock is looked at: in one of eight acquisitions, or where how it was acquired is not known. */
static void test_looks(void **state)
{
	int looked = 0;

	for (uint64_t i = 0; i < 64; i++) {
		begin(state);
		be_alone();
		now += 1000000 / 512 * 512 + 64 * i - now % 512;
		acquire(LOCK);
		spy_handoff_unlocked(LOCK);
		if (!spy_waiters_likely(LOCK))
			looked++;
	}
	assert_int_equal(looked, 8);
	begin(state);
	be_alone();
	now += 1000000;
	spy_handoff_unlocked(LOCK);
	assert_false(spy_waiters_likely(LOCK));
	begin(state);
	be_alone();
	now += 1000000;
	spy_handoff_released(SPY_WAIT_MUTEX, LOCK, now, false);
	assert_false(spy_waiters_likely(LOCK));
}

/* ---- no record ---- */

static void test_no_room(void **state)
{
	(void)state;
	for (int unlocked = 0; unlocked < 2; unlocked++) {
		size_t bytes =
			unlocked ? sizeof(struct spy_rec_taken) : sizeof(struct spy_rec_held);

		for (size_t more = 0; more < 2; more++) {
			uint8_t *head;

			begin(state);
			acquire(LOCK);
			head = thread.head = thread.end - 2 * SPY_RECORD_MAX - bytes + more;
			if (unlocked)
				spy_handoff_unlocked(LOCK);
			else
				spy_handoff_released(SPY_WAIT_MUTEX, LOCK, now, false);
			assert_ptr_equal(thread.head, head + (more ? 0 : bytes));
			assert_int_equal(n_lost, more);
			assert_int_equal(thread.reentry_frame, 0);
		}
	}
}

/* Not a call of the thread's own: inside the recorder, in a forked child, without probes. */
static void test_not_ours(void **state)
{
	for (int i = 0; i < 4; i++) {
		begin(state);
		acquire(LOCK);
		thread.reentry_frame = i == 0;
		thread.depth = i == 1 ? 0 : 2;
		if (i == 2)
			thread.packet = NULL;
		spy_probing = i != 3;
		spy_handoff_released(SPY_WAIT_MUTEX, LOCK, now, true);
		spy_handoff_unlocked(LOCK);
		assert_ptr_equal(thread.head, packets[0] + sizeof(struct spy_packet));
		assert_int_equal(bucket()->handoffs, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_released, begin),
		cmocka_unit_test_setup(test_times, begin),
		cmocka_unit_test_setup(test_held_since, begin),
		cmocka_unit_test_setup(test_whether, begin),
		cmocka_unit_test_setup(test_leaves, begin),
		cmocka_unit_test_setup(test_unlocked, begin),
		cmocka_unit_test_setup(test_looks, begin),
		cmocka_unit_test_setup(test_no_room, begin),
		cmocka_unit_test_setup(test_not_ours, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
