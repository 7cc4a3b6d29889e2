/*
 * shim/probe/probe.c: the functions that the driver blocks in, under the C library's own names.
 * Runs on every thread of the process at every such call, also before the library's constructor and
 * in threads without CUDA calls. Hence no sanitizer in this file, and nothing here but the branch,
 * the attempt and the call. What a wait becomes is decided by wait.c.
 *
 * Locks are tried first, or looked at. What trylock answers other than EBUSY is the answer of lock, too: a
 * recursive lock counts up, one with a priority ceiling says EINVAL. For a lock that its own thread
 * holds trylock says EBUSY, and then the real function finds that out by itself (EDEADLK, or
 * forever). Which clock or time is an error even for a free lock is left to the real function: in
 * doubt it is called at once. Holders are read from glibc's own fields: the owner of a mutex and
 * the writer of a rwlock are thread ids (bits/struct_mutex.h, bits/struct_rwlock.h).
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <linux/futex.h>
#include <time.h>
#include <unistd.h>
#include "lib/clock.h"
#include "probe/handoff.h"
#include "probe/poll.h"
#include "probe/waiters.h"
#include "probe/probe.h"
#include "probe/real.h"
#include "probe/wait.h"
#include "process/elf_scan.h"
#include "record/notes.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define EXPORT SPY_EXPORT

/* glibc: bits/struct_mutex.h and nptl/pthreadP.h; bits in a mutex's kind. */
#define MUTEX_SHARED 128
#define MUTEX_ROBUST 16
#define MUTEX_INHERITS 32
#define MUTEX_PROTECTS 64

typedef const struct timespec time_limit;

/* Every function that is called by a probe, with its parameters and arguments. */
/* clang-format off */
#define FUNCTIONS(F) \
	F(int, pthread_mutex_lock, (pthread_mutex_t *l), (l)) \
	F(int, pthread_mutex_unlock, (pthread_mutex_t *l), (l)) \
	F(int, pthread_mutex_trylock, (pthread_mutex_t *l), (l)) \
	F(int, pthread_mutex_timedlock, (pthread_mutex_t *l, time_limit *t), (l, t)) \
	F(int, pthread_mutex_clocklock, (pthread_mutex_t *l, clockid_t c, time_limit *t), (l, c, t)) \
	F(int, pthread_rwlock_rdlock, (pthread_rwlock_t *l), (l)) \
	F(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t *l), (l)) \
	F(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t *l, time_limit *t), (l, t)) \
	F(int, pthread_rwlock_clockrdlock, (pthread_rwlock_t *l, clockid_t c, time_limit *t), (l, c, t)) \
	F(int, pthread_rwlock_wrlock, (pthread_rwlock_t *l), (l)) \
	F(int, pthread_rwlock_trywrlock, (pthread_rwlock_t *l), (l)) \
	F(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t *l, time_limit *t), (l, t)) \
	F(int, pthread_rwlock_clockwrlock, (pthread_rwlock_t *l, clockid_t c, time_limit *t), (l, c, t)) \
	F(int, pthread_rwlock_unlock, (pthread_rwlock_t *l), (l)) \
	F(int, pthread_spin_lock, (pthread_spinlock_t *l), (l)) \
	F(int, pthread_spin_trylock, (pthread_spinlock_t *l), (l)) \
	F(int, pthread_spin_unlock, (pthread_spinlock_t *l), (l)) \
	F(int, pthread_cond_wait, (pthread_cond_t *c, pthread_mutex_t *m), (c, m)) \
	F(int, pthread_cond_timedwait, (pthread_cond_t *c, pthread_mutex_t *m, time_limit *t), (c, m, t)) \
	F(int, pthread_cond_clockwait, (pthread_cond_t *c, pthread_mutex_t *m, clockid_t k, time_limit *t), (c, m, k, t)) \
	F(int, sem_wait, (sem_t *s), (s)) \
	F(int, sem_timedwait, (sem_t *s, time_limit *t), (s, t)) \
	F(int, sem_clockwait, (sem_t *s, clockid_t c, time_limit *t), (s, c, t)) \
	F(int, poll, (struct pollfd *p, nfds_t n, int t), (p, n, t)) \
	F(int, ppoll, (struct pollfd *p, nfds_t n, time_limit *t, const sigset_t *m), (p, n, t, m)) \
	F(int, sched_yield, (void), ()) \
	F(int, nanosleep, (time_limit *t, struct timespec *left), (t, left)) \
	F(int, usleep, (useconds_t t), (t)) \
	F(int, ioctl, (int d, unsigned long request, void *argument), (d, request, argument)) \
	F(long, syscall, (long n, long a, long b, long c, long d, long e, long f), (n, a, b, c, d, e, f))
