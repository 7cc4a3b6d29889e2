/*
 * tests/e2e/programs/use_runtime.c: calls one libcudart and prints what came back. A program, or with
 * -DPLUGIN=NAME a library whose NAME() does the same. GENERATION says whose signatures to use.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "use.h"

int cudaGetDeviceCount(int *count);
int cudaRuntimeGetVersion(int *version);
int cudaSetDevice(int device);
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaMemcpyAsync_ptsz(void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaStreamSynchronize(void *stream);
int cudaStreamSynchronize_ptsz(void *stream);
const char *cudaGetErrorName(int error);

struct dim3 {
	unsigned int x, y, z;
};

int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **args,
		     size_t shared, void *stream);

struct channel {
	int x, y, z, w, f;
};

struct channel cudaCreateChannelDesc(int x, int y, int z, int w, int f);

#if GENERATION == 13
struct location {
	int type, id;
};
int cudaMemPrefetchAsync(const void *address, size_t bytes, struct location location,
			 unsigned int flags, void *stream);
#else
int cudaMemPrefetchAsync(const void *address, size_t bytes, int device, void *stream);
#endif

static char host[4096];

static int run(void)
{
	int count = -1, version = -1, results[9];
	struct channel channel;
	void *address = NULL;

	results[0] = cudaGetDeviceCount(&count);
	cudaRuntimeGetVersion(&version);
	results[1] = cudaSetDevice(1);
	results[2] = cudaMalloc(&address, 4096);
	results[3] = cudaMemcpyAsync(address, host, 64, 1, (void *)0x77);
	results[4] = cudaMemcpyAsync_ptsz(host, address, 65, 2, NULL);
#if GENERATION == 13
	results[5] = cudaMemPrefetchAsync(address, 66, (struct location){1, 7}, 0, (void *)0x78);
#else
	results[5] = cudaMemPrefetchAsync(address, 66, 7, (void *)0x78);
#endif
	results[6] = cudaLaunchKernel((void *)0x1234, (struct dim3){1, 2, 3},
				      (struct dim3){4, 5, 6}, (void **)0x5678, 99, (void *)0x79);
	results[7] = cudaStreamSynchronize(NULL);
	cudaStreamSynchronize_ptsz(NULL);
	results[8] = cudaFree(address);
	channel = cudaCreateChannelDesc(11, 12, 13, 14, 15);
	printf("count %d version %d address %p name '%s' channel %d %d %d %d %d results", count,
	       version, address, cudaGetErrorName(3), channel.x, channel.y, channel.z, channel.w,
	       channel.f);
	for (int i = 0; i < 9; i++)
		printf(" %d", results[i]);
	puts("");
	fflush(stdout);
	return 0;
}

USE(run)
