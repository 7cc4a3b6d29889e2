/*
 * tests/e2e/programs/nest.c: calls inside calls, and calls that are left in unusual ways; linked to a fake
 * libcudart.so.13 whose cudaLaunchHostFunc calls its function at once.
 *
 *   nest deep N      N calls, each made inside the one before
 *   nest longjmp     out of two calls, then scribbles over the stack they lay on
 *   nest exit        pthread_exit inside a call
 *   nest cancel      a thread is cancelled inside a call, many times over
 *   nest pending     a thread that has a cancellation pending makes calls that are no cancellation points
 *   nest backtrace   backtrace() inside a call
 *   nest wait        sits in a call inside a call until it is killed
 *   nest driver      the same in a call of the driver's, the second one inside that of the runtime's
 *   nest coroutine   calls on another stack, left by longjmp, which is unmapped afterwards
 *   nest errno       no call changes errno
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

int cudaSetDevice(int device);
int cudaGetDevice(int *device);
int cudaMalloc(void **address, size_t bytes);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);
int cudaStreamSynchronize(void *stream);

static void deeper(void *left)
{
	int n = (int)(intptr_t)left;

	cudaSetDevice(n);
	if (n > 1)
		cudaLaunchHostFunc(NULL, deeper, (void *)(intptr_t)(n - 1));
}

static int deep(int n)
{
	for (int i = 0; i < 3; i++)
		cudaLaunchHostFunc(NULL, deeper, (void *)(intptr_t)n);
	return cudaSetDevice(1000);
}

/* ---- longjmp ---- */

static jmp_buf back;

static void jump(void *unused)
{
	(void)unused;
	longjmp(back, 1);
}

static void jump_out_of_two(void *unused)
{
	(void)unused;
	cudaLaunchHostFunc((void *)0x12, jump, NULL);
}

/* Whatever lay below the caller's frame is now `value`. */
static __attribute__((noinline)) void scribble(int value)
{
	volatile char area[16384];

	memset((char *)area, value, sizeof(area));
	__asm__ volatile("" : : "r"(area) : "memory");
}

static int longjmp_out(void)
{
	for (volatile int i = 0; i < 20; i++) {
		if (setjmp(back) == 0)
			cudaLaunchHostFunc((void *)0x11, jump_out_of_two, NULL);
		scribble(i % 2 ? 0x7f : 0);
		cudaSetDevice(i);
		scribble(0xff);
		cudaSetDevice(i);
	}
	return 0;
}

/* ---- threads that end inside a call ---- */

static void leave_thread(void *unused)
{
	(void)unused;
	cudaSetDevice(1);
	pthread_exit((void *)7);
}

static void *exit_inside(void *unused)
{
	(void)unused;
	cudaLaunchHostFunc((void *)0x11, leave_thread, NULL);
	return NULL;
}

static bool cleaned;

static void clean(void *unused)
{
	(void)unused;
	cleaned = true;
	cudaSetDevice(2); /* while the stack unwinds: inside no call */
}

static void *wait_inside(void *unused)
{
	(void)unused;
	pthread_cleanup_push(clean, NULL);
	cudaSetDevice(1);
	cudaStreamSynchronize((void *)60000); /* the fake sleeps: a cancellation point */
	pthread_cleanup_pop(0);
	return NULL;
}

static int thread_ends(void *(*body)(void *), bool cancel, int times)
{
	struct timespec time = {0, 20000000};

	for (int i = 0; i < times; i++) {
		void *result = NULL;
		pthread_t thread;

		cleaned = false;
		pthread_create(&thread, NULL, body, NULL);
		if (cancel) {
			nanosleep(&time, NULL);
			pthread_cancel(thread);
		}
		pthread_join(thread, &result);
		printf("thread ended with %ld, cleaned %d\n", (long)result, cleaned);
		cudaSetDevice(3);
	}
	return 0;
}

static void *pending(void *unused)
{
	int state, calls = 0;

	(void)unused;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	for (; calls < 20000; calls++)
		cudaSetDevice(calls);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	printf("%d calls with a cancellation pending\n", calls);
	return (void *)1;
}

