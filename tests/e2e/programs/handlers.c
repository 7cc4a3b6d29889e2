/*
 * tests/e2e/programs/handlers.c: CUDA calls where there is little stack, and calls that are left; linked to a fake
 * libcudart.so.13. Bare, each way ends with status 0.
 *
 *   handlers altstack BYTES  the process' first calls in a signal handler, on an alternate stack of so many bytes
 *   handlers ends BYTES      the same, but the handler ends the process by _exit
 *   handlers least WHAT      the least stack, in bytes, on which a coroutine can do that: first (the process' first call),
 *                            thread (a thread's first), next (a call like many before), failed (one that gets a stack in
 *                            the trace)
 *   handlers jump N          N times: a thread waits inside a call for a lock, and a handler leaves by siglongjmp
 *   handlers cancel N        N times: a thread waits inside a call for a condition, and is cancelled
 *   handlers storm N         N siglongjmps out of whatever a thread that allocates is at, beside one that allocates, too
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

int cudaSetDevice(int device);
int cudaGetDevice(int *device);
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaHostRegister(void *address, size_t bytes, unsigned int flags);
int cudaHostUnregister(void *address);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);

static void nap(void)
{
	const struct timespec a_moment = {.tv_nsec = 500000};

	nanosleep(&a_moment, NULL);
}

/* So many bytes, and below them nothing. */
static char *make_stack(size_t bytes)
{
	char *memory = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	if (memory == MAP_FAILED || mprotect(memory, 4096, PROT_NONE) < 0)
		abort();
	return memory + 4096;
}

/* ---- on an alternate stack --------------------------------------------------------------------- */

static bool ends;

static void call_some(int signal)
{
	(void)signal;
	for (int i = 0; i < 10; i++)
		cudaSetDevice(i);
	if (ends)
		_exit(0);
}

static int on_altstack(size_t bytes)
{
	stack_t stack = {.ss_sp = make_stack(bytes), .ss_size = bytes};
	struct sigaction action = {.sa_handler = call_some, .sa_flags = SA_ONSTACK};

	if (sigaltstack(&stack, NULL) < 0 || sigaction(SIGUSR1, &action, NULL) < 0)
		return 77;
	raise(SIGUSR1);
	call_some(0);
	return 0;
}

/* ---- on a coroutine's -------------------------------------------------------------------------- */

static ucontext_t origin;

static void call_and_return(void)
{
	cudaSetDevice(3);
	swapcontext(&(ucontext_t){0}, &origin);
}

static void call_on(size_t bytes)
{
	static ucontext_t coroutine;
	/* The kernel's pages end where they end; the stack begins `bytes` above. */
	size_t pages = (bytes + 4095) & ~4095ul;
	char *stack = make_stack(pages);

	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = bytes;
	coroutine.uc_link = &origin;
	makecontext(&coroutine, call_and_return, 0);
	swapcontext(&origin, &coroutine);
}

static void *call_on_in_thread(void *bytes)
{
	call_on((size_t)bytes);
	return NULL;
}

static bool survives(const char *what, size_t bytes)
{
	int status, device;
	pthread_t thread;
	pid_t pid = fork();

	if (pid == 0) {
		if (strcmp(what, "first") != 0)
			for (int i = 0; i < 20; i++)
				cudaSetDevice(1);
		cudaGetDevice(&device);
		if (strcmp(what, "thread") == 0) {
			pthread_create(&thread, NULL, call_on_in_thread, (void *)bytes);
			pthread_join(thread, NULL);
		} else {
			call_on(bytes);
		}
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int least(const char *what)
{
	size_t bytes = 1024;

	while (bytes < 65536 && !survives(what, bytes))
		bytes += 256;
	printf("%zu\n", bytes);
	return 0;
}

/* ---- calls that are left -------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sigjmp_buf out;
static atomic_int inside;

static void leave(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

static void wait_for_mutex(void *unused)
{
	(void)unused;
	inside = 1;
	pthread_mutex_lock(&mutex);
	abort();
}

static void *wait_and_leave(void *unused)
{
	struct sigaction action = {.sa_handler = leave};

	sigaction(SIGUSR1, &action, NULL);
	if (sigsetjmp(out, 1) == 0)
		cudaLaunchHostFunc(NULL, wait_for_mutex, NULL);
	inside = 2;
	while (inside == 2) /* it lives, and makes no call */
		nap();
	cudaSetDevice(1);
	return unused;
}

static void lock_and_unlock(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static int jump(int n)
{
	pthread_t thread;

	for (int i = 0; i < n; i++) {
		inside = 0;
		pthread_mutex_lock(&mutex);
		pthread_create(&thread, NULL, wait_and_leave, NULL);
		while (inside != 1)
			nap();
		nap();
		nap();
		pthread_kill(thread, SIGUSR1);
		while (inside != 2)
			nap();
		pthread_mutex_unlock(&mutex);
		/* Nobody waits: that it changes hands leaves no record. */
		for (int k = 0; k < 100; k++)
			cudaLaunchHostFunc(NULL, lock_and_unlock, NULL);
		inside = 3;
		pthread_join(thread, NULL);
	}
	return 0;
}

static void wait_for_condition(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&mutex);
	pthread_cleanup_push((void (*)(void *))(void (*)(void))pthread_mutex_unlock, &mutex);
	inside = 1;
	for (;;)
		pthread_cond_wait(&condition, &mutex);
	pthread_cleanup_pop(1);
}

static void *wait_to_be_cancelled(void *unused)
{
	cudaLaunchHostFunc(NULL, wait_for_condition, NULL);
	return unused;
}

static int cancel(int n)
{
	pthread_t thread;
	void *result;

	for (int i = 0; i < n; i++) {
		inside = 0;
		pthread_create(&thread, NULL, wait_to_be_cancelled, NULL);
		while (inside != 1)
			nap();
		pthread_cancel(thread);
		pthread_join(thread, &result);
		if (result != PTHREAD_CANCELED)
			return 1;
		for (int k = 0; k < 100; k++)
			cudaLaunchHostFunc(NULL, lock_and_unlock, NULL);
	}
	return 0;
}

static volatile bool stop;

static void *allocate_until_stopped(void *memory)
{
	void *address;

	while (!stop) {
		cudaHostRegister(memory, 4096, 0);
		cudaMalloc(&address, 4096);
		cudaFree(address);
		cudaHostUnregister(memory);
	}
	return memory;
}

static volatile int jumps;

static int storm(int n)
{
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = leave};
	static char memory[2][8192] __attribute__((aligned(4096)));
	pthread_t thread;
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	pthread_create(&thread, NULL, allocate_until_stopped, memory[1]);
	cudaSetDevice(1);
	sigaction(SIGALRM, &action, NULL);
	if (sigsetjmp(out, 1))
		jumps = jumps + 1;
	setitimer(ITIMER_REAL, &often, NULL);
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	while (jumps < n) {
		cudaHostRegister(memory[0], 4096, 0);
		cudaHostUnregister(memory[0]);
	}
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	stop = true;
	pthread_join(thread, NULL);
	cudaSetDevice(2);
	return 0;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	if (strcmp(way, "altstack") == 0)
		return on_altstack((size_t)n);
	ends = strcmp(way, "ends") == 0;
	if (ends)
		return on_altstack((size_t)n);
	if (strcmp(way, "least") == 0 && argc > 2)
		return least(argv[2]);
	if (strcmp(way, "jump") == 0)
		return jump(n);
	if (strcmp(way, "cancel") == 0)
		return cancel(n);
	if (strcmp(way, "storm") == 0)
		return storm(n);
	return 2;
}
