/*
 * tests/bench/bench_waits.c: what a wait of a thread between two CUDA calls costs that blocks: the CPU time of the
 * thread, since how long it is asleep varies by far more. tests/bench/run starts this program bare and recorded; it
 * knows of neither.
 *
 *   bench_waits [--ms N]   ns of CPU time for each wait, N milliseconds of each kind
 *
 * The lines are those of bench_calls: name, threads, median, mean, number.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WAITS 100 /* in a round, of which the mean is one value */
#define ROUNDS_MAX 10000
#define SLEEP_NS 30000 /* more than what leaves no record */

static double clock_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void asleep(void)
{
	nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
}

static int ends[2];

/* Bytes that come one by one, each after a while. */
static void *write_bytes(void *unused)
{
	(void)unused;
	for (;;) {
		asleep();
		if (write(ends[1], "x", 1) != 1)
			return NULL;
	}
}

static void read_byte(void)
{
	char byte;

	if (read(ends[0], &byte, 1) != 1)
		exit(1);
}

static int by_size(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void measure(const char *name, void (*wait)(void), double ms)
{
	static double values[ROUNDS_MAX];
	double end = clock_of(CLOCK_MONOTONIC) + ms * 1e6, sum = 0;
	size_t n = 0, i;

	while (n < ROUNDS_MAX && (clock_of(CLOCK_MONOTONIC) < end || n < 3)) {
		double begin = clock_of(CLOCK_THREAD_CPUTIME_ID);

		for (i = 0; i < WAITS; i++)
			wait();
		values[n++] = (clock_of(CLOCK_THREAD_CPUTIME_ID) - begin) / WAITS;
	}
	qsort(values, n, sizeof(values[0]), by_size);
	for (i = 0; i < n; i++)
		sum += values[i];
	printf("%s\t1\t%.2f\t%.2f\t%zu\n", name, values[n / 2], sum / (double)n, n);
}

int main(int argc, char **argv)
{
	double ms = argc > 2 && !strcmp(argv[1], "--ms") ? atof(argv[2]) : 500;
	pthread_t writer;
	int version;

	/* From its first call on a thread's waits are recorded. */
	if (cuInit(0) || cuDriverGetVersion(&version)) {
		fprintf(stderr, "bench_waits: no CUDA driver\n");
		return 1;
	}
	measure("sleep", asleep, ms);
	if (pipe(ends) || pthread_create(&writer, NULL, write_bytes, NULL))
		return 1;
	measure("pipe", read_byte, ms);
	return 0;
}
