/*
 * kernels/add.cu: adds a constant to an array of integers: work whose result is easy to check.
 */
#include "kernels.h"

extern "C" __global__ void add(int *values, unsigned count, int term)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		values[i] += term;
}

extern "C" cudaError_t launch_add(int *values, unsigned count, int term, cudaStream_t stream)
{
	add<<<(count + 255) / 256, 256, 0, stream>>>(values, count, term);
	return cudaGetLastError();
}
