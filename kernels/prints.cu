/*
 * kernels/prints.cu: a kernel that calls printf, for which the driver prepares a buffer at the first
 * launch. It would print only if its sum were wrong, so that it says nothing. Sums the numbers below count.
 */
#include "kernels.h"

#include <stdio.h>

extern "C" __global__ void prints(unsigned *sum, unsigned count)
{
	unsigned i, value = 0;

	for (i = 0; i < count; i++)
		value += i;
	if (value != count * (count - 1) / 2)
		printf("prints: the sum is %u\n", value);
	*sum = value;
}

extern "C" cudaError_t launch_prints(unsigned *sum, unsigned count, cudaStream_t stream)
{
	prints<<<1, 1, 0, stream>>>(sum, count);
	return cudaGetLastError();
}

TWIN(prints, sizeof(unsigned *), sizeof(unsigned))
{
	unsigned count = *(unsigned *)args[1];

	**(unsigned **)args[0] = count * (count - 1) / 2;
}
