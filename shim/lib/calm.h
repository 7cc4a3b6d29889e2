/*
 * shim/lib/calm.h: around every slow path: the application's errno survives, a pending pthread_cancel
 * waits (a CUDA call is no cancellation point; the open and write of ours would be), and so do
 * signals: a handler that leaves by longjmp or _exit must not leave a packet half stored or our
 * lock held. A CUDA call made from in here, by an allocator that is not libc's, say, passes unseen:
 * it might want the same lock.
 */
#ifndef CUDASPY_SHIM_CALM_H
#define CUDASPY_SHIM_CALM_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>

struct spy_thread;

/* self.c: makes the calling thread's CUDA calls pass unseen and defers SIGBUS that others send, and undoes that. */
struct spy_thread *spy_set_busy(uintptr_t *before);
void spy_restore_busy(struct spy_thread *thread, uintptr_t before);

struct spy_calm {
	int error;
	int cancel_state, cancel_type;
	struct spy_thread *thread;
	uintptr_t busy;
	sigset_t signals;
};

static inline struct spy_calm spy_calm_begin(void)
{
	struct spy_calm calm = {.error = errno};
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGBUS); /* a truncated file's (tear.c) */
	pthread_sigmask(SIG_SETMASK, &all, &calm.signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &calm.cancel_state);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &calm.cancel_type);
	calm.thread = spy_set_busy(&calm.busy);
	return calm;
}

static inline void spy_calm_end(struct spy_calm *calm)
{
	spy_restore_busy(calm->thread, calm->busy);
	/* In this order: where an asynchronous one is pending, glibc 2.36's setcancelstate ends the thread without
	 * the result PTHREAD_CANCELED; its setcanceltype ends it with that. */
	pthread_setcancelstate(calm->cancel_state, NULL);
	pthread_setcanceltype(calm->cancel_type, NULL);
	pthread_sigmask(SIG_SETMASK, &calm->signals, NULL);
	errno = calm->error;
}

/* For the rest of the enclosing block. */
#define SPY_CALM \
	struct spy_calm spy_calm __attribute__((unused, cleanup(spy_calm_end))) = spy_calm_begin()

#endif
