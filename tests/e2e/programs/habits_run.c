/*
 * tests/e2e/programs/habits_run.c: a program with one habit of which cudaspy tells when it looks at the whole run, or
 * with the cured one; on the simulator, for test_findings_run.sh. Single-threaded; prints nothing.
 *
 *   habits_run legacy       kernels in the default stream and in another one, in turns
 *   habits_run nonblocking  the same with a stream that does not wait for the default one
 *   habits_run peer         copies from one GPU to another
 *   habits_run enabled      the same, with peer access
 */
#include <string.h>
#include "sim_program.h"

enum { ROUNDS = 40, BYTES = 1 << 20, NON_BLOCKING = 1 };

static __attribute__((noinline)) void two_streams(unsigned int flags)
{
	void *stream, *a, *b;

	OK(cudaMalloc(&a, BYTES));
	OK(cudaMalloc(&b, BYTES));
	OK(cudaStreamCreateWithFlags(&stream, flags));
	for (int i = 0; i < ROUNDS; i++) {
		OK(cudaMemsetAsync(a, i, BYTES, stream));
		OK(cudaMemsetAsync(b, i, BYTES, NULL));
	}
	OK(cudaDeviceSynchronize());
}

static __attribute__((noinline)) void peers(int enable)
{
	void *stream, *here, *there;

	OK(cudaSetDevice(1));
	OK(cudaMalloc(&there, BYTES));
	OK(cudaSetDevice(0));
	OK(cudaMalloc(&here, BYTES));
	OK(cudaStreamCreateWithFlags(&stream, 0));
	if (enable)
		OK(cudaDeviceEnablePeerAccess(1, 0));
	for (int i = 0; i < ROUNDS; i++)
		OK(cudaMemcpyPeerAsync(there, 1, here, 0, BYTES, stream));
	OK(cudaDeviceSynchronize());
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
