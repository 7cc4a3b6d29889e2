/*
 * tests/e2e/programs/pace.c: SECONDS THREADS WORK [PHASE_MS]: threads make calls for so long, and between two calls so many rounds
 * of work, always the same: what the recorder takes is missing in the number of calls. With PHASE_MS the work is ten times
 * as much in each second phase of that length. With PACE_TURNS=MS in the environment copies and memsets are made in turns of that
 * length. With PACE_STAY in the environment the threads
 * are there still when the process ends; with PACE_STAY=_exit it ends by that. Prints how many calls were made of each function. For test_cost.sh.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "sim_program.h"

enum { BYTES = 256, THREADS_MOST = 64 };

static double seconds;
static long work, phase_ms, turns_ms;
static bool stay;
static _Atomic size_t done;
static uint64_t copies[THREADS_MOST], sets[THREADS_MOST], gets[THREADS_MOST];

int cudaGetDevice(int *device);

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void do_work(long rounds)
{
	for (volatile long i = 0; i < rounds; i++)
		;
}

/* In time: is it the second one's turn of two? */
static bool is_second(double at, long ms)
{
	return ms && (long)(at * 1000 / (double)ms) % 2;
}

static void *run(void *number)
{
	size_t me = (size_t)number;
	double began = now(), at;
	void *device_memory, *stream, *pinned;
	int device;

	OK(cudaMalloc(&device_memory, BYTES));
	OK(cudaMallocHost(&pinned, BYTES));
	OK(cudaStreamCreateWithFlags(&stream, 1));
	while ((at = now() - began) < seconds) {
		long rounds = work * (is_second(at, phase_ms) ? 10 : 1);
		bool second = is_second(at, turns_ms);

		for (int i = 0; i < 4 && !second; i++, copies[me]++) {
			OK(cudaMemcpyAsync(device_memory, pinned, BYTES, H2D, stream));
			do_work(rounds);
		}
		for (int i = 0; i < (turns_ms ? 4 : 1) && second == (turns_ms != 0);
		     i++, sets[me]++) {
			OK(cudaMemsetAsync(device_memory, 0, BYTES, stream));
			do_work(rounds);
		}
		OK(cudaGetDevice(&device));
		gets[me]++;
		OK(cudaStreamSynchronize(stream));
	}
	done++;
	while (stay)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t all[3] = {0, 0, 0};
	pthread_t threads[THREADS_MOST];
	size_t n, i;

	if (argc < 4)
		return 2;
	seconds = atof(argv[1]);
	n = (size_t)atoi(argv[2]);
	work = atol(argv[3]);
	stay = getenv("PACE_STAY");
	phase_ms = argc > 4 ? atol(argv[4]) : 0;
	turns_ms = getenv("PACE_TURNS") ? atol(getenv("PACE_TURNS")) : 0;
	for (i = 0; i < n && i < THREADS_MOST; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	while (stay && done < n)
		usleep(1000);
	for (i = 0; i < n && i < THREADS_MOST; i++) {
		if (!stay)
			pthread_join(threads[i], NULL);
		all[0] += copies[i];
		all[1] += sets[i];
		all[2] += gets[i];
	}
	printf("cudaMemcpyAsync %lu cudaMemsetAsync %lu cudaGetDevice %lu\n", (unsigned long)all[0],
	       (unsigned long)all[1], (unsigned long)all[2]);
	if (stay && !strcmp(getenv("PACE_STAY"), "_exit")) {
		fflush(stdout);
		_exit(0);
	}
	return 0;
}
