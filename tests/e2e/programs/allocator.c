/*
 * tests/e2e/programs/allocator.c: a program with an allocator of its own, which has a lock inside a lock. One
 * thread is inside a CUDA call and in that allocator, waiting for the inner lock, which a thread without
 * CUDA calls has; another one makes the recorder allocate. Nobody may wait for ever. For
 * test_waits.sh; linked to a fake libcudart.so.13 whose cudaLaunchHostFunc calls its function at once.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int cudaSetDevice(int device);
int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data);
extern void *__libc_malloc(size_t bytes);

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool on, outer_held;
static __thread bool needs_inner;

void *malloc(size_t bytes)
{
	void *memory;

	if (!on)
		return __libc_malloc(bytes);
	pthread_mutex_lock(&outer);
	if (needs_inner) {
		outer_held = true;
		usleep(200000);
		pthread_mutex_lock(&inner);
		pthread_mutex_unlock(&inner);
	}
	memory = __libc_malloc(bytes);
	pthread_mutex_unlock(&outer);
	return memory;
}

static void *hold_inner(void *unused)
{
	pthread_mutex_lock(&inner);
	sleep(1);
	pthread_mutex_unlock(&inner);
	return unused;
}

static void allocate(void *unused)
{
	void *volatile memory = malloc(10);

	(void)unused;
	(void)memory;
}

static void *allocate_in_call(void *unused)
{
	cudaSetDevice(0);
	needs_inner = true;
	cudaLaunchHostFunc(NULL, allocate, NULL);
	return unused;
}

int main(void)
{
	pthread_t stranger, caller;

	cudaSetDevice(0);
	on = true;
	pthread_create(&stranger, NULL, hold_inner, NULL);
	usleep(50000);
	pthread_create(&caller, NULL, allocate_in_call, NULL);
	while (!outer_held)
		usleep(1000);
	/* A function that cudaspy does not know: it takes a note of that, and allocates for it. */
	printf("unknown: %d\n", dlsym(RTLD_DEFAULT, "cudaNobodyKnowsThis") != NULL);
	pthread_join(caller, NULL);
	pthread_join(stranger, NULL);
	puts("through");
	return 0;
}
