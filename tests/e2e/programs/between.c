/*
 * tests/e2e/programs/between.c: STEPS UNITS THREADS: threads that compute in functions of their own between their calls, of known
 * shares. Prints these in per cent, of each function the least and the most, as tests/e2e/sampled.py does. Linked with the
 * simulator's runtime.
 */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "sim_program.h"

#define KINDS 3

static int steps, units;
static double wall_s[KINDS], cpu_s[KINDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static double clock_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Something that the compiler cannot leave out. */
static inline unsigned int compute(int n)
{
	unsigned int x = 1;

	for (int i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

__attribute__((noinline)) static unsigned int load(void)
{
	return compute(5 * units) + 1;
}

__attribute__((noinline)) static unsigned int augment(void)
{
	return compute(3 * units) + 2;
}

/* In the C library. */
__attribute__((noinline)) static unsigned int log_metrics(void)
{
	static __thread char text[1 << 16];

	for (int i = 0; i < units / 2000; i++)
		memmove(text, text + 1, sizeof(text) - 1);
	return (unsigned int)text[0];
}

static unsigned int (*const kinds[KINDS])(void) = {load, augment, log_metrics};
static const char *const names[KINDS] = {"load", "augment", "log_metrics"};

static void *work(void *data)
{
	double wall[KINDS] = {0}, cpu[KINDS] = {0}, begun, ran;
	static char host[1 << 16];
	void *memory;

	OK(cudaMalloc(&memory, sizeof(host)));
	for (int i = 0; i < steps; i++) {
		for (int kind = 0; kind < KINDS; kind++) {
			begun = clock_s(CLOCK_MONOTONIC);
			ran = clock_s(CLOCK_THREAD_CPUTIME_ID);
			kinds[kind]();
			wall[kind] += clock_s(CLOCK_MONOTONIC) - begun;
			cpu[kind] += clock_s(CLOCK_THREAD_CPUTIME_ID) - ran;
		}
		OK(cudaMemcpy(memory, host, sizeof(host), H2D));
		OK(cudaDeviceSynchronize());
	}
	pthread_mutex_lock(&lock);
	for (int kind = 0; kind < KINDS; kind++) {
		wall_s[kind] += wall[kind];
		cpu_s[kind] += cpu[kind];
	}
	pthread_mutex_unlock(&lock);
	return data;
}

static void show(void)
{
	double wall = 0, cpu = 0, a, b;

	for (int kind = 0; kind < KINDS; kind++) {
		wall += wall_s[kind];
		cpu += cpu_s[kind];
	}
	for (int kind = 0; kind < KINDS; kind++) {
		a = 100 * wall_s[kind] / wall;
		b = 100 * cpu_s[kind] / cpu;
		printf("%s %.2f %.2f\n", names[kind], a < b ? a : b, a < b ? b : a);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	int n = argc > 3 ? atoi(argv[3]) : 1;

	if (argc < 3 || n < 1 || n > 64)
		die("STEPS UNITS THREADS");
	steps = atoi(argv[1]);
	units = atoi(argv[2]);
	OK(cudaSetDevice(0));
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			die("no thread");
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	show();
	return 0;
}
