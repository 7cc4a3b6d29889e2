/*
 * analyzer/account/cpu_pressure.h: how many threads of a host made CUDA calls at a time, and when
 * threads that were ready to go on got no CPU. Were those more threads than the CPUs they may use,
 * they lacked CPUs because of each other; else other programs had the CPUs.
 */
#ifndef CUDASPY_CPU_PRESSURE_H
#define CUDASPY_CPU_PRESSURE_H

#include "base/util.h"

#define CPU_PRESSURE_SLICE_SHIFT 27 /* an eighth of a second */

/*
 * So many slices are open: calls end in the order of time, so what was before them is settled. Of a
 * call that took longer, four minutes and a half, only the last of it counts.
 */
#define CPU_PRESSURE_SLICES 2048

/* Of one host. A thread that makes two calls in a slice with others of its own between them is
 * counted for both: at most. */
struct cpu_pressure {
	struct cpu_pressure_slice {
		uint64_t lacked_ns; /* by threads of all processes */
		uint64_t threads; /* in calls, of all processes */
	} * slices; /* by number modulo CPU_PRESSURE_SLICES */
	uint64_t first, end; /* the numbers of those that are open */
	uint64_t begin_ns; /* of the first one; 0: none yet */
	uint64_t cpus; /* the fewest that any of its processes may use; 0: unknown */
	uint64_t lacked_ns,
		fitting_ns; /* in settled slices; of that, where there was a CPU for each */
	/* Of a part of a set: others of the host are in other parts. Settled slices are kept; owned. */
	bool apart;
	struct cpu_pressure_settled {
		uint64_t number;
		struct cpu_pressure_slice slice;
	} * settled;
	size_t n_settled;
};

void cpu_pressure_release(struct cpu_pressure *pressure);

/* The number of that time's slice. The first one stands for all that was before it. */
static inline uint64_t cpu_pressure_slice(const struct cpu_pressure *pressure, uint64_t ns)
{
	return (ns - min_u64(ns, pressure->begin_ns)) >> CPU_PRESSURE_SLICE_SHIFT;
}

/* When a slice begins. */
static inline uint64_t cpu_pressure_slice_ns(const struct cpu_pressure *pressure, uint64_t slice)
{
	uint64_t last = (UINT64_MAX - pressure->begin_ns) >> CPU_PRESSURE_SLICE_SHIFT;

	return slice > last ? UINT64_MAX : pressure->begin_ns + (slice << CPU_PRESSURE_SLICE_SHIFT);
}

/* A thread was in a call from one slice to another; `last`: of the thread, how many slices it has
 * been counted in or is past. */
void cpu_pressure_add(struct cpu_pressure *pressure, uint64_t *last, uint64_t from, uint64_t to);

/* A thread that was ready got no CPU for so long. */
void cpu_pressure_lack(struct cpu_pressure *pressure, uint64_t slice, uint64_t lacked_ns);

/* After the last call. */
void cpu_pressure_settle(struct cpu_pressure *pressure);

/* Adds the settled slices of some parts of its host's. */
void cpu_pressure_join(struct cpu_pressure *pressure, const struct cpu_pressure *const *parts,
		       size_t n);

/* Then: did threads mostly lack a CPU while no more of them made calls than there were CPUs for
 * them? Of n hosts together. */
bool cpu_pressure_fits(const struct cpu_pressure *pressure, size_t n);

#endif
