/*
 * shim/process/heap.h: the recorder's own allocator, for its tables: names of kernels, notes,
 * modules, functions looked up.
 *
 * It does not use malloc. A signal handler that makes a CUDA call may have interrupted malloc in
 * the program while it held malloc's lock: the recorder would wait for that lock for ever. The same
 * holds in a child that was forked at such a moment. The heap takes no more than SPY_HEAP_MOST. It
 * is a part of the session, so a forked child begins with an empty heap.
 */
#ifndef CUDASPY_SHIM_HEAP_H
#define CUDASPY_SHIM_HEAP_H

#include <stddef.h>
#include <stdint.h>
#include "lib/lock.h"

#define SPY_HEAP_MOST ((size_t)32 << 20)
#define SPY_HEAP_CLASSES 26 /* powers of two: more than SPY_HEAP_MOST */

struct spy_heap {
	struct spy_lock lock;
	void *free[SPY_HEAP_CLASSES]; /* given back, by size: each begins with the next one */
	uint8_t *at, *end; /* of the chunk that the next small ones are cut from */
	uint64_t used; /* bytes that are taken */
};

/* Zeroed; NULL: the bound is reached, or there is no memory. Any thread with a session. */
void *spy_heap_take(size_t bytes);

/* Gives back what was taken with the same size. NULL is fine. */
void spy_heap_give(void *memory, size_t bytes);

/* uthash's tables lie there, too. (Include this before uthash.h.) */
#define uthash_malloc(bytes) spy_heap_take(bytes)
#define uthash_free(memory, bytes) spy_heap_give(memory, bytes)

#endif