/* clang-format on */

REAL_FUNCTIONS

/* trampoline.S jumps through it: system calls that return twice must find no frame of ours. */
__attribute__((visibility("hidden"))) void *spy_real_syscall = (void *)first_syscall;

void spy_probe_init(void)
{
	find_all();
	__atomic_store_n(&spy_real_syscall, (void *)real.syscall, __ATOMIC_RELAXED);
	spy_probe_outside_init();
}

/* Is the thread inside a CUDA call, and not inside of us? */
#define OUTSIDE likely(!spy_self->depth)

/* Every probe is two functions: the exported one, without a frame, decides and jumps; inside_
 * does the rest. */
#define PROBE(type, name, params, args) \
	static __attribute__((noinline)) type inside_##name params; \
	EXPORT type name params \
	{ \
		if (OUTSIDE) \
			return real.name args; \
		return inside_##name args; \
	} \
	static type inside_##name params

/*
 * One for what a thread that makes CUDA calls may wait in between them, too (outside.h): outside_
 * is the third function.
 */
#define PROBE_BOTH(type, name, params, args) \
	static __attribute__((noinline)) type inside_##name params; \
	static __attribute__((noinline)) type outside_##name params; \
	EXPORT type name params \
	{ \
		if (unlikely(!OUTSIDE)) \
			return inside_##name args; \
		if (unlikely(spy_is_outside())) \
			return outside_##name args; \
		return real.name args; \
	}

/* The clock, before a contended lock is tried; 0: the lock is uncontended. */
static inline uint64_t before_try(const void *lock)
{
	return spy_waiters_likely(lock) ? spy_clock() : 0;
}

/* The lock was had at the first attempt. */
static inline void note_acquired(const void *lock, uint64_t before)
{
	if (unlikely(before))
		spy_handoff_acquired(spy_self, lock, before);
}

/* Releases a lock that does not show whether a thread sleeps for it. The clock is read before: a
 * woken thread may have the CPU after it. */
#define GIVE_BACK(kind_, lock, give) \
	{ \
		enum spy_wait_kind kind = kind_; /* before it is given back */ \
		uint64_t time; \
		int result; \
\
		if (likely(!spy_waiters_likely(lock))) \
			return give; \
		time = spy_clock(); \
		result = give; \
		spy_handoff_released(kind, lock, result ? 0 : time, false); \
		return result; \
	}

/* ---- locks that are tried first ------------------------------------------------------------- */

/*
 * Three functions inside a call, because a launch takes some eight locks: inside_ for one that is free and was not waited for
 * lately, as nearly all of them; rare_ for others; wait_ where it was not to be had. Of such a mutex it is enough to look: it
 * is acquired by the real function, to which inside_ jumps, and outside_, behind which is busy_. A thread that is overtaken between the look and the call waits
 * unseen; where that is likely, for the mutex is taken again and again, it has had waiters, and is tried.
 */

