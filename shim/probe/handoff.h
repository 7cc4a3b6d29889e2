/*
 * shim/probe/handoff.h: how contended locks change hands: acquired without a wait, and released.
 * Runs on the threads that acquire and release.
 *
 * While a lock has waiters, each acquisition and each release leaves a record, so that the order of
 * its holders is complete. An uncontended lock costs a look at one word. But all waiters wait for
 * what is done while a thread has the lock, and it decides about the next holder. Two looks at the
 * clock there, and hardly more, made eight threads that allocate on one GPU a third slower
 * (docs/PERFORMANCE.md). So:
 *
 *   - The clock is read before a lock is tried, and the record is written when the lock has been
 *     released.
 *   - The release of a mutex is recorded only if a thread has to be woken, which takes a
 *     microsecond or more.
 *
 * Rarer events cost more. A waiter that has acquired the lock reads the clock and writes its record
 * with the lock held. Read-write and spin locks, and mutexes that are robust or deal with
 * priorities, leave a record at each release. A condition's release of its mutex is recorded before
 * it. An acquisition outside of CUDA calls is seen only by threads that then begin to wait.
 */
#ifndef CUDASPY_SHIM_HANDOFF_H
#define CUDASPY_SHIM_HANDOFF_H

#include "lib/clock.h"
#include "record/thread.h"
#include "probe/caller.h"
#include "probe/wait.h"

/* Do the locks of a bucket have waiters, or did they a short time ago? Acquirers and releasers
 * look at the first cache line, which changes rarely; waiters count themselves in another. */
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

/* ---- acquired at once: on the holder -------------------------------------------------------- */

/* before: the clock, right before it was tried. A call that is only counted has a beginning from
 * now on. */
static inline struct spy_acquired *spy_handoff_acquired(struct spy_thread *thread, const void *lock,
							uint64_t before)
{
	struct spy_acquired *acquired = &thread->acquired[thread->n_acquired++ % SPY_ACQUIRED];

	if (!thread->calls[0].start)
		spy_caller_set_begin(thread, before);
	*acquired = (struct spy_acquired){.lock = (uintptr_t)lock, .time = before};
	return acquired;
}

/* ---- records -------------------------------------------------------------------------------- */

/*
 * A lock that may be contended was released, beginning at `time`; 0: it was not. Called after the
 * release. sure: the lock itself said that a thread sleeps for it, if it was not the caller's own
 * sleep.
 */
void spy_handoff_released(enum spy_wait_kind kind, const void *lock, uint64_t time, bool sure);

/* A mutex was released without a sleeper, perhaps to be acquired again at once. Writes that it
 * was acquired without a wait, counts its thread out, and looks whether there are waiters. */
void spy_handoff_unlocked(const void *lock);

/* ---- waiters -------------------------------------------------------------------------------- */

/* The thread is counted among the waiters until it releases the lock: what can be done later is
 * not done while it has the lock. Ordered before a look at the lock's owner. */
void spy_handoff_enter(struct spy_thread *thread, const void *lock, uint64_t now);

/* It is not any more. After a wait that was left by longjmp or an asynchronous cancellation it
 * counts itself out at its next one, or when it ends. Owner only. */
void spy_handoff_leave(struct spy_thread *thread);

/* In a forked child, which has none of the threads that wait. */
void spy_handoff_forget(void);

#endif
