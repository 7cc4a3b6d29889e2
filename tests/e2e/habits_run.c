/*
 * tests/e2e/habits_run.c: a program with one habit of which cudaspy tells when it looks at the whole run, or
 * with the cured one; on the simulator, for test_findings_run.sh. Single-threaded; prints nothing.
 *
 *   habits_run legacy       kernels in the default stream and in another one, in turns
 *   habits_run nonblocking  the same with a stream that does not wait for the default one
 *   habits_run peer         copies from one GPU to another
 *   habits_run enabled      the same, with peer access
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cudaSetDevice(int device);
int cudaMalloc(void **address, size_t bytes);
int cudaMemsetAsync(void *address, int value, size_t bytes, void *stream);
int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
			void *stream);
int cudaDeviceEnablePeerAccess(int peer, unsigned int flags);
int cudaStreamCreateWithFlags(void **stream, unsigned int flags);
int cudaDeviceSynchronize(void);

enum { ROUNDS = 40, BYTES = 1 << 20, NON_BLOCKING = 1 };

static void check(int result, const char *call)
{
	if (!result)
		return;
	fprintf(stderr, "habits_run: %s: %d\n", call, result);
	exit(1);
}
#define CHECK(call) check(call, #call)

static __attribute__((noinline)) void two_streams(unsigned int flags)
{
	void *stream, *a, *b;

	CHECK(cudaMalloc(&a, BYTES));
	CHECK(cudaMalloc(&b, BYTES));
	CHECK(cudaStreamCreateWithFlags(&stream, flags));
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(cudaMemsetAsync(a, i, BYTES, stream));
		CHECK(cudaMemsetAsync(b, i, BYTES, NULL));
	}
	CHECK(cudaDeviceSynchronize());
}

static __attribute__((noinline)) void peers(int enable)
{
	void *stream, *here, *there;

	CHECK(cudaSetDevice(1));
	CHECK(cudaMalloc(&there, BYTES));
	CHECK(cudaSetDevice(0));
	CHECK(cudaMalloc(&here, BYTES));
	CHECK(cudaStreamCreateWithFlags(&stream, 0));
	if (enable)
		CHECK(cudaDeviceEnablePeerAccess(1, 0));
	for (int i = 0; i < ROUNDS; i++)
		CHECK(cudaMemcpyPeerAsync(there, 1, here, 0, BYTES, stream));
	CHECK(cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
	const char *habit = argc > 1 ? argv[1] : "";

	if (!strcmp(habit, "legacy") || !strcmp(habit, "nonblocking"))
		two_streams(*habit == 'n' ? NON_BLOCKING : 0);
	else if (!strcmp(habit, "peer") || !strcmp(habit, "enabled"))
		peers(*habit == 'e');
	else
		return 2;
	return 0;
}
