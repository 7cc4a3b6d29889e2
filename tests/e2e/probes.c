/*
 * tests/e2e/probes.c: every function that a probe stands before, in every way that a program can use
 * it: test_probes.sh compares what is printed with and without the shim. Linked to a fake
 * libcudart.so.13, whose cudaLaunchHostFunc calls its function at once, inside the CUDA call.
 *
 *   probes outside|inside WHAT     outside any CUDA call, or inside one
 *   probes both WHAT               outside, inside, and outside again
 *
 * WHAT is mutex, rwlock, spin, condition, semaphore, wait (poll, sleeps, ioctl), syscall, cancel,
 * old (the condition variables of glibc 2.2.5), fork, signal. Each line is a call, its result and
 * errno. Nothing that depends on time is printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

int cudaSetDevice(int device);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define MS 1000000L
#define NO_CLOCK 77

static bool inside;

/* Calls function(data), inside a CUDA call or not. */
static void enter(void (*function)(void *), void *data)
{
	if (inside)
		cudaLaunchHostFunc(NULL, function, data);
	else
		function(data);
}

static void show(const char *what, long result, int error)
{
	printf("%s = %ld", what, result);
	if (error)
		printf(", errno %d", error);
	putchar('\n');
}

#define TRY(expression) \
	do { \
		long result_; \
\
		errno = 0; \
		result_ = (long)(expression); \
		show(#expression, result_, errno); \
	} while (0)

/* ---- times ------------------------------------------------------------------------------------ */

static struct timespec in(clockid_t clock, long ns)
{
	struct timespec time;

	clock_gettime(clock, &time);
	time.tv_nsec += ns;
	time.tv_sec += time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return time;
}

static struct timespec *soon(clockid_t clock)
{
	static __thread struct timespec time;

	time = in(clock, 3 * MS);
	return &time;
}

/* Other than soon, for ever as far as a test is concerned. */
static struct timespec *late(clockid_t clock)
{
	static __thread struct timespec time;

	time = in(clock, 0);
	time.tv_sec += 60;
	return &time;
}

static struct timespec past = {1, 0}, bad = {1, -1}, worse = {4000000000, 1000000000};

static void sleep_ms(long ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * MS};

	while (nanosleep(&time, &time) < 0 && errno == EINTR)
		;
}

/* ---- threads ---------------------------------------------------------------------------------- */

/* An attempt at a lock. */
struct attempt {
	const char *name;
	int (*act)(void *lock);
	bool stays; /* waits until it has it */
};

struct deed {
	int (*act)(void *lock);
	void *lock;
	int result, error;
};

static void do_deed(void *data)
{
	struct deed *deed = data;

	errno = 0;
	deed->result = deed->act(deed->lock);
	deed->error = errno;
}

static void *deed_thread(void *data)
{
	enter(do_deed, data);
	return NULL;
}

/* Another thread does it, and ends. */
static int by_other(int (*act)(void *), void *lock)
{
	struct deed deed = {.act = act, .lock = lock};
	pthread_t thread;

	pthread_create(&thread, NULL, deed_thread, &deed);
	pthread_join(thread, NULL);
	return deed.result;
}

/* A thread that takes a lock, says so, and gives it back after a while or when told. */
struct holder {
	pthread_t thread;
	int (*take)(void *lock), (*give)(void *lock); /* give NULL: ends with it */
	void *lock;
	int for_ms; /* 0: until told */
	int taken, given;
	int said, told;
};

static void hold(void *data)
{
	struct holder *holder = data;

	holder->taken = holder->take(holder->lock);
	__atomic_store_n(&holder->said, 1, __ATOMIC_RELEASE);
	if (holder->for_ms)
		sleep_ms(holder->for_ms);
	while (!holder->for_ms && !__atomic_load_n(&holder->told, __ATOMIC_ACQUIRE))
		sleep_ms(1);
	if (holder->give)
		holder->given = holder->give(holder->lock);
}

static void *hold_thread(void *data)
{
	enter(hold, data);
	return NULL;
}

