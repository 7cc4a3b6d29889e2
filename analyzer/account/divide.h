/*
 * analyzer/account/divide.h: a call's duration, divided into buckets: first what the probes saw, then the call's own
 * work, then what is left by what such a call may have waited for.
 */
#ifndef CUDASPY_DIVIDE_H
#define CUDASPY_DIVIDE_H

#include "account.h"

/* Calls of a class differ: so much more than expected is no loss yet. */
#define SLACK_NS 2000

/* So much of a class' calls is their own work for sure. */
static inline uint64_t divide_own_limit(const struct call_class *class)
{
	uint64_t slack = class->expected_ns / 2 + SLACK_NS;

	return class->expected_ns + (class->spread_ns > slack ? class->spread_ns : slack);
}

/* Fills in f->bucket_ns, which are zero, and f->kernel_ns; adds that to f->expected_ns. False: nobody knows
 * what of it was the call's own work. */
bool divide(struct accounting *a, struct caller *c, const struct record *record,
	    const struct call_class *class, const struct gpu_waits *waits, bool cold,
	    struct finished *f);

/* How long the thread was on a CPU while the call waited for the GPU as it is meant to, at least. */
uint64_t divide_spun(const struct caller *c, const struct finished *f);

#endif
