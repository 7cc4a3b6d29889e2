// tests/e2e/programs/real_launch.cu: compiled code: registration, a launch, a symbol.
#include <cstdio>

__device__ int symbol[4];

__global__ void kernel(int *to, float value)
{
	if (to)
		*to = (int)value;
}

int main()
{
	int values[4] = { 1, 2, 3, 4 };

	kernel<<<dim3(1, 2, 3), dim3(4, 5, 6), 16>>>(nullptr, 1.5f);
	std::printf("launch %d\n", cudaGetLastError());
	std::printf("symbol %d\n", cudaMemcpyToSymbol(symbol, values, sizeof(values)));
	std::printf("synchronize %d\n", cudaDeviceSynchronize());
	return 0;
}