static void holder_begin(struct holder *holder)
{
	holder->said = holder->told = 0;
	pthread_create(&holder->thread, NULL, hold_thread, holder);
	while (!__atomic_load_n(&holder->said, __ATOMIC_ACQUIRE))
		sleep_ms(1);
}

static void holder_end(struct holder *holder)
{
	__atomic_store_n(&holder->told, 1, __ATOMIC_RELEASE);
	pthread_join(holder->thread, NULL);
	printf("  holder: %d, %d\n", holder->taken, holder->given);
}

static const char *prefix;

/* Every attempt, by this thread, at a lock in the state it is in; what is had is given back. */
static void attempt_all(const char *state, const struct attempt *attempts, size_t n, void *lock,
			int (*give)(void *), bool stays)
{
	for (size_t i = 0; i < n; i++) {
		int result, error;

		if (attempts[i].stays && !stays)
			continue;
		errno = 0;
		result = attempts[i].act(lock);
		error = errno;
		printf("%s %s: %s = %d, errno %d", prefix, state, attempts[i].name, result, error);
		if (result == 0)
			printf(", back %d", give(lock));
		putchar('\n');
	}
}

/* ---- mutexes ---------------------------------------------------------------------------------- */

#define ATTEMPT(name, type, expression) \
	static int name(void *lock) \
	{ \
		type *l = lock; \
\
		return expression; \
	}

/* Known to be what they are only when it runs. */
static struct timespec *volatile none;
static void *volatile wild = (void *)8;

ATTEMPT(mutex_lock, pthread_mutex_t, pthread_mutex_lock(l))
ATTEMPT(mutex_try, pthread_mutex_t, pthread_mutex_trylock(l))
ATTEMPT(mutex_unlock, pthread_mutex_t, pthread_mutex_unlock(l))
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

struct mutex_kind {
	int type, robust, protocol, shared;
};

static int mutex_init(pthread_mutex_t *lock, const struct mutex_kind *kind)
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

static void mutex_checks(void)
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
ATTEMPT(rw_write, pthread_rwlock_t, pthread_rwlock_wrlock(l))
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
ATTEMPT(rw_unlock, pthread_rwlock_t, pthread_rwlock_unlock(l))

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

static void rwlock_checks(void)
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

static void spin_checks(void)
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

/* ---- signals ----------------------------------------------------------------------------------- */

static bool handler_calls;
static struct holder *until_signal; /* gives back what it has when one came */

static void on_signal(int number)
{
	(void)number;
	if (until_signal)
		__atomic_store_n(&until_signal->told, 1, __ATOMIC_RELEASE);
	if (handler_calls) {
		int error = errno;

		cudaSetDevice(1);
		errno = error;
	}
}

/* Sends signals to a thread until it says that it had enough: one could come too early. */
struct pest {
	pthread_t thread, target;
	int enough;
};

static void *pester(void *data)
{
	struct pest *pest = data;

	while (!__atomic_load_n(&pest->enough, __ATOMIC_ACQUIRE)) {
		sleep_ms(5);
		pthread_kill(pest->target, SIGUSR1);
	}
	return NULL;
}

static void pest_begin(struct pest *pest)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGUSR1, &action, NULL);
	pest->enough = 0;
	pest->target = pthread_self();
	pthread_create(&pest->thread, NULL, pester, pest);
}

static void pest_end(struct pest *pest)
{
	__atomic_store_n(&pest->enough, 1, __ATOMIC_RELEASE);
	pthread_join(pest->thread, NULL);
}

#define INTERRUPTED(expression) \
	do { \
		struct pest pest_; \
		long result_; \
		int error_; \
\
		pest_begin(&pest_); \
		errno = 0; \
		result_ = (long)(expression); \
		error_ = errno; \
		pest_end(&pest_); \
		show("interrupted: " #expression, result_, error_); \
	} while (0)

/* ---- conditions -------------------------------------------------------------------------------- */

static pthread_mutex_t cond_lock;
static pthread_cond_t cond, cond_monotonic;
static int cond_state;

static void signal_later(void *unused)
{
	(void)unused;
	sleep_ms(2);
	pthread_mutex_lock(&cond_lock);
	cond_state = 1;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&cond_lock);
}

