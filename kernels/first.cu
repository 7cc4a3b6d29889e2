/*
 * kernels/first.cu: a small kernel for which nothing has to be prepared but its code. Launched once, it
 * shows what loading that costs. Like the other kernels of lazyload.c it sums the numbers below count.
 */
#include "kernels.h"

extern "C" __global__ void first(unsigned *sum, unsigned count)
{
	unsigned i, value = 0;

	for (i = 0; i < count; i++)
		value += i;
	*sum = value;
}

extern "C" cudaError_t launch_first(unsigned *sum, unsigned count, cudaStream_t stream)
{
	first<<<1, 1, 0, stream>>>(sum, count);
	return cudaGetLastError();
}

TWIN(first, sizeof(unsigned *), sizeof(unsigned))
{
	unsigned count = *(unsigned *)args[1];

	**(unsigned **)args[0] = count * (count - 1) / 2;
}
