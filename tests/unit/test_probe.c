/* links: shim/probe/probe.c shim/probe/probe_outside.c */
/*
 * tests/unit/test_probe.c: the C library's functions that probes stand before, with made-up functions behind them: what is
 * called, what of it becomes a wait, an acquisition or a release, and what the program gets; inside a call and between two.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "probe/handoff.h"
#include "probe/outside.h"
#include "probe/poll.h"
#include "probe/probe.h"
#include "probe/wait.h"
#include "probe/waiters.h"
#include "process/elf_scan.h"
#include "record/notes.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

/* ---- what happened ---- */

static char happened[512];

static void say(const char *format, ...)
{
	size_t length = strlen(happened);
	va_list args;

	if (length)
		happened[length++] = ' ';
	va_start(args, format);
	vsnprintf(happened + length, sizeof(happened) - length, format, args);
	va_end(args);
}

static void expect_happened(const char *wanted)
{
	assert_string_equal(happened, wanted);
	memset(happened, 0, sizeof(happened));
}

/* ---- the C library ---- */

static long tried, result; /* what trylocks answer, and what all others do */
static uint64_t takes; /* cycles, what blocks */

static long answer(const char *name)
{
	say("%s", name);
	if (strstr(name, "try"))
		return tried;
	now += takes;
	return result;
}

#define FAKES(F) \
	F(pthread_mutex_lock) \
	F(pthread_mutex_unlock) \
	F(pthread_mutex_trylock) \
	F(pthread_mutex_timedlock) \
	F(pthread_mutex_clocklock) \
	F(pthread_rwlock_rdlock) \
	F(pthread_rwlock_tryrdlock) \
	F(pthread_rwlock_timedrdlock) \
	F(pthread_rwlock_clockrdlock) \
	F(pthread_rwlock_wrlock) \
	F(pthread_rwlock_trywrlock) \
	F(pthread_rwlock_timedwrlock) \
	F(pthread_rwlock_clockwrlock) \
	F(pthread_rwlock_unlock) \
	F(pthread_spin_lock) \
	F(pthread_spin_trylock) \
	F(pthread_spin_unlock) \
	F(pthread_cond_wait) \
	F(pthread_cond_timedwait) \
	F(pthread_cond_clockwait) \
	F(sem_wait) \
	F(sem_timedwait) \
	F(sem_clockwait) \
	F(poll) \
	F(ppoll) \
	F(sched_yield) \
	F(nanosleep) \
	F(usleep) \
	F(ioctl) \
	F(syscall) \
	F(read) \
	F(__read_chk) \
	F(pread) \
	F(pread64) \
	F(readv) \
	F(write) \
	F(pwrite) \
	F(pwrite64) \
	F(writev) \
	F(fsync) \
	F(fdatasync) \
	F(recv) \
	F(__recv_chk) \
	F(recvfrom) \
	F(recvmsg) \
	F(send) \
	F(sendto) \
	F(sendmsg) \
	F(accept) \
	F(accept4) \
	F(epoll_wait) \
	F(epoll_pwait) \
	F(select) \
	F(pselect) \
	F(sleep) \
	F(clock_nanosleep) \
	F(pthread_join) \
	F(pthread_timedjoin_np) \
	F(pthread_clockjoin_np) \
	F(waitpid) \
	F(wait4) \
	F(waitid)

