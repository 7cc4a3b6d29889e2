/*
 * analyzer/idle/progress.h: how far a process had come in its work when time passed: how much of a sum lies in the first part of
 * what it handed to GPUs. By what was handed over and not by the clock, because what is done once may take longer than all the
 * work behind it.
 */
#ifndef CUDASPY_IDLE_PROGRESS_H
#define CUDASPY_IDLE_PROGRESS_H

#include <stdint.h>

#define PROGRESS_PARTS 32

/* Nanoseconds in parts of so many submissions each. Begins with zeros. */
struct progress {
	uint64_t each, ns[PROGRESS_PARTS];
};

/* When the process had handed over so much. */
void progress_add(struct progress *progress, uint64_t submissions, uint64_t ns);

/* The same in the same places, in proportion: ns in all. */
void progress_add_of(struct progress *progress, const struct progress *from, uint64_t ns);

/* How much of it lies before that, as a part of all: 0 to 1. A part that lies there in part counts as what lies behind it. */
double progress_before(const struct progress *progress, uint64_t submissions);

#endif
