/*
 * analyzer/detectors/slow_gpu.c: one rank's GPU takes longer than the others' for the same work, and is last nearly always.
 */
#include "table.h"
#include "findings/gpu_use.h"
#include "findings/straggler.h"
#include "text/text.h"

static void conclude(const struct ranks *ranks, struct found *found)
{
	struct straggler h = straggler_find(ranks);
	const struct idle_gpu *gpu;
	struct finding *finding;

	if (h.by != STRAGGLER_BY_GPU)
		return;
	finding = straggler_finding(&detector_slow_gpu, ranks, &h, found);
	finding->what = arena_printf(found->texts,
				     "%s; it had as much work submitted, and in time, as the "
				     "others: its GPU takes longer for it",
				     straggler_words(found->texts, &h));
	finding->fix = detector_slow_gpu.fix;
	gpu = gpu_of_rank(ranks->idle, h.rank);
	if (!gpu || !gpu_has_others(gpu))
		return;
	finding->what = arena_printf(
		found->texts,
		"%s; as NVML says, kernels of other processes ran on it for %s of "
		"the time",
		finding->what, text_percent(found->texts, gpu_looks_others(&gpu->looks), 1));
	finding->fix = "Take the other processes off that GPU (nvidia-smi shows them), or give the "
		       "job GPUs that it has for itself.";
}

const struct detector detector_slow_gpu = {
	.id = "slow-gpu",
	.title = "one rank's GPU takes longer for the same work, and all ranks wait for it",
	.sees = "As straggler-rank, but the last rank's thread had submitted its operations in "
		"time, and as many other operations of the GPU as the others' threads since the "
		"collective before.",
	.blind = "Whether kernels of the same number have the same work: uneven data in them "
		 "looks the same. With --gpu it is known how long they ran.",
	.fix = "Compare clocks, temperature and power limit of that GPU with the others' "
	       "(nvidia-smi -q -d PERFORMANCE,CLOCK), and see whether others use it; else take "
	       "it out of the job.",
	.conclude_ranks = conclude,
};
