/*
 * shim/probe/waiters.c: the count of the threads that wait for locks. Runs on the thread that has
 * just released a lock, or is about to wait. No lock, no system call, no allocation.
 */
#include <string.h>
#include <sys/mman.h>
#include "lib/clock.h"
#include "probe/waiters.h"
#include "process/options.h"

#pragma GCC poison malloc calloc realloc fopen

#define CONTENDED_LEAST 50000 /* cycles: twenty microseconds or so */
#define BURST 64 /* handoffs that are followed before tracking pauses */
#define BURST_MOST 256 /* that count: a pause is no longer than for those */
#define PACE_NS 15000 /* of handoffs, on average */
/* Times as long as tracking pauses of a lock that changes hands much faster */
#define LONGER_MOST 8

static uint64_t pace; /* cycles; 0: no lock pauses */

struct spy_waiters spy_waiters[SPY_WAITERS_BUCKETS] __attribute__((aligned(4096)));
uint8_t spy_contended[SPY_WAITERS_BUCKETS] __attribute__((aligned(64)));

static uint8_t *contended(const struct spy_waiters *waiting)
{
	return &spy_contended[waiting - spy_waiters];
}

void spy_waiters_begin(uint64_t frequency)
{
	pace = spy_options.all_locks ? 0 : frequency / (1000000000 / PACE_NS);
}

static void begin_burst(struct spy_waiters *waiting, uint64_t now)
{
	__atomic_store_n(&waiting->handoffs, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&waiting->burst_since, now, __ATOMIC_RELAXED);
}

static void begin_following(struct spy_waiters *waiting, uint64_t now)
{
	if (__atomic_load_n(contended(waiting), __ATOMIC_SEQ_CST) == SPY_CONTENDED)
		return;
	__atomic_store_n(&waiting->since, now, __ATOMIC_RELAXED);
	begin_burst(waiting, now);
	__atomic_store_n(contended(waiting), SPY_CONTENDED, __ATOMIC_SEQ_CST);
}

/* Pairs with the look at `spy_contended` before a lock is given back (probe.c). */
static void count_in(struct spy_waiters *waiting, uint64_t now)
{
	__atomic_fetch_add(&waiting->threads, 1, __ATOMIC_SEQ_CST);
	begin_following(waiting, now);
}

/* What a handoff costs that is followed does not depend on how soon the next one comes: of a lock that
 * changes hands twice as fast not half, but a quarter of the time is followed. */
static uint64_t rest_from(uint64_t handoffs, uint64_t took)
{
	uint64_t at_pace = (handoffs < BURST_MOST ? handoffs : BURST_MOST) * pace;
	uint64_t longer = handoffs * pace / (took + 1);
	uint64_t pause = BURST * pace * (longer < LONGER_MOST ? longer : LONGER_MOST);

	return pause > at_pace ? pause : at_pace;
}

/* Until when tracking of a lock is to pause behind a burst that came too fast; 0: it did not, or is not over. */
static uint64_t end_of_rest(struct spy_waiters *waiting, uint64_t now)
{
	uint64_t handoffs = __atomic_load_n(&waiting->handoffs, __ATOMIC_RELAXED);
	uint64_t since = __atomic_load_n(&waiting->burst_since, __ATOMIC_RELAXED);

	if (now - since >= BURST * pace) {
		begin_burst(waiting, now);
		return 0;
	}
	if (handoffs < BURST)
		return 0;
	return since + rest_from(handoffs, now - since);
}

/* A waiter that looked before `paused_until` was set makes the bucket contended once more: until the
 * next look. */
static void pause_tracking(struct spy_waiters *waiting, uint64_t until)
{
	__atomic_store_n(&waiting->paused_until, until, __ATOMIC_RELAXED);
	__atomic_fetch_add(&waiting->pauses, 1, __ATOMIC_RELEASE);
	__atomic_store_n(contended(waiting), SPY_PAUSED, __ATOMIC_SEQ_CST);
}

/* A waiter that begins in between finds the flag set, or is found by the second look. */
static void calm(struct spy_waiters *waiting)
{
	__atomic_store_n(contended(waiting), SPY_UNCONTENDED, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&waiting->threads, __ATOMIC_SEQ_CST))
		__atomic_store_n(contended(waiting), SPY_CONTENDED, __ATOMIC_SEQ_CST);
}

void spy_waiters_look(struct spy_thread *thread, struct spy_waiters *waiting, uint64_t now)
{
	uint64_t since = __atomic_load_n(&waiting->since, __ATOMIC_RELAXED), until;

	if (now - since < CONTENDED_LEAST ||
	    __atomic_load_n(contended(waiting), __ATOMIC_RELAXED) != SPY_CONTENDED)
		return;
	until = end_of_rest(waiting, now);
	if (until) {
		pause_tracking(waiting, until);
		thread->paused = waiting;
	} else if (!__atomic_load_n(&waiting->threads, __ATOMIC_RELAXED)) {
		calm(waiting);
	}
}

/* Zero already: a signal handler forked during the wait, and this is the child. */
static void count_out(struct spy_waiters *waiting, uint64_t now)
{
	uint32_t threads = __atomic_load_n(&waiting->threads, __ATOMIC_RELAXED);

	/* Pairs with spy_waiters_others: a reader that sees the count sees the time. */
	__atomic_store_n(&waiting->last_leave_time, now, __ATOMIC_RELAXED);
	while (threads && !__atomic_compare_exchange_n(&waiting->threads, &threads, threads - 1,
						       false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

bool spy_waiters_enter(struct spy_thread *thread, const void *lock, uint64_t now)
{
	struct spy_waiters *waiting = spy_waiters_of(lock);

	if (now < __atomic_load_n(&waiting->paused_until, __ATOMIC_RELAXED))
		return false;
	count_in(waiting, now);
	spy_waiters_count_handoff(waiting);
	thread->waiting = waiting;
	return true;
}

/* A signal handler may make a call in between, which does the same at its end. */
void spy_waiters_leave_at(struct spy_thread *thread, uint64_t now)
{
	struct spy_waiters *waiting = __atomic_exchange_n(&thread->waiting, NULL, __ATOMIC_RELAXED);

	if (!waiting)
		return;
	count_out(waiting, now);
	spy_waiters_look(thread, waiting, now);
}

void spy_waiters_leave(struct spy_thread *thread)
{
	if (thread->waiting)
		spy_waiters_leave_at(thread, spy_clock());
}

void spy_waiters_settle(struct spy_thread *thread, uint64_t now)
{
	struct spy_waiters *paused = thread->paused;
	uint8_t pauses = SPY_PAUSED;

	spy_waiters_leave_at(thread, now);
	if (!paused || now < __atomic_load_n(&paused->paused_until, __ATOMIC_RELAXED))
		return;
	thread->paused = NULL;
	if (__atomic_load_n(&paused->threads, __ATOMIC_RELAXED))
		begin_following(paused, now);
	else
		__atomic_compare_exchange_n(contended(paused), &pauses, SPY_UNCONTENDED, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void spy_waiters_forget(void)
{
	_Static_assert(sizeof(spy_waiters) % 4096 == 0, "whole pages");
	/* Most of them were never touched: zeros would take memory for all. */
	if (madvise(spy_waiters, sizeof(spy_waiters), MADV_DONTNEED))
		memset(spy_waiters, 0, sizeof(spy_waiters));
	memset(spy_contended, 0, sizeof(spy_contended));
}
