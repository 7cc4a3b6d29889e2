/*
 * analyzer/idle/progress.h: how far a process had come in its work when time passed: how much of a sum lies before the time at which
 * a thread had done the first part of its calls. By calls and not by the clock, because what is done once may take longer than all
 * the work behind it; and by one thread's, because beside it others may make more calls to find out which code is the fastest than
 * there are in all the work.
 */
#ifndef CUDASPY_IDLE_PROGRESS_H
#define CUDASPY_IDLE_PROGRESS_H

#include <stdint.h>

#define PROGRESS_PARTS 32

/* Nanoseconds in parts of so many units each, a power of two: of time, say. Begins with zeros. */
struct progress {
	uint64_t each, ns[PROGRESS_PARTS];
};

void progress_add(struct progress *progress, uint64_t at, uint64_t ns);

/* The same in the same places, in proportion: ns in all. */
void progress_add_of(struct progress *progress, const struct progress *from, uint64_t ns);

/* How much of it lies before that, as a part of all: 0 to 1. A part that lies there in part counts as what lies behind it. */
double progress_before(const struct progress *progress, uint64_t at);

/* Behind the last of it; 0: there is nothing. */
uint64_t progress_end(const struct progress *progress);

#define PROGRESS_MARKS 16

/* When a count that only grows had come to each so many. Begins with zeros. */
struct progress_clock {
	uint64_t each, ns[PROGRESS_MARKS];
};

void progress_clock_see(struct progress_clock *clock, uint64_t count, uint64_t ns);

/* When it had come so far: the last mark before that; 0: none. */
uint64_t progress_clock_at(const struct progress_clock *clock, uint64_t count);

#endif