#define FAKE(name) \
	static long fake_##name(void) \
	{ \
		return answer(#name); \
	}
FAKES(FAKE)

void *spy_next_symbol(const char *name)
{
#define FOUND(fake) \
	if (strcmp(name, #fake) == 0) \
		return (void *)fake_##fake;
	FAKES(FOUND)
	return NULL;
}

/* ---- the rest of the shim ---- */

bool spy_probing;
uint64_t spy_outside_least;
struct spy_waiters spy_waiters[SPY_WAITERS_BUCKETS];
uint8_t spy_contended[SPY_WAITERS_BUCKETS];
static const void *owner_seen;
static struct spy_outside shown, written;

uint32_t spy_outside_thread(pthread_t handle)
{
	return handle == (pthread_t)0x4444 ? 44 : 0;
}

void spy_wait_begin(struct spy_wait *wait, enum spy_wait_kind kind, const void *object,
		    const void *owner, unsigned int flags)
{
	wait->thread = NULL;
	owner_seen = owner;
	wait->object = (uintptr_t)object;
	say("wait:%d,%d", kind, flags);
}

void spy_wait_end(struct spy_wait *wait, bool failed)
{
	(void)wait;
	say(failed ? "failed" : "ended");
}

void spy_handoff_released(enum spy_wait_kind kind, const void *lock, uint64_t time, bool sure)
{
	(void)lock;
	say("released:%d,%s%s", kind, time ? time == now - takes ? "before" : "now" : "not",
	    sure ? ",sure" : "");
}

void spy_handoff_unlocked(const void *lock)
{
	(void)lock;
	say("unlocked");
}

void spy_caller_set_begin(struct spy_thread *of, uint64_t at_time)
{
	of->calls[0].start = at_time;
}

void spy_outside_show(const struct spy_outside *wait)
{
	shown = *wait;
	say("show:%d", wait->kind);
}

void spy_outside_hide(void)
{
	say("hide");
}

void spy_outside_write(const struct spy_outside *wait)
{
	written = *wait;
	say("write:%d,%d", wait->kind, wait->flags);
}

/* ---- a thread ---- */

static int begin(void **state)
{
	(void)state;
	begin_session();
	memset(spy_contended, SPY_UNCONTENDED, sizeof(spy_contended));
	memset(happened, 0, sizeof(happened));
	spy_probing = true;
	spy_outside_least = 20000;
	tried = result = 0;
	takes = 100000;
	thread.depth = 1;
	thread.calls[0].start = 1;
	spy_probe_init();
	return 0;
}

static int begin_outside(void **state)
{
	begin(state);
	thread.depth = 0;
	return 0;
}

static void contend(const void *lock, enum spy_contended how)
{
	spy_contended[spy_waiters_bucket(lock)] = how;
}

/* Was the lock noted as acquired without a wait, right before now? */
static bool is_acquired(const void *lock)
{
	bool is = false;

	for (int i = 0; i < SPY_ACQUIRED; i++)
		is |= thread.acquired[i].lock == (uintptr_t)lock && thread.acquired[i].time == now;
	memset(thread.acquired, 0, sizeof(thread.acquired));
	return is;
}

static bool holds(const void *lock)
{
	for (int i = 0; i < SPY_HOLDS; i++)
		if (thread.holds[i] == (uintptr_t)lock)
			return true;
	return false;
}

static const struct timespec later = {.tv_sec = 1}, wrong = {.tv_nsec = 1000000000};

/* ---- mutexes, inside a call ---- */

static void test_mutex(void **state)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, *lock = &mutex;

	(void)state;
	/* Free, and not waited for lately: no more than a look. */
	assert_int_equal(pthread_mutex_lock(lock), 0);
	expect_happened("pthread_mutex_lock");
	assert_int_equal(pthread_mutex_unlock(lock), 0);
	expect_happened("pthread_mutex_unlock");
	/* Taken, or waited for: tried. */
	lock->__data.__lock = 1;
	assert_int_equal(pthread_mutex_lock(lock), 0);
	expect_happened("pthread_mutex_trylock");
	assert_false(is_acquired(lock)); /* no other waits for it */
	lock->__data.__lock = 0;
	contend(lock, SPY_PAUSED);
	assert_int_equal(pthread_mutex_lock(lock), 0);
	expect_happened("pthread_mutex_trylock");
	assert_false(is_acquired(lock));
	contend(lock, SPY_CONTENDED);
	assert_int_equal(pthread_mutex_lock(lock), 0);
	expect_happened("pthread_mutex_trylock");
	assert_true(is_acquired(lock));
	tried = EINVAL;
	assert_int_equal(pthread_mutex_lock(lock), EINVAL);
	assert_false(is_acquired(lock));
	expect_happened("pthread_mutex_trylock");
	tried = EOWNERDEAD; /* had all the same */
	assert_int_equal(pthread_mutex_lock(lock), EOWNERDEAD);
	assert_true(is_acquired(lock));
	memset(happened, 0, sizeof(happened));
	/* Not to be had: a wait. */
	tried = EBUSY;
	assert_int_equal(pthread_mutex_lock(lock), 0);
	expect_happened("pthread_mutex_trylock wait:0,0 pthread_mutex_lock ended");
	assert_ptr_equal(owner_seen, &lock->__data.__owner);
	assert_false(is_acquired(lock));
	result = EDEADLK;
	assert_int_equal(pthread_mutex_lock(lock), EDEADLK);
	expect_happened("pthread_mutex_trylock wait:0,0 pthread_mutex_lock failed");
	result = EOWNERDEAD;
	assert_int_equal(pthread_mutex_lock(lock), EOWNERDEAD);
	expect_happened("pthread_mutex_trylock wait:0,0 pthread_mutex_lock ended");
	result = ETIMEDOUT;
	assert_int_equal(pthread_mutex_timedlock(lock, &later), ETIMEDOUT);
	expect_happened("pthread_mutex_trylock wait:0,0 pthread_mutex_timedlock failed");
	assert_int_equal(pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &later), ETIMEDOUT);
	expect_happened("pthread_mutex_trylock wait:0,0 pthread_mutex_clocklock failed");
	/* Which clock is an error even for a free lock: the real function says so. */
	result = EINVAL;
	assert_int_equal(pthread_mutex_clocklock(lock, CLOCK_BOOTTIME, &later), EINVAL);
	expect_happened("pthread_mutex_clocklock");
	lock->__data.__kind |= 128; /* between processes */
	result = 0;
	pthread_mutex_lock(lock);
	expect_happened("pthread_mutex_trylock wait:0,2 pthread_mutex_lock ended");
}

/* A robust one is looked at, never tried. */
static void test_robust(void **state)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, *lock = &mutex;

	(void)state;
	lock->__data.__kind |= 16;
	contend(lock, SPY_CONTENDED);
	pthread_mutex_lock(lock);
	expect_happened("pthread_mutex_lock");
	lock->__data.__lock = 100; /* a thread's */
	pthread_mutex_lock(lock);
	expect_happened("wait:0,0 pthread_mutex_lock ended");
	lock->__data.__lock = (int)FUTEX_OWNER_DIED; /* no thread's */
	pthread_mutex_lock(lock);
	expect_happened("pthread_mutex_lock");
}

static void test_mutex_try(void **state)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, *lock = &mutex;

	(void)state;
	pthread_mutex_trylock(lock);
	assert_false(is_acquired(lock));
	contend(lock, SPY_CONTENDED);
	pthread_mutex_trylock(lock);
	assert_true(is_acquired(lock));
	lock->__data.__count = 2; /* a recursive one changes no hands then */
	pthread_mutex_trylock(lock);
	assert_false(is_acquired(lock));
	lock->__data.__count = 1;
	pthread_mutex_trylock(lock);
	assert_true(is_acquired(lock));
	tried = EBUSY;
	assert_int_equal(pthread_mutex_trylock(lock), EBUSY);
	assert_false(is_acquired(lock));
}

