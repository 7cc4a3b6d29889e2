/*
 * tests/e2e/programs/probes_locks.c: mutexes of every kind, read-write locks and spin locks, free, held, one's own and
 * awaited. For probes (probes.c), in its threads, outside a CUDA call and inside one.
 */
#include <sched.h>
#include <stdio.h>
#include "probes.h"

/* ---- mutexes ---------------------------------------------------------------------------------- */

#define ATTEMPT(name, type, expression) \
	static int name(void *lock) \
	{ \
		type *l = lock; \
\
		return expression; \
	}

/* Known to be what it is only when it runs. */
static struct timespec *volatile none;

int mutex_lock(void *lock)
{
	return pthread_mutex_lock(lock);
}

int mutex_unlock(void *lock)
{
	return pthread_mutex_unlock(lock);
}

ATTEMPT(mutex_try, pthread_mutex_t, pthread_mutex_trylock(l))
ATTEMPT(mutex_soon, pthread_mutex_t, pthread_mutex_timedlock(l, soon(CLOCK_REALTIME)))
ATTEMPT(mutex_late, pthread_mutex_t, pthread_mutex_timedlock(l, late(CLOCK_REALTIME)))
ATTEMPT(mutex_past, pthread_mutex_t, pthread_mutex_timedlock(l, &past))
ATTEMPT(mutex_bad, pthread_mutex_t, pthread_mutex_timedlock(l, &bad))
ATTEMPT(mutex_worse, pthread_mutex_t, pthread_mutex_timedlock(l, &worse))
ATTEMPT(mutex_none, pthread_mutex_t, pthread_mutex_timedlock(l, none))
ATTEMPT(mutex_clock, pthread_mutex_t,
	pthread_mutex_clocklock(l, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))
ATTEMPT(mutex_clock_late, pthread_mutex_t,
	pthread_mutex_clocklock(l, CLOCK_MONOTONIC, late(CLOCK_MONOTONIC)))
ATTEMPT(mutex_clock_bad, pthread_mutex_t, pthread_mutex_clocklock(l, CLOCK_MONOTONIC, &bad))
ATTEMPT(mutex_no_clock, pthread_mutex_t,
	pthread_mutex_clocklock(l, NO_CLOCK, late(CLOCK_MONOTONIC)))

static const struct attempt mutex_attempts[] = {
	{"trylock", mutex_try, false},
	{"timedlock soon", mutex_soon, false},
	{"timedlock past", mutex_past, false},
	{"timedlock bad", mutex_bad, false},
	{"timedlock worse", mutex_worse, false},
	{"clocklock soon", mutex_clock, false},
	{"clocklock bad", mutex_clock_bad, false},
	{"clocklock of no clock", mutex_no_clock, false},
	{"lock", mutex_lock, true},
	{"timedlock late", mutex_late, true},
	{"clocklock late", mutex_clock_late, true},
};
#define MUTEX_ATTEMPTS mutex_attempts, COUNT_OF(mutex_attempts)

int mutex_init(pthread_mutex_t *lock, const struct mutex_kind *kind)
{
	pthread_mutexattr_t attributes;
	int result;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, kind->type);
	pthread_mutexattr_setrobust(&attributes, kind->robust);
	pthread_mutexattr_setprotocol(&attributes, kind->protocol);
	pthread_mutexattr_setpshared(&attributes, kind->shared);
	result = pthread_mutex_init(lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return result;
}

/* An owner that ended, before somebody waits for him or meanwhile. */
static void mutex_robust(pthread_mutex_t *lock)
{
	struct holder dying = {.take = mutex_lock, .lock = lock, .for_ms = 3};

	by_other(mutex_lock, lock);
	TRY(pthread_mutex_lock(lock));
	TRY(pthread_mutex_consistent(lock));
	TRY(pthread_mutex_unlock(lock));
	TRY(pthread_mutex_lock(lock));
	TRY(pthread_mutex_unlock(lock));
	by_other(mutex_lock, lock);
	TRY(pthread_mutex_timedlock(lock, late(CLOCK_REALTIME)));
	TRY(pthread_mutex_consistent(lock));
	TRY(pthread_mutex_unlock(lock));
	holder_begin(&dying);
	TRY(pthread_mutex_lock(lock));
	holder_end(&dying);
	TRY(pthread_mutex_consistent(lock));
	TRY(pthread_mutex_unlock(lock));
	by_other(mutex_lock, lock);
	TRY(pthread_mutex_trylock(lock));
	TRY(pthread_mutex_unlock(lock));
	TRY(pthread_mutex_lock(lock));
	TRY(pthread_mutex_trylock(lock));
	TRY(pthread_mutex_timedlock(lock, &past));
}