static void *signal_thread(void *unused)
{
	enter(signal_later, unused);
	return NULL;
}

static void condition_woken(int how)
{
	pthread_t thread;
	int result = 0;

	cond_state = 0;
	pthread_create(&thread, NULL, signal_thread, NULL);
	pthread_mutex_lock(&cond_lock);
	while (!cond_state && !result)
		result = how == 0 ? pthread_cond_wait(&cond, &cond_lock)
			 : how == 1
				 ? pthread_cond_timedwait(&cond, &cond_lock, late(CLOCK_REALTIME))
				 : pthread_cond_clockwait(&cond, &cond_lock, CLOCK_MONOTONIC,
							  late(CLOCK_MONOTONIC));
	printf("condition woken: %d, back %d\n", result, pthread_mutex_unlock(&cond_lock));
	pthread_join(thread, NULL);
}

static void condition_checks(void)
{
	struct mutex_kind recursive = {PTHREAD_MUTEX_RECURSIVE, 0, 0, 0};
	struct mutex_kind checking = {PTHREAD_MUTEX_ERRORCHECK, 0, 0, 0};
	pthread_condattr_t attributes;
	pthread_mutex_t counted;

	mutex_init(&cond_lock, &checking);
	mutex_init(&counted, &recursive);
	pthread_cond_init(&cond, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&cond_monotonic, &attributes);
	for (int how = 0; how < 3; how++)
		condition_woken(how);
	TRY(pthread_cond_timedwait(&cond, &cond_lock, &past)); /* not locked: EPERM */
	TRY(pthread_cond_wait(&cond, &cond_lock));
	TRY(pthread_mutex_lock(&cond_lock));
	TRY(pthread_cond_timedwait(&cond, &cond_lock, &past));
	TRY(pthread_cond_timedwait(&cond, &cond_lock, soon(CLOCK_REALTIME)));
	TRY(pthread_cond_timedwait(&cond_monotonic, &cond_lock, soon(CLOCK_MONOTONIC)));
	TRY(pthread_cond_timedwait(&cond, &cond_lock, &bad));
	TRY(pthread_cond_timedwait(&cond, &cond_lock, &worse));
	TRY(pthread_cond_clockwait(&cond, &cond_lock, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)));
	TRY(pthread_cond_clockwait(&cond, &cond_lock, NO_CLOCK, late(CLOCK_MONOTONIC)));
	TRY(pthread_cond_clockwait(&cond, &cond_lock, CLOCK_MONOTONIC, &bad));
	TRY(pthread_mutex_unlock(&cond_lock));
	pthread_mutex_lock(&counted);
	pthread_mutex_lock(&counted);
	TRY(pthread_cond_timedwait(&cond, &counted, soon(CLOCK_REALTIME)));
	TRY(pthread_mutex_unlock(&counted));
	TRY(pthread_mutex_unlock(&counted));
	TRY(pthread_mutex_unlock(&counted)); /* EPERM */
	pthread_mutex_destroy(&cond_lock);
}

/* ---- semaphores -------------------------------------------------------------------------------- */

static sem_t sem;

static void post_later(void *unused)
{
	(void)unused;
	sleep_ms(3);
	sem_post(&sem);
}

static void *post_thread(void *unused)
{
	enter(post_later, unused);
	return NULL;
}

#define POSTED(expression) \
	do { \
		pthread_t thread_; \
\
		pthread_create(&thread_, NULL, post_thread, NULL); \
		TRY(expression); \
		pthread_join(thread_, NULL); \
	} while (0)

static int semaphore_value(void)
{
	int value = -1;

	sem_getvalue(&sem, &value);
	return value;
}

