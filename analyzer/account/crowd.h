/*
 * analyzer/account/crowd.h: how many threads made CUDA calls at a time, and when threads that were ready to go on
 * got no CPU. Were those more threads than the CPUs they may use, they stood in each other's way; else
 * somebody else had the CPUs.
 */
#ifndef CUDASPY_CROWD_H
#define CUDASPY_CROWD_H

#include "base/util.h"

struct model;

#define CROWD_SLICE_SHIFT 27 /* an eighth of a second */

/* A thread that makes two calls in a slice with others of its own between them is counted for both: at most. */
struct crowd {
	struct crowd_slice {
		uint64_t lacked_ns; /* by threads of all processes */
		uint64_t threads; /* in calls, of all processes */
	} * slices;
	size_t n;
	uint64_t begin_ns; /* of the first one; 0: none yet */
};

void crowd_release(struct crowd *crowd);

#define CROWD_SLICES 65536 /* two hours and more; a damaged trace may have any times */

/* Of that time. The first one stands for all that was before it, the last one for all that comes after it. */
static inline uint64_t crowd_slice(const struct crowd *crowd, uint64_t ns)
{
	return least((ns - least(ns, crowd->begin_ns)) >> CROWD_SLICE_SHIFT, CROWD_SLICES - 1);
}

/* A thread was in a call from one slice to another; `last`: of the thread, how many slices it has been counted
 * in or is past. */
void crowd_add(struct crowd *crowd, uint64_t *last, uint64_t from, uint64_t to);

/* A thread that was ready got no CPU for so long. */
void crowd_lack(struct crowd *crowd, uint64_t slice, uint64_t lacked_ns);

/* The fewest CPUs that any of the processes may use; 0: nobody knows. */
uint64_t crowd_cpus(const struct model *model);

/* Did threads mostly lack a CPU while no more of them made calls than there were CPUs for them? */
bool crowd_fits(const struct crowd *crowd, const struct model *model);

#endif
