/*
 * tests/e2e/programs/probes_breaks.c: waits that are broken off: by a cancellation of the thread, or by a signal whose handler
 * makes CUDA calls itself. For probes (probes.c), in its threads, outside a CUDA call and inside one.
 */
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "probes.h"

/* ---- cancellation ------------------------------------------------------------------------------ */

static pthread_mutex_t cond_lock;
static pthread_cond_t cond;
static sem_t sem;
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
	       semaphore_value(&sem));
}

void cancel_checks(void)
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

/* ---- handlers that interrupt a wait ------------------------------------------------------------ */

/* The waits go on, for a handler's calls are nothing to them. */
void signal_checks(void)
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
