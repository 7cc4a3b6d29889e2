/*
 * shim/lib/signal_guard.h: protection for a slow path. The application's errno survives. A pending
 * pthread_cancel waits: a CUDA call is no cancellation point, but the shim's open and write would
 * be. Signals that are sent wait: a handler that leaves by longjmp or _exit must not leave a packet
 * half stored or a lock taken. Those that the kernel raises for what the shim does (SIGSYS in a
 * sandbox whose handler answers, SIGBUS of a truncated file) do not: it kills a thread that blocks them. A CUDA call made from inside, by an allocator that is not libc's, say, is not
 * recorded: it might need the same lock. Used on the application's threads.
 */
#ifndef CUDASPY_SHIM_SIGNAL_GUARD_H
#define CUDASPY_SHIM_SIGNAL_GUARD_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct spy_thread;

/* self.c: from now on CUDA calls of the calling thread are not recorded; and the end of that. */
struct spy_thread *spy_self_block_reentry(uintptr_t *before);
void spy_self_restore_reentry(struct spy_thread *thread, uintptr_t before);

struct spy_signal_guard {
	int error;
	int cancel_state, cancel_type;
	struct spy_thread *thread;
	uintptr_t reentry_frame;
	bool held; /* are signals masked? A sandbox may refuse it */
	sigset_t signals;
};

/* self.c: guards that the calling thread is in. A SIGBUS that was sent comes behind them (truncation.c). */
extern __thread unsigned int spy_self_deferring;

/* signal_mask.c: masks what can wait. False: nothing is masked. And the end of that. */
bool spy_signals_hold(sigset_t *before);
void spy_signals_release(const sigset_t *before);

static inline struct spy_signal_guard spy_signal_guard_begin(void)
{
	struct spy_signal_guard guard = {.error = errno};

	spy_self_deferring++;
	guard.held = spy_signals_hold(&guard.signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard.cancel_state);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &guard.cancel_type);
	guard.thread = spy_self_block_reentry(&guard.reentry_frame);
	return guard;
}

static inline void spy_signal_guard_end(struct spy_signal_guard *guard)
{
	spy_self_restore_reentry(guard->thread, guard->reentry_frame);
	/*
	 * In this order: where an asynchronous cancellation is pending, glibc 2.36's setcancelstate
	 * ends the thread without the result PTHREAD_CANCELED; its setcanceltype ends it with that.
	 */
	pthread_setcancelstate(guard->cancel_state, NULL);
	pthread_setcanceltype(guard->cancel_type, NULL);
	spy_self_deferring--;
	if (guard->held)
		spy_signals_release(&guard->signals);
	errno = guard->error;
}

/* For the rest of the enclosing block. */
#define SPY_SIGNAL_GUARD \
	struct spy_signal_guard spy_signal_guard \
		__attribute__((unused, cleanup(spy_signal_guard_end))) = spy_signal_guard_begin()

#endif