static void semaphore_checks(void)
{
	sem_init(&sem, 0, 3);
	errno = 4711;
	show("sem_wait keeps errno", sem_wait(&sem), errno);
	errno = 4711;
	show("sem_timedwait keeps errno", sem_timedwait(&sem, late(CLOCK_REALTIME)), errno);
	errno = 4711;
	show("sem_clockwait keeps errno", sem_clockwait(&sem, CLOCK_MONOTONIC, &past), errno);
	TRY(sem_trywait(&sem));
	POSTED(sem_wait(&sem));
	POSTED(sem_timedwait(&sem, late(CLOCK_REALTIME)));
	POSTED(sem_clockwait(&sem, CLOCK_MONOTONIC, late(CLOCK_MONOTONIC)));
	for (int i = 0; i < 2; i++) {
		printf("semaphore: %d\n", semaphore_value());
		TRY(sem_timedwait(&sem, &bad));
		TRY(sem_timedwait(&sem, &worse));
		TRY(sem_clockwait(&sem, NO_CLOCK, &past));
		TRY(sem_clockwait(&sem, CLOCK_MONOTONIC, &bad));
		printf("semaphore: %d\n", semaphore_value());
		TRY(sem_timedwait(&sem, &past));
		TRY(sem_timedwait(&sem, soon(CLOCK_REALTIME)));
		TRY(sem_clockwait(&sem, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)));
		sem_post(&sem);
	}
	TRY(sem_wait(&sem));
	INTERRUPTED(sem_wait(&sem));
	INTERRUPTED(sem_timedwait(&sem, late(CLOCK_REALTIME)));
	INTERRUPTED(sem_clockwait(&sem, CLOCK_MONOTONIC, late(CLOCK_MONOTONIC)));
	TRY(sem_destroy(&sem));
}

/* ---- what has no lock -------------------------------------------------------------------------- */

static void poll_checks(void)
{
	struct timespec short_time = {0, MS}, wrong = {0, 2000000000};
	struct pollfd fd = {.events = POLLIN};
	int ends[2];
	sigset_t set;

	if (pipe(ends))
		return;
	fd.fd = ends[0];
	sigemptyset(&set);
	TRY(poll(NULL, 0, 0));
	TRY(poll(NULL, 0, 1));
	TRY(poll(&fd, 1, 1));
	TRY(ppoll(&fd, 1, &short_time, NULL));
	TRY(ppoll(&fd, 1, &short_time, &set));
	TRY(ppoll(&fd, 1, &wrong, NULL));
	INTERRUPTED(poll(&fd, 1, -1));
	INTERRUPTED(ppoll(&fd, 1, NULL, &set));
	TRY(write(ends[1], "abc", 3));
	TRY(poll(&fd, 1, -1));
	TRY(ppoll(&fd, 1, NULL, NULL));
	printf("revents %d\n", fd.revents);
	fd.fd = 999;
	TRY(poll(&fd, 1, -1));
	printf("revents %d\n", fd.revents);
	TRY(poll(wild, 1, 0));
	close(ends[0]);
	close(ends[1]);
}

static int sleep_interrupted(void)
{
	struct timespec minute = {60, 0}, left = {-1, -1};
	int result = nanosleep(&minute, &left);

	/* the rest is less than a minute */
	return result * 100 - (left.tv_sec >= 0 && left.tv_sec < 60 && left.tv_nsec >= 0);
}

static void sleep_checks(void)
{
	struct timespec short_time = {0, 1000}, wrong = {0, -1}, untouched = {7, 7};

	TRY(nanosleep(&short_time, NULL));
	TRY(nanosleep(&short_time, &untouched));
	TRY(untouched.tv_sec);
	TRY(nanosleep(&wrong, NULL));
	TRY(nanosleep(wild, NULL));
	INTERRUPTED(sleep_interrupted());
	TRY(usleep(0));
	TRY(usleep(1000));
	INTERRUPTED(usleep(60000000));
	TRY(sched_yield());
}

