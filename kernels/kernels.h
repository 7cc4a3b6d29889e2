/*
 * kernels/kernels.h: the kernels of the test applications and benchmarks, one file each, started
 * through a C function that only launches: it waits for nothing and returns the launch's result.
 */
#ifndef KERNELS_H
#define KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One thread that keeps the stream busy for so many microseconds. */
cudaError_t launch_delay(unsigned microseconds, cudaStream_t stream);

/* Adds term to each of count integers. */
cudaError_t launch_add(int *values, unsigned count, int term, cudaStream_t stream);

/* Does nothing: what remains is the cost of the launch. */
cudaError_t launch_empty(cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
