/*
 * tests/e2e/programs/probes.c: every function that a probe stands before, in every way that a program can use
 * it: test_probes.sh compares what is printed with and without the shim. Linked to a fake
 * libcudart.so.13, whose cudaLaunchHostFunc calls its function at once, inside the CUDA call.
 *
 *   probes outside|inside WHAT     outside any CUDA call, or inside one
 *   probes both WHAT               outside, inside, and outside again
 *
 * WHAT is mutex, rwlock, spin, condition, semaphore, wait (poll, sleeps, ioctl), syscall, cancel,
 * old (the condition variables of glibc 2.2.5), fork, signal. Each line is a call, its result and
 * errno. Nothing that depends on time is printed.
 *
 * Here are what all of them use and the list of them. probes_locks.c has mutex, rwlock and spin; probes_waits.c
 * condition, old, semaphore and wait; probes_processes.c syscall and fork; probes_breaks.c cancel and signal.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "probes.h"

int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);

static bool inside;

void enter(void (*function)(void *), void *data)
{
	if (inside)
		cudaLaunchHostFunc(NULL, function, data);
	else
		function(data);
}

void show(const char *what, long result, int error)
{
	printf("%s = %ld", what, result);
	if (error)
		printf(", errno %d", error);
	putchar('\n');
}

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

struct timespec *soon(clockid_t clock)
{
	static __thread struct timespec time;

	time = in(clock, 3 * MS);
	return &time;
}

struct timespec *late(clockid_t clock)
{
	static __thread struct timespec time;

	time = in(clock, 0);
	time.tv_sec += 60;
	return &time;
}

struct timespec past = {1, 0}, bad = {1, -1}, worse = {4000000000, 1000000000};

void sleep_ms(long ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * MS};

	while (nanosleep(&time, &time) < 0 && errno == EINTR)
		;
}

/* ---- threads ---------------------------------------------------------------------------------- */

struct deed {
	int (*act)(void *lock);
	void *lock;
	int result;
};

static void do_deed(void *data)
{
	struct deed *deed = data;

	errno = 0;
	deed->result = deed->act(deed->lock);
}

static void *deed_thread(void *data)
{
	enter(do_deed, data);
	return NULL;
}

int by_other(int (*act)(void *), void *lock)
{
	struct deed deed = {.act = act, .lock = lock};
	pthread_t thread;

	pthread_create(&thread, NULL, deed_thread, &deed);
	pthread_join(thread, NULL);
	return deed.result;
}

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

void *hold_thread(void *data)
{
	enter(hold, data);
	return NULL;
}

void holder_begin(struct holder *holder)
{
	holder->said = holder->told = 0;
	pthread_create(&holder->thread, NULL, hold_thread, holder);
	while (!__atomic_load_n(&holder->said, __ATOMIC_ACQUIRE))
		sleep_ms(1);
}

void holder_end(struct holder *holder)
{
	__atomic_store_n(&holder->told, 1, __ATOMIC_RELEASE);
	pthread_join(holder->thread, NULL);
	printf("  holder: %d, %d\n", holder->taken, holder->given);
}

const char *prefix;

void attempt_all(const char *state, const struct attempt *attempts, size_t n, void *lock,
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

/* ---- signals ----------------------------------------------------------------------------------- */

bool handler_calls;
struct holder *until_signal;

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

static void *pester(void *data)
{
	struct pest *pest = data;

	while (!__atomic_load_n(&pest->enough, __ATOMIC_ACQUIRE)) {
		sleep_ms(5);
		pthread_kill(pest->target, SIGUSR1);
	}
	return NULL;
}

void pest_begin(struct pest *pest)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGUSR1, &action, NULL);
	pest->enough = 0;
	pest->target = pthread_self();
	pthread_create(&pest->thread, NULL, pester, pest);
}

void pest_end(struct pest *pest)
{
	__atomic_store_n(&pest->enough, 1, __ATOMIC_RELEASE);
	pthread_join(pest->thread, NULL);
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
