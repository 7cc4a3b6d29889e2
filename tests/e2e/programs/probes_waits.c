/*
 * tests/e2e/programs/probes_waits.c: conditions, those of glibc 2.2.5 as well, semaphores, and waits without a lock: poll,
 * sleeps, ioctl. For probes (probes.c), in its threads, outside a CUDA call and inside one.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include "probes.h"

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

void condition_checks(void)
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

void old_checks(void)
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

int semaphore_value(sem_t *semaphore)
{
	int value = -1;

	sem_getvalue(semaphore, &value);
	return value;
}

void semaphore_checks(void)
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
		printf("semaphore: %d\n", semaphore_value(&sem));
		TRY(sem_timedwait(&sem, &bad));
		TRY(sem_timedwait(&sem, &worse));
		TRY(sem_clockwait(&sem, NO_CLOCK, &past));
		TRY(sem_clockwait(&sem, CLOCK_MONOTONIC, &bad));
		printf("semaphore: %d\n", semaphore_value(&sem));
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

/* Known to be what it is only when it runs. */
static void *volatile wild = (void *)8;

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

int sleep_interrupted(void)
{
	struct timespec minute = {60, 0}, left = {-1, -1};
	int result = nanosleep(&minute, &left);

	/* The rest is a minute, or less; more by the timer's slack (prctl(2)), if the signal came as it began. */
	return result * 100 - (left.tv_sec >= 0 && left.tv_sec <= 60 && left.tv_nsec >= 0);
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

void wait_checks(void)
{
	poll_checks();
	sleep_checks();
	ioctl_checks();
}
