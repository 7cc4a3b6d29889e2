/*
 * analyzer/account/divide.h: a call's duration, divided into buckets: first what the probes saw,
 * then the call's own work, then what is left by what such a call may have waited for.
 */
#ifndef CUDASPY_DIVIDE_H
#define CUDASPY_DIVIDE_H

#include "account.h"

/* Calls of a class differ: so much more than expected is no loss yet. */
#define SLACK_NS 2000

static inline uint64_t divide_limit(uint64_t expected_ns, uint64_t spread_ns)
{
	uint64_t slack = expected_ns / 2 + SLACK_NS;

	return expected_ns + (spread_ns > slack ? spread_ns : slack);
}

/* So much of a class' calls is their own work certainly; the same after a pause of the thread. */
static inline uint64_t divide_own_limit(const struct call_class *class)
{
	return divide_limit(class->expected_ns, class->spread_ns);
}

static inline uint64_t divide_rested_limit(const struct call_class *class)
{
	uint64_t limit_ns = divide_own_limit(class), rested_ns;

	rested_ns = divide_limit(class->rested_ns, class->rested_spread_ns);
	return class->rested_ns && rested_ns > limit_ns ? rested_ns : limit_ns;
}

/* Fills in f->bucket_ns, which are zero, and f->kernel_ns; adds that to f->expected_ns. False: what
 * of it was the call's own work is unknown. */
bool divide(struct accounting *a, struct thread_account *c, const struct record *record,
	    const struct call_class *class, const struct gpu_waits *waits, bool cold,
	    struct completed_call *f);

/* How long the thread was on a CPU while the call waited for the GPU as it is meant to, at
 * least. */
uint64_t divide_busy_wait(const struct thread_account *c, const struct completed_call *f);

#endif
