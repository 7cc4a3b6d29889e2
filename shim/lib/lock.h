/*
 * shim/lib/lock.h: the one kind of lock that the shim has. docs/SAFETY.md ("Locks") lists them all.
 * Taken on the application's threads.
 *
 * The rules, which hold for each of them:
 *
 *   - No thread waits for ever. A waiter that sees the same holder for SPY_LOCK_TIMEOUT_MS goes on
 *     without the lock: a change of a table, or a record, is lost and counted (spy_lock_timeouts).
 *     The holder may be a thread that a signal handler keeps, or one that left by longjmp and never
 *     comes back.
 *   - A holder waits for nothing else but another lock of the shim, in the order of the list, and
 *     the disk.
 *   - fork takes none. Nothing is done before it. In the child those whose holder does not exist
 *     there are freed (spy_lock_forget), and what they guard is forgotten or was never half
 *     changed.
 *   - No thread gets one twice. The session's locks are taken with all signals masked: a thread
 *     that has one already was called by foreign code (an allocator), and goes without. The
 *     inspectors' tables are changed with signals as they are, and calls that a handler makes
 *     meanwhile are not recorded (spy_thread.reentry_frame): a thread that has the lock of one
 *     already left it by longjmp, and takes it over (spy_lock_table).
 *
 * Not a pthread mutex: inspectors take it within the application's calls, where those are what the
 * driver waits on. Unlocked is all zeros, so a lock in cleared memory is ready. Readers of the
 * tables take none.
 */
#ifndef CUDASPY_SHIM_LOCK_H
#define CUDASPY_SHIM_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include "arch/processor.h"

struct spy_lock {
	uintptr_t owner; /* the thread that has it, 0 none */
	/* how often it was given back: waiters begin to count anew when it changes */
	uint32_t turns;
	/* one more than the turn that a waiter gave up: no other thread waits for its end */
	uint32_t timeout_turn;
};

#define SPY_LOCK_TIMEOUT_MS 200
#define SPY_LOCK_TIMEOUT_TOTAL_MS 5000 /* however often it changes hands */
#define SPY_LOCK_TRIES 50

/* A number of the calling thread's. */
static inline uintptr_t spy_lock_self(void)
{
	return spy_thread_pointer();
}

static inline bool spy_lock_is_mine(const struct spy_lock *lock)
{
	return __atomic_load_n(&lock->owner, __ATOMIC_RELAXED) == spy_lock_self();
}

static inline bool spy_try_lock(struct spy_lock *lock)
{
	uintptr_t none = 0;

	return !__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) &&
	       __atomic_compare_exchange_n(&lock->owner, &none, spy_lock_self(), 0,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* lock.c: for as long as there is hope. */
bool spy_lock_slowly(struct spy_lock *lock);

/* How often a waiter gave up. */
extern uint64_t spy_lock_timeouts;

/*
 * Most changes under a lock take less than a microsecond, and threads that allocate at the same
 * time meet here in step. A waiter tries for about as long before it does anything slow. False: to
 * be done without the lock.
 */
static inline __attribute__((warn_unused_result)) bool spy_lock(struct spy_lock *lock)
{
	for (int i = 0; i < SPY_LOCK_TRIES; i++) {
		if (spy_try_lock(lock))
			return true;
		spy_pause();
	}
	return spy_lock_slowly(lock);
}

/* The same for one of the inspectors' tables. */
static inline __attribute__((warn_unused_result)) bool spy_lock_table(struct spy_lock *lock)
{
	return spy_try_lock(lock) || spy_lock_is_mine(lock) || spy_lock(lock);
}

static inline void spy_unlock(struct spy_lock *lock)
{
	/* First: the next holder has another turn from the beginning. */
	__atomic_store_n(&lock->turns, __atomic_load_n(&lock->turns, __ATOMIC_RELAXED) + 1,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&lock->owner, 0, __ATOMIC_RELEASE);
}

static inline bool spy_lock_is_held(const struct spy_lock *lock)
{
	return __atomic_load_n(&lock->owner, __ATOMIC_ACQUIRE) != 0;
}

/*
 * In a forked child, whose only thread is the caller: frees the lock if another thread had it. The
 * caller may have it itself: a signal handler forked, and what it interrupted will go on in the
 * child, too.
 */
static inline void spy_lock_forget(struct spy_lock *lock)
{
	/* What is free is not written to: the page stays the parent's, too. */
	if (spy_lock_is_held(lock) && !spy_lock_is_mine(lock))
		spy_unlock(lock);
}

typedef void spy_visit_lock(struct spy_lock *lock);

#endif
