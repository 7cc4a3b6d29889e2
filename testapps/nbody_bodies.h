/*
 * testapps/nbody_bodies.h: a system of bodies that attract each other, on the current GPU, and whether it
 * moves as it would on the CPU.
 */
#ifndef TESTAPPS_NBODY_BODIES_H
#define TESTAPPS_NBODY_BODIES_H

#include <cuda_runtime_api.h>

/* A step reads copy 'now' and writes the other. */
struct bodies {
	unsigned count;
	int now;
	struct float4 *positions[2], *velocities[2];
};

/* The same places for every process: a cube of side 1, each body with its part of mass 1, at rest. */
void bodies_init(struct bodies *bodies, unsigned count);
void bodies_release(struct bodies *bodies);

/* Only launches. */
void bodies_step(struct bodies *bodies, cudaStream_t stream);

/*
 * How many of the first so many bodies the last step moved otherwise than the CPU does; what it read is
 * still there. The steps must have ended. Velocities tell most: in one step a wrong one hardly
 * shows in the place.
 */
unsigned bodies_wrong(const struct bodies *bodies, unsigned checked);

#endif
