/*
 * shim/probe/waiters.h: how many threads wait for a lock: decides whether acquisitions and releases
 * leave records (handoff.h). Runs on the threads that wait, acquire and release.
 *
 * Following a lock costs its holders some 200 ns each time it changes hands, which all waiters wait
 * for. So it is paced: one handoff in PACE_NS on average. Where a lock changes hands more often it is
 * followed for a burst of handoffs, then tracking pauses: its waiters are not counted, nobody sees that it
 * is contended, and a wait leaves a record that names no holder but the one of its begin. Who holds
 * such a lock is a matter of statistics, and bursts are samples. A lock that changes hands more
 * slowly is tracked always.
 */
#ifndef CUDASPY_SHIM_WAITERS_H
#define CUDASPY_SHIM_WAITERS_H

#include "state/thread.h"

#define SPY_WAITERS_BUCKETS 512

/* Do the locks of a bucket have waiters, or did they a short time ago? A byte for each: all acquirers and releasers look
 * at it, so all of them lie in a few cache lines, which change rarely. */
enum spy_contended { SPY_UNCONTENDED, SPY_CONTENDED, SPY_PAUSED /* contended, but not followed */ };
extern uint8_t spy_contended[SPY_WAITERS_BUCKETS];

/* The first cache line changes rarely; waiters count themselves in another. */
struct spy_waiters {
	uint64_t paused_until __attribute__((aligned(64))); /* cycles */
	uint64_t since; /* when the bucket became contended */
	uint32_t pauses; /* so far */
	uint32_t threads __attribute__((aligned(64)));
	uint32_t handoffs; /* since burst_since */
	uint64_t burst_since;
	uint64_t last_leave_time; /* when one of them was last counted out */
};

extern struct spy_waiters spy_waiters[SPY_WAITERS_BUCKETS];

static inline unsigned int spy_waiters_bucket(const void *lock)
{
	uintptr_t address = (uintptr_t)lock;

	return (address >> 4 ^ address >> 14) % SPY_WAITERS_BUCKETS;
}

static inline struct spy_waiters *spy_waiters_of(const void *lock)
{
	return &spy_waiters[spy_waiters_bucket(lock)];
}

static inline enum spy_contended spy_waiters_state(const void *lock)
{
	return (enum spy_contended)__atomic_load_n(&spy_contended[spy_waiters_bucket(lock)],
						   __ATOMIC_RELAXED);
}

/* Is the lock followed? */
static inline bool spy_waiters_likely(const void *lock)
{
	return __builtin_expect(spy_waiters_state(lock) == SPY_CONTENDED, 0);
}

/* When a session begins. frequency: cycles a second. all: tracking never pauses. */
void spy_waiters_begin(uint64_t frequency);

/* The thread is counted among the waiters until it releases the lock: what can be done later is
 * not done while it has the lock. Ordered before a look at the lock's owner. False: tracking pauses,
 * and it is not counted. */
bool spy_waiters_enter(struct spy_thread *thread, const void *lock, uint64_t now);

/* How often the tracking of the lock has paused so far, this time included. Pairs with pause_tracking (waiters.c): whoever
 * sees that it has begun is not counted by spy_waiters_enter. */
static inline uint32_t spy_waiters_pauses(const void *lock)
{
	return __atomic_load_n(&spy_waiters_of(lock)->pauses, __ATOMIC_ACQUIRE);
}

/* The lock changed hands, and that was seen to. By whoever had it: two of a bucket's locks may lose
 * a count. */
static inline void spy_waiters_count_handoff(struct spy_waiters *waiting)
{
	__atomic_store_n(&waiting->handoffs,
			 __atomic_load_n(&waiting->handoffs, __ATOMIC_RELAXED) + 1,
			 __ATOMIC_RELAXED);
}

/* It is not any more. After a wait that was left by longjmp or an asynchronous cancellation it
 * counts itself out at its next one, or when it ends. Owner only. */
void spy_waiters_leave(struct spy_thread *thread);

/* The same, at `now`; nothing if it is not counted. */
void spy_waiters_leave_at(struct spy_thread *thread, uint64_t now);

/*
 * Without waiters a bucket becomes uncontended. Not again and again, for every acquirer and
 * releaser has to fetch the line anew; nor too late, for until then they leave records. It does, too,
 * when tracking is to pause: threads that are counted stay so until they release the lock.
 */
void spy_waiters_look(struct spy_thread *thread, struct spy_waiters *waiting, uint64_t now);

/* A call of the thread's own ends: it waits for nothing any more. A lock whose tracking it paused is followed
 * again if that is over and it has waiters: they may wait for a long time. Owner only. */
void spy_waiters_settle(struct spy_thread *thread, uint64_t now);

static inline bool spy_waiters_unsettled(const struct spy_thread *thread)
{
	return __builtin_expect(((uintptr_t)thread->waiting | (uintptr_t)thread->paused) != 0, 0);
}

/* In a forked child, which has none of the threads that wait. */
void spy_waiters_forget(void);

/* Did another thread wait for it when it was released at `time`? It may have acquired and
 * released it since. */
static inline bool spy_waiters_others(const struct spy_thread *thread,
				      const struct spy_waiters *waiting, uint64_t time)
{
	uint32_t self = thread->waiting == waiting;

	return __atomic_load_n(&waiting->threads, __ATOMIC_ACQUIRE) > self ||
	       __atomic_load_n(&waiting->last_leave_time, __ATOMIC_RELAXED) >= time;
}

#endif