static inline bool clock_known(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

static inline bool time_valid(clockid_t clock, time_limit *limit)
{
	__asm__("" : "+r"(limit)); /* the headers promise that it is not NULL; callers did not */
	return clock_known(clock) && limit && (unsigned long)limit->tv_nsec < 1000000000;
}

/* ---- mutexes -------------------------------------------------------------------------------- */

static void begin_mutex(struct spy_wait *wait, pthread_mutex_t *lock)
{
	bool shared = lock->__data.__kind & MUTEX_SHARED;

	spy_wait_begin(wait, SPY_WAIT_MUTEX, lock, &lock->__data.__owner,
		       shared ? SPY_WAIT_SHARED : 0);
}

/* A robust mutex whose owner died is had all the same. */
static inline bool not_had(int result)
{
	return result != 0 && result != EOWNERDEAD;
}

/* A recursive mutex changes hands with the first lock and the last unlock only. */
static inline bool recursed(const pthread_mutex_t *lock)
{
	return lock->__data.__count > 1;
}

static inline void note_mutex_acquired(const pthread_mutex_t *lock, int result, uint64_t before)
{
	if (unlikely(before) && !not_had(result) && !recursed(lock))
		spy_handoff_acquired(spy_self, lock, before);
}

/*
 * A robust mutex is looked at, not tried: glibc's trylock of one that is not recoverable leaves it
 * locked, and the thread's next attempt would wait for itself.
 */
static inline bool is_robust(const pthread_mutex_t *lock)
{
	return lock->__data.__kind & MUTEX_ROBUST;
}

static inline bool is_held(const pthread_mutex_t *lock)
{
	return __atomic_load_n(&lock->__data.__lock, __ATOMIC_RELAXED) & FUTEX_TID_MASK;
}

/* Of one that protects priorities, always: its word has the ceiling. */
static inline bool is_taken(const pthread_mutex_t *lock)
{
	return __atomic_load_n(&lock->__data.__lock, __ATOMIC_RELAXED);
}

#define MUTEX(name, tried, params, args) \
	PROBE_BOTH(int, name, params, args) \
	static __attribute__((noinline)) int busy_##name params \
	{ \
		uint32_t owner; \
		int done; \
\
		if (unlikely(!(tried))) \
			return real.name args; \
		if (unlikely(is_robust(l))) \
			done = is_held(l) ? EBUSY : real.name args; \
		else \
			done = real.pthread_mutex_trylock(l); \
		if (likely(done != EBUSY)) \
			return done; \
		owner = spy_wait_owner((const uint32_t *)&l->__data.__owner); \
		WAIT_OUTSIDE(int, \
			     (.kind = SPY_WAIT_MUTEX, .object = (uintptr_t)l, .holder = owner), \
			     real.name args, .flags = not_had(result) ? SPY_WAIT_FAILED : 0) \
	} \
	static int outside_##name params \
	{ \
		return likely(!is_taken(l)) ? real.name args : busy_##name args; \
	} \
	static __attribute__((noinline)) int wait_##name params \
	{ \
		struct spy_wait wait; \
		int result; \
\
		begin_mutex(&wait, l); \
		result = real.name args; \
		spy_wait_end(&wait, not_had(result)); \
		return result; \
	} \
	static __attribute__((noinline)) int rare_##name params \
	{ \
		uint64_t before = before_try(l); \
		int result; \
\
		if (unlikely(!(tried))) \
			return real.name args; \
		if (unlikely(is_robust(l))) \
			result = is_held(l) ? EBUSY : real.name args; \
		else \
			result = real.pthread_mutex_trylock(l); \
		if (unlikely(result == EBUSY)) \
			return wait_##name args; \
		note_mutex_acquired(l, result, before); \
		return result; \
	} \
	static int inside_##name params \
	{ \
		if (unlikely(spy_waiters_state(l) != SPY_UNCONTENDED || is_taken(l))) \
			return rare_##name args; \
		return real.name args; \
	}

MUTEX(pthread_mutex_lock, true, (pthread_mutex_t * l), (l))
MUTEX(pthread_mutex_timedlock, true, (pthread_mutex_t * l, time_limit *t), (l, t))
MUTEX(pthread_mutex_clocklock, clock_known(c), (pthread_mutex_t * l, clockid_t c, time_limit *t),
      (l, c, t))

PROBE(int, pthread_mutex_trylock, (pthread_mutex_t * lock), (lock))
{
	uint64_t before = before_try(lock);
	int result = real.pthread_mutex_trylock(lock);

	note_mutex_acquired(lock, result, before);
	return result;
}

/* Of robust mutexes and those with inheritance the word is the owner's id, of those that protect
 * priorities it has the ceiling in it. */
static inline bool shows_sleepers(const pthread_mutex_t *lock)
{
	return !(lock->__data.__kind & (MUTEX_ROBUST | MUTEX_INHERITS | MUTEX_PROTECTS));
}

/* glibc: a thread sleeps until it is released, or did when it was acquired. */
static inline bool is_slept_for(const pthread_mutex_t *lock)
{
	return __atomic_load_n(&lock->__data.__lock, __ATOMIC_RELAXED) == 2;
}

/* Gives back a mutex that others may sleep for: waking one takes a hundred times as long as a
 * look at the clock. */
static __attribute__((noinline)) int wake_others(pthread_mutex_t *lock)
{
	bool sure = shows_sleepers(lock);
	uint64_t time = spy_clock();
	int result = real.pthread_mutex_unlock(lock);

	spy_handoff_released(SPY_WAIT_MUTEX, lock, result ? 0 : time, sure);
	return result;
}

PROBE(int, pthread_mutex_unlock, (pthread_mutex_t * lock), (lock))
{
	int result;

	if (likely(!spy_waiters_likely(lock)) || recursed(lock))
		return real.pthread_mutex_unlock(lock);
	if (is_slept_for(lock) || !shows_sleepers(lock))
		return wake_others(lock);
	result = real.pthread_mutex_unlock(lock);
	spy_handoff_unlocked(lock);
	return result;
}

/* ---- read-write locks ----------------------------------------------------------------------- */

static void begin_rwlock(struct spy_wait *wait, enum spy_wait_kind kind, pthread_rwlock_t *lock)
{
	spy_wait_begin(wait, kind, lock, &lock->__data.__cur_writer,
		       lock->__data.__shared ? SPY_WAIT_SHARED : 0);
}

/* glibc: the lowest bits of the word say that it is a writer's turn, and that there is one (nptl/pthread_rwlock_common.c). */
#define WRITERS_TURN 1u
#define WRITER 2u

/* Nobody has it in a way that is in this one's. */
static inline bool is_open(const pthread_rwlock_t *lock, enum spy_wait_kind kind)
{
	unsigned int word = __atomic_load_n(&lock->__data.__readers, __ATOMIC_RELAXED);

	return kind == SPY_WAIT_READ ? !(word & (WRITERS_TURN | WRITER)) : !(word & ~WRITERS_TURN);
}

#define RWLOCK(name, tried, try, kind_, params, args) \
	PROBE_BOTH(int, name, params, args) \
	static __attribute__((noinline)) int busy_##name params \
	{ \
		uint32_t owner; \
		int done; \
\
		if (unlikely(!(tried))) \
			return real.name args; \
		done = real.try(l); \
		if (likely(done != EBUSY)) \
			return done; \
		owner = spy_wait_owner((const uint32_t *)&l->__data.__cur_writer); \
		WAIT_OUTSIDE(int, (.kind = kind_, .object = (uintptr_t)l, .holder = owner), \
			     real.name args, .flags = result ? SPY_WAIT_FAILED : 0) \
	} \
	static int outside_##name params \
	{ \
		return likely(is_open(l, kind_)) ? real.name args : busy_##name args; \
	} \
	static __attribute__((noinline)) int wait_##name params \
	{ \
		struct spy_wait wait; \
		int result; \
\
		begin_rwlock(&wait, kind_, l); \
		result = real.name args; \
		spy_wait_end(&wait, result); \
		if (kind_ == SPY_WAIT_READ && !result) \
			spy_hold_add(spy_self, l); \
		return result; \
	} \
	static __attribute__((noinline)) int rare_##name params \
	{ \
		uint64_t before = before_try(l); \
		int result; \
\
		if (unlikely(!(tried))) \
			return real.name args; \
		result = real.try(l); \
		if (result) \
			return result == EBUSY ? wait_##name args : result; \
		note_acquired(l, before); \
		if (kind_ == SPY_WAIT_READ) \
			spy_hold_add(spy_self, l); \
		return 0; \
	} \
	static int inside_##name params \
	{ \
		if (unlikely(spy_waiters_state(l) != SPY_UNCONTENDED || !is_open(l, kind_))) \
			return rare_##name args; \
		if (kind_ == SPY_WAIT_READ) \
			spy_hold_add(spy_self, l); \
		return real.name args; \
	}
#define RDLOCK(name, tried, params, args) \
	RWLOCK(name, tried, pthread_rwlock_tryrdlock, SPY_WAIT_READ, params, args)
#define WRLOCK(name, tried, params, args) \
	RWLOCK(name, tried, pthread_rwlock_trywrlock, SPY_WAIT_WRITE, params, args)

RDLOCK(pthread_rwlock_rdlock, true, (pthread_rwlock_t * l), (l))
RDLOCK(pthread_rwlock_timedrdlock, time_valid(CLOCK_REALTIME, t),
       (pthread_rwlock_t * l, time_limit *t), (l, t))
RDLOCK(pthread_rwlock_clockrdlock, time_valid(c, t),
       (pthread_rwlock_t * l, clockid_t c, time_limit *t), (l, c, t))
WRLOCK(pthread_rwlock_wrlock, true, (pthread_rwlock_t * l), (l))
WRLOCK(pthread_rwlock_timedwrlock, time_valid(CLOCK_REALTIME, t),
       (pthread_rwlock_t * l, time_limit *t), (l, t))
WRLOCK(pthread_rwlock_clockwrlock, time_valid(c, t),
       (pthread_rwlock_t * l, clockid_t c, time_limit *t), (l, c, t))

PROBE(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock))
{
	uint64_t before = before_try(lock);
	int result = real.pthread_rwlock_tryrdlock(lock);

	if (!result) {
		note_acquired(lock, before);
		spy_hold_add(spy_self, lock);
	}
	return result;
}

