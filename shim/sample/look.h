/*
 * shim/sample/look.h: one look at one thread. On the sampler's thread.
 */
#ifndef CUDASPY_SHIM_LOOK_H
#define CUDASPY_SHIM_LOOK_H

#include "sample/running.h"
#include "stack/python.h"
#include "state/thread.h"

/* What is known of a thread that is looked at again and again, by its slot. Zeros at first. */
struct spy_looked {
	uint32_t tid;
	uint64_t calls; /* that it had made */
	uint64_t cpu_ns; /* the time it had been on a CPU; 0: it ran, or is unknown */
	struct spy_python_guess python;
	struct spy_running running;
	uint64_t looked_ns; /* CLOCK_MONOTONIC: the last look that found it running */
	struct spy_sample {
		uint16_t state; /* enum spy_sample_state */
		uint32_t place, holder;
		uint64_t weight_us; /* 0: nothing to be written */
		uint64_t seen; /* cycles: the last of these looks */
	} sampled;
	uint64_t written; /* cycles: when it was written last */
};

struct spy_places;

/* Looks at the thread of the slot, which stands for weight_us of its time, and writes what there is to be written into the
 * sampler's stream. */
void spy_look(struct spy_places *places, struct spy_looked *looked, struct spy_thread *thread,
	      uint64_t weight_us);

#endif