static void test_mutex_unlock(void **state)
{
	static const struct {
		int kind, word, count;
		long result;
		const char *wanted;
	} cases[] = {
		{0, 1, 0, 0, "pthread_mutex_unlock unlocked"},
		{0, 2, 0, 0, "pthread_mutex_unlock released:0,before,sure"},
		{0, 2, 0, EPERM, "pthread_mutex_unlock released:0,not,sure"},
		{1, 2, 2, 0, "pthread_mutex_unlock"}, /* recursive: it is still held */
		{1, 2, 1, 0, "pthread_mutex_unlock released:0,before,sure"},
		{16, 100, 0, 0,
		 "pthread_mutex_unlock released:0,before"}, /* words that do not say who sleeps */
		{32, 100, 0, 0, "pthread_mutex_unlock released:0,before"},
		{64, 100, 0, 0, "pthread_mutex_unlock released:0,before"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

		mutex.__data.__kind = cases[i].kind;
		mutex.__data.__lock = cases[i].word;
		mutex.__data.__count = (unsigned int)cases[i].count;
		result = cases[i].result;
		contend(&mutex, SPY_CONTENDED);
		assert_int_equal(pthread_mutex_unlock(&mutex), cases[i].result);
		expect_happened(cases[i].wanted);
		contend(&mutex, SPY_PAUSED);
		pthread_mutex_unlock(&mutex);
		expect_happened("pthread_mutex_unlock");
	}
}

/* ---- read-write locks ---- */

static void test_read(void **state)
{
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER, *lock = &rwlock;

	(void)state;
	pthread_rwlock_rdlock(lock);
	expect_happened("pthread_rwlock_rdlock");
	assert_true(holds(lock));
	pthread_rwlock_unlock(lock);
	expect_happened("pthread_rwlock_unlock");
	assert_false(holds(lock));
	/* A writer has it, or it is a writer's turn. */
	for (unsigned int word = 1; word <= 2; word++) {
		lock->__data.__readers = word;
		pthread_rwlock_rdlock(lock);
		expect_happened("pthread_rwlock_tryrdlock");
		assert_true(holds(lock));
		pthread_rwlock_unlock(lock);
		memset(happened, 0, sizeof(happened));
	}
	lock->__data.__readers = 8; /* other readers are in nobody's way */
	contend(lock, SPY_CONTENDED);
	pthread_rwlock_rdlock(lock);
	expect_happened("pthread_rwlock_tryrdlock");
	assert_true(is_acquired(lock));
	/* Given back while others wait. */
	pthread_rwlock_unlock(lock);
	expect_happened("pthread_rwlock_unlock released:1,before");
	result = EPERM;
	assert_int_equal(pthread_rwlock_unlock(lock), EPERM);
	expect_happened("pthread_rwlock_unlock released:1,not");
	result = 0;
	tried = EBUSY;
	assert_int_equal(pthread_rwlock_rdlock(lock), 0);
	expect_happened("pthread_rwlock_tryrdlock wait:1,0 pthread_rwlock_rdlock ended");
	assert_ptr_equal(owner_seen, &lock->__data.__cur_writer);
	assert_true(holds(lock));
	pthread_rwlock_unlock(lock);
	memset(happened, 0, sizeof(happened));
	result = ETIMEDOUT;
	assert_int_equal(pthread_rwlock_timedrdlock(lock, &later), ETIMEDOUT);
	expect_happened("pthread_rwlock_tryrdlock wait:1,0 pthread_rwlock_timedrdlock failed");
	assert_false(holds(lock));
	assert_int_equal(pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, &later), ETIMEDOUT);
	expect_happened("pthread_rwlock_tryrdlock wait:1,0 pthread_rwlock_clockrdlock failed");
	result = EINVAL;
	assert_int_equal(pthread_rwlock_timedrdlock(lock, &wrong), EINVAL);
	expect_happened("pthread_rwlock_timedrdlock");
	assert_int_equal(pthread_rwlock_clockrdlock(lock, CLOCK_BOOTTIME, &later), EINVAL);
	expect_happened("pthread_rwlock_clockrdlock");
	tried = EAGAIN; /* too many readers: that is the answer */
	assert_int_equal(pthread_rwlock_rdlock(lock), EAGAIN);
	expect_happened("pthread_rwlock_tryrdlock");
	assert_false(holds(lock));
	/* Only tried. */
	assert_int_equal(pthread_rwlock_tryrdlock(lock), EAGAIN);
	assert_false(holds(lock) || is_acquired(lock));
	tried = 0;
	assert_int_equal(pthread_rwlock_tryrdlock(lock), 0);
	assert_true(holds(lock) && is_acquired(lock));
	contend(lock, SPY_UNCONTENDED);
	assert_int_equal(pthread_rwlock_tryrdlock(lock), 0);
	assert_false(is_acquired(lock));
}

