/*
 * shim/probe/waiters.c: the count of the threads that wait for locks. Runs on the thread that has
 * just released a lock, or is about to wait. No lock, no system call, no allocation.
 */
#include <string.h>
#include "lib/clock.h"
#include "probe/waiters.h"

#pragma GCC poison malloc calloc realloc fopen

#define CONTENDED_LEAST 50000 /* cycles: twenty microseconds or so */

struct spy_waiters spy_waiters[SPY_WAITERS_BUCKETS];

/* Pairs with the look at `contended` before a lock is given back (probe.c). */
static void count_in(struct spy_waiters *waiting, uint64_t now)
{
	__atomic_fetch_add(&waiting->threads, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&waiting->contended, __ATOMIC_SEQ_CST))
		return;
	__atomic_store_n(&waiting->since, now, __ATOMIC_RELAXED);
	__atomic_store_n(&waiting->contended, 1, __ATOMIC_SEQ_CST);
}

/* A waiter that begins in between finds the flag set, or is found by the second look. */
void spy_waiters_look(struct spy_waiters *waiting, uint64_t now)
{
	if (now - __atomic_load_n(&waiting->since, __ATOMIC_RELAXED) < CONTENDED_LEAST ||
	    __atomic_load_n(&waiting->threads, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&waiting->contended, 0, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&waiting->threads, __ATOMIC_SEQ_CST))
		__atomic_store_n(&waiting->contended, 1, __ATOMIC_SEQ_CST);
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

void spy_waiters_enter(struct spy_thread *thread, const void *lock, uint64_t now)
{
	count_in(spy_waiters_of(lock), now);
	thread->waiting = spy_waiters_of(lock);
}

/* A signal handler may make a call in between, which does the same at its end. */
void spy_waiters_leave_at(struct spy_thread *thread, uint64_t now)
{
	struct spy_waiters *waiting = __atomic_exchange_n(&thread->waiting, NULL, __ATOMIC_RELAXED);

	if (!waiting)
		return;
	count_out(waiting, now);
	spy_waiters_look(waiting, now);
}

void spy_waiters_leave(struct spy_thread *thread)
{
	if (thread->waiting)
		spy_waiters_leave_at(thread, spy_clock());
}

void spy_waiters_forget(void)
{
	memset(spy_waiters, 0, sizeof(spy_waiters));
}