static void ioctl_checks(void)
{
	int ends[2], value = -1;
	struct termios terminal;

	if (pipe(ends))
		return;
	TRY(ioctl(-1, FIONREAD, &value));
	TRY(ioctl(ends[0], TCGETS, &terminal));
	TRY(ioctl(ends[0], 0xabcd1234u, 0));
	TRY(write(ends[1], "abc", 3));
	TRY(ioctl(ends[0], FIONREAD, &value));
	printf("%d bytes\n", value);
	TRY(ioctl(ends[0], FIONREAD, 8));
	TRY(fcntl(ends[0], F_GETFD));
	TRY(ioctl(ends[0], FIOCLEX));
	TRY(fcntl(ends[0], F_GETFD));
	TRY(ioctl(ends[0], FIONCLEX));
	TRY(fcntl(ends[0], F_GETFD));
	close(ends[0]);
	close(ends[1]);
}

static void wait_checks(void)
{
	poll_checks();
	sleep_checks();
	ioctl_checks();
}

/* ---- syscall() --------------------------------------------------------------------------------- */

/* Ends a child without touching the stack that it may share with its parent. */
static inline __attribute__((always_inline)) void exit_at_once(long status)
{
	long number = SYS_exit_group;

	__asm__ volatile("syscall" : "+a"(number) : "D"(status) : "rcx", "r11", "memory");
}

static int status_of(long pid)
{
	int status = -1;

	return waitpid((pid_t)pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									   : -1;
}

/* Both return twice. */
static __attribute__((noinline)) int child_of_vfork(void)
{
	long pid = syscall(SYS_vfork);

	if (pid == 0)
		exit_at_once(41);
	return status_of(pid);
}

static __attribute__((noinline)) int child_of_clone(void)
{
	long pid = syscall(SYS_clone, (unsigned long)SIGCHLD, 0, 0, 0, 0);

	if (pid == 0) {
		sched_yield();
		exit_at_once(syscall(SYS_getppid) > 0 ? 42 : 43);
	}
	return status_of(pid);
}

static int second_page(void)
{
	int fd = (int)syscall(SYS_memfd_create, "probes", 0), found = -1;
	char *page;

	if (fd >= 0 && ftruncate(fd, 8192) == 0 && pwrite(fd, "x", 1, 4096) == 1) {
		page = (char *)syscall(SYS_mmap, NULL, 4096L, (long)PROT_READ, (long)MAP_SHARED,
				       (long)fd, 4096L);
		if (page != MAP_FAILED)
			found = *page;
		munmap(page, 4096);
	}
	close(fd);
	return found;
}

static uint32_t futex_word;

static void wake_later(void *unused)
{
	(void)unused;
	sleep_ms(3);
	__atomic_store_n(&futex_word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &futex_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *wake_thread(void *unused)
{
	enter(wake_later, unused);
	return NULL;
}

static void syscall_checks(void)
{
	struct timespec short_time = {0, MS}, wrong = {0, -1};
	pthread_t thread;
	uint32_t other = 0;

	TRY(syscall(SYS_gettid) == gettid());
	TRY(syscall(SYS_close, 999));
	TRY(syscall(100000));
	TRY(second_page());
	futex_word = 0;
	TRY(syscall(SYS_futex, &futex_word, FUTEX_WAIT, 1, NULL, NULL, 0));
	TRY(syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, &short_time, NULL, 0));
	TRY(syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, &wrong, NULL, 0));
	TRY(syscall(SYS_futex, &futex_word, FUTEX_WAIT_BITSET_PRIVATE, 0, &past, NULL, -1));
	TRY(syscall(SYS_futex, &futex_word, FUTEX_WAIT_BITSET_PRIVATE, 0, &past, NULL, 0));
	TRY(syscall(SYS_futex, &futex_word, FUTEX_WAKE, 1, NULL, NULL, 0));
	TRY(syscall(SYS_futex, &futex_word, FUTEX_CMP_REQUEUE, 1, 0, &other, 1));
	TRY(syscall(SYS_futex, &futex_word, 99, 1, 0, NULL, 0));
	TRY(syscall(SYS_futex, 8, FUTEX_WAIT, 0, NULL, NULL, 0));
	INTERRUPTED(syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, NULL, NULL, 0));
	pthread_create(&thread, NULL, wake_thread, NULL);
	while (!__atomic_load_n(&futex_word, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	pthread_join(thread, NULL);
	TRY(child_of_vfork());
	TRY(child_of_clone());
	TRY(child_of_vfork());
}

/* ---- cancellation ------------------------------------------------------------------------------ */

static int cleaned;
static bool cancel_pending;

static void clean(void *lock)
{
	cleaned = 100 + (lock ? pthread_mutex_unlock(lock) : 0);
}

static void cancel_condition(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&cond_lock);
	pthread_cleanup_push(clean, &cond_lock);
	for (;;)
		pthread_cond_wait(&cond, &cond_lock);
	pthread_cleanup_pop(1);
}

static void cancel_condition_timed(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&cond_lock);
	pthread_cleanup_push(clean, &cond_lock);
	for (;;)
		pthread_cond_timedwait(&cond, &cond_lock, late(CLOCK_REALTIME));
	pthread_cleanup_pop(1);
}