static void mutex_one(const struct mutex_kind *kind)
{
	pthread_mutex_t lock;
	struct holder holder = {.take = mutex_lock, .give = mutex_unlock, .lock = &lock};
	bool owned =
		kind->type == PTHREAD_MUTEX_RECURSIVE || kind->type == PTHREAD_MUTEX_ERRORCHECK;
	int result = mutex_init(&lock, kind);

	printf("mutex type %d robust %d protocol %d shared %d: %d\n", kind->type, kind->robust,
	       kind->protocol, kind->shared, result);
	if (result) /* there is no such mutex */
		return;
	result = pthread_mutex_lock(&lock);
	if (result) { /* nobody may raise our priority here */
		show("lock", result, 0);
		TRY(pthread_mutex_trylock(&lock));
		TRY(pthread_mutex_timedlock(&lock, &past));
		return;
	}
	TRY(pthread_mutex_unlock(&lock));
	attempt_all("free", MUTEX_ATTEMPTS, &lock, mutex_unlock, true);
	show("free: timedlock of no time", mutex_none(&lock), 0);
	mutex_unlock(&lock);
	if (owned)
		TRY(pthread_mutex_unlock(&lock));

	mutex_lock(&lock);
	attempt_all("own", MUTEX_ATTEMPTS, &lock, mutex_unlock, owned);
	show("of another: trylock", by_other(mutex_try, &lock), 0);
	show("of another: timedlock", by_other(mutex_soon, &lock), 0);
	if (owned || kind->robust || kind->protocol == PTHREAD_PRIO_INHERIT)
		show("of another: unlock", by_other(mutex_unlock, &lock), 0);
	TRY(pthread_mutex_unlock(&lock));

	holder_begin(&holder);
	attempt_all("held", MUTEX_ATTEMPTS, &lock, mutex_unlock, false);
	holder_end(&holder);

	/* Waits until it is free, and, if it is recursive, twice and while others wait. */
	for (size_t i = 0; i < COUNT_OF(mutex_attempts); i++) {
		struct holder brief = holder, waiter = holder;

		if (!mutex_attempts[i].stays)
			continue;
		brief.for_ms = waiter.for_ms = 2;
		holder_begin(&brief);
		show(mutex_attempts[i].name, mutex_attempts[i].act(&lock), 0);
		if (kind->type == PTHREAD_MUTEX_RECURSIVE) {
			pthread_create(&waiter.thread, NULL, hold_thread, &waiter);
			sleep_ms(2);
			TRY(pthread_mutex_lock(&lock));
			TRY(pthread_mutex_unlock(&lock));
			show("of another: trylock", by_other(mutex_try, &lock), 0);
		}
		TRY(pthread_mutex_unlock(&lock));
		if (kind->type == PTHREAD_MUTEX_RECURSIVE)
			holder_end(&waiter);
		holder_end(&brief);
	}
	if (kind->robust == PTHREAD_MUTEX_ROBUST)
		mutex_robust(&lock);
	TRY(pthread_mutex_destroy(&lock));
}

/* A thread whose priority is above the lock's ceiling, where such priorities are to be had. */
static int above_ceiling(void *lock)
{
	struct sched_param priority = {.sched_priority = 5};
	int error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);

	return 1000 * error + 100 * pthread_mutex_trylock(lock) + pthread_mutex_lock(lock);
}

void mutex_checks(void)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
	static const int protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT,
					PTHREAD_PRIO_PROTECT};
	struct mutex_kind kind = {PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_PROTECT, 0};
	pthread_mutex_t lock;

	prefix = "mutex";
	mutex_init(&lock, &kind);
	show("above the ceiling", by_other(above_ceiling, &lock), 0);
	for (int i = 0; i < 4 * 3 * 2 * 2; i++) {
		kind = (struct mutex_kind){types[i % 4], i / 4 % 2, protocols[i / 8 % 3], i / 24};
		mutex_one(&kind);
	}
}

