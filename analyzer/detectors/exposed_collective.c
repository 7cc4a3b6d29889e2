/*
 * analyzer/detectors/exposed_collective.c: GPUs do nothing else while collective operations move their data.
 */
#include "table.h"
#include "findings/rank_words.h"
#include "text/text.h"

#define EXPOSED_LEAST_PART 5 /* of the time that is known of the GPU */

/* Time in which the rank's GPU did nothing but move data of collectives: waits for other ranks have other findings. Where launches
 * wait for their kernels, nothing can run beside them. */
static uint64_t exposed_ns(const struct rank *rank)
{
	return rank->exposed_known && !rank->process->trace->cuda.launches_block
		       ? rank->exposed_ns - min_u64(rank->wait_ns, rank->exposed_ns)
		       : 0;
}

static void conclude(const struct ranks *ranks, struct found *found)
{
	struct arena *texts = found->texts;
	const struct rank *most = NULL;
	struct finding *finding;
	uint64_t sum_ns = 0;

	for (size_t i = 0; i < ranks->n; i++) {
		const struct rank *rank = ranks->all[i];

		sum_ns += exposed_ns(rank);
		if (exposed_ns(rank) && (!most || exposed_ns(rank) > exposed_ns(most)))
			most = rank;
	}
	if (!most || exposed_ns(most) < rank_job_ns(most) / EXPOSED_LEAST_PART)
		return;
	finding = detector_add(&detector_exposed_collective, found);
	finding->origin.process = most->process;
	finding->origin.processes = (uint32_t)ranks->n;
	finding->count = most->timed;
	finding_set_cost(finding, exposed_ns(most));
	finding->cost.idle_gpu_known = true;
	finding->cost.idle_gpu_ns = sum_ns;
	finding->what = arena_printf(
		texts,
		"collectives run with nothing beside them: for %s, %s of %s, the GPU of %s did "
		"nothing but take part in them, without its waits for other ranks; %s of its "
		"collectives' time ran beside its own work",
		text_time(texts, exposed_ns(most)),
		text_percent(texts, (double)exposed_ns(most), (double)rank_job_ns(most)),
		text_time(texts, rank_job_ns(most)), text_rank_name(texts, most),
		text_percent(texts, (double)(most->collective_ns - most->exposed_ns),
			     (double)most->collective_ns));
}

const struct detector detector_exposed_collective = {
	.id = "exposed-collective",
	.title = "GPUs do nothing else while collective operations move their data",
	.sees = "With --gpu: GPUs of ranks on which, for a fifth of the time or more, nothing "
		"ran but kernels of NCCL, waits for other ranks aside.",
	.blind = "Without --gpu nothing. Work of other processes on the GPU.",
	.fix = "Let them run beside the computation: PyTorch's DDP with smaller buckets "
	       "(bucket_cap_mb), FSDP with prefetch (backward_prefetch, forward_prefetch), "
	       "async_op=True and wait() as late as can be; larger batches, fewer bytes (bf16 "
	       "gradients), accumulate gradients over several steps.",
	.conclude_ranks = conclude,
};
