/*
 * analyzer/account/cpu_pressure.h: how many threads of a host made CUDA calls at a time, and when
 * threads that were ready to go on got no CPU. A CPU that such a thread may use is not idle: either
 * the host's recorded processes had it or other programs, as these processes' own time on CPUs says.
 * Where that is not known: were those more threads than the CPUs they may use, they lacked CPUs
 * because of each other; else other programs had the CPUs.
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
		uint64_t ran_ns; /* all processes on CPUs, */
		uint64_t known_ns; /* in so much of the slice */
	} * slices; /* by number modulo CPU_PRESSURE_SLICES */
	uint64_t first, end; /* the numbers of those that are open */
	uint64_t begin_ns; /* of the first one; 0: none yet */
	uint64_t cpus; /* the fewest that any of its processes may use; 0: unknown */
	uint64_t lacked_ns, fitting_ns; /* in settled slices; of that, because of other programs */
	/* Of lacked_ns, where the processes' time on CPUs is known; and that times their part of the CPUs. */
	uint64_t known_lacked_ns, own_lacked_ns;
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

/* A process's time on CPUs, as it was looked at now and then. Begin with zeros. */
struct cpu_use {
	uint32_t ran; /* in SPY_RAN_UNIT, at the last look; 0: there was none */
	uint64_t looked_ns; /* when that was */
	uint64_t slice, known_ns; /* how much is known of that slice */
};

void cpu_pressure_ran(struct cpu_pressure *pressure, struct cpu_use *use, uint64_t ns,
		      uint32_t ran);

/* After the last call. */
void cpu_pressure_settle(struct cpu_pressure *pressure);

/* Adds the settled slices of some parts of its host's. */
void cpu_pressure_join(struct cpu_pressure *pressure, const struct cpu_pressure *const *parts,
		       size_t n);

/* Then: did threads mostly lack a CPU because other programs had it? Of n hosts together. */
bool cpu_pressure_fits(const struct cpu_pressure *pressure, size_t n);

/* How much of the CPUs' time the host's recorded processes had meanwhile, in hundredths; 0: unknown. */
unsigned int cpu_pressure_own_percent(const struct cpu_pressure *pressure);

#endif