static void test_write(void **state)
{
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER, *lock = &rwlock;

	(void)state;
	pthread_rwlock_wrlock(lock);
	expect_happened("pthread_rwlock_wrlock");
	assert_false(holds(lock)); /* it says itself who has it */
	lock->__data.__readers = 1;
	pthread_rwlock_wrlock(lock);
	expect_happened("pthread_rwlock_wrlock");
	/* A writer or readers have it. */
	for (unsigned int word = 2; word <= 8; word *= 4) {
		lock->__data.__readers = word;
		pthread_rwlock_wrlock(lock);
		expect_happened("pthread_rwlock_trywrlock");
		assert_false(is_acquired(lock));
	}
	contend(lock, SPY_CONTENDED);
	pthread_rwlock_wrlock(lock);
	expect_happened("pthread_rwlock_trywrlock");
	assert_true(is_acquired(lock));
	pthread_rwlock_trywrlock(lock);
	expect_happened("pthread_rwlock_trywrlock");
	assert_true(is_acquired(lock));
	lock->__data.__cur_writer = 100;
	spy_hold_add(&thread,
		     lock); /* as if it read it as well: a writer's release is none of a reader's */
	pthread_rwlock_unlock(lock);
	expect_happened("pthread_rwlock_unlock released:2,before");
	assert_true(holds(lock));
	tried = EBUSY;
	assert_int_equal(pthread_rwlock_trywrlock(lock), EBUSY);
	assert_false(is_acquired(lock));
	memset(happened, 0, sizeof(happened));
	lock->__data.__shared = 1;
	pthread_rwlock_wrlock(lock);
	expect_happened("pthread_rwlock_trywrlock wait:2,2 pthread_rwlock_wrlock ended");
	result = ETIMEDOUT;
	assert_int_equal(pthread_rwlock_timedwrlock(lock, &later), ETIMEDOUT);
	expect_happened("pthread_rwlock_trywrlock wait:2,2 pthread_rwlock_timedwrlock failed");
	assert_int_equal(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &later), ETIMEDOUT);
	expect_happened("pthread_rwlock_trywrlock wait:2,2 pthread_rwlock_clockwrlock failed");
	assert_int_equal(pthread_rwlock_timedwrlock(lock, &wrong), ETIMEDOUT);
	expect_happened("pthread_rwlock_timedwrlock");
}

/* Locks that are given back in turn and out of turn. */
static void test_several_holds(void **state)
{
	pthread_rwlock_t locks[3] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER,
				     PTHREAD_RWLOCK_INITIALIZER};

	(void)state;
	for (int i = 0; i < 3; i++)
		pthread_rwlock_rdlock(&locks[i]);
	assert_int_equal(thread.n_holds, 3);
	pthread_rwlock_unlock(&locks[0]);
	assert_true(!holds(&locks[0]) && holds(&locks[1]) && holds(&locks[2]));
	assert_int_equal(thread.n_holds, 3);
	pthread_rwlock_unlock(&locks[2]);
	assert_true(holds(&locks[1]) && !holds(&locks[2]));
	assert_int_equal(thread.n_holds, 2);
	pthread_rwlock_unlock(&locks[2]); /* not its own */
	assert_true(holds(&locks[1]));
	pthread_rwlock_unlock(&locks[1]);
	assert_int_equal(thread.n_holds, 1);
	for (int i = 0; i < SPY_HOLDS; i++)
		assert_int_equal(thread.holds[i], 0);
}

/* ---- spin locks, conditions, semaphores ---- */

static void test_spin(void **state)
{
	pthread_spinlock_t spin = 0, *lock = &spin;

	(void)state;
	pthread_spin_lock(lock);
	expect_happened("pthread_spin_trylock");
	assert_true(holds((const void *)lock));
	assert_false(is_acquired((const void *)lock));
	pthread_spin_unlock(lock);
	expect_happened("pthread_spin_unlock");
	assert_false(holds((const void *)lock));
	contend((const void *)lock, SPY_CONTENDED);
	pthread_spin_lock(lock);
	assert_true(is_acquired((const void *)lock));
	pthread_spin_trylock(lock);
	assert_true(is_acquired((const void *)lock));
	memset(happened, 0, sizeof(happened));
	pthread_spin_unlock(lock);
	expect_happened("pthread_spin_unlock released:3,before");
	pthread_spin_unlock(lock);
	memset(happened, 0, sizeof(happened));
	tried = EBUSY;
	assert_int_equal(pthread_spin_trylock(lock), EBUSY);
	assert_false(holds((const void *)lock));
	memset(happened, 0, sizeof(happened));
	assert_int_equal(pthread_spin_lock(lock), 0);
	expect_happened("pthread_spin_trylock wait:3,0 pthread_spin_lock ended");
	assert_false(is_acquired((const void *)lock));
	assert_true(holds((const void *)lock));
	pthread_spin_unlock(lock);
	memset(happened, 0, sizeof(happened));
	result = EDEADLK;
	assert_int_equal(pthread_spin_lock(lock), EDEADLK);
	expect_happened("pthread_spin_trylock wait:3,0 pthread_spin_lock failed");
	assert_false(holds((const void *)lock));
}

/* The mutex is given back for as long as the wait lasts, and acquired again. */
static void test_condition(void **state)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

	(void)state;
	pthread_cond_clockwait(&condition, &mutex, CLOCK_REALTIME, &later);
	expect_happened("wait:4,0 pthread_cond_clockwait ended");
	contend(&mutex, SPY_CONTENDED);
	result = ETIMEDOUT;
	assert_int_equal(pthread_cond_clockwait(&condition, &mutex, CLOCK_REALTIME, &later),
			 ETIMEDOUT);
	expect_happened("released:0,now wait:4,0 pthread_cond_clockwait failed");
	assert_true(thread.acquired[0].marked);
	assert_true(is_acquired(&mutex));
	mutex.__data.__count = 2;
	pthread_cond_clockwait(&condition, &mutex, CLOCK_REALTIME, &later);
	expect_happened("wait:4,0 pthread_cond_clockwait failed");
	assert_false(is_acquired(&mutex));
}