/* ---- read-write locks -------------------------------------------------------------------------- */

int rw_write(void *lock)
{
	return pthread_rwlock_wrlock(lock);
}

int rw_unlock(void *lock)
{
	return pthread_rwlock_unlock(lock);
}

ATTEMPT(rw_read, pthread_rwlock_t, pthread_rwlock_rdlock(l))
ATTEMPT(rw_tryread, pthread_rwlock_t, pthread_rwlock_tryrdlock(l))
ATTEMPT(rw_read_soon, pthread_rwlock_t, pthread_rwlock_timedrdlock(l, soon(CLOCK_REALTIME)))
ATTEMPT(rw_read_late, pthread_rwlock_t, pthread_rwlock_timedrdlock(l, late(CLOCK_REALTIME)))
ATTEMPT(rw_read_past, pthread_rwlock_t, pthread_rwlock_timedrdlock(l, &past))
ATTEMPT(rw_read_bad, pthread_rwlock_t, pthread_rwlock_timedrdlock(l, &bad))
ATTEMPT(rw_read_worse, pthread_rwlock_t, pthread_rwlock_timedrdlock(l, &worse))
ATTEMPT(rw_read_clock, pthread_rwlock_t,
	pthread_rwlock_clockrdlock(l, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))
ATTEMPT(rw_read_no_clock, pthread_rwlock_t,
	pthread_rwlock_clockrdlock(l, NO_CLOCK, late(CLOCK_MONOTONIC)))
ATTEMPT(rw_trywrite, pthread_rwlock_t, pthread_rwlock_trywrlock(l))
ATTEMPT(rw_write_soon, pthread_rwlock_t, pthread_rwlock_timedwrlock(l, soon(CLOCK_REALTIME)))
ATTEMPT(rw_write_late, pthread_rwlock_t, pthread_rwlock_timedwrlock(l, late(CLOCK_REALTIME)))
ATTEMPT(rw_write_past, pthread_rwlock_t, pthread_rwlock_timedwrlock(l, &past))
ATTEMPT(rw_write_bad, pthread_rwlock_t, pthread_rwlock_timedwrlock(l, &bad))
ATTEMPT(rw_write_worse, pthread_rwlock_t, pthread_rwlock_timedwrlock(l, &worse))
ATTEMPT(rw_write_clock, pthread_rwlock_t,
	pthread_rwlock_clockwrlock(l, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))
ATTEMPT(rw_write_no_clock, pthread_rwlock_t,
	pthread_rwlock_clockwrlock(l, NO_CLOCK, late(CLOCK_MONOTONIC)))

static const struct attempt rw_attempts[] = {
	{"tryrdlock", rw_tryread, false},
	{"timedrdlock soon", rw_read_soon, false},
	{"timedrdlock past", rw_read_past, false},
	{"timedrdlock bad", rw_read_bad, false},
	{"timedrdlock worse", rw_read_worse, false},
	{"clockrdlock soon", rw_read_clock, false},
	{"clockrdlock of no clock", rw_read_no_clock, false},
	{"trywrlock", rw_trywrite, false},
	{"timedwrlock soon", rw_write_soon, false},
	{"timedwrlock past", rw_write_past, false},
	{"timedwrlock bad", rw_write_bad, false},
	{"timedwrlock worse", rw_write_worse, false},
	{"clockwrlock soon", rw_write_clock, false},
	{"clockwrlock of no clock", rw_write_no_clock, false},
	{"rdlock", rw_read, true},
	{"timedrdlock late", rw_read_late, true},
	{"wrlock", rw_write, true},
	{"timedwrlock late", rw_write_late, true},
};
#define RW_ATTEMPTS rw_attempts, COUNT_OF(rw_attempts)

