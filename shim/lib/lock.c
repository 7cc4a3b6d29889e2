/*
 * shim/lib/lock.c: waiting for one of our locks, which never lasts long. Runs on the application's
 * threads, where two of them change a table at the same time. No probe sees these waits: they are
 * system calls of our own.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "lib/lock.h"
#include "arch/x86_64/processor.h"

#define YIELDS 20
#define NAP_NS 50000

uint64_t spy_lock_given_up;

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Is there no hope: has the same one had it for too long? Keeps since when, and which of its
 * turns that was. */
static bool is_hopeless(struct spy_lock *lock, uint64_t begun, uint64_t *since, uint32_t *turn)
{
	uint32_t now_turn = __atomic_load_n(&lock->turns, __ATOMIC_RELAXED);
	uint64_t now = now_ms();

	if (now_turn != *turn)
		*since = now;
	*turn = now_turn;
	if (now - *since >= SPY_PATIENCE_MS)
		__atomic_store_n(&lock->hopeless, now_turn + 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&lock->hopeless, __ATOMIC_RELAXED) == now_turn + 1 ||
	       now - begun >= SPY_PATIENCE_MOST_MS;
}

bool spy_lock_slowly(struct spy_lock *lock)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	uint64_t begun = now_ms(), since = begun;
	uint32_t turn = __atomic_load_n(&lock->turns, __ATOMIC_RELAXED);
	bool had = false, hopeless = spy_lock_is_mine(lock);
	int error = errno;

	for (int i = 0; !had && !hopeless; i++) {
		if (i < YIELDS)
			spy_syscall(SYS_sched_yield);
		else
			spy_syscall(SYS_nanosleep, &nap, NULL);
		had = spy_try_lock(lock);
		hopeless = !had && is_hopeless(lock, begun, &since, &turn);
	}
	if (!had)
		__atomic_fetch_add(&spy_lock_given_up, 1, __ATOMIC_RELAXED);
	errno = error;
	return had;
}