PROBE(int, pthread_rwlock_trywrlock, (pthread_rwlock_t * lock), (lock))
{
	uint64_t before = before_try(lock);
	int result = real.pthread_rwlock_trywrlock(lock);

	if (!result)
		note_acquired(lock, before);
	return result;
}

static __attribute__((noinline)) int give_rwlock_back(pthread_rwlock_t *lock){
	GIVE_BACK(lock->__data.__cur_writer ? SPY_WAIT_WRITE : SPY_WAIT_READ, lock,
		  real.pthread_rwlock_unlock(lock))}

PROBE(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))
{
	if (!lock->__data.__cur_writer)
		spy_hold_remove(spy_self, lock);
	if (unlikely(spy_waiters_likely(lock)))
		return give_rwlock_back(lock);
	return real.pthread_rwlock_unlock(lock);
}

/* ---- spin locks ----------------------------------------------------------------------------- */

PROBE(int, pthread_spin_lock, (pthread_spinlock_t * lock), (lock))
{
	uint64_t before = before_try((const void *)lock);
	struct spy_wait wait;
	int result;

	result = real.pthread_spin_trylock(lock);
	if (likely(result != EBUSY)) {
		note_acquired((const void *)lock, before);
	} else {
		spy_wait_begin(&wait, SPY_WAIT_SPIN, (const void *)lock, NULL, 0);
		result = real.pthread_spin_lock(lock);
		spy_wait_end(&wait, result);
	}
	if (!result)
		spy_hold_add(spy_self, (const void *)lock);
	return result;
}

