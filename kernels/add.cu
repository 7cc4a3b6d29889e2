/*
 * kernels/add.cu: adds a constant to an array of integers: work whose result is easy to check. Twice:
 * by a thread for each integer, and by so few threads that it takes its time and leaves most of the
 * GPU to others.
 */
#include "kernels.h"

extern "C" __global__ void add(int *values, unsigned count, int term)
{
	unsigned i, step = gridDim.x * blockDim.x;

	for (i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
		values[i] += term;
}

extern "C" cudaError_t launch_add(int *values, unsigned count, int term, cudaStream_t stream)
{
	add<<<(count + 255) / 256, 256, 0, stream>>>(values, count, term);
	return cudaGetLastError();
}

extern "C" cudaError_t launch_add_slowly(int *values, unsigned count, int term, cudaStream_t stream)
{
	add<<<5, 64, 0, stream>>>(values, count, term);
	return cudaGetLastError();
}

TWIN(add, sizeof(int *), sizeof(unsigned), sizeof(int))
{
	int *values = *(int **)args[0];
	unsigned i, count = *(unsigned *)args[1];
	int term = *(int *)args[2];

	for (i = 0; i < count; i++)
		values[i] += term;
}
