/*
 * analyzer/findings/gpu_use.h: how the GPUs of a trace set were used: by which thread, for how long,
 * and whether anything is certain of their idle time. For detectors, prices and the section of GPUs,
 * after the last record.
 */
#ifndef CUDASPY_GPU_USE_H
#define CUDASPY_GPU_USE_H

#include "site.h"
#include "idle/idle.h"
#include "ranks/ranks.h"

/* Its processes' working phases, from the first one's begin to the last one's end. */
struct span gpu_work_span(const struct expect *expect, const struct idle_gpu *gpu);
uint64_t gpu_work_ns(const struct expect *expect, const struct idle_gpu *gpu);

/* Why the calls alone make nothing certain about when it was idle; NULL: no reason. The same, of all that there is: exact
 * times need no calls. */
const char *gpu_why_uncertain(const struct callstats *stats, const struct idle_gpu *gpu);
const char *gpu_why_unknown(const struct callstats *stats, const struct idle_gpu *gpu);

/* The thread that feeds it: of those that make calls with it current, and whose time is known, the one that makes most and does not
 * wait for others of them; NULL: none. */
const struct thread *gpu_feeder(const struct idle *idle, const struct idle_gpu *gpu);

#define GPU_OTHERS_LEAST 0.1 /* of the time: what other processes do is worth a word */

/* Do kernels of processes that are not in the report run on it, by NVML? It has one process that is. */
static inline bool gpu_has_others(const struct idle_gpu *gpu)
{
	return gpu_looks_others(&gpu->looks) >= GPU_OTHERS_LEAST;
}

/* The GPU that only this rank uses; NULL: unknown, or others do, too. */
const struct idle_gpu *gpu_of_rank(const struct idle *idle, const struct rank *rank);

/* Is a wait for the GPU certainly a wait for its own work, and not for another one's, or for a
 * function on the host, or another device? */
bool gpu_waits_prove_work(const struct accounting *a, const struct idle_gpu *gpu);

/* For how long the GPU was at work that a copy of pageable memory may have waited for, at most: by NVML, or all of its work. */
uint64_t gpu_worked_most_ns(const struct idle *idle, const struct idle_gpu *gpu);

/* After the last record, when sums are divided by samples: where NVML says of GPUs that they were idle for longer than the calls
 * prove, the rest of it is charged to what the thread that feeds the GPU did. */
void gpu_estimate_idle(const struct expect *expect, struct idle *idle);

/* Whose time a sum is: a GPU's number; SIZE_MAX: a thread's or a rank's, a GPU's that the report is not about, or of a GPU's time
 * that is known exactly what was certain by the calls, which is not counted twice. */
static inline size_t gpu_of_sum(const struct idle *idle, const struct idle_sum *sum)
{
	size_t gpu = (size_t)(uint32_t)sum->key.owner;
	bool exact = sum->key.owner >= idle_owner_exact(0);

	if (sum->key.owner < idle_owner_gpu(0) || sum->key.owner >= idle_owner_rank(0) ||
	    gpu >= idle->n_gpus || idle->gpus[gpu].left_out ||
	    exact != idle_gpu_is_exact(&idle->gpus[gpu]))
		return SIZE_MAX;
	return gpu;
}

#endif
