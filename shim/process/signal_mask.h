/*
 * shim/process/signal_mask.h: threads that block SIGBUS, and may still lose a file of the trace.
 *
 * The kernel kills a thread that touches what a truncated file has lost while it blocks SIGBUS. So a
 * thread that makes CUDA calls blocks SIGSTKFLT in its place, which no Linux ever raises: that bit of
 * the thread's mask means "the program blocks SIGBUS". It is in the kernel's mask, so it is saved,
 * put back and inherited with it: by handlers, siglongjmp, contexts, new threads. What that means for
 * a SIGBUS is done in truncation.c. A program that uses SIGSTKFLT itself keeps it, and really blocks SIGBUS.
 */
#ifndef CUDASPY_SHIM_SIGNAL_MASK_H
#define CUDASPY_SHIM_SIGNAL_MASK_H

#include <signal.h>
#include <stdbool.h>

/* There is a handler for truncated files (truncation.c). */
extern _Atomic bool spy_truncation_watched;

/* Does a mask of the kernel's mean that SIGBUS is blocked, though it is not? */
bool spy_signal_mask_is_marked(const sigset_t *mask);

/* A mask that the calling thread is about to get: marked, if it has SIGBUS and may be. */
void spy_signal_mask_mark(sigset_t *mask);

/* The program sets an action. SIGSTKFLT alone in a handler's mask would be taken for the mark: it is
 * removed (true: *mask is what to use), or the mark is not used any more. */
bool spy_signal_mask_clean(int number, const struct sigaction *action, sigset_t *mask);

/* The mask of the calling thread, as the kernel has it. 0 or an error's number. */
int spy_signal_mask_set(int how, const sigset_t *set, sigset_t *old);

#endif
