/*
 * shim/probe.h: probes on what the driver blocks in.
 *
 * probe.c exports the C library's functions under their own names: outside a CUDA call a probe is one
 * branch and a jump; inside one it tries the lock first, and only if that is not to be had does wait.c
 * read the clock, look up the holder and write a record. What the application sees, every return
 * value and every lock's semantics, is the C library's.
 */
#ifndef CUDASPY_SHIM_PROBE_H
#define CUDASPY_SHIM_PROBE_H

#include "clock.h"
#include "thread.h"

/* A wait in progress, on the stack of the thread that waits. */
struct spy_wait {
	struct spy_thread *thread; /* NULL: not to be recorded */
	uint64_t start;
	uint64_t object;
	uint64_t holder_since, holder_stream;
	uint32_t holder;
	uint16_t holder_fn;
	uint8_t kind; /* enum spy_wait_kind */
	uint8_t flags; /* enum spy_wait_flag */
	uint8_t holder_device;
};

/*
 * Do threads wait for the locks of a bucket, or did so just now? While they do, whoever has one leaves a
 * record when he gives it back: the order in which a lock changes hands is then complete. Those who take
 * and give back look at the first cache line, which changes seldom; those who wait count themselves in another.
 */
#define SPY_WAITING_BUCKETS 512

struct spy_waiting {
	uint32_t some __attribute__((aligned(64)));
	uint64_t since; /* when some was set */
	uint32_t threads __attribute__((aligned(64)));
	uint64_t left; /* when one of them was last counted out */
};

extern struct spy_waiting spy_waiting[SPY_WAITING_BUCKETS];

static inline struct spy_waiting *spy_waiting_for(const void *object)
{
	uintptr_t address = (uintptr_t)object;

	return &spy_waiting[(address >> 4 ^ address >> 14) % SPY_WAITING_BUCKETS];
}

/*
 * Around the function that blocks. owner: where the lock names the thread that has it, 0 while nobody
 * or readers have; NULL for what has no holder, or names none. It is read when everybody can see that
 * we wait: whoever has the lock then tells when he gives it back, unless he had looked already.
 * failed: ended without the lock. Neither function changes errno.
 */
void spy_wait_begin(struct spy_wait *wait, enum spy_wait_kind kind, const void *object,
		    const void *owner, unsigned int flags);
void spy_wait_end(struct spy_wait *wait, bool failed);

/* The thread is counted among those who wait until it gives the lock back: what can be done later is not
 * done while it has the lock. After a wait that was left by longjmp or an asynchronous cancellation it
 * counts itself out at its next one, or when it ends. Owner only. */
void spy_wait_leave(struct spy_thread *thread);

/* In a forked child, which has none of the threads that wait. */
void spy_wait_forget(void);

/* A lock others wait for was taken at once: remembered until it is given back. What is done while a thread
 * has a lock, all those wait for, and it changes who comes next: as little as can be. */
static inline void spy_wait_taken(struct spy_thread *thread, const void *object)
{
	thread->taken[thread->n_taken++ % SPY_TAKEN] =
		(struct spy_taken){.lock = (uintptr_t)object, .time = spy_clock()};
}

/* A lock that others may wait for was given back, which began at `time`; 0: it was not. Called when it is
 * done, so that those who wait do not wait for the record, too. sure: the lock itself told that somebody
 * waited, so that nobody has to look at the count that those who wait keep changing. */
void spy_wait_released(enum spy_wait_kind kind, const void *object, uint64_t time, bool sure);

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

/* Waits are to be recorded. */
extern bool spy_probing;

/* Finds what the probes stand before; when the library is loaded, or earlier. */
void spy_probe_init(void);

/* Notes in the trace who else stands in the way. */
void spy_probe_note(void);

#endif
