/*
 * tests/sim/samples/memory_kinds.cu: bytes through pitched, 3D, array, symbol, managed, pooled, pinned
 * and peer memory, and back.
 */
#include <cstring>

#include "check.h"

__device__ int symbol[64];
__managed__ int managed[16];

int main()
{
	char in[64 * 16], out[64 * 16];
	int numbers[64], back[64], devices;
	cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
	cudaPointerAttributes attrs;
	void *a, *b, *pinned;
	cudaArray_t array;
	cudaStream_t s;
	size_t pitch;

	for (int i = 0; i < (int)sizeof(in); i++)
		in[i] = (char)(i * 7);
	CHECK(cudaMallocPitch(&a, &pitch, 64, 16));
	CHECK(cudaMemcpy2D(a, pitch, in, 64, 64, 16, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2D(out, 64, a, pitch, 64, 16, cudaMemcpyDeviceToHost));
	EXPECT(!memcmp(in, out, sizeof(in)));

	CHECK(cudaMallocArray(&array, &floats, 16, 16));
	CHECK(cudaMemcpy2DToArray(array, 0, 0, in, 64, 64, 16, cudaMemcpyHostToDevice));
	memset(out, 0, sizeof(out));
	CHECK(cudaMemcpy2DFromArray(out, 64, array, 0, 0, 64, 16, cudaMemcpyDeviceToHost));
	EXPECT(!memcmp(in, out, sizeof(in)));
	CHECK(cudaFreeArray(array));

	for (int i = 0; i < 64; i++)
		numbers[i] = i * i;
	CHECK(cudaMemcpyToSymbol(symbol, numbers, sizeof(numbers)));
	CHECK(cudaMemcpyFromSymbol(back, symbol, sizeof(back)));
	EXPECT(!memcmp(numbers, back, sizeof(back)));

	managed[3] = 42;
	CHECK(cudaDeviceSynchronize());
	EXPECT(managed[3] == 42);

	CHECK(cudaStreamCreate(&s));
	CHECK(cudaMallocHost(&pinned, 1024));
	CHECK(cudaMallocAsync(&b, 1024, s));
	CHECK(cudaMemsetAsync(b, 0x5a, 1024, s));
	CHECK(cudaMemcpyAsync(pinned, b, 1024, cudaMemcpyDeviceToHost, s));
	CHECK(cudaFreeAsync(b, s));
	CHECK(cudaStreamSynchronize(s));
	EXPECT(((char *)pinned)[1023] == 0x5a);
	CHECK(cudaPointerGetAttributes(&attrs, pinned));
	EXPECT(attrs.type == cudaMemoryTypeHost);
	CHECK(cudaPointerGetAttributes(&attrs, in));
	EXPECT(attrs.type == cudaMemoryTypeUnregistered);

	CHECK(cudaGetDeviceCount(&devices));
	if (devices > 1) {
		CHECK(cudaSetDevice(1));
		CHECK(cudaMalloc(&b, 64));
		CHECK(cudaMemcpyPeer(b, 1, a, 0, 64));
		CHECK(cudaMemcpy(out, b, 64, cudaMemcpyDeviceToHost));
		EXPECT(!memcmp(in, out, 64));
	}
	puts("memory_kinds: ok");
}
