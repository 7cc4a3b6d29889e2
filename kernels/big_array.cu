/*
 * kernels/big_array.cu: a kernel whose module holds 256 MB of device memory, to be had and cleared when
 * the module is loaded. Sums the numbers below count, through that memory.
 */
#include "kernels.h"

#define BIG_COUNT (64u << 20)

static __device__ volatile unsigned big_array[BIG_COUNT];

extern "C" __global__ void touches_big_array(unsigned *sum, unsigned count)
{
	unsigned i, value = 0, step = BIG_COUNT / count;

	for (i = 0; i < count; i++)
		big_array[i * step] = i;
	for (i = 0; i < count; i++)
		value += big_array[i * step];
	*sum = value;
}

extern "C" cudaError_t launch_big_array(unsigned *sum, unsigned count, cudaStream_t stream)
{
	touches_big_array<<<1, 1, 0, stream>>>(sum, count);
	return cudaGetLastError();
}

TWIN(touches_big_array, sizeof(unsigned *), sizeof(unsigned))
{
	unsigned count = *(unsigned *)args[1];

	**(unsigned **)args[0] = count * (count - 1) / 2;
}
