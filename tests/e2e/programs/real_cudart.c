/*
 * tests/e2e/programs/real_cudart.c: the toolkit's own libcudart, shared or static. On a machine without a GPU,
 * and over a driver whose cuInit returns 100, each call says cudaErrorNoDevice.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>

static void say(const char *what, cudaError_t result)
{
	printf("%s: %d %s\n", what, result, cudaGetErrorName(result));
}

int main(void)
{
	struct cudaPitchedPtr pitched = {(void *)0x1000, 64, 64, 4};
	struct cudaExtent extent = {16, 4, 2};
	struct cudaChannelFormatDesc desc;
	int count = -1, version = -1, driver = -1;
	cudaArray_t array;
	cudaStream_t stream;
	void *address;
	static char host[4096];

	say("count", cudaGetDeviceCount(&count));
	say("driver version", cudaDriverGetVersion(&driver));
	say("runtime version", cudaRuntimeGetVersion(&version));
	printf("%d devices, versions %d %d\n", count, driver, version);
	say("malloc", cudaMalloc(&address, 4096));
	say("free", cudaFree(NULL));
	say("stream", cudaStreamCreate(&stream));
	say("copy", cudaMemcpyAsync(host, host + 64, 64, cudaMemcpyDefault, NULL));
	say("memset", cudaMemset3D(pitched, 1, extent));
	desc = cudaCreateChannelDesc(8, 8, 8, 8, cudaChannelFormatKindUnsigned);
	printf("desc %d %d %d %d %d\n", desc.x, desc.y, desc.z, desc.w, desc.f);
	say("array", cudaMalloc3DArray(&array, &desc, extent, 0));
	say("synchronize", cudaDeviceSynchronize());
	say("last", cudaGetLastError());
	say("last", cudaGetLastError());
	return 0;
}
