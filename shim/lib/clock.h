/*
 * shim/lib/clock.h: the clock of a trace: the CPU's invariant counter, or CLOCK_MONOTONIC where
 * there is none. spy_clock runs twice in each traced call.
 */
#ifndef CUDASPY_SHIM_CLOCK_H
#define CUDASPY_SHIM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include "arch/processor.h"

extern bool spy_clock_is_counter;

uint64_t spy_clock_monotonic(void);

/* Now, in cycles (spy_clock_is_counter) or nanoseconds. */
static inline uint64_t spy_clock(void)
{
	if (__builtin_expect(spy_clock_is_counter, 1))
		return spy_counter();
	return spy_clock_monotonic();
}

/* The clock against the system's, read as close together as can be. */
struct spy_clock_pair {
	uint64_t clock;
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
};

void spy_clock_read_pair(struct spy_clock_pair *pair);

/* Chooses the clock; when the library is loaded. force_monotonic: the user asked for it. */
void spy_clock_init(bool force_monotonic);

/* Cycles a second between two pairs, 0 if they are too close together (< 1 ms). */
uint64_t spy_clock_frequency(const struct spy_clock_pair *from, const struct spy_clock_pair *to);

#endif