PROBE(int, pthread_spin_trylock, (pthread_spinlock_t * lock), (lock))
{
	uint64_t before = before_try((const void *)lock);
	int result = real.pthread_spin_trylock(lock);

	if (!result) {
		note_acquired((const void *)lock, before);
		spy_hold_add(spy_self, (const void *)lock);
	}
	return result;
}

PROBE(int, pthread_spin_unlock, (pthread_spinlock_t * lock), (lock))
{
	spy_hold_remove(spy_self, (const void *)lock);
	GIVE_BACK(SPY_WAIT_SPIN, (const void *)lock, real.pthread_spin_unlock(lock))
}

/* ---- what has no holder --------------------------------------------------------------------- */

/* Waits in every case: there is nothing to try first. */
#define WAIT_BODY(name, kind, args) \
	{ \
		struct spy_wait wait; \
		int result; \
\
		spy_wait_begin(&wait, kind, NULL, NULL, 0); \
		result = real.name args; \
		spy_wait_end(&wait, result < 0); \
		return result; \
	}

/* Behind the arguments: what is known of a wait between calls before it; then what its record has
 * besides. */
#define WAIT_BOTH(name, kind, params, args, known, ...) \
	PROBE_BOTH(int, name, params, args) \
	static int outside_##name params \
	{ \
		WAIT_OUTSIDE(int, known, real.name args, \
			     .flags = result < 0 ? SPY_WAIT_FAILED : 0 __VA_OPT__(, ) __VA_ARGS__) \
	} \
	static int inside_##name params WAIT_BODY(name, kind, args)

