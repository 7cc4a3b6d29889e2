/*
 * analyzer/cost/estimate.h: from the numbers of calls in neighbouring windows: how much longer do things take in one kind
 * of them than in another? Knows nothing of traces. docs/COST.md says why it is done like this.
 */
#ifndef CUDASPY_COST_ESTIMATE_H
#define CUDASPY_COST_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A window each of two kinds, one right after the other in random order: how many calls, in which time. */
struct cost_pair {
	double with, with_ns; /* what is asked for: recorded */
	double without, without_ns; /* what it is compared with */
	double weight_ns; /* of the run, for which they stand */
};

enum cost_verdict {
	COST_KNOWN,
	COST_NOTHING, /* there are no pairs */
	COST_FEW_CALLS, /* in most of the time there are too few calls */
	COST_FEW_BLOCKS, /* the run, or what was measured of it, is too short */
	COST_VARIES, /* the program's own rate varies too much */
};

/* Times per call, as parts of what they are without it: 0.01 is 1 % more. */
struct cost_estimate {
	enum cost_verdict verdict;
	double middle, low, high; /* confidence 95 %; valid unless COST_NOTHING, COST_FEW_CALLS */
	size_t pairs; /* there were */
	size_t compared; /* after those with few calls were joined; without idle ones and those that are left out */
	double busy; /* the part of the time with calls: middle, low and high are of all the time */
	size_t left_out; /* between two phases of the program: more than they can have to do with it */
};

/* An interval wider than this to either side, and than half of what is in its middle, says nothing. */
#define COST_WIDEST 0.05

/* Pairs are in the order of time. idle_ns: time besides in which there was no call at all. */
struct cost_estimate cost_estimate(const struct cost_pair *pairs, size_t n, double idle_ns);

/* The same of the time with calls alone: how much longer each call and what follows it takes. */
void cost_estimate_of_busy(struct cost_estimate *e);

/* Two-sided, 95 %, of Student's distribution. For 3 degrees of freedom or more. */
double cost_student(double freedom);

#endif
