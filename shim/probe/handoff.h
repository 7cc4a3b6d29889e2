/*
 * shim/probe/handoff.h: how contended locks change hands: acquired without a wait, and released.
 * Runs on the threads that acquire and release.
 *
 * While a lock has waiters, and is not paused for being followed too often (waiters.h), each
 * acquisition and each release leaves a record, so that the order of its holders is complete. An
 * uncontended lock costs a look at one word. But all waiters wait for
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

#include "state/thread.h"
#include "probe/caller.h"
#include "probe/wait.h"

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

#endif
