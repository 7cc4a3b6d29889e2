/*
 * tests/e2e/programs/use_weak.c: a program with weak references to CUDA and no CUDA library: it calls what it
 * finds. Bare it finds nothing; under the shim it finds stubs, which have to say that there is no
 * device.
 */
#include <stdio.h>

int cudaGetDeviceCount(int *count) __attribute__((weak));
int cuInit(unsigned int flags) __attribute__((weak));

int main(void)
{
	int count = 0;
	int result = cudaGetDeviceCount ? cudaGetDeviceCount(&count) : 100;
	int init = cuInit ? cuInit(0) : 100;

	printf("devices %d, results %d %d\n", count, result, init);
	return 0;
}