#define CANCELLED(name, expression) \
	static void name(void *unused) \
	{ \
		(void)unused; \
		pthread_cleanup_push(clean, NULL); \
		do { \
			if (expression) \
				cleaned = 50; /* an error; no way out but the cancellation */ \
		} while (!cancel_pending); \
		pthread_cleanup_pop(0); \
	}

CANCELLED(cancel_semaphore, sem_wait(&sem))
CANCELLED(cancel_semaphore_timed, sem_timedwait(&sem, late(CLOCK_REALTIME)))
CANCELLED(cancel_semaphore_clock, sem_clockwait(&sem, CLOCK_MONOTONIC, late(CLOCK_MONOTONIC)))
CANCELLED(cancel_poll, poll(NULL, 0, -1))
CANCELLED(cancel_usleep, usleep(60000000))
CANCELLED(cancel_yield, sched_yield())
CANCELLED(cancel_mutex, pthread_mutex_lock(&cond_lock) || pthread_mutex_unlock(&cond_lock))
CANCELLED(cancel_nanosleep, nanosleep(&(struct timespec){60, 0}, NULL))

static void *cancel_thread(void *data)
{
	void (*function)(void *);

	memcpy(&function, data, sizeof(function));
	if (cancel_pending)
		pthread_cancel(pthread_self());
	enter(function, NULL);
	return NULL;
}

static void cancel(const char *name, void (*function)(void *), bool pending)
{
	void *result = NULL;
	pthread_t thread;

	cleaned = 0;
	cancel_pending = pending;
	pthread_create(&thread, NULL, cancel_thread, &function);
	if (!pending) {
		sleep_ms(5);
		pthread_cancel(thread);
	}
	pthread_join(thread, &result);
	printf("cancelled %s%s: %ld, cleaned %d, semaphore %d\n", name,
	       pending ? " with the cancellation pending" : "", (long)result, cleaned,
	       semaphore_value());
}

static void cancel_checks(void)
{
	struct mutex_kind checking = {PTHREAD_MUTEX_ERRORCHECK, 0, 0, 0};

	mutex_init(&cond_lock, &checking);
	pthread_cond_init(&cond, NULL);
	sem_init(&sem, 0, 0);
	for (int i = 0; i < 3; i++) {
		cancel("cond_wait", cancel_condition, false);
		cancel("cond_timedwait", cancel_condition_timed, false);
		cancel("sem_wait", cancel_semaphore, false);
		cancel("sem_timedwait", cancel_semaphore_timed, false);
		cancel("sem_clockwait", cancel_semaphore_clock, false);
		cancel("poll", cancel_poll, false);
		cancel("usleep", cancel_usleep, false);
		cancel("nanosleep", cancel_nanosleep, false);
	}
	TRY(pthread_mutex_lock(&cond_lock));
	TRY(pthread_mutex_unlock(&cond_lock));
	/* No cancellation points, and one that is one even though there is nothing to wait for. */
	cancel("sched_yield", cancel_yield, true);
	cancel("mutex", cancel_mutex, true);
	sem_post(&sem);
	cancel("sem_wait", cancel_semaphore, true);
	cancel("sem_timedwait", cancel_semaphore_timed, true);
	cancel("sem_clockwait", cancel_semaphore_clock, true);
	cancel("poll", cancel_poll, true);
	sem_destroy(&sem);
}

