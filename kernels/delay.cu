/*
 * kernels/delay.cu: a kernel of known length, the GPU's usleep. It watches the GPU's own nanosecond
 * clock and not its cycle counter, so that the length does not follow the clock frequency.
 */
#include "kernels.h"

extern "C" __global__ void delay(unsigned microseconds)
{
	unsigned long long begin, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (now - begin < microseconds * 1000ull);
}

extern "C" cudaError_t launch_delay(unsigned microseconds, cudaStream_t stream)
{
	delay<<<1, 1, 0, stream>>>(microseconds);
	return cudaGetLastError();
}