/* After a condition glibc marks the mutex as if a thread slept for it. */
static inline void note_reacquired(const pthread_mutex_t *lock)
{
	if (spy_waiters_likely(lock) && !recursed(lock))
		spy_handoff_acquired(spy_self, lock, spy_clock())->marked = true;
}

/* The mutex is given back for as long as the wait lasts. */
#define CONDITION_BODY(name, args) \
	{ \
		struct spy_wait wait; \
		int result; \
\
		if (spy_waiters_likely(m) && !recursed(m)) \
			spy_handoff_released(SPY_WAIT_MUTEX, m, spy_clock(), false); \
		spy_wait_begin(&wait, SPY_WAIT_CONDITION, c, NULL, 0); \
		result = real.name args; \
		spy_wait_end(&wait, result); \
		note_reacquired(m); \
		return result; \
	}

#define CONDITION_OUTSIDE(name, args) \
	{ \
		WAIT_OUTSIDE(int, (.kind = SPY_WAIT_CONDITION, .object = (uintptr_t)c), \
			     real.name args, .flags = result ? SPY_WAIT_FAILED : 0) \
	}

/* clang-format off */
PROBE_BOTH(int, pthread_cond_clockwait,
	   (pthread_cond_t *c, pthread_mutex_t *m, clockid_t k, time_limit *t), (c, m, k, t))
static int inside_pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t k,
					 time_limit *t)
CONDITION_BODY(pthread_cond_clockwait, (c, m, k, t))
static int outside_pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t k,
					  time_limit *t)
CONDITION_OUTSIDE(pthread_cond_clockwait, (c, m, k, t))

/* Only for programs of glibc 2.3.2 and later: the condition variables of earlier ones are other
 * objects, and their calls go past us to the C library. */
