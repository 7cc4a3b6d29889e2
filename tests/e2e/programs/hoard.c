/*
 * tests/e2e/programs/hoard.c: an interposer (with LIBRARY) that has pinned memory of its own, which it frees inside
 * cudaFree; and a program that copies from there, and from what lies there afterwards.
 */
#include <dlfcn.h>
#include <sys/mman.h>
#include "sim_program.h"

enum { BYTES = 65536 };

#ifdef LIBRARY

int cuMemHostAlloc(void **address, size_t bytes, unsigned int flags);
int cuMemFreeHost(void *address);
void *hoard(void);

static void *own;

void *hoard(void)
{
	if (!own)
		cuMemHostAlloc(&own, BYTES, 0);
	return own;
}

int cudaFree(void *address)
{
	int (*next)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "cudaFree");

	if (own)
		cuMemFreeHost(own);
	own = NULL;
	return next(address);
}

#else

int main(void)
{
	void *(*hoard)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "hoard"), *device, *host,
	     *other, *stream;

	if (!hoard)
		return 0;
	cudaStreamCreateWithFlags(&stream, 1);
	cudaMalloc(&device, BYTES);
	for (int i = 0; i < 4; i++) { /* the first calls of a function take another path */
		cudaMalloc(&other, BYTES);
		host = hoard();
		cudaMemcpyAsync(device, host, BYTES, 1, stream);
		cudaDeviceSynchronize();
		cudaFree(other);
		/* Where it lay there is memory that nobody pinned. */
		host = mmap(host, BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		cudaMemcpyAsync(device, host, BYTES, 1, stream);
		cudaDeviceSynchronize();
	}
	return 0;
}

#endif
