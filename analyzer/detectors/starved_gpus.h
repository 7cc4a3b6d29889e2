/*
 * analyzer/detectors/starved_gpus.h: GPUs that have nothing to do for a good part of their work, for reasons of one kind: what the
 * detectors of such reasons have in common (starved_gpus.c). Each nanosecond of idle time is the price of one finding.
 */
#ifndef CUDASPY_DETECTORS_STARVED_GPUS_H
#define CUDASPY_DETECTORS_STARVED_GPUS_H

#include "findings/detector.h"
#include "idle/callers.h"
#include "idle/idle.h"

#define STARVED_LEAST_PART 5 /* of the GPU's working phase */

#define IDLE_CAUSE_BIT(name) (1ull << IDLE_##name)

/* Of a GPU, or of the GPUs of a process that are cases. */
struct starved_gpus {
	uint64_t ns, beside_ns, longest_ns; /* ns: without what is beside */
	uint64_t work_ns, gaps, gpus;
	const struct idle_sum *most; /* the largest sum of the function with the most of it, … */
	uint64_t most_ns; /* … and how much that function has */
	bool several_lines; /* … at more than one line */
	struct in_c in_c; /* … and what these call in C */
	const struct idle_sum *in_python; /* the largest sum with a stack in Python */
	const struct idle_callback
		*callback; /* by which a framework calls functions of the program; NULL: none … */
	uint64_t callback_ns; /* … and how much of ns passed in that */
	const struct idle_gpu *gpu; /* one of them */
	uint64_t by_cause[IDLE_CAUSE_COUNT];
	/* What was done at the beginning of the work alone, and is no part of all that: the causes, 1 << cause or-ed, and the time. */
	uint64_t once, once_ns;
	struct thread_costs costs;
};

/* The reasons of one kind, and what is said of them. */
struct starved_gpus_kind {
	const struct detector *detector;
	uint64_t causes; /* IDLE_CAUSE_BIT, or-ed */
	uint64_t beside; /* are no case by themselves, but named beside one */
	const char *(*who_keeps)(const struct starved_gpus *h); /* "the host keeps" */
	const char *of_thread; /* before the thread's name: what of it was late */
	const char *(*cure)(const struct trace_set *set, struct arena *texts,
			    const struct starved_gpus *h);
	void (*remark)(const struct starved_gpus *h, struct finding *finding); /* NULL: nothing */
};

/* The cause with the most of the time. */
enum idle_cause starved_gpus_cause(const struct starved_gpus *h);

/* By which a framework called the program for most of it; NULL: for less. */
const struct idle_callback *starved_gpus_callback(const struct starved_gpus *h);

/* Were most of it waits for another thread, while one ran lines of Python that are known? */
bool starved_gpus_ran_meanwhile(const struct starved_gpus *h);

/* Where these lines were, as in_c_most has it; unknown where the function has no more than half of the time. */
struct in_c_most starved_gpus_in_c(const struct starved_gpus *h);

/* Are these loops that the CPU's cores share? */
bool starved_gpus_is_parallel(const struct starved_gpus *h);

/* A finding for each process that has such GPUs; its price is what is left of their idle time with these causes. */
void starved_gpus_conclude(const struct starved_gpus_kind *kind, const struct idle *idle,
			   struct found *found);

#endif
