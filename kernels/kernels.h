/*
 * kernels/kernels.h: the kernels of the test applications and benchmarks, one file each, started
 * through a C function that only launches: it waits for nothing and returns the launch's result.
 * Where a program checks results, the kernel's file has its host twin, too, for the simulator.
 */
#ifndef KERNELS_H
#define KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One thread that keeps the stream busy for so many microseconds. */
cudaError_t launch_delay(unsigned microseconds, cudaStream_t stream);

/* Adds term to each of count integers; slowly: with 5 blocks of 64 threads. */
cudaError_t launch_add(int *values, unsigned count, int term, cudaStream_t stream);
cudaError_t launch_add_slowly(int *values, unsigned count, int term, cudaStream_t stream);

/* c = a * b: a has rows x inner numbers, b inner x columns, c rows x columns, each row after row. */
cudaError_t launch_matmul(float *c, const float *a, const float *b, unsigned rows, unsigned inner,
			  unsigned columns, cudaStream_t stream);

/* Does nothing: what remains is the cost of the launch. */
cudaError_t launch_empty(cudaStream_t stream);

/*
 * Kernels that set *sum to 0 + 1 + ... + (count - 1), count at most 4096, in one thread. What differs is what
 * the driver has to prepare for their first launch: their code alone; 256 MB of device memory; local
 * memory for 100 KB of stack; a buffer for printf.
 */
cudaError_t launch_first(unsigned *sum, unsigned count, cudaStream_t stream);
cudaError_t launch_big_array(unsigned *sum, unsigned count, cudaStream_t stream);
cudaError_t launch_needs_stack(unsigned *sum, unsigned count, cudaStream_t stream);
cudaError_t launch_prints(unsigned *sum, unsigned count, cudaStream_t stream);

/*
 * One step of count bodies that all attract each other, of which positions hold x, y, z and mass. Reads
 * one copy of positions and velocities, writes another. on_host does so on the CPU, at once, for the first
 * so many bodies.
 */
cudaError_t launch_nbody(const struct float4 *positions, const struct float4 *velocities,
			 struct float4 *new_positions, struct float4 *new_velocities,
			 unsigned count, float step, float softening, cudaStream_t stream);
void nbody_on_host(const struct float4 *positions, const struct float4 *velocities,
		   struct float4 *new_positions, struct float4 *new_velocities, unsigned count,
		   float step, float softening, unsigned bodies);

#ifdef __cplusplus
}
#endif

/*
 * The host twin of an extern "C" kernel, to be followed by its body; then come the sizes of the
 * kernel's arguments in bytes. The CUDA simulator runs no GPU code: where it finds a function
 * spysim_kernel_<kernel> among the program's exported symbols, it calls that when the kernel ends,
 * with pointers to copies of the arguments, to do the whole grid's work. On a GPU nothing calls it.
 */
#define TWIN(kernel, ...) \
	extern "C" const unsigned spysim_sizes_##kernel[]; \
	const unsigned spysim_sizes_##kernel[] = {__VA_ARGS__, 0}; \
	extern "C" void spysim_kernel_##kernel(void **args, const unsigned grid[3], \
					       const unsigned block[3]); \
	void spysim_kernel_##kernel(void **args, const unsigned *, const unsigned *)
#endif
