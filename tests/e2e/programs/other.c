/* tests/e2e/programs/other.c: another interposer: says that it saw a call and hands it on by RTLD_NEXT. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int cudaMalloc(void **address, size_t bytes);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);

int cudaMalloc(void **address, size_t bytes)
{
	int (*next)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");
	int result = next ? next(address, bytes) : 999;

	printf("other cudaMalloc(%zu) = %d\n", bytes, result);
	return result;
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	int (*next)(void *, const void *, size_t, int, void *) =
		(int (*)(void *, const void *, size_t, int, void *))dlsym(RTLD_NEXT,
									  "cudaMemcpyAsync");
	int result = next ? next(to, from, bytes, kind, stream) : 999;

	printf("other cudaMemcpyAsync(%zu) = %d\n", bytes, result);
	return result;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	int (*next)(uint64_t *, size_t) =
		(int (*)(uint64_t *, size_t))dlsym(RTLD_NEXT, "cuMemAlloc_v2");
	int result = next ? next(address, bytes) : 999;

	printf("other cuMemAlloc_v2(%zu) = %d\n", bytes, result);
	return result;
}