/* ---- the condition variables of old ------------------------------------------------------------ */

int old_cond_wait(void *condition, pthread_mutex_t *lock);
int old_cond_timedwait(void *condition, pthread_mutex_t *lock, const struct timespec *time);
int old_cond_broadcast(void *condition);
int old_cond_destroy(void *condition);
__asm__(".symver old_cond_wait,pthread_cond_wait@GLIBC_2.2.5");
__asm__(".symver old_cond_timedwait,pthread_cond_timedwait@GLIBC_2.2.5");
__asm__(".symver old_cond_broadcast,pthread_cond_broadcast@GLIBC_2.2.5");
__asm__(".symver old_cond_destroy,pthread_cond_destroy@GLIBC_2.2.5");

/* Such a program had room for one pointer. */
static struct {
	void *condition;
	char behind[64];
} old;

static void old_signal_later(void *unused)
{
	(void)unused;
	sleep_ms(3);
	pthread_mutex_lock(&cond_lock);
	cond_state = 1;
	old_cond_broadcast(&old);
	pthread_mutex_unlock(&cond_lock);
}

static void *old_signal_thread(void *unused)
{
	enter(old_signal_later, unused);
	return NULL;
}

static void old_checks(void)
{
	struct mutex_kind checking = {PTHREAD_MUTEX_ERRORCHECK, 0, 0, 0};
	pthread_t thread;
	int result = 0, changed = 0;

	mutex_init(&cond_lock, &checking);
	memset(&old, 0, sizeof(old));
	memset(old.behind, 0x5a, sizeof(old.behind));
	cond_state = 0;
	pthread_create(&thread, NULL, old_signal_thread, NULL);
	pthread_mutex_lock(&cond_lock);
	while (!cond_state && !result)
		result = old_cond_wait(&old, &cond_lock);
	show("old_cond_wait", result, 0);
	TRY(old_cond_timedwait(&old, &cond_lock, soon(CLOCK_REALTIME)));
	TRY(old_cond_timedwait(&old, &cond_lock, &bad));
	TRY(pthread_mutex_unlock(&cond_lock));
	pthread_join(thread, NULL);
	for (size_t i = 0; i < sizeof(old.behind); i++)
		changed += old.behind[i] != 0x5a;
	printf("%d bytes behind it changed\n", changed);
	old_cond_destroy(&old);
}

/* ---- processes --------------------------------------------------------------------------------- */

static pthread_mutex_t *shared;
static int from_child[2], to_child[2];

/* The child has the lock for a while; robust: it ends with it. */
static void fork_holding(bool robust)
{
	char byte = 0;
	pid_t pid = fork();

	if (pid == 0) {
		byte = (char)pthread_mutex_lock(shared);
		if (write(from_child[1], &byte, 1) != 1 || read(to_child[0], &byte, 1) != 1)
			_exit(1);
		sleep_ms(3);
		_exit(robust ? 0 : pthread_mutex_unlock(shared));
	}
	if (read(from_child[0], &byte, 1) != 1)
		byte = 99;
	printf("a child's: %d\n", byte);
	TRY(pthread_mutex_trylock(shared));
	TRY(pthread_mutex_timedlock(shared, &past));
	if (write(to_child[1], &byte, 1) != 1)
		return;
	TRY(pthread_mutex_lock(shared));
	if (robust)
		TRY(pthread_mutex_consistent(shared));
	TRY(pthread_mutex_unlock(shared));
	TRY(status_of(pid));
}

