/*
 * shim/process/apart.h: our slow paths run on a stack of our own. The application's may be small (a signal handler's, a
 * coroutine's, a thread's of 16 KiB), nobody can tell how small a coroutine's is, and what is rare with us takes some
 * kilobytes: paths, printf, records of the loader's.
 */
#ifndef CUDASPY_SHIM_APART_H
#define CUDASPY_SHIM_APART_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Calls work(data), calm (calm.h), so that no signal handler runs there. Inside itself, and where there is no memory
 * for a stack, it calls it where it is.
 */
void spy_apart(void (*work)(void *data), void *data);

/* Where the application's stack is left for ours; where the caller is if it is not left. */
uintptr_t spy_apart_from(void);

/* Does the address lie on the thread's alternate signal stack, as the kernel knows it? */
bool spy_apart_is_for_signals(uintptr_t address);

/* Is there so little left of the signal stack that the caller is on, if it is on one, that it is better left alone? */
bool spy_apart_is_narrow(void);

#endif
