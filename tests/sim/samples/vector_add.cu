/*
 * tests/sim/samples/vector_add.cu: the first program everybody writes, plus the kernel's host twin, which
 * the simulator calls when the kernel "runs". On a GPU the twin is not used.
 */
#include <vector>

#include "check.h"

__global__ void add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

extern "C" void spysim_kernel__Z3addPKfS0_Pfi(void **args, unsigned *grid, unsigned *block)
{
	const float *a = *(const float **)args[0], *b = *(const float **)args[1];
	float *c = *(float **)args[2];
	int n = *(int *)args[3];

	for (int i = 0; i < n; i++)
		c[i] = a[i] + b[i];
}

int main()
{
	const int n = 50000;
	std::vector<float> a(n), b(n), c(n);
	float *da, *db, *dc;

	for (int i = 0; i < n; i++) {
		a[i] = (float)i;
		b[i] = 2.0f * (float)i;
	}
	CHECK(cudaMalloc(&da, n * sizeof(float)));
	CHECK(cudaMalloc(&db, n * sizeof(float)));
	CHECK(cudaMalloc(&dc, n * sizeof(float)));
	CHECK(cudaMemcpy(da, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(db, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));
	add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(c.data(), dc, n * sizeof(float), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		EXPECT(c[i] == 3.0f * (float)i);
	CHECK(cudaFree(da));
	CHECK(cudaFree(db));
	CHECK(cudaFree(dc));
	puts("vector_add: ok");
}
