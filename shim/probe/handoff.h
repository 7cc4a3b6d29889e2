/*
 * shim/probe/handoff.h: how locks that are waited for change hands: who took one without a wait, who gave it back.
 *
 * While threads wait for a lock, whoever takes it or gives it back leaves a record, so that the order in which
 * it changed hands is complete; a lock that nobody waits for costs a look at one word. But what is done while a
 * thread has a lock all those who wait for it wait for, too, and it decides who comes next. Two looks at the clock
 * there, and hardly more, made eight threads that allocate on one GPU a third slower (docs/PERFORMANCE.md). So:
 *
 *   - the clock is looked at before a lock is tried, and what it was is written when the lock has been given back;
 *   - that a mutex is given back is told only if somebody has to be woken, which takes a microsecond or more.
 *
 * What is rarer is not spared: who has waited looks at the clock and writes his record with the lock in his hands;
 * read-write and spin locks, and mutexes that are robust or deal with priorities, are told whenever they are given
 * back, and one that a condition gives back is told before. Who takes a lock in no call of CUDA's is seen by those
 * only who then begin to wait for it.
 */
#ifndef CUDASPY_SHIM_HANDOFF_H
#define CUDASPY_SHIM_HANDOFF_H

#include "lib/clock.h"
#include "record/thread.h"
#include "probe/caller.h"
#include "probe/wait.h"

/*
 * Do threads wait for the locks of a bucket, or did so just now? Those who take and give back look at the first
 * cache line, which changes seldom; those who wait count themselves in another.
 */
#define SPY_WAITING_BUCKETS 512

struct spy_waiting {
	uint32_t contended __attribute__((aligned(64)));
	uint64_t since; /* when contended was set */
	uint32_t threads __attribute__((aligned(64)));
	uint64_t last_leave_time; /* when one of them was last counted out */
};

extern struct spy_waiting spy_waiting[SPY_WAITING_BUCKETS];

static inline struct spy_waiting *spy_waiting_for(const void *lock)
{
	uintptr_t address = (uintptr_t)lock;

	return &spy_waiting[(address >> 4 ^ address >> 14) % SPY_WAITING_BUCKETS];
}

static inline bool spy_is_waited_for(const void *lock)
{
	return __builtin_expect(
		__atomic_load_n(&spy_waiting_for(lock)->contended, __ATOMIC_RELAXED) != 0, 0);
}

/* ---- taken at once: on the thread that has the lock ---------------------------------------------- */

/* before: the clock, right before it was tried. A call that is only counted has a beginning from now on. */
static inline struct spy_acquired *spy_handoff_acquired(struct spy_thread *thread, const void *lock,
							uint64_t before)
{
	struct spy_acquired *acquired = &thread->acquired[thread->n_acquired++ % SPY_ACQUIRED];

	if (!thread->calls[0].start)
		spy_caller_set_begin(thread, before);
	*acquired = (struct spy_acquired){.lock = (uintptr_t)lock, .time = before};
	return acquired;
}

/* ---- records ------------------------------------------------------------------------------------ */

/* A lock that others may wait for was given back, which began at `time`; 0: it was not. Called when it is done.
 * sure: the lock itself told that somebody sleeps for it, if it was not the thread's own sleep that it told of. */
void spy_handoff_released(enum spy_wait_kind kind, const void *lock, uint64_t time, bool sure);

/* A mutex was given back, perhaps to be taken again at once: nobody sleeps for it. What there is to do then: tell that
 * it was taken at once, count its thread out, look whether anybody waits. */
void spy_handoff_unlocked(const void *lock);

/* ---- who waits ---------------------------------------------------------------------------------- */

/* The thread is counted among those who wait for a lock; until it gives it back, for what can be done later is not
 * done while it has the lock. Ordered before a look at the lock's owner. */
void spy_handoff_enter(struct spy_thread *thread, const void *lock, uint64_t now);

/* It is not any more. After a wait that was left by longjmp or an asynchronous cancellation it counts itself
 * out at its next one, or when it ends. Owner only. */
void spy_handoff_leave(struct spy_thread *thread);

/* In a forked child, which has none of the threads that wait. */
void spy_handoff_forget(void);

#endif
