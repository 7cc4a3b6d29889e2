/*
 * shim/probe/wait.h: a thread waits inside a call: for a lock, in the kernel, asleep. Around the
 * function that blocks.
 */
#ifndef CUDASPY_SHIM_WAIT_H
#define CUDASPY_SHIM_WAIT_H

#include "state/thread.h"

/* A wait in progress, on the stack of the thread that waits. */
struct spy_wait {
	struct spy_thread *thread; /* NULL: not to be recorded */
	uintptr_t call; /* the one that waits: where its frame lies */
	uint64_t start;
	uint64_t object;
	uint64_t holder_since, holder_stream;
	uint32_t holder;
	uint32_t pauses; /* of the lock, when it began */
	uint16_t holder_fn;
	uint8_t kind; /* enum spy_wait_kind */
	uint8_t flags; /* enum spy_wait_flag */
	uint8_t holder_device;
};

/*
 * owner: where the lock names its holder, 0 while it is free or read; NULL for an object without a
 * holder, or that names none. It is read when the waiter is counted: the holder then records its
 * release (of a mutex: if a thread sleeps by then), unless it had looked already. failed: ended
 * without the lock. Neither changes errno.
 */
void spy_wait_begin(struct spy_wait *wait, enum spy_wait_kind kind, const void *object,
		    const void *owner, unsigned int flags);
void spy_wait_end(struct spy_wait *wait, bool failed);

/* The thread that a lock names as its holder; 0: none. glibc: what a robust mutex names when its
 * owner died, and when it is not recoverable, is no thread. */
static inline uint32_t spy_wait_owner(const uint32_t *owner)
{
	uint32_t tid = __atomic_load_n(owner, __ATOMIC_RELAXED);

	return tid < INT32_MAX - 1 ? tid : 0;
}

/* Writes the name of a thread that holds a lock, if it makes no CUDA calls and was not named yet.
 * With the caller's thread at work (spy_thread_try_work). */
void spy_wait_name_holder(struct spy_thread *thread, uint32_t tid);

/* Locks that name no holder: we remember which of our threads has them. */
static inline void spy_hold_add(struct spy_thread *thread, const void *object)
{
	__atomic_store_n(&thread->holds[thread->n_holds++ % SPY_HOLDS], (uintptr_t)object,
			 __ATOMIC_RELAXED);
}

static inline void spy_hold_remove(struct spy_thread *thread, const void *object)
{
	for (unsigned int i = 0; i < SPY_HOLDS; i++) {
		unsigned int at = (thread->n_holds - 1 - i) % SPY_HOLDS;

		if (thread->holds[at] != (uintptr_t)object)
			continue;
		__atomic_store_n(&thread->holds[at], 0, __ATOMIC_RELAXED);
		if (!i)
			thread->n_holds--;
		return;
	}
}

#endif
