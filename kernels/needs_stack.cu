/*
 * kernels/needs_stack.cu: a kernel that needs 100 KB of stack for each thread. That is more local memory
 * than a context has at first, so its first launch makes it grow, for which the driver waits until the
 * device is idle. Sums the numbers below count, through that stack.
 */
#include "kernels.h"

#define STACK_COUNT (100 * 1024 / sizeof(unsigned))

extern "C" __global__ void needs_stack(unsigned *sum, unsigned count)
{
	volatile unsigned stack[STACK_COUNT];
	unsigned i, value = 0;

	/* 977 and the size have no common factor: each number has a place of its own. */
	for (i = 0; i < count; i++)
		stack[i * 977 % STACK_COUNT] = i;
	for (i = 0; i < count; i++)
		value += stack[i * 977 % STACK_COUNT];
	*sum = value;
}

extern "C" cudaError_t launch_needs_stack(unsigned *sum, unsigned count, cudaStream_t stream)
{
	needs_stack<<<1, 1, 0, stream>>>(sum, count);
	return cudaGetLastError();
}

TWIN(needs_stack, sizeof(unsigned *), sizeof(unsigned))
{
	unsigned count = *(unsigned *)args[1];

	**(unsigned **)args[0] = count * (count - 1) / 2;
}
