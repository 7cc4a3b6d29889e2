/*
 * tests/gpu/cost_loops.c: loops that are bound by the host, for tests/gpu/cost.
 *
 *   cost_loops launches|paced SECONDS
 *
 * launches: pieces of work for the GPU in a row, each with an event; a wait after 256.
 * paced: a piece of work, 25 us on the CPU, a wait, 25 us on the CPU. Recording costs it little, and a delay in the
 * recorder counts fully. The work on the CPU is in registers: with a counter in memory its speed is a matter of luck.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void work(long rounds)
{
	unsigned long x = 1;

	for (long i = 0; i < rounds; i++) {
		x = x * 6364136223846793005ul + 1;
		__asm__ volatile("" : "+r"(x));
	}
}

/* In 25 us, by the fastest of some tries: the CPU may be another program's meanwhile. */
static long rounds_of_work(void)
{
	const long tried = 100000;
	double least = 1;

	for (int i = 0; i < 20; i++) {
		double begun = now(), took;

		work(tried);
		took = now() - begun;
		least = took < least ? took : least;
	}
	return (long)((double)tried * 25e-6 / least);
}

static long launches(void *memory, cudaStream_t stream, cudaEvent_t event)
{
	for (int i = 0; i < 256; i++) {
		cudaMemsetAsync(memory, i, 1024, stream);
		cudaEventRecord(event, stream);
	}
	cudaStreamSynchronize(stream);
	return 513;
}

static long paced(void *memory, cudaStream_t stream, long rounds)
{
	for (int i = 0; i < 64; i++) {
		cudaMemsetAsync(memory, i, 1024, stream);
		work(rounds);
		cudaStreamSynchronize(stream);
		work(rounds);
	}
	return 128;
}

int main(int argc, char **argv)
{
	double begun, seconds = argc == 3 ? atof(argv[2]) : 0;
	long calls = 0, rounds;
	cudaStream_t stream;
	cudaEvent_t event;
	void *memory;

	if (seconds <= 0 || (strcmp(argv[1], "launches") && strcmp(argv[1], "paced"))) {
		fprintf(stderr, "Usage: cost_loops launches|paced SECONDS\n");
		return 2;
	}
	if (cudaMalloc(&memory, 4096) ||
	    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) ||
	    cudaEventCreateWithFlags(&event, cudaEventDisableTiming))
		return 1;
	rounds = rounds_of_work();
	begun = now();
	while (now() - begun < seconds)
		calls += *argv[1] == 'l' ? launches(memory, stream, event)
					 : paced(memory, stream, rounds);
	if (cudaGetLastError())
		return 1;
	printf("calls/s %.0f\n", (double)calls / (now() - begun));
	return 0;
}