static void rwlock_one(int kind)
{
	pthread_rwlockattr_t attributes;
	pthread_rwlock_t lock;
	struct holder reader = {.take = rw_read, .give = rw_unlock, .lock = &lock}, readers[8];
	struct holder writer = {.take = rw_write, .give = rw_unlock, .lock = &lock};

	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, kind);
	printf("rwlock kind %d: %d\n", kind, pthread_rwlock_init(&lock, &attributes));
	attempt_all("free", RW_ATTEMPTS, &lock, rw_unlock, true);
	TRY(pthread_rwlock_wrlock(&lock));
	attempt_all("own writer's", RW_ATTEMPTS, &lock, rw_unlock, false);
	TRY(pthread_rwlock_rdlock(&lock)); /* EDEADLK */
	TRY(pthread_rwlock_wrlock(&lock));
	TRY(pthread_rwlock_unlock(&lock));
	TRY(pthread_rwlock_rdlock(&lock));
	attempt_all("own reader's", RW_ATTEMPTS, &lock, rw_unlock, false);
	TRY(pthread_rwlock_unlock(&lock));
	holder_begin(&reader);
	attempt_all("a reader's", RW_ATTEMPTS, &lock, rw_unlock, false);
	holder_end(&reader);
	holder_begin(&writer);
	attempt_all("a writer's", RW_ATTEMPTS, &lock, rw_unlock, false);
	holder_end(&writer);
	for (size_t i = 0; i < COUNT_OF(rw_attempts); i++) {
		struct holder brief = i % 2 ? writer : reader;

		if (!rw_attempts[i].stays)
			continue;
		brief.for_ms = 2;
		holder_begin(&brief);
		show(rw_attempts[i].name, rw_attempts[i].act(&lock), 0);
		TRY(pthread_rwlock_unlock(&lock));
		holder_end(&brief);
	}

	/* Many readers, among them one that came while a writer waits. */
	for (size_t i = 0; i < COUNT_OF(readers); i++) {
		readers[i] = reader;
		holder_begin(&readers[i]);
	}
	pthread_create(&writer.thread, NULL, hold_thread, &writer);
	/* once the writer waits, and if it is preferred, there is no place for more */
	for (int i = 0; i < (kind == PTHREAD_RWLOCK_PREFER_READER_NP ? 5 : 5000); i++) {
		sleep_ms(1);
		if (pthread_rwlock_tryrdlock(&lock))
			break;
		pthread_rwlock_unlock(&lock);
	}
	TRY(pthread_rwlock_tryrdlock(&lock) == 0 ? pthread_rwlock_unlock(&lock) : 1000);
	TRY(pthread_rwlock_trywrlock(&lock));
	for (size_t i = 0; i < COUNT_OF(readers); i++)
		holder_end(&readers[i]);
	holder_end(&writer);
	TRY(pthread_rwlock_destroy(&lock));
}

void rwlock_checks(void)
{
	prefix = "rwlock";
	rwlock_one(PTHREAD_RWLOCK_PREFER_READER_NP);
	rwlock_one(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
}

/* ---- spin locks -------------------------------------------------------------------------------- */

/* The type is volatile, and so is what it points to. */
static pthread_spinlock_t spin;

static int spin_take(void *unused)
{
	(void)unused;
	return pthread_spin_lock(&spin);
}

static int spin_try(void *unused)
{
	(void)unused;
	return pthread_spin_trylock(&spin);
}

static int spin_give(void *unused)
{
	(void)unused;
	return pthread_spin_unlock(&spin);
}

void spin_checks(void)
{
	struct holder holder = {.take = spin_take, .give = spin_give}, brief = holder;

	TRY(pthread_spin_init(&spin, 0));
	TRY(pthread_spin_lock(&spin));
	TRY(pthread_spin_trylock(&spin));
	show("of another: trylock", by_other(spin_try, NULL), 0);
	TRY(pthread_spin_unlock(&spin));
	TRY(pthread_spin_trylock(&spin));
	TRY(pthread_spin_unlock(&spin));
	holder_begin(&holder);
	TRY(pthread_spin_trylock(&spin));
	holder_end(&holder);
	brief.for_ms = 3;
	holder_begin(&brief);
	TRY(pthread_spin_lock(&spin));
	holder_end(&brief);
	TRY(pthread_spin_unlock(&spin));
	TRY(pthread_spin_destroy(&spin));
}
