/*
 * tests/e2e/programs/use_driver.c: calls libcuda, linked directly, and prints what came back. A program, or
 * with -DPLUGIN=NAME a library whose NAME() does the same.
 */
#include <stdint.h>
#include <stdio.h>
#include "use.h"

int cuInit(unsigned int flags);
int cuDriverGetVersion(int *version);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream);
int cuMemcpyHtoDAsync_v2_ptsz(uint64_t to, const void *from, size_t bytes, void *stream);
int cuLaunchKernel(void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
		   unsigned int by, unsigned int bz, unsigned int shared, void *stream, void **args,
		   void **extra);
int cuStreamSynchronize(void *stream);

static char host[4096];

static int run(void)
{
	uint64_t address = 0;
	int version = 0, results[7];

	results[0] = cuInit(0);
	cuDriverGetVersion(&version);
	results[1] = cuMemAlloc_v2(&address, 4096);
	results[2] = cuMemcpyHtoDAsync_v2(address, host, 64, (void *)0x77);
	results[3] = cuMemcpyHtoDAsync_v2_ptsz(address, host, 65, NULL);
	results[4] = cuLaunchKernel((void *)0x1234, 1, 2, 3, 4, 5, 6, 99, (void *)0x79,
				    (void **)0x5678, NULL);
	results[5] = cuStreamSynchronize((void *)1);
	results[6] = cuMemFree_v2(address);
	printf("version %d address %llx results", version, (unsigned long long)address);
	for (int i = 0; i < 7; i++)
		printf(" %d", results[i]);
	puts("");
	return 0;
}

USE(run)
