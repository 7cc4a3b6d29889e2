/*
 * tests/unit/no_guard.h: what slow paths of the recorder need of the rest of it (signal_guard.h), for tests that have
 * no rest. Included once.
 */
#ifndef CUDASPY_TESTS_NO_GUARD_H
#define CUDASPY_TESTS_NO_GUARD_H

#include <stddef.h>
#include "lib/signal_guard.h"

__thread unsigned int spy_self_deferring;

bool spy_signals_hold(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	return pthread_sigmask(SIG_SETMASK, &all, before) == 0;
}

void spy_signals_release(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

struct spy_thread *spy_self_block_reentry(uintptr_t *before)
{
	(void)before;
	return NULL;
}

void spy_self_restore_reentry(struct spy_thread *thread, uintptr_t before)
{
	(void)thread;
	(void)before;
}

#endif
