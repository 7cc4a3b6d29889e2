/*
 * analyzer/account/run_ahead.h: how much sooner a program would have been whose launches wait for their kernels
 * (CUDA_LAUNCH_BLOCKING), had they not: the host hands over the next work while the GPU has some left, and waits only where the
 * program waits for the GPU in any case.
 *
 * Each of its launches and waits is made again, in a run without the variable, in which the GPU does one kernel after the other.
 * How long a kernel ran is known in bounds: no longer than its launch, and for as long as that was a wait for the GPU. So is what
 * a launch costs that does not wait: no more than the rest of it. Questions whether work is done are no waits here, though a program
 * may ask until it is.
 */
#ifndef CUDASPY_RUN_AHEAD_H
#define CUDASPY_RUN_AHEAD_H

#include "expect/signatures.h"

struct completed_call;

/* What a launch takes that waits for nothing, at least. */
#define RUN_AHEAD_LAUNCH_NS 2000

/* So long may calls have waited for their kernels, at most; own_ns, gpu_ns: of their buckets. */
static inline uint64_t run_ahead_waited_most(uint64_t gpu_ns, uint64_t own_ns, uint64_t calls)
{
	return gpu_ns + own_ns - min_u64(own_ns, calls * RUN_AHEAD_LAUNCH_NS);
}

#define RUN_AHEAD_DEVICES 256

/* The other run so far. Its clock is the recorded one less saved_ns. */
struct run_without {
	uint64_t saved_ns; /* so much sooner is the host */
	int64_t done_ns
		[RUN_AHEAD_DEVICES]; /* by that clock: when each GPU has done what it was given */
};

/* Of a process: the run that gains least, and that which gains most. */
struct run_ahead {
	struct run_without least, most;
};

/* A call of such a process has returned. ahead: NULL: none yet; owned by the caller. */
void run_ahead_see(struct run_ahead **ahead, const struct call_signature *signature,
		   const struct completed_call *call);

/* What is gained until the end, where the host waits for what is left. */
uint64_t run_without_saved_ns(const struct run_without *run, uint64_t end_ns);

#endif
