/*
 * shim/state/libraries.c: who reads what lies in libraries, and who unloads them (libraries.h).
 *
 * A user is counted before it looks for a thread that unloads, and a thread that unloads is counted before it looks for users: one
 * of the two sees the other. A use is short; it is awaited for this long at most.
 */
#include <sys/syscall.h>
#include "arch/processor.h"
#include "lib/clock.h"
#include "state/libraries.h"
#include "state/session.h"

#define USERS_MS 200

bool spy_libraries_hold(void)
{
	__atomic_fetch_add(&spy_session->library_users, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&spy_session->library_unloaders, __ATOMIC_SEQ_CST))
		return true;
	spy_libraries_release();
	return false;
}

void spy_libraries_release(void)
{
	__atomic_fetch_sub(&spy_session->library_users, 1, __ATOMIC_SEQ_CST);
}

void spy_libraries_unload_begin(void)
{
	uint64_t begun = spy_clock_monotonic();

	__atomic_fetch_add(&spy_session->library_unloaders, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&spy_session->library_users, __ATOMIC_SEQ_CST) &&
	       spy_clock_monotonic() - begun < USERS_MS * 1000000ull)
		spy_syscall(SYS_sched_yield);
}

/* A child that was forked inside dlclose has a new session, in which nothing was counted. */
void spy_libraries_unload_end(void)
{
	uint32_t n = __atomic_load_n(&spy_session->library_unloaders, __ATOMIC_RELAXED);

	while (n && !__atomic_compare_exchange_n(&spy_session->library_unloaders, &n, n - 1, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}
