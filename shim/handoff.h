/*
 * shim/handoff.h: how locks that are waited for change hands: who took one without a wait, who gave it back.
 *
 * While threads wait for a lock, whoever takes it or gives it back leaves a record, so that the order in which
 * it changed hands is complete; a lock that nobody waits for costs a look at one word. But what is done while a
 * thread has a lock all those who wait for it wait for, too, and it decides who comes next. Two looks at the clock
 * there, 36 ns, made eight threads that allocate on one GPU a fifth slower (docs/EVIDENCE.md). So:
 *
 *   - the clock is looked at before a lock is tried, and its record is written when it has been given back;
 *   - a mutex that a call takes again before any other call has had it is only counted: a run;
 *   - that a mutex is given back is told only if somebody has to be woken, which takes a microsecond or more.
 *
 * What is rarer is not spared: who has waited looks at the clock and writes his record with the lock in his hands;
 * read-write and spin locks, and mutexes that are robust or deal with priorities, are told whenever they are given
 * back, and one that a condition gives back is told before. Who takes a lock in no call of CUDA's is seen by those
 * only who then begin to wait for it.
 */
#ifndef CUDASPY_SHIM_HANDOFF_H
#define CUDASPY_SHIM_HANDOFF_H

#include "clock.h"
#include "thread.h"
#include "wait.h"

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

static inline unsigned int spy_run_place(const void *lock)
{
	uintptr_t address = (uintptr_t)lock;

	return (address >> 4 ^ address >> 10) % SPY_RUNS;
}

/* The run of a lock that this call has, or had; NULL: none. */
static inline struct spy_run *spy_run_of(struct spy_thread *thread, const void *lock)
{
	struct spy_run *run = &thread->runs[spy_run_place(lock)];

	if (run->lock != (uintptr_t)lock)
		run = &thread->runs[spy_run_place(lock) ^ 1];
	return run->lock == (uintptr_t)lock && run->call == thread->calls[0].start ? run : NULL;
}

/* A lock was taken. begun: the clock, right before it was tried; 0: after a wait, whose record tells. A run is of a call
 * that has a beginning; one that is only counted gets it now. */
static inline struct spy_run *spy_run_begin(struct spy_thread *thread, const void *lock,
					    uint64_t begun)
{
	uint64_t since = __atomic_load_n(&spy_waiting_for(lock)->since, __ATOMIC_RELAXED);
	struct spy_run *run;
	uint16_t takes = 1;

	if (!thread->calls[0].start)
		spy_wait_set_begin(thread, begun);
	run = spy_run_of(thread, lock);
	if (run &&
	    run->since ==
		    since) { /* others had it since: how often it was taken before is not told yet */
		takes = run->takes;
	} else if (!run) {
		run = &thread->runs[spy_run_place(lock)];
		if (run->lock && run->call == thread->calls[0].start)
			run = &thread->runs[spy_run_place(lock) ^ 1];
	}
	*run = (struct spy_run){.lock = (uintptr_t)lock,
				.begun = begun,
				.call = thread->calls[0].start,
				.since = since,
				.takes = takes};
	return run;
}

/* A mutex, and that the thread of that slot had it. */
static inline uint64_t spy_had(uint32_t slot, const void *lock)
{
	return (uintptr_t)lock ^ (uint64_t)slot << 48;
}

/* The same of a mutex: others are to know that they did not have it last. */
static inline struct spy_run *spy_run_begin_mutex(struct spy_thread *thread, const void *lock,
						  uint64_t begun)
{
	__atomic_store_n(&spy_waiting_for(lock)->last, spy_had(thread->slot, lock),
			 __ATOMIC_RELAXED);
	return spy_run_begin(thread, lock, begun);
}

/* The run of a mutex, if this call had it last; or NULL. */
static inline struct spy_run *spy_run_going_on(struct spy_thread *thread, const void *lock)
{
	return __atomic_load_n(&spy_waiting_for(lock)->last, __ATOMIC_RELAXED) ==
			       spy_had(thread->slot, lock)
		       ? spy_run_of(thread, lock)
		       : NULL;
}

/* A mutex that others wait for was taken at once. tried: the clock before, 0 if the run went on by then. */
static inline void spy_run_take(struct spy_thread *thread, const void *lock, uint64_t tried)
{
	struct spy_run *run = spy_run_going_on(thread, lock);

	if (run)
		run->takes = run->takes < UINT16_MAX ? run->takes + 1 : UINT16_MAX - 63;
	else
		spy_run_begin_mutex(thread, lock, tried ? tried : spy_clock());
}

/* So often within a run it is looked whether anybody waits any more. */
static inline bool spy_run_looks(const struct spy_run *run)
{
	return run->takes % 64 == 63;
}

/* ---- records ------------------------------------------------------------------------------------ */

/* A lock that others may wait for was given back, which began at `time`; 0: it was not. Called when it is done.
 * sure: the lock itself told that somebody sleeps for it, if it was not the thread's own sleep that it told of. */
void spy_handoff_released(enum spy_wait_kind kind, const void *lock, uint64_t time, bool sure);

/* A mutex was given back, perhaps to be taken again at once: nobody sleeps for it. What there is to do then: tell that
 * it was taken at once, count its thread out, look whether anybody waits. */
void spy_handoff_unlocked(const void *lock);

/* ---- who waits ---------------------------------------------------------------------------------- */

/* The thread is counted among those who wait for a lock; until it gives it back, for what can be done later is not
 * done while it has the lock. Ordered before a look at the lock's owner. */
void spy_handoff_enter(struct spy_thread *thread, const void *lock, uint64_t now);

/* The thread of that slot (0: none of ours) has the mutex that we are to wait for. Somebody else was thought to have had
 * it last? His run is over. */
void spy_handoff_seen(const void *lock, uint32_t slot);

/* It is not any more. After a wait that was left by longjmp or an asynchronous cancellation it counts itself
 * out at its next one, or when it ends. Owner only. */
void spy_handoff_leave(struct spy_thread *thread);

/* In a forked child, which has none of the threads that wait. */
void spy_handoff_forget(void);

#endif
