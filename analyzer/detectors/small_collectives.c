/*
 * analyzer/detectors/small_collectives.c: many small collective operations in a row that could be one.
 */
#include "table.h"
#include "ranks/ranks.h"
#include "text/text.h"
#include "trace/names.h"

#define SMALL_BYTES (64 << 10)
#define SMALL_LEAST 100 /* that follow one of the same kind, with nothing between */
#define SMALL_LEAST_PART 50 /* of the job's time */

static void conclude(const struct ranks *ranks, struct found *found)
{
	struct arena *texts = found->texts;
	const struct rank_group *most = NULL;
	const struct rank *first = ranks->n ? ranks->all[0] : NULL;
	uint64_t most_ns = 0, each_ns;
	struct finding *finding;

	for (size_t i = 0; i < ranks->n_groups; i++) {
		const struct rank_group *g = &ranks->groups[i];
		uint64_t ns = g->operations ? g->transfer_ns / g->operations * g->in_a_row : 0;

		if (g->bytes && g->bytes <= SMALL_BYTES && g->in_a_row >= SMALL_LEAST &&
		    g->in_a_row >= g->operations / 2 && ns > most_ns) {
			most = g;
			most_ns = ns;
		}
	}
	if (!most || !first || most_ns < rank_job_ns(first) / SMALL_LEAST_PART)
		return;
	each_ns = most->transfer_ns / most->operations;
	finding = detector_add(&detector_small_collectives, found);
	finding->origin.process = first->process;
	finding->origin.processes = (uint32_t)ranks->n;
	finding->count = most->in_a_row;
	finding->bytes = most->bytes * most->in_a_row;
	finding_set_cost(finding, most_ns);
	finding->what = arena_printf(texts,
				     "%s %s of %llu bytes follow one of the same kind, with no "
				     "other work between: each takes %s, mostly to begin and end",
				     text_count(texts, most->in_a_row, "operation"),
				     name_nccl_func(most->func), (unsigned long long)most->bytes,
				     text_time(texts, each_ns));
}

const struct detector detector_small_collectives = {
	.id = "small-collectives",
	.title = "many small collective operations in a row could be one",
	.sees = "A hundred operations or more of one function and size, up to 64 KiB, in one "
		"communicator, each right behind another one with nothing else submitted "
		"between, for a fiftieth of the job's time.",
	.blind = "Whether the next one needs the result of the one before.",
	.fix = "Put the values into one buffer and send that: PyTorch's all_reduce_coalesced, "
	       "or flatten tensors before; torch.distributed's _coalescing_manager; "
	       "ncclGroupStart and ncclGroupEnd around them; larger buckets (bucket_cap_mb).",
	.conclude_ranks = conclude,
};
