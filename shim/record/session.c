/*
 * shim/record/session.c: the one session of a process: where it lies, whether it is active, and
 * calls that no thread can count. Runs on the application's threads, at any time.
 *
 * The session lives in memory that a forked child reads as zeros (MADV_WIPEONFORK): the child has
 * no session until it calls CUDA itself. Its first call finds that out in the slow path.
 */
#include <stdatomic.h>
#include "record/session.h"

struct spy_session *spy_session;

/* Calls lost before the board was there. */
static uint64_t lost_early;

void spy_session_count_lost(void)
{
	uint64_t *lost = spy_session_active() ? &spy_session->board->lost : &lost_early;

	__atomic_fetch_add(lost, 1, __ATOMIC_RELAXED);
}

bool spy_session_active(void)
{
	return spy_session && atomic_load(&spy_session->state) == SPY_SESSION_ACTIVE;
}

uint64_t spy_session_take_lost(void)
{
	return __atomic_exchange_n(&lost_early, 0, __ATOMIC_RELAXED);
}