static void test_semaphore(void **state)
{
	sem_t sem;

	(void)state;
	sem_init(&sem, 0, 1);
	sem_wait(&sem);
	expect_happened("sem_wait"); /* it is not zero */
	sem_timedwait(&sem, &later);
	expect_happened("sem_timedwait");
	sem_destroy(&sem);
	sem_init(&sem, 0, 0);
	sem_wait(&sem);
	expect_happened("wait:5,0 sem_wait ended");
	result = -1;
	assert_int_equal(sem_timedwait(&sem, &later), -1);
	expect_happened("wait:5,0 sem_timedwait failed");
	assert_int_equal(sem_clockwait(&sem, CLOCK_REALTIME, &later), -1);
	expect_happened("wait:5,0 sem_clockwait failed");
}

/* ---- what has no holder ---- */

static void test_waits(void **state)
{
	struct pollfd one = {.fd = 5};

	(void)state;
	for (result = 1; result >= -1; result -= 2) {
		const char *end = result < 0 ? "failed" : "ended";
		char wanted[64];

#define EXPECT(call, kind, name) \
	assert_int_equal(call, result); \
	snprintf(wanted, sizeof(wanted), "wait:%d,0 %s %s", kind, name, end); \
	expect_happened(wanted)
		EXPECT(poll(&one, 1, 9), SPY_WAIT_POLL, "poll");
		EXPECT(ppoll(&one, 1, &later, NULL), SPY_WAIT_POLL, "ppoll");
		EXPECT(nanosleep(&later, NULL), SPY_WAIT_SLEEP, "nanosleep");
		EXPECT(usleep(7), SPY_WAIT_SLEEP, "usleep");
		EXPECT(sched_yield(), SPY_WAIT_YIELD, "sched_yield");
		EXPECT(ioctl(3, 0x4600, NULL), SPY_WAIT_IOCTL, "ioctl");
	}
}

long spy_probe_futex(long n, long a, long b, long c, long d, long e, long f);

static void test_futex(void **state)
{
	static const struct {
		int operation;
		bool waits;
	} cases[] = {{FUTEX_WAIT, true},
		     {FUTEX_WAIT_PRIVATE, true},
		     {FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, true},
		     {FUTEX_LOCK_PI, true},
		     {FUTEX_WAIT_REQUEUE_PI_PRIVATE, true},
		     {FUTEX_WAKE, false},
		     {FUTEX_WAKE_PRIVATE, false},
		     {FUTEX_REQUEUE, false},
		     {FUTEX_UNLOCK_PI, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		begin(state);
		assert_int_equal(spy_probe_futex(SYS_futex, 0x77, cases[i].operation, 0, 0, 0, 0),
				 0);
		expect_happened(cases[i].waits ? "wait:6,0 syscall ended" : "syscall");
		result = -1;
		assert_int_equal(spy_probe_futex(SYS_futex, 0x77, cases[i].operation, 0, 0, 0, 0),
				 -1);
		expect_happened(cases[i].waits ? "wait:6,0 syscall failed" : "syscall");
		begin_outside(state);
		spy_probe_futex(SYS_futex, 0x77, cases[i].operation, 0, 0, 0, 0);
		expect_happened(cases[i].waits ? "show:6 syscall hide write:6,0" : "syscall");
		if (cases[i].waits)
			assert_int_equal(written.object, 0x77);
		result = -1;
		spy_probe_futex(SYS_futex, 0x77, cases[i].operation, 0, 0, 0, 0);
		expect_happened(cases[i].waits ? "show:6 syscall hide write:6,4" : "syscall");
	}
}

/* ---- between calls ---- */

static void expect_outside(const char *wanted, uint64_t object, uint32_t holder)
{
	expect_happened(wanted);
	assert_int_equal(written.object, object);
	assert_int_equal(written.holder, holder);
	assert_int_equal(written.start, now - takes);
	assert_int_equal(shown.start, now - takes);
	assert_true(written.caller && written.sp && shown.caller == written.caller);
}

static void test_mutex_outside(void **state)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, *lock = &mutex;

	(void)state;
	pthread_mutex_lock(lock);
	expect_happened("pthread_mutex_lock");
	lock->__data.__lock = 1;
	lock->__data.__owner = 321;
	pthread_mutex_lock(lock); /* free again by then */
	expect_happened("pthread_mutex_trylock");
	tried = EBUSY;
	pthread_mutex_lock(lock);
	expect_outside("pthread_mutex_trylock show:0 pthread_mutex_lock hide write:0,0",
		       (uintptr_t)lock, 321);
	assert_int_equal(shown.object, (uintptr_t)lock);
	assert_int_equal(shown.holder, 321);
	result = EOWNERDEAD;
	assert_int_equal(pthread_mutex_lock(lock), EOWNERDEAD);
	expect_outside("pthread_mutex_trylock show:0 pthread_mutex_lock hide write:0,0",
		       (uintptr_t)lock, 321);
	result = ETIMEDOUT;
	assert_int_equal(pthread_mutex_timedlock(lock, &later), ETIMEDOUT);
	expect_outside("pthread_mutex_trylock show:0 pthread_mutex_timedlock hide write:0,4",
		       (uintptr_t)lock, 321);
	/* A short one leaves no record. */
	takes = spy_outside_least - 1;
	pthread_mutex_lock(lock);
	expect_happened("pthread_mutex_trylock show:0 pthread_mutex_lock hide");
	takes++;
	pthread_mutex_lock(lock);
	expect_outside("pthread_mutex_trylock show:0 pthread_mutex_lock hide write:0,4",
		       (uintptr_t)lock, 321);
	assert_int_equal(pthread_mutex_clocklock(lock, CLOCK_BOOTTIME, &later), ETIMEDOUT);
	expect_happened("pthread_mutex_clocklock");
	lock->__data.__kind |= 16; /* robust: its word names the owner */
	lock->__data.__lock = (int)FUTEX_OWNER_DIED;
	pthread_mutex_lock(lock);
	expect_happened("pthread_mutex_lock");
	lock->__data.__lock = 321;
	pthread_mutex_lock(lock);
	expect_outside("show:0 pthread_mutex_lock hide write:0,4", (uintptr_t)lock, 321);
	/* A thread without a stream, at work on it, or CUDA's own. */
	for (int i = 0; i < 3; i++) {
		begin_outside(state);
		if (i == 0)
			thread.packet = NULL;
		thread.reentry_frame = i == 1;
		thread.serves_cuda = i == 2;
		pthread_mutex_lock(lock);
		expect_happened("pthread_mutex_lock");
	}
}

