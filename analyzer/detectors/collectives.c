/*
 * analyzer/detectors/collectives.c: collective operations of ranks that nothing hides (exposed-collective), that are many
 * and small (small-collectives), or that ranks do not agree on (collective-order).
 */
#include "table.h"
#include "findings/rank_words.h"
#include "text/text.h"
#include "trace/names.h"

/* ---- exposed-collective ---------------------------------------------------------------------- */

#define EXPOSED_LEAST_PART 5 /* of the time that is known of the GPU */

/* Time in which the rank's GPU did nothing but move data of collectives: waits for other ranks have other findings. */
static uint64_t exposed_ns(const struct rank *rank)
{
	return rank->exposed_known ? rank->exposed_ns - min_u64(rank->wait_ns, rank->exposed_ns)
				   : 0;
}

static uint64_t known_ns(const struct rank *rank)
{
	return rank->last_ns - min_u64(rank->first_ns, rank->last_ns);
}

static void conclude_exposed(const struct analysis *a, struct arena *texts,
			     struct finding **findings, size_t *n)
{
	const struct rank *most = NULL;
	struct finding *finding;
	uint64_t sum_ns = 0;
	size_t i;

	for (i = 0; i < a->ranks.n; i++) {
		const struct rank *rank = a->ranks.all[i];

		sum_ns += exposed_ns(rank);
		if (exposed_ns(rank) && (!most || exposed_ns(rank) > exposed_ns(most)))
			most = rank;
	}
	if (!most || exposed_ns(most) < known_ns(most) / EXPOSED_LEAST_PART)
		return;
	finding = detector_add(&detector_exposed_collective, findings, n);
	finding->origin.process = most->process;
	finding->origin.processes = (uint32_t)a->ranks.n;
	finding->count = most->timed;
	finding->cost.own_ns = finding->cost.gain_high_ns = exposed_ns(most);
	finding->cost.gain_known = true;
	finding->cost.idle_gpu_known = true;
	finding->cost.idle_gpu_ns = sum_ns;
	finding->what =
		arena_printf(texts,
			     "collectives run with nothing beside them: for %s, %s of %s, the GPU "
			     "of %s did nothing but take part "
			     "in them, without its waits for other ranks; %s of its collectives' "
			     "time ran beside its own work",
			     text_time(texts, exposed_ns(most)),
			     text_percent(texts, (double)exposed_ns(most), (double)known_ns(most)),
			     text_time(texts, known_ns(most)), text_rank_name(texts, most),
			     text_percent(texts, (double)(most->collective_ns - most->exposed_ns),
					  (double)most->collective_ns));
	finding->fix = detector_exposed_collective.fix;
}

const struct detector detector_exposed_collective = {
	.id = "exposed-collective",
	.title = "GPUs do nothing else while collective operations move their data",
	.sees = "With --gpu: GPUs of ranks on which, for a fifth of the time or more, nothing ran "
		"but "
		"kernels of NCCL, waits for other ranks aside.",
	.blind = "Without --gpu nothing. Work of other processes on the GPU.",
	.fix = "Let them run beside the computation: PyTorch's DDP with smaller buckets "
	       "(bucket_cap_mb), FSDP with "
	       "prefetch (backward_prefetch, forward_prefetch), async_op=True and wait() as late "
	       "as can be; "
	       "larger batches, fewer bytes (bf16 gradients), accumulate gradients over several "
	       "steps.",
	.conclude = conclude_exposed,
};

/* ---- small-collectives ----------------------------------------------------------------------- */

#define SMALL_BYTES (64 << 10)
#define SMALL_LEAST 100 /* that follow one of the same kind, with nothing between */
#define SMALL_LEAST_PART 50 /* of the job's time */

static void conclude_small(const struct analysis *a, struct arena *texts, struct finding **findings,
			   size_t *n)
{
	const struct rank_group *most = NULL;
	const struct rank *first = a->ranks.n ? a->ranks.all[0] : NULL;
	uint64_t most_ns = 0, each_ns;
	struct finding *finding;
	size_t i;

	for (i = 0; i < a->ranks.n_groups; i++) {
		const struct rank_group *g = &a->ranks.groups[i];
		uint64_t ns = g->operations ? g->transfer_ns / g->operations * g->in_a_row : 0;

		if (g->bytes && g->bytes <= SMALL_BYTES && g->in_a_row >= SMALL_LEAST &&
		    g->in_a_row >= g->operations / 2 && ns > most_ns) {
			most = g;
			most_ns = ns;
		}
	}
	if (!most || !first || most_ns < known_ns(first) / SMALL_LEAST_PART)
		return;
	each_ns = most->transfer_ns / most->operations;
	finding = detector_add(&detector_small_collectives, findings, n);
	finding->origin.process = first->process;
	finding->origin.processes = (uint32_t)a->ranks.n;
	finding->count = most->in_a_row;
	finding->bytes = most->bytes * most->in_a_row;
	finding->cost.own_ns = finding->cost.gain_high_ns = most_ns;
	finding->cost.gain_known = true;
	finding->what = arena_printf(texts,
				     "%s %s of %llu bytes follow one of the same kind, with no "
				     "other work between: each takes %s, "
				     "mostly to begin and end",
				     text_count(texts, most->in_a_row, "operation"),
				     name_nccl_func(most->func), (unsigned long long)most->bytes,
				     text_time(texts, each_ns));
	finding->fix = detector_small_collectives.fix;
}

