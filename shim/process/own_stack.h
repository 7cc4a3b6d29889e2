/*
 * shim/process/own_stack.h: slow paths run on a stack of the shim's own. The application's may be
 * small: a signal handler's, a coroutine's, that of a thread of 16 KiB. How small a coroutine's
 * stack is cannot be found out, and slow paths take some kilobytes: paths, printf, records of the
 * loader's.
 */
#ifndef CUDASPY_SHIM_OWN_STACK_H
#define CUDASPY_SHIM_OWN_STACK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Calls work(data) on a stack of the shim's own, under a signal guard (signal_guard.h), so that no
 * signal handler runs there. Called on such a stack, or where there is no memory for one, it stays
 * where it is.
 */
void spy_own_stack_run(void (*work)(void *data), void *data);

/* Where the application's stack was left for the shim's; where the caller is if it was not left. */
uintptr_t spy_own_stack_left_at(void);

/* Where the recorder's own stack ends, if the caller is on one; else 0. */
uintptr_t spy_own_stack_end(void);

/* Does the address lie on the thread's alternate signal stack, as the kernel knows it? */
bool spy_own_stack_is_for_signals(uintptr_t address);

/* Is the caller on a signal stack with too little room left for a slow path? */
bool spy_own_stack_is_narrow(void);

#endif
