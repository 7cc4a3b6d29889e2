/*
 * shim/lock.h: the lock of the shim's own tables, for writers only; readers never take one.
 *
 * Not a pthread mutex: inspectors take it within the application's calls, where those are what the
 * driver waits on. The slow paths (session.c, resolve.c) use pthread mutexes in the session, which a
 * forked child finds cleared. Unlocked is all zeros, so a lock in cleared memory is ready. fork takes
 * all of them (spy_inspect_hold), so that a child finds whole tables and free locks.
 *
 * What is done under it takes less than a microsecond, and threads that allocate at the same time meet
 * here in step: who finds it held tries for about as long before it sleeps.
 */
#ifndef CUDASPY_SHIM_LOCK_H
#define CUDASPY_SHIM_LOCK_H

#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

struct spy_lock {
	uint32_t state; /* 0 free, 1 held, 2 held and somebody may sleep */
};

#define SPY_LOCK_TRIES 50

static inline void spy_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

static inline bool spy_try_lock(struct spy_lock *lock)
{
	uint32_t expected = 0;

	return !__atomic_load_n(&lock->state, __ATOMIC_RELAXED) &&
	       __atomic_compare_exchange_n(&lock->state, &expected, 1, 0, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static inline void spy_lock(struct spy_lock *lock)
{
	for (int i = 0; i < SPY_LOCK_TRIES; i++) {
		if (spy_try_lock(lock))
			return;
		spy_pause();
	}
	while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static inline void spy_unlock(struct spy_lock *lock)
{
	if (__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2)
		syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Around a fork: takes a lock before it, gives it back after it, in both processes. */
static inline void spy_hold(struct spy_lock *lock, bool hold)
{
	if (hold)
		spy_lock(lock);
	else
		spy_unlock(lock);
}

#endif