static void test_rwlock_outside(void **state)
{
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER, *lock = &rwlock;

	(void)state;
	lock->__data.__readers = 8;
	pthread_rwlock_rdlock(lock);
	expect_happened("pthread_rwlock_rdlock");
	assert_false(holds(lock));
	tried = EBUSY;
	lock->__data.__cur_writer = 55;
	pthread_rwlock_wrlock(lock);
	expect_outside("pthread_rwlock_trywrlock show:2 pthread_rwlock_wrlock hide write:2,0",
		       (uintptr_t)lock, 55);
	lock->__data.__readers = 2;
	result = ETIMEDOUT;
	assert_int_equal(pthread_rwlock_timedrdlock(lock, &later), ETIMEDOUT);
	expect_outside("pthread_rwlock_tryrdlock show:1 pthread_rwlock_timedrdlock hide write:1,4",
		       (uintptr_t)lock, 55);
	assert_int_equal(pthread_rwlock_timedrdlock(lock, &wrong), ETIMEDOUT);
	expect_happened("pthread_rwlock_timedrdlock");
	tried = 0;
	assert_int_equal(pthread_rwlock_rdlock(lock), 0);
	expect_happened("pthread_rwlock_tryrdlock");
}

static void test_others_outside(void **state)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	pthread_spinlock_t spin = 0;
	sem_t sem;

	(void)state;
	pthread_cond_clockwait(&condition, &mutex, CLOCK_REALTIME, &later);
	expect_outside("show:4 pthread_cond_clockwait hide write:4,0", (uintptr_t)&condition, 0);
	sem_init(&sem, 0, 0);
	result = -1;
	sem_wait(&sem);
	expect_outside("show:5 sem_wait hide write:5,4", (uintptr_t)&sem, 0);
	sem_destroy(&sem);
	sem_init(&sem, 0, 1);
	sem_wait(&sem);
	expect_happened("sem_wait");
	usleep(5);
	expect_outside("show:10 usleep hide write:10,4", 0, 0);
	result = 0;
	nanosleep(&later, NULL);
	expect_outside("show:10 nanosleep hide write:10,0", 0, 0);
	/* Only inside of calls. */
	contend(&mutex, SPY_CONTENDED);
	contend((const void *)&spin, SPY_CONTENDED);
	pthread_mutex_unlock(&mutex);
	pthread_spin_lock(&spin);
	pthread_spin_unlock(&spin);
	sched_yield();
	ioctl(3, 0x4600, NULL);
	expect_happened(
		"pthread_mutex_unlock pthread_spin_lock pthread_spin_unlock sched_yield ioctl");
	assert_false(holds((const void *)&spin));
}

/* ---- polls between calls ---- */

static void test_poll(void **state)
{
	static const struct timespec zero;
	struct pollfd all[3] = {
		{.fd = 4}, {.fd = 5, .revents = POLLIN}, {.fd = 6, .revents = POLLIN | POLLHUP}};

	(void)state;
	result = 2;
	assert_int_equal(poll(all, 3, -1), 2);
	expect_outside("show:8 poll hide write:8,0", 5, 0); /* the first one that is ready */
	assert_true(written.is_file);
	assert_false(written.at_once);
	assert_int_equal(thread.poll_served, 6); /* the last one that has input */
	result = 0;
	ppoll(all, 3, &later, NULL);
	expect_happened("show:8 ppoll hide write:8,0");
	result = -1;
	poll(all, 3, 5);
	expect_happened("show:8 poll hide write:8,4");
	assert_false(written.is_file);
	assert_int_equal(written.object, 0);
	assert_int_equal(thread.poll_served, 6);
	/* None is ready: the first one. Without descriptors it sleeps. */
	result = 0;
	poll(all, 1, 5);
	expect_outside("show:8 poll hide write:8,0", 4, 0);
	poll(NULL, 0, 5);
	expect_outside("show:10 poll hide write:10,0", 0, 0);
	assert_false(written.is_file);
	/* It is not to wait: nothing, unless it is the first one behind a long call. */
	poll(all, 3, 0);
	expect_happened("poll");
	ppoll(all, 3, &zero, NULL);
	expect_happened("ppoll");
	ppoll(all, 3, &(struct timespec){.tv_nsec = 1}, NULL);
	expect_happened("show:8 ppoll hide write:8,0");
	ppoll(all, 3, NULL, NULL);
	expect_happened("show:8 ppoll hide write:8,0");
	takes = 10;
	thread.poll_is_late = true;
	poll(all, 1, 0); /* of one descriptor it is no loop */
	expect_happened("poll");
	result = 2;
	thread.poll_served = 5;
	poll(all, 3, 0);
	expect_outside("show:8 poll hide write:8,128", 5, 0);
	assert_true(written.at_once);
	assert_int_equal(written.ready, 1); /* without the one that was served last */
	assert_false(thread.poll_is_late);
	assert_int_equal(thread.poll_served, 6);
	/* What came while it waited was not ready before. */
	thread.poll_is_late = true;
	thread.poll_served = 99;
	takes = spy_outside_least;
	poll(all, 3, 7);
	expect_happened("show:8 poll hide write:8,128");
	assert_int_equal(written.ready, 0);
}

