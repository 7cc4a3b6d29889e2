/*
 * shim/handoff.h: how locks that are waited for change hands: who took one without a wait, who gave it back.
 *
 * While threads wait for a lock, whoever takes it or gives it back leaves a record, so that the order in which
 * it changed hands is complete; a lock that nobody waits for costs a look at one word. But what is done while a
 * thread has a lock all those who wait for it wait for, too, and it decides who comes next. Two looks at the clock
 * there, 36 ns, made eight threads that allocate on one GPU a fifth slower (docs/EVIDENCE.md). So:
 *
 *   - the clock is looked at before a lock is tried, and records are written when it has been given back;
 *   - a thread that takes a mutex again in the same function, before anybody else has had it, only counts that: a run;
 *   - giving a mutex back is told only if glibc is about to wake somebody, which takes a microsecond or more.
 */
#ifndef CUDASPY_SHIM_HANDOFF_H
#define CUDASPY_SHIM_HANDOFF_H

#include "clock.h"
#include "thread.h"

/*
 * Do threads wait for the locks of a bucket, or did so just now? Those who take and give back look at the first
 * cache line, which changes seldom; those who wait count themselves in the second; the third changes with the owner.
 */
#define SPY_WAITING_BUCKETS 512

struct spy_waiting {
	uint32_t some __attribute__((aligned(64)));
	uint64_t since; /* when some was set */
	uint32_t threads __attribute__((aligned(64)));
	uint64_t left; /* when one of them was last counted out */
	uint64_t last
		__attribute__((aligned(64))); /* spy_had: who had the mutex last; 0: nobody knows */
};

extern struct spy_waiting spy_waiting[SPY_WAITING_BUCKETS];

static inline struct spy_waiting *spy_waiting_for(const void *lock)
{
	uintptr_t address = (uintptr_t)lock;

	return &spy_waiting[(address >> 4 ^ address >> 14) % SPY_WAITING_BUCKETS];
}

static inline bool spy_is_waited_for(const void *lock)
{
	return __builtin_expect(
		__atomic_load_n(&spy_waiting_for(lock)->some, __ATOMIC_RELAXED) != 0, 0);
}

/* ---- runs: all of this on the thread that has the lock, or is about to try for it --------------- */

static inline struct spy_run *spy_run_of(struct spy_thread *thread, const void *lock)
{
	uintptr_t address = (uintptr_t)lock;

	return &thread->runs[(address >> 4 ^ address >> 10) % SPY_RUNS];
}

/* A mutex, and that this thread had it. */
static inline uint64_t spy_had(const struct spy_thread *thread, const void *lock)
{
	return (uintptr_t)lock ^ (uint64_t)thread->slot << 48;
}

/* A lock was taken. begun: the clock, right before it was tried; 0: after a wait, whose record tells. */
static inline struct spy_run *spy_run_begin(struct spy_thread *thread, const void *lock,
					    uint64_t begun)
{
	struct spy_run *run = spy_run_of(thread, lock);

	*run = (struct spy_run){
		.lock = (uintptr_t)lock, .begun = begun, .takes = 1, .fn = thread->calls[0].fn};
	return run;
}

/* The same of a mutex: others are to know that they did not have it last. */
static inline struct spy_run *spy_run_begin_mutex(struct spy_thread *thread, const void *lock,
						  uint64_t begun)
{
	__atomic_store_n(&spy_waiting_for(lock)->last, spy_had(thread, lock), __ATOMIC_RELAXED);
	return spy_run_begin(thread, lock, begun);
}

/* Had the thread the mutex last, in a call of the same function? */
static inline bool spy_run_goes_on(struct spy_thread *thread, const void *lock)
{
	const struct spy_run *run = spy_run_of(thread, lock);

	return run->lock == (uintptr_t)lock && run->fn == thread->calls[0].fn &&
	       __atomic_load_n(&spy_waiting_for(lock)->last, __ATOMIC_RELAXED) ==
		       spy_had(thread, lock);
}

/* A mutex that others wait for was taken at once. tried: the clock before, 0 if the run went on by then. */
static inline void spy_run_take(struct spy_thread *thread, const void *lock, uint64_t tried)
{
	struct spy_run *run = spy_run_of(thread, lock);

	if (spy_run_goes_on(thread, lock))
		run->takes += run->takes < UINT16_MAX;
	else
		spy_run_begin_mutex(thread, lock, tried ? tried : spy_clock());
}

/* ---- records ------------------------------------------------------------------------------------ */

/* A lock that others may wait for was given back, which began at `time`; 0: it was not. Called when it is done.
 * sure: the lock itself told that somebody sleeps for it, if it was not the thread's own sleep that it told of. */
void spy_handoff_released(enum spy_wait_kind kind, const void *lock, uint64_t time, bool sure);

/* A mutex was taken at once and given back, perhaps to be taken again at once: nobody sleeps for it. */
void spy_handoff_taken(const void *lock);

/* ---- who waits ---------------------------------------------------------------------------------- */

/* The thread is counted among those who wait for a lock; until it gives it back, for what can be done later is not
 * done while it has the lock. Ordered before a look at the lock's owner. */
void spy_handoff_enter(struct spy_thread *thread, const void *lock, uint64_t now);

/* It is not any more. After a wait that was left by longjmp or an asynchronous cancellation it counts itself
 * out at its next one, or when it ends. Owner only. */
void spy_handoff_leave(struct spy_thread *thread);

/* In a forked child, which has none of the threads that wait. */
void spy_handoff_forget(void);

#endif
