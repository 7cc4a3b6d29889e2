/*
 * shim/lib/lock.c: waiting for one of the shim's locks. Runs on the application's threads, where
 * two of them change a table at the same time. No probe sees these waits: they are system calls of
 * the shim's own.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include "lib/lock.h"

#define YIELDS 20
/* Hundreds of threads that wait at once would keep the CPUs busy, which the holder needs: naps grow by an eighth each. */
#define NAP_NS 50000
#define NAP_MOST_NS 2000000

uint64_t spy_lock_timeouts;

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Has the same thread had it for too long? Keeps since when, and which of its
 * turns that was. */
static bool is_timed_out(struct spy_lock *lock, uint64_t begun, uint64_t *since, uint32_t *turn)
{
	uint32_t now_turn = __atomic_load_n(&lock->turns, __ATOMIC_RELAXED);
	uint64_t now = now_ms();

	if (now_turn != *turn)
		*since = now;
	*turn = now_turn;
	if (now - *since >= SPY_LOCK_TIMEOUT_MS)
		__atomic_store_n(&lock->timeout_turn, now_turn + 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&lock->timeout_turn, __ATOMIC_RELAXED) == now_turn + 1 ||
	       now - begun >= SPY_LOCK_TIMEOUT_TOTAL_MS;
}

bool spy_lock_slowly(struct spy_lock *lock)
{
	struct timespec nap = {.tv_nsec = NAP_NS};
	uint64_t begun = now_ms(), since = begun;
	uint32_t turn = __atomic_load_n(&lock->turns, __ATOMIC_RELAXED);
	bool acquired = false, timed_out = spy_lock_is_mine(lock);
	int error = errno;

	for (int i = 0; !acquired && !timed_out; i++) {
		if (i < YIELDS) {
			spy_syscall(SYS_sched_yield);
		} else {
			spy_syscall(SYS_nanosleep, &nap, NULL);
			if (nap.tv_nsec < NAP_MOST_NS)
				nap.tv_nsec += nap.tv_nsec / 8;
		}
		acquired = spy_try_lock(lock);
		timed_out = !acquired && is_timed_out(lock, begun, &since, &turn);
	}
	if (!acquired)
		__atomic_fetch_add(&spy_lock_timeouts, 1, __ATOMIC_RELAXED);
	errno = error;
	return acquired;
}
