/*
 * analyzer/detectors/slow_gpu.c: one rank's GPU takes longer than the others' for the same work, and is last nearly always.
 */
#include "table.h"
#include "findings/straggler.h"

static void conclude(const struct ranks *ranks, struct found *found)
{
	struct straggler h = straggler_find(ranks);
	struct finding *finding;

	if (h.by != STRAGGLER_BY_GPU)
		return;
	finding = straggler_finding(&detector_slow_gpu, ranks, &h, found);
	finding->what = arena_printf(found->texts,
				     "%s; it had as much work submitted, and in time, as the "
				     "others: its GPU takes longer for it",
				     straggler_words(found->texts, &h));
	finding->fix = detector_slow_gpu.fix;
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
