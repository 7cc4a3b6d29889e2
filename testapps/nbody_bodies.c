/*
 * testapps/nbody_bodies.c: bodies on the GPU: see nbody_bodies.h. Called from a worker's thread, on its device.
 */
#include "nbody_bodies.h"
#include "common.h"
#include "../kernels/kernels.h"

#include <math.h>
#include <stdlib.h>

#define STEP 0.001f
#define SOFTENING 0.001f
/* A velocity may be off by so much of the greatest change of one in the step; and anything by what rounding in
 * another order makes of it. */
#define TOLERANCE 1e-3f
#define ROUNDING 1e-6f

void bodies_init(struct bodies *bodies, unsigned count)
{
	struct float4 *positions = allocate(count, sizeof(*positions));
	unsigned i, seed = 1;
	int copy;

	for (i = 0; i < count; i++) {
		float place[3];
		int axis;

		for (axis = 0; axis < 3; axis++) {
			seed = seed * 1664525 + 1013904223;
			place[axis] = (float)(seed >> 8) / (1 << 24);
		}
		positions[i] = (struct float4){place[0], place[1], place[2], 1.0f / (float)count};
	}
	*bodies = (struct bodies){.count = count};
	for (copy = 0; copy < 2; copy++) {
		size_t bytes = count * sizeof(*positions);

		CUDA_CHECK(cudaMalloc((void **)&bodies->positions[copy], bytes));
		CUDA_CHECK(cudaMalloc((void **)&bodies->velocities[copy], bytes));
		CUDA_CHECK(cudaMemcpy(bodies->positions[copy], positions, bytes,
				      cudaMemcpyHostToDevice));
		CUDA_CHECK(cudaMemset(bodies->velocities[copy], 0, bytes));
	}
	free(positions);
}

void bodies_release(struct bodies *bodies)
{
	int copy;

	for (copy = 0; copy < 2; copy++) {
		CUDA_CHECK(cudaFree(bodies->positions[copy]));
		CUDA_CHECK(cudaFree(bodies->velocities[copy]));
	}
}

void bodies_step(struct bodies *bodies, cudaStream_t stream)
{
	int now = bodies->now, next = !now;

	CUDA_CHECK(launch_nbody(bodies->positions[now], bodies->velocities[now],
				bodies->positions[next], bodies->velocities[next], bodies->count,
				STEP, SOFTENING, stream));
	bodies->now = next;
}

static struct float4 *fetched(const struct float4 *device, unsigned count)
{
	struct float4 *values = allocate(count, sizeof(*values));

	CUDA_CHECK(cudaMemcpy(values, device, count * sizeof(*values), cudaMemcpyDeviceToHost));
	return values;
}

static float distance(struct float4 a, struct float4 b)
{
	return sqrtf((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) +
		     (a.z - b.z) * (a.z - b.z));
}

/* Not so either if a number is none. */
static bool near(struct float4 got, struct float4 wanted, float tolerance)
{
	float length = distance(wanted, (struct float4){0});

	return distance(got, wanted) <= tolerance + ROUNDING * (1 + length);
}

unsigned bodies_wrong(const struct bodies *bodies, unsigned checked)
{
	int now = bodies->now, before = !now;
	struct float4 *positions = fetched(bodies->positions[before], bodies->count);
	struct float4 *velocities = fetched(bodies->velocities[before], checked);
	struct float4 *positions_got = fetched(bodies->positions[now], checked);
	struct float4 *velocities_got = fetched(bodies->velocities[now], checked);
	struct float4 *moved = allocate(checked, sizeof(*moved));
	struct float4 *faster = allocate(checked, sizeof(*faster));
	float change = 0, tolerance;
	unsigned i, wrong = 0;

	nbody_on_host(positions, velocities, moved, faster, bodies->count, STEP, SOFTENING,
		      checked);
	for (i = 0; i < checked; i++)
		change = fmaxf(change, distance(faster[i], velocities[i]));
	tolerance = TOLERANCE * change;
	for (i = 0; i < checked; i++)
		wrong += !near(velocities_got[i], faster[i], tolerance) ||
			 !near(positions_got[i], moved[i], tolerance);
	free(positions);
	free(velocities);
	free(positions_got);
	free(velocities_got);
	free(moved);
	free(faster);
	return wrong;
}
