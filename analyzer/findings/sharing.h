/*
 * analyzer/findings/sharing.h: which processes used which GPU, when, and with which others.
 *
 * GPUs are the same if their UUIDs are; a process uses one from the first to the last of its calls
 * that allocate, copy, launch or work on a stream there. Whether a process is a client of MPS is
 * the driver's own answer; drivers that give none are taken to follow the control pipe.
 */
#include "account/callstats.h"

#ifndef CUDASPY_SHARING_H
#define CUDASPY_SHARING_H

#define SLICED_LEAST_NS 50000000
#define SLICED_LEAST_PART 10 /* of the time that a process uses the GPU */

/* A process used a GPU for use_ns, and another one took turns with it for turns_ns of that. Two that meet while one begins
 * and the other ends do not share the GPU to speak of. */
static inline bool sharing_is_sliced(uint64_t turns_ns, uint64_t use_ns)
{
	return turns_ns >= SLICED_LEAST_NS && turns_ns >= use_ns / SLICED_LEAST_PART;
}

/* One process on one GPU. */
struct tenant {
	const struct process *process;
	const struct gpu *gpu;
	const struct device_use *use;
	bool client; /* of MPS */
};

/* By GPU, then in the order of their beginnings; the caller frees the array. */
struct tenant *tenants_find(const struct callstats *stats, size_t *n_tenants);

/* Where the tenants of tenants[begin]'s GPU end. */
size_t tenants_of_gpu(const struct tenant *tenants, size_t n, size_t begin);

/* Of two on one GPU: two processes that used it at the same time? */
bool tenants_overlap(const struct tenant *a, const struct tenant *b);

/* Clients of one MPS server run at the same time; any other two take turns. */
bool tenants_together(const struct tenant *a, const struct tenant *b);

/* How long any other was there. tenants: all of its GPU, in the order of tenants_find. */
uint64_t tenant_shared_ns(const struct tenant *self, const struct tenant *tenants, size_t n);

/* How long a process waited in cuInit for another user's MPS server, at most; 0: it did not. */
uint64_t sharing_turn_ns(const struct callstats *stats, const struct process *process);

#endif