#define CONDITION(name, params, args) \
	static __attribute__((noinline)) int outside_##name params \
	CONDITION_OUTSIDE(name, args) \
	static __attribute__((noinline)) int inside_##name params \
	CONDITION_BODY(name, args) \
	__asm__(".symver spy_" #name "," #name "@@GLIBC_2.3.2,remove"); \
	__attribute__((visibility("default"), used)) int spy_##name params; \
	int spy_##name params \
	{ \
		if (unlikely(!OUTSIDE)) \
			return inside_##name args; \
		if (unlikely(spy_is_outside())) \
			return outside_##name args; \
		return real.name args; \
	}

CONDITION(pthread_cond_wait, (pthread_cond_t *c, pthread_mutex_t *m), (c, m))
CONDITION(pthread_cond_timedwait, (pthread_cond_t *c, pthread_mutex_t *m, time_limit *t), (c, m, t))

/*
 * A semaphore that is not zero costs no wait. It is looked at, not tried: sem_wait is a
 * cancellation point also then, and its timed forms may reject their arguments. (A thread that is
 * overtaken between the look and the call waits unseen.)
 */
#define SEMAPHORE(name, params, args) \
	PROBE_BOTH(int, name, params, args) \
	static int outside_##name params \
	{ \
		int value; \
\
		if (likely(!sem_getvalue(s, &value) && value > 0)) \
			return real.name args; \
		WAIT_OUTSIDE(int, (.kind = SPY_WAIT_SEMAPHORE, .object = (uintptr_t)s), \
			     real.name args, .flags = result ? SPY_WAIT_FAILED : 0) \
	} \
	static int inside_##name params \
	{ \
		struct spy_wait wait; \
		int result, value; \
\
		if (likely(!sem_getvalue(s, &value) && value > 0)) \
			return real.name args; \
		spy_wait_begin(&wait, SPY_WAIT_SEMAPHORE, s, NULL, 0); \
		result = real.name args; \
		spy_wait_end(&wait, result); \
		return result; \
	}

SEMAPHORE(sem_wait, (sem_t *s), (s))
SEMAPHORE(sem_timedwait, (sem_t *s, time_limit *t), (s, t))
SEMAPHORE(sem_clockwait, (sem_t *s, clockid_t c, time_limit *t), (s, c, t))

/* Of the descriptors the first one that is ready, or else the first one. */
static int first_ready(const struct pollfd *p, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++)
		if (p[i].revents)
			return p[i].fd;
	return n ? p[0].fd : -1;
}
/* clang-format on */

/* Without descriptors it sleeps. Of a call that failed, p may lead anywhere. */
#define POLLED (.kind = n ? SPY_WAIT_POLL : SPY_WAIT_SLEEP)
#define POLL_ENDED \
	.is_file = n && result >= 0, .object = (uintptr_t)(n && result >= 0 ? first_ready(p, n) : 0)

#define POLL_BOTH(name, params, args, no_wait) \
	PROBE_BOTH(int, name, params, args) \
	static int outside_##name params \
	{ \
		POLL_OUTSIDE(n > 1, no_wait, POLLED, spy_poll_see_descriptors(&polled, p, n), \
			     real.name args, POLL_ENDED, \
			     .flags = (uint8_t)((result < 0 ? SPY_WAIT_FAILED : 0) | \
						spy_poll_flags(&polled))) \
	} \
	static int inside_##name params WAIT_BODY(name, SPY_WAIT_POLL, args)

POLL_BOTH(poll, (struct pollfd * p, nfds_t n, int t), (p, n, t), t == 0)
POLL_BOTH(ppoll, (struct pollfd * p, nfds_t n, time_limit *t, const sigset_t *m), (p, n, t, m),
	  t && !t->tv_sec && !t->tv_nsec)
WAIT_BOTH(nanosleep, SPY_WAIT_SLEEP, (time_limit * t, struct timespec *left), (t, left),
	  (.kind = SPY_WAIT_SLEEP))
WAIT_BOTH(usleep, SPY_WAIT_SLEEP, (useconds_t t), (t), (.kind = SPY_WAIT_SLEEP))

PROBE(int, sched_yield, (void), ())
WAIT_BODY(sched_yield, SPY_WAIT_YIELD, ())

static __attribute__((noinline)) int inside_ioctl(int d, unsigned long request, void *argument)
{
	struct spy_wait wait;
	int result;

	spy_wait_begin(&wait, SPY_WAIT_IOCTL, (const void *)request, NULL, 0);
	result = real.ioctl(d, request, argument);
	spy_wait_end(&wait, result < 0);
	return result;
}

