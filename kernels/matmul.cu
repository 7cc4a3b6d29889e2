/*
 * kernels/matmul.cu: c = a * b for matrices stored row after row, in blocks of 32 x 32 threads: each
 * block brings one tile of a and one of b at a time into shared memory, where 32 threads use each
 * number. Sizes need not be multiples of 32. One explicit cudaLaunchKernel, as in empty.cu.
 */
#include "kernels.h"

#include <string.h>

#define TILE 32

extern "C" __global__ void matmul(float *c, const float *a, const float *b, unsigned rows,
				  unsigned inner, unsigned columns)
{
	__shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
	unsigned row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
	unsigned first, i;
	float sum = 0;

	for (first = 0; first < inner; first += TILE) {
		unsigned from_a = first + threadIdx.x, from_b = first + threadIdx.y;

		a_tile[threadIdx.y][threadIdx.x] =
			row < rows && from_a < inner ? a[row * inner + from_a] : 0;
		b_tile[threadIdx.y][threadIdx.x] =
			from_b < inner && column < columns ? b[from_b * columns + column] : 0;
		__syncthreads();
#pragma unroll
		for (i = 0; i < TILE; i++)
			sum += a_tile[threadIdx.y][i] * b_tile[i][threadIdx.x];
		__syncthreads();
	}
	if (row < rows && column < columns)
		c[row * columns + column] = sum;
}

extern "C" cudaError_t launch_matmul(float *c, const float *a, const float *b, unsigned rows,
				     unsigned inner, unsigned columns, cudaStream_t stream)
{
	dim3 grid((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE), block(TILE, TILE);
	void *args[] = {&c, &a, &b, &rows, &inner, &columns};

	return cudaLaunchKernel((const void *)matmul, grid, block, args, 0, stream);
}

/* A row of c as the sum of rows of b: the order in which memory is read fastest. */
TWIN(matmul, sizeof(float *), sizeof(float *), sizeof(float *), sizeof(unsigned), sizeof(unsigned),
     sizeof(unsigned))
{
	float *c = *(float **)args[0];
	const float *a = *(const float **)args[1], *b = *(const float **)args[2];
	unsigned rows = *(unsigned *)args[3], inner = *(unsigned *)args[4];
	unsigned columns = *(unsigned *)args[5], row, i, column;

	memset(c, 0, sizeof(*c) * rows * columns);
	for (row = 0; row < rows; row++, c += columns) {
		for (i = 0; i < inner; i++) {
			for (column = 0; column < columns; column++)
				c[column] += a[row * inner + i] * b[i * columns + column];
		}
	}
}