const struct detector detector_small_collectives = {
	.id = "small-collectives",
	.title = "many small collective operations in a row could be one",
	.sees = "A hundred operations or more of one function and size, up to 64 KiB, in one "
		"communicator, each right "
		"behind another one with nothing else submitted between, for a fiftieth of the "
		"job's time.",
	.blind = "Whether the next one needs the result of the one before.",
	.fix = "Put the values into one buffer and send that: PyTorch's all_reduce_coalesced, or "
	       "flatten tensors "
	       "before; torch.distributed's _coalescing_manager; ncclGroupStart and ncclGroupEnd "
	       "around "
	       "them; larger buckets (bucket_cap_mb).",
	.conclude = conclude_small,
};

/* ---- collective-order ------------------------------------------------------------------------ */

static const char *op_text(struct arena *texts, const struct ranks *ranks,
			   const struct rank_op_seen *op)
{
	return arena_printf(texts, "%s's is %s of %llu bytes",
			    text_rank_name(texts, ranks->all[op->rank]), name_nccl_func(op->func),
			    (unsigned long long)(op->count * op->bytes_each));
}

static struct finding *begin_order(const struct analysis *a, const struct rank_op_seen *op,
				   struct finding **findings, size_t *n)
{
	struct finding *finding = detector_add(&detector_collective_order, findings, n);

	finding->origin.process = op->process ?: a->ranks.all[op->rank]->process;
	finding->origin.processes = 1;
	finding->remarks.wrong = finding->remarks.shown = true;
	finding->place.function = text_function(a->set, op->part.fn);
	finding->lookup.address = op->part.address;
	finding->lookup.address_ns = op->part.at_ns;
	finding->fix = detector_collective_order.fix;
	return finding;
}

static void conclude_order(const struct analysis *a, struct arena *texts, struct finding **findings,
			   size_t *n)
{
	const struct ranks *ranks = &a->ranks;
	const struct rank_disagreement *d = &ranks->disagreement;
	struct finding *finding;

	if (d->count) {
		finding = begin_order(a, &d->a, findings, n);
		finding->count = d->count;
		finding->what = arena_printf(
			texts,
			"ranks do not agree on operation %llu of communicator %016llx: %s, %s",
			(unsigned long long)d->ordinal + 1, (unsigned long long)d->hash,
			op_text(texts, ranks, &d->a), op_text(texts, ranks, &d->b));
	} else if (ranks->n_missing) {
		const struct rank_missing *m = &ranks->missing[0];

		finding = begin_order(a, &m->waiting, findings, n);
		finding->count = ranks->n_missing;
		finding->what = arena_printf(
			texts,
			"at the end %s %s in operation %llu (%s) of communicator %016llx for %s, "
			"which "
			"never came to it%s",
			text_count(texts, m->n_waiting, "rank"),
			m->n_waiting == 1 ? "waits" : "wait", (unsigned long long)m->waiting.seq,
			name_nccl_func(m->waiting.func), (unsigned long long)m->hash,
			text_rank_where(texts, ranks->all[m->missing]),
			m->n_missing > 1
				? arena_printf(texts, ", nor did %u others", m->n_missing - 1)
				: "");
	}
}

const struct detector detector_collective_order = {
	.id = "collective-order",
	.title = "ranks do not make the same collective operations: a job hangs, or its results "
		 "are wrong",
	.sees = "The n-th operation of a communicator has another function or size in one rank "
		"than in "
		"another; or at the end of the record ranks wait in an operation to which another "
		"recorded rank never came.",
	.blind = "Ranks that were not recorded; communicators of which records are lost.",
	.fix = "Let all ranks of a communicator make the same operations in the same order: look "
	       "for a branch that "
	       "depends on the rank or on its data, an exception that one rank catches, a loop of "
	       "which one has "
	       "fewer rounds (PyTorch: join(), drop_last=True).",
	.conclude = conclude_order,
};