/* Declared with a variable argument, of which at most one is there: as the kernel takes it. */
EXPORT int spy_probe_ioctl(int d, unsigned long request, void *argument) __asm__("ioctl");
int spy_probe_ioctl(int d, unsigned long request, void *argument)
{
	if (OUTSIDE)
		return real.ioctl(d, request, argument);
	return inside_ioctl(d, request, argument);
}

static bool futex_waits(long operation)
{
	operation &= FUTEX_CMD_MASK;
	return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET ||
	       operation == FUTEX_LOCK_PI || operation == FUTEX_WAIT_REQUEUE_PI;
}

static __attribute__((noinline)) long outside_futex(long n, long a, long b, long c, long d, long e,
						    long f)
{
	if (!futex_waits(b))
		return real.syscall(n, a, b, c, d, e, f);
	WAIT_OUTSIDE(long, (.kind = SPY_WAIT_FUTEX, .object = (uintptr_t)a),
		     real.syscall(n, a, b, c, d, e, f), .flags = result < 0 ? SPY_WAIT_FAILED : 0)
}

static __attribute__((noinline)) long inside_futex(long n, long a, long b, long c, long d, long e,
						   long f)
{
	struct spy_wait wait;
	long result;

	if (!futex_waits(b))
		return real.syscall(n, a, b, c, d, e, f);
	spy_wait_begin(&wait, SPY_WAIT_FUTEX, (const void *)a, NULL, 0);
	result = real.syscall(n, a, b, c, d, e, f);
	spy_wait_end(&wait, result < 0);
	return result;
}

/* For the assembly's `syscall`: SYS_futex only. n is SYS_futex, b the operation. */
__attribute__((visibility("hidden"))) long spy_probe_futex(long n, long a, long b, long c, long d,
							   long e, long f);
long spy_probe_futex(long n, long a, long b, long c, long d, long e, long f)
{
	if (unlikely(!OUTSIDE))
		return inside_futex(n, a, b, c, d, e, f);
	if (unlikely(spy_is_outside()))
		return outside_futex(n, a, b, c, d, e, f);
	return real.syscall(n, a, b, c, d, e, f);
}

/* ---- other interposers ---------------------------------------------------------------------- */

struct stander {
	const void *real;
	bool past_self, first, next;
	char first_path[256], next_path[256];
};

/* Which object defines pthread_mutex_lock before us, and which has the one that we call? */
static int visit_stander(const struct spy_object *object, void *data)
{
	struct stander *s = data;
	const char *name = object->path;
	uintptr_t real_address = (uintptr_t)s->real;

	if (object->is_self) {
		s->past_self = true;
		return 0;
	}
	if (!s->past_self && !s->first && object->position &&
	    spy_object_symbol(object, "pthread_mutex_lock", NULL, NULL)) {
		s->first = true;
		for (size_t i = 0; name[i] && i < sizeof(s->first_path) - 1; i++)
			s->first_path[i] = name[i];
	}
	if (real_address >= object->begin && real_address < object->end &&
	    __builtin_strncmp(object->soname, "libc.so", 7) != 0 &&
	    __builtin_strncmp(object->soname, "libpthread.so", 13) != 0) {
		s->next = true;
		for (size_t i = 0; name[i] && i < sizeof(s->next_path) - 1; i++)
			s->next_path[i] = name[i];
	}
	return 0;
}

void spy_probe_note(void)
{
	struct stander s = {.real = (const void *)real.pthread_mutex_lock};

	if (!spy_probing)
		return;
	spy_each_object(visit_stander, &s);
	if (s.first)
		spy_note(SPY_NOTE_OTHER, "locks pass through %s before they reach cudaspy",
			 s.first_path);
	if (s.next)
		spy_note(SPY_NOTE_OTHER, "locks pass through %s between cudaspy and the C library",
			 s.next_path);
}
