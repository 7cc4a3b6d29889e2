/*
 * analyzer/findings/idle_price.h: the second price of findings: for how long GPUs certainly had
 * nothing to do because of them. For findings and for detectors of the whole run, after the last
 * record.
 *
 * Idle time is charged to what the thread did that feeds the GPU (idle/idle.h). What it did in a
 * call is the price of the finding that has calls at that place, but no more than these took; what
 * it did on a CPU right behind a call the price of a finding whose detector says so (idle_behind),
 * but no more than its cost; and so is what a library did between two of its calls, of a finding that says what that library
 * makes again and again (framework_makes). What is left is there for detectors of the whole run. So each
 * nanosecond is the price of one finding at most.
 */
#ifndef CUDASPY_IDLE_PRICE_H
#define CUDASPY_IDLE_PRICE_H

#include "finding.h"
#include "idle/idle.h"

/* Of the findings of calls, and before all else here. Those of a process of whose GPUs nothing is
 * certain have no such price. One that lies behind the work of GPUs without time to spare may be
 * harmless (free_behind_work), and says so. What cannot have been a wait for a GPU's work is gained
 * by its cure (waits_bounded). */
void idle_price_sites(const struct findings *f, const struct idle *idle, struct finding *findings,
		      size_t n, struct arena *texts);

/* What of a sum no finding has; 0 if it is a thread's, or its GPU's idle time is not certain. */
uint64_t idle_price_left(const struct idle *idle, const struct idle_sum *sum);

/* For a finding of the whole run: all that is left of a process's GPUs that was charged to these
 * causes, 1 << enum idle_cause or-ed, is its price. */
void idle_price_take(const struct idle *idle, struct finding *finding,
		     const struct process *process, uint64_t causes);

/* So much of what is left of a process's GPU might not be there with the cure of a finding, whatever it was charged to: it is
 * the price of none. Returns which part of it that is: 0 to 1. */
double idle_price_withhold(const struct idle *idle, size_t gpu, const struct process *process,
			   uint64_t ns);

/* idle_price_take of one sum, of a GPU; a part of what is left of it: 1 is all. */
void idle_price_take_part(const struct idle *idle, struct finding *finding, struct idle_sum *sum,
			  double part);

#endif