/* A fork while another thread waits: the child finds its locks as they were. */
static void fork_while_waiting(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct holder waiter = {
		.take = mutex_lock, .give = mutex_unlock, .lock = &lock, .for_ms = 1};
	pid_t pid;

	pthread_mutex_lock(&lock);
	pthread_create(&waiter.thread, NULL, hold_thread, &waiter);
	sleep_ms(5);
	pid = fork();
	if (pid == 0) {
		int sum = pthread_mutex_trylock(&lock) == EBUSY ? 0 : 1;

		sum += pthread_mutex_unlock(&lock) + pthread_mutex_lock(&lock);
		sum += pthread_mutex_unlock(&lock) + cudaSetDevice(2);
		_exit(sum);
	}
	pthread_mutex_unlock(&lock);
	holder_end(&waiter);
	TRY(status_of(pid));
}

static void fork_checks(void)
{
	struct mutex_kind plain = {PTHREAD_MUTEX_NORMAL, 0, 0, 1};
	struct mutex_kind robust = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, 0, 1};
	struct mutex_kind heir = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_INHERIT,
				  1};

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pipe(from_child) || pipe(to_child))
		return;
	fflush(stdout);
	mutex_init(shared, &plain);
	fork_holding(false);
	mutex_init(shared, &robust);
	fork_holding(true);
	mutex_init(shared, &heir);
	fork_holding(true);
	fork_while_waiting();
	munmap(shared, 4096);
	for (int i = 0; i < 2; i++) {
		close(from_child[i]);
		close(to_child[i]);
	}
}

/* ---- handlers that interrupt a wait ------------------------------------------------------------ */

/* The waits go on, for a handler's calls are nothing to them. */
static void signal_checks(void)
{
	static const struct mutex_kind kinds[] = {
		{PTHREAD_MUTEX_NORMAL, 0, 0, 0},
		{PTHREAD_MUTEX_RECURSIVE, 0, 0, 0},
		{PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_INHERIT, 0},
	};
	pthread_mutex_t lock;
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
	struct holder holder = {.take = mutex_lock, .give = mutex_unlock, .lock = &lock};
	struct holder writer = {.take = rw_write, .give = rw_unlock, .lock = &rwlock};

	handler_calls = true;
	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		mutex_init(&lock, &kinds[i]);
		holder_begin(until_signal = &holder);
		INTERRUPTED(pthread_mutex_lock(&lock));
		holder_end(&holder);
		TRY(pthread_mutex_unlock(&lock));
	}
	holder_begin(until_signal = &writer);
	INTERRUPTED(pthread_rwlock_rdlock(&rwlock));
	holder_end(&writer);
	until_signal = NULL;
	TRY(pthread_rwlock_unlock(&rwlock));
	sem_init(&sem, 0, 0);
	INTERRUPTED(sem_wait(&sem));
	INTERRUPTED(poll(NULL, 0, -1));
	INTERRUPTED(sleep_interrupted());
	handler_calls = false;
}

/* ---- main -------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*check)(void);
} checks[] = {
	{"mutex", mutex_checks},         {"rwlock", rwlock_checks},       {"spin", spin_checks},
	{"condition", condition_checks}, {"semaphore", semaphore_checks}, {"wait", wait_checks},
	{"syscall", syscall_checks},     {"cancel", cancel_checks},       {"old", old_checks},
	{"fork", fork_checks},           {"signal", signal_checks},
};

static void run_check(void *check)
{
	void (*function)(void);

	memcpy(&function, check, sizeof(function));
	function();
}

static void run(bool inside_call, const char *name, void (*check)(void))
{
	inside = inside_call;
	printf("== %s, %s\n", name, inside ? "inside a CUDA call" : "outside");
	enter(run_check, &check);
}

int main(int argc, char **argv)
{
	const char *where = argc > 2 ? argv[1] : "";
	bool both = strcmp(where, "both") == 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	cudaSetDevice(0);
	for (size_t i = 0; i < COUNT_OF(checks) && argc > 2; i++) {
		if (strcmp(argv[2], checks[i].name) != 0)
			continue;
		if (both || strcmp(where, "outside") == 0)
			run(false, argv[2], checks[i].check);
		if (both || strcmp(where, "inside") == 0)
			run(true, argv[2], checks[i].check);
		if (both)
			run(false, argv[2], checks[i].check);
		return 0;
	}
	return 2;
}
