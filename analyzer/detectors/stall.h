/*
 * analyzer/detectors/stall.h: how long threads waited for locks that other threads of their process
 * held, summed up for the detectors of such stalls: from the roots of the blame.
 */
#ifndef CUDASPY_STALL_H
#define CUDASPY_STALL_H

#include "blame/blame.h"
#include "findings/detector.h"

/*
 * A stall that took less than this, or a smaller share of the time it is judged by (cost_share.h), is
 * none: any two threads that share a lock meet now and then, more so where there are too few CPUs.
 */
#define STALL_LEAST_NS 1000000

/*
 * Nor are the waits of the start, in calls that began before the process had handed work to a GPU,
 * if such calls of the function are few, of the thread or of all: what is done once, before the
 * work, is where it should be.
 */
#define STALL_STARTING_THREAD 4
#define STALL_STARTING_ALL 10

/* Waits among threads on different GPUs, or on the same. */
struct stall {
	double waited_ns;
	double help_ns[HELP_NOT +
		       1]; /* of waited_ns, what processes would do: enum processes_help */
	/* of waited_ns, while a holder loaded code, which is done once for each kernel and GPU */
	double loading_ns;
	bool loads_again; /* a finding says that code is loaded and unloaded again and again */
	/* of waited_ns, what findings of the calls at the root have told already */
	double charged_ns;
	struct thread_costs costs; /* of waited_ns; the finding's, if there is one */
	struct cost_share cost_share;
	uint64_t calls; /* that waited */
	uint64_t span_ns; /* from the first of them to the last */
	uint64_t waiters, threads, devices, processes;
	bool measured; /* some of it was seen by the probes */
	/* What kept the holders longest. */
	uint32_t fn; /* NO_FUNCTION: no call */
	double fn_ns;
	enum cause cause; /* mostly */
	double cause_ns; /* of fn_ns */
	const struct detector *reported; /* has a finding of that call; NULL: none */
};

/* findings: what has been found so far. */
struct stall stall_sum(const struct accounting *a, bool across_devices, const struct found *found);

/* Is it long enough to be told? Once; if it is, stall_fill comes next. */
bool stall_is_significant(struct stall *stall);

/* "1.2 s of it while one of them was in cudaMallocHost (its own work)". */
const char *stall_mostly(struct arena *texts, const struct trace_set *set,
			 const struct stall *stall);

/* The finding's numbers, and what to do: about the call that kept the holders longest, which is
 * what the gain is of; or `processes`, "a process for each GPU, which …", with what that would
 * save. */
void stall_fill(struct arena *texts, const struct model *model, const struct stall *stall,
		const char *processes, struct finding *finding);

#endif