/* Sets of descriptors, and events: what was ready before it was asked for. */
static void test_select(void **state)
{
	struct timeval none = {0}, some = {.tv_usec = 1};
	struct epoll_event events[3] = {{.events = EPOLLOUT, .data.u64 = 9},
					{.events = EPOLLIN, .data.u64 = 7},
					{.events = EPOLLERR, .data.u64 = 8}};
	fd_set set;

	(void)state;
	FD_ZERO(&set);
	FD_SET(3, &set);
	FD_SET(5, &set);
	result = 2;
	assert_int_equal(select(6, &set, NULL, NULL, &some), 2);
	expect_outside("show:8 select hide write:8,0", 3, 0);
	assert_true(written.is_file);
	assert_int_equal(thread.poll_served, 5);
	select(5, &set, NULL, NULL, NULL);
	assert_int_equal(thread.poll_served, 3); /* it is asked for no more */
	expect_happened("show:8 select hide write:8,0");
	select(3, &set, NULL, NULL, NULL);
	assert_int_equal(written.object, UINT64_MAX); /* none that is read */
	memset(happened, 0, sizeof(happened));
	select(0, NULL, NULL, NULL, &some);
	expect_happened("show:10 select hide write:10,0");
	assert_false(written.is_file);
	assert_int_equal(written.object, 0);
	select(6, &set, NULL, NULL, &none);
	expect_happened("select");
	pselect(6, &set, NULL, NULL, &(struct timespec){0}, NULL);
	expect_happened("pselect");
	pselect(6, &set, NULL, NULL, &(struct timespec){.tv_nsec = 1}, NULL);
	expect_happened("show:8 pselect hide write:8,0");
	result = -1;
	select(6, &set, NULL, NULL, NULL);
	expect_happened("show:8 select hide write:8,4");
	assert_false(written.is_file);
	/* Events: not that a descriptor can be written to. */
	result = 3;
	assert_int_equal(epoll_wait(33, events, 3, -1), 3);
	expect_outside("show:12 epoll_wait hide write:12,0", 33, 0);
	assert_true(written.is_file);
	assert_int_equal(thread.poll_served, 8);
	epoll_wait(33, events, 3, 0);
	expect_happened("epoll_wait");
	thread.poll_is_late = true;
	thread.poll_served = 1;
	takes = 10;
	epoll_pwait(33, events, 3, 0, NULL);
	expect_happened("show:12 epoll_pwait hide write:12,128");
	assert_int_equal(written.ready, 2);
	thread.depth = 1; /* inside a call */
	epoll_wait(33, events, 3, -1);
	select(6, &set, NULL, NULL, NULL);
	expect_happened("epoll_wait select");
}

/* ---- descriptors, threads, children ---- */

