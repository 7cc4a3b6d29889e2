/*
 * tests/e2e/programs/week_cuda.c: a libcudart.so.13 with what week.c calls. Its functions do next to nothing, so that a program can
 * make many calls a second: the fakes of fake.c look their names up. Called on the threads of week.c.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define NOTHING(name) \
	int name(void); \
	int name(void) \
	{ \
		return 0; \
	}

NOTHING(cudaSetDevice)
NOTHING(cudaGetLastError)
NOTHING(cudaEventQuery)
NOTHING(cudaEventRecord)
NOTHING(cudaEventSynchronize)
NOTHING(cudaStreamWaitEvent)
NOTHING(cudaStreamSynchronize)
NOTHING(cudaLaunchKernel)
NOTHING(cudaMemcpyAsync)
NOTHING(cudaMemsetAsync)
NOTHING(cudaFreeAsync)
NOTHING(cudaFree)
NOTHING(__cudaRegisterFatBinary)
NOTHING(__cudaRegisterFunction)

/* Nobody looks at what lies there. */
static int allocate(void **address)
{
	static _Atomic uintptr_t next = 0x7f0000000000;

	*address = (void *)atomic_fetch_add(&next, 4096);
	return 0;
}

#define GIVES(name) \
	int name(void **given); \
	int name(void **given) \
	{ \
		return allocate(given); \
	}

GIVES(cudaMalloc)
GIVES(cudaMallocAsync)
GIVES(cudaHostAlloc)
GIVES(cudaStreamCreate)
GIVES(cudaEventCreate)
