/*
 * kernels/nbody.cu: one step of n bodies that all attract each other. Every thread has one body and
 * sums what all the others do to it; a block reads them together, a tile at a time, into shared memory.
 * Positions are x, y, z and mass, velocities x, y, z and nothing; a step reads one copy of both and
 * writes another, so that no thread sees a body half-way.
 */
#include "kernels.h"

#include <math.h>

#define TILE 256

/* What a body at 'to' does to one at 'at', added to sum: 20 floating-point operations as n-body
 * benchmarks count them. Softening keeps it finite where two bodies meet, and of a body with itself 0. */
static __host__ __device__ __forceinline__ float3 attract(float3 sum, float4 at, float4 to,
							  float softening)
{
	float x = to.x - at.x, y = to.y - at.y, z = to.z - at.z;
	float square = x * x + y * y + z * z + softening;
#ifdef __CUDA_ARCH__
	float inverse = rsqrtf(square);
#else
	float inverse = 1 / sqrtf(square);
#endif
	float pull = to.w * inverse * inverse * inverse;

	sum.x += x * pull;
	sum.y += y * pull;
	sum.z += z * pull;
	return sum;
}

/* The new velocity first, then the place it leads to. */
static __host__ __device__ __forceinline__ void move(float4 *position, float4 *velocity,
						     float3 pull, float step)
{
	velocity->x += pull.x * step;
	velocity->y += pull.y * step;
	velocity->z += pull.z * step;
	position->x += velocity->x * step;
	position->y += velocity->y * step;
	position->z += velocity->z * step;
}

extern "C" __global__ void __launch_bounds__(TILE)
	nbody(const float4 *positions, const float4 *velocities, float4 *new_positions,
	      float4 *new_velocities, unsigned count, float step, float softening)
{
	__shared__ float4 tile[TILE];
	const float4 nobody = {0, 0, 0, 0}; /* without mass: it attracts none */
	unsigned self = blockIdx.x * TILE + threadIdx.x, first, other;
	float4 position = self < count ? positions[self] : nobody;
	float3 pull = {0, 0, 0};

	for (first = 0; first < count; first += TILE) {
		other = first + threadIdx.x;
		tile[threadIdx.x] = other < count ? positions[other] : nobody;
		__syncthreads();
#pragma unroll 32
		for (other = 0; other < TILE; other++)
			pull = attract(pull, position, tile[other], softening);
		__syncthreads();
	}
	if (self < count) {
		float4 velocity = velocities[self];

		move(&position, &velocity, pull, step);
		new_positions[self] = position;
		new_velocities[self] = velocity;
	}
}

extern "C" cudaError_t launch_nbody(const float4 *positions, const float4 *velocities,
				    float4 *new_positions, float4 *new_velocities, unsigned count,
				    float step, float softening, cudaStream_t stream)
{
	nbody<<<(count + TILE - 1) / TILE, TILE, 0, stream>>>(
		positions, velocities, new_positions, new_velocities, count, step, softening);
	return cudaGetLastError();
}

extern "C" void nbody_on_host(const float4 *positions, const float4 *velocities,
			      float4 *new_positions, float4 *new_velocities, unsigned count,
			      float step, float softening, unsigned bodies)
{
	unsigned self, other;

	for (self = 0; self < bodies; self++) {
		float3 pull = {0, 0, 0};

		for (other = 0; other < count; other++)
			pull = attract(pull, positions[self], positions[other], softening);
		new_positions[self] = positions[self];
		new_velocities[self] = velocities[self];
		move(&new_positions[self], &new_velocities[self], pull, step);
	}
}

TWIN(nbody, sizeof(float4 *), sizeof(float4 *), sizeof(float4 *), sizeof(float4 *),
     sizeof(unsigned), sizeof(float), sizeof(float))
{
	unsigned count = *(unsigned *)args[4];

	nbody_on_host(*(float4 **)args[0], *(float4 **)args[1], *(float4 **)args[2],
		      *(float4 **)args[3], count, *(float *)args[5], *(float *)args[6], count);
}