static void test_transfers(void **state)
{
	struct msghdr message = {0};
	struct iovec piece = {0};
	char byte = 0;

	for (int i = 0; i < 3; i++) {
		char wanted[64];

		begin_outside(state);
		result = i == 0 ? 100 : i == 1 ? 0 : -1;
#define TRANSFER(call, name) \
	assert_int_equal(call, result); \
	snprintf(wanted, sizeof(wanted), "show:11 %s hide write:11,%d", name, \
		 result < 0 ? SPY_WAIT_FAILED : 0); \
	expect_outside(wanted, 17, 0); \
	assert_true(written.is_file); \
	assert_int_equal(written.bytes, result > 0 ? 100 : 0)
		TRANSFER(read(17, &byte, 1), "read");
		TRANSFER(pread(17, &byte, 1, 0), "pread");
		TRANSFER(readv(17, &piece, 1), "readv");
		TRANSFER(write(17, &byte, 1), "write");
		TRANSFER(pwrite(17, &byte, 1, 0), "pwrite");
		TRANSFER(writev(17, &piece, 1), "writev");
		TRANSFER(fsync(17), "fsync");
		TRANSFER(recv(17, &byte, 1, 0), "recv");
		TRANSFER(recvfrom(17, &byte, 1, 0, NULL, NULL), "recvfrom");
		TRANSFER(recvmsg(17, &message, 0), "recvmsg");
		TRANSFER(send(17, &byte, 1, MSG_NOSIGNAL), "send");
		TRANSFER(sendto(17, &byte, 1, 0, NULL, 0), "sendto");
		TRANSFER(sendmsg(17, &message, 0), "sendmsg");
		assert_int_equal(accept(17, NULL, NULL), result);
		expect_outside(result < 0 ? "show:13 accept hide write:13,4"
					  : "show:13 accept hide write:13,0",
			       17, 0);
		assert_int_equal(written.bytes, 0);
		/* It says itself that it is not to wait. */
		recv(17, &byte, 1, MSG_DONTWAIT);
		sendmsg(17, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
		expect_happened("recv sendmsg");
		takes = spy_outside_least - 1;
		assert_int_equal(read(17, &byte, 1), result);
		expect_happened("show:11 read hide");
	}
	thread.depth = 1;
	assert_int_equal(read(17, &byte, 1), result);
	expect_happened("read");
}

static void test_joins(void **state)
{
	(void)state;
	sleep(1);
	expect_outside("show:10 sleep hide write:10,0", 0, 0);
	clock_nanosleep(CLOCK_REALTIME, 0, &later, NULL);
	expect_outside("show:10 clock_nanosleep hide write:10,0", 0, 0);
	pthread_join((pthread_t)0x4444, NULL);
	expect_outside("show:14 pthread_join hide write:14,0", 0x4444, 44);
	assert_int_equal(shown.holder, 44);
	result = ETIMEDOUT;
	assert_int_equal(pthread_timedjoin_np((pthread_t)0x5555, NULL, &later), ETIMEDOUT);
	expect_outside("show:14 pthread_timedjoin_np hide write:14,4", 0x5555, 0);
	result = -1;
	waitpid(99, NULL, 0);
	expect_outside("show:15 waitpid hide write:15,4", 0, 0);
	result = 99;
	wait4(99, NULL, 0, NULL);
	expect_outside("show:15 wait4 hide write:15,0", 0, 0);
	waitpid(99, NULL, WNOHANG);
	waitid(P_ALL, 0, NULL, WEXITED | WNOHANG);
	expect_happened("waitpid waitid");
	thread.depth = 1;
	pthread_join((pthread_t)0x4444, NULL);
	expect_happened("pthread_join");
}

/* ---- other interposers ---- */

static struct spy_object objects[4];
static bool defines[4];
static char notes[512];

int spy_each_object(int (*visit)(const struct spy_object *object, void *data), void *data)
{
	for (int i = 0; i < 4; i++)
		if (visit(&objects[i], data))
			break;
	return 0;
}

void *spy_object_symbol(const struct spy_object *object, const char *name, const char *version,
			bool *versioned)
{
	(void)version;
	(void)versioned;
	assert_string_equal(name, "pthread_mutex_lock");
	return defines[object - objects] ? notes : NULL;
}

void spy_note(enum spy_note what, const char *format, ...)
{
	va_list args;

	(void)what;
	va_start(args, format);
	vsnprintf(notes + strlen(notes), sizeof(notes) - strlen(notes), format, args);
	va_end(args);
	strcat(notes, ";");
}

static const char *noted(void)
{
	notes[0] = '\0';
	spy_probe_note();
	return notes;
}

static void test_interposers(void **state)
{
	uintptr_t at_real = (uintptr_t)fake_pthread_mutex_lock;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		objects[i] = (struct spy_object){.path = "", .soname = "", .position = i};
	objects[0].path = "program";
	objects[1].path = "before.so";
	objects[2].is_self = true;
	objects[3].path = "behind.so";
	memset(defines, 0, sizeof(defines));
	assert_string_equal(noted(), "");
	defines[0] = true; /* the program's own come first for all */
	assert_string_equal(noted(), "");
	defines[1] = true;
	assert_string_equal(noted(), "locks pass through before.so before they reach cudaspy;");
	defines[1] = false;
	defines[3] = true;
	assert_string_equal(noted(), "");
	objects[3].begin = at_real;
	objects[3].end = at_real + 1;
	assert_string_equal(noted(),
			    "locks pass through behind.so between cudaspy and the C library;");
	objects[3].end = at_real;
	assert_string_equal(noted(), "");
	objects[3].end = at_real + 1;
	objects[3].soname = "libc.so.6";
	assert_string_equal(noted(), "");
	objects[3].soname = "libpthread.so.0";
	assert_string_equal(noted(), "");
	objects[3].soname = "libc.musl";
	spy_probing = false;
	assert_string_equal(noted(), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_mutex, begin),
		cmocka_unit_test_setup(test_robust, begin),
		cmocka_unit_test_setup(test_mutex_try, begin),
		cmocka_unit_test_setup(test_mutex_unlock, begin),
		cmocka_unit_test_setup(test_read, begin),
		cmocka_unit_test_setup(test_write, begin),
		cmocka_unit_test_setup(test_several_holds, begin),
		cmocka_unit_test_setup(test_spin, begin),
		cmocka_unit_test_setup(test_condition, begin),
		cmocka_unit_test_setup(test_semaphore, begin),
		cmocka_unit_test_setup(test_waits, begin),
		cmocka_unit_test(test_futex),
		cmocka_unit_test_setup(test_mutex_outside, begin_outside),
		cmocka_unit_test_setup(test_rwlock_outside, begin_outside),
		cmocka_unit_test_setup(test_others_outside, begin_outside),
		cmocka_unit_test_setup(test_poll, begin_outside),
		cmocka_unit_test_setup(test_select, begin_outside),
		cmocka_unit_test(test_transfers),
		cmocka_unit_test_setup(test_joins, begin_outside),
		cmocka_unit_test_setup(test_interposers, begin),
	};

	spy_self = &empty;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
