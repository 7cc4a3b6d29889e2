/*
 * shim/lib/bounds.h: where a thread's own stack begins and ends, found without pthread_getattr_np,
 * which allocates: a signal handler may have interrupted the program's allocator, or a fork that
 * holds all of its locks.
 */
#ifndef CUDASPY_SHIM_BOUNDS_H
#define CUDASPY_SHIM_BOUNDS_H

#include <stdint.h>

struct spy_bounds {
	uintptr_t begin, end; /* 0, 0: not known */
};

/* The library is loaded. */
void spy_bounds_init(void);

/* Of the calling thread, which stands at `here` on the application's stack. Some system calls;
 * errno may change. */
struct spy_bounds spy_bounds_of_self(uintptr_t here);

#endif
