/*
 * analyzer/detectors/collective_order.c: ranks that do not make the same collective operations, which is what a hang looks
 * like before it is one, and at its end.
 */
#include "table.h"
#include "findings/rank_words.h"
#include "text/text.h"
#include "trace/names.h"

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

static void conclude(const struct analysis *a, struct arena *texts, struct finding **findings,
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
	.of_ranks = true,
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
	.conclude = conclude,
};
