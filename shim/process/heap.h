/*
 * shim/process/heap.h: memory for what the recorder remembers: names of kernels, notes, modules,
 * functions looked up.
 *
 * Not malloc's: a call in a signal handler may have interrupted the program's allocator, whose lock
 * it would wait for for ever; so would a child forked behind that allocator's back. It is bounded
 * (SPY_HEAP_MOST), lies in the session, and so begins empty in a forked child.
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
