/*
 * tests/gpu/facts_code.cu: the code that tests/gpu/facts.c loads: a kernel that keeps a GPU busy, some that
 * do next to nothing, and a variable.
 */
__device__ int variable[1024];

extern "C" __global__ void busy(unsigned milliseconds)
{
	unsigned long long begin, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (now - begin < milliseconds * 1000000ull);
}

extern "C" __global__ void first(int *to)
{
	to[threadIdx.x] += variable[threadIdx.x];
}

extern "C" __global__ void second(int *to)
{
	to[threadIdx.x] += 2;
}

extern "C" __global__ void third(int *to)
{
	to[threadIdx.x] += 3;
}

extern "C" __global__ void fourth(int *to)
{
	to[threadIdx.x] += 4;
}