static int pending_cancel(void)
{
	for (int i = 0; i < 3; i++) {
		void *result = NULL;
		pthread_t thread;

		pthread_create(&thread, NULL, pending, NULL);
		pthread_join(thread, &result);
		printf("thread ended with %ld\n", (long)result);
		cudaSetDevice(0);
	}
	return 0;
}

/* ---- looking at the stack ---- */

static void look(void *unused)
{
	void *frames[32];
	int count = backtrace(frames, 32);
	char **names = backtrace_symbols(frames, count);
	bool main_seen = false;

	(void)unused;
	for (int i = 0; names && i < count; i++)
		main_seen |= strstr(names[i], "(main+") != NULL;
	printf("main is %s the backtrace\n", main_seen ? "in" : "not in");
	free(names);
}

static void wait_for_ever(void *unused)
{
	(void)unused;
	puts("waiting");
	fflush(stdout);
	cudaStreamSynchronize((void *)600000);
}

static void nothing(void *unused)
{
	(void)unused;
}

static void pause_for_ever(void *unused)
{
	(void)unused;
	puts("waiting");
	fflush(stdout);
	for (;;)
		pause();
}

static void wait_in_driver(void *unused)
{
	int (*driver_call)(void *stream, void (*function)(void *), void *data);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	(void)unused;
	*(void **)&driver_call = driver ? dlsym(driver, "cuLaunchHostFunc") : NULL;
	if (!driver_call)
		exit(3);
	driver_call(NULL, nothing, NULL);
	driver_call(NULL, pause_for_ever, NULL);
}

/* ---- other stacks ---- */

static ucontext_t main_context, other_context;
#define STACK_BYTES (256 << 10)

static void on_other_stack(void)
{
	cudaSetDevice(1);
	if (setjmp(back) == 0)
		cudaLaunchHostFunc((void *)0x11, jump_out_of_two, NULL);
	cudaSetDevice(2);
	if (setjmp(back) == 0)
		cudaLaunchHostFunc((void *)0x11, jump_out_of_two, NULL);
	/* and leaves the stack with the dead calls the last thing on it */
	swapcontext(&other_context, &main_context);
}

static int coroutine(void)
{
	for (int i = 0; i < 10; i++) {
		char *stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		/* first on the higher one, then, that being gone, on the lower */
		for (int half = 1; half >= 0; half--) {
			getcontext(&other_context);
			other_context.uc_stack.ss_sp = stacks + half * STACK_BYTES;
			other_context.uc_stack.ss_size = STACK_BYTES;
			other_context.uc_link = NULL;
			makecontext(&other_context, on_other_stack, 0);
			swapcontext(&main_context, &other_context);
			munmap(stacks + half * STACK_BYTES, STACK_BYTES);
		}
		cudaSetDevice(3);
	}
	return 0;
}

static int keep_errno(void)
{
	void *address;
	int changed = 0, device;

	for (int i = 0; i < 20000; i++) {
		errno = 4711;
		cudaSetDevice(i);
		changed += errno != 4711;
		errno = 4711;
		cudaGetDevice(&device);
		changed += errno != 4711;
		errno = 4711;
		cudaMalloc(&address, 64);
		changed += errno != 4711;
	}
	printf("errno changed %d times\n", changed);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(what, "deep") == 0)
		return deep(atoi(argv[2]));
	if (strcmp(what, "longjmp") == 0)
		return longjmp_out();
	if (strcmp(what, "exit") == 0)
		return thread_ends(exit_inside, false, 10);
	if (strcmp(what, "cancel") == 0)
		return thread_ends(wait_inside, true, 10);
	if (strcmp(what, "pending") == 0)
		return pending_cancel();
	if (strcmp(what, "backtrace") == 0)
		return cudaLaunchHostFunc(NULL, look, NULL);
	if (strcmp(what, "wait") == 0)
		return cudaLaunchHostFunc(NULL, wait_for_ever, NULL);
	if (strcmp(what, "driver") == 0)
		return cudaLaunchHostFunc(NULL, wait_in_driver, NULL);
	if (strcmp(what, "coroutine") == 0)
		return coroutine();
	if (strcmp(what, "errno") == 0)
		return keep_errno();
	return 2;
}
