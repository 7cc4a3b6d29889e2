/*
 * analyzer/detectors/collective_order.c: ranks that do not make the same collective operations, which is what a hang looks
 * like before it is one, and at its end.
 */
#include "table.h"
#include "findings/rank_words.h"
#include "text/text.h"
#include "trace/names.h"

/* "AllReduce 20 (4096 bytes)". */
static const char *op_text(struct arena *texts, const struct rank_op_seen *op)
{
	return arena_printf(texts, "%s %llu (%llu bytes)", name_nccl_func(op->func),
			    (unsigned long long)op->seq,
			    (unsigned long long)(op->count * op->bytes_each));
}

static const char *disagreement_text(struct arena *texts, const struct ranks *ranks)
{
	const struct rank_disagreement *d = &ranks->disagreement;
	const char *a = text_rank_name(texts, ranks->all[d->a.rank]);
	const char *b = text_rank_name(texts, ranks->all[d->b.rank]);
	const char *text;

	switch (d->kind) {
	case RANK_ANOTHER_ORDER:
		text = arena_printf(texts,
				    "%s submits %s before %s, and %s does it the other way round",
				    a, op_text(texts, &d->a), op_text(texts, &d->b), b);
		break;
	case RANK_ONE_MORE:
		text = arena_printf(texts, "%s submits %s, and %s does not, but goes on with %s", a,
				    op_text(texts, &d->a), b, op_text(texts, &d->b));
		break;
	default:
		text = arena_printf(texts, "what is %s in %s is %s in %s", op_text(texts, &d->a), a,
				    op_text(texts, &d->b), b);
		break;
	}
	return arena_printf(texts, "%s, in communicator %016llx", text,
			    (unsigned long long)d->hash);
}

static struct finding *begin_order(const struct ranks *ranks, const struct rank_op_seen *op,
				   struct found *found)
{
	struct finding *finding = detector_add(&detector_collective_order, found);

	finding->origin.process = op->process ?: ranks->all[op->rank]->process;
	finding->remarks.wrong = finding->remarks.shown = true;
	finding->place.function = text_function(ranks->idle->accounts->model->set, op->part.fn);
	finding_look_up(finding, found->texts, &op->part);
	return finding;
}

static void conclude(const struct ranks *ranks, struct found *found)
{
	struct arena *texts = found->texts;
	const struct rank_disagreement *d = &ranks->disagreement;
	struct finding *finding;

	if (d->count) {
		finding = begin_order(ranks, &d->a, found);
		finding->count = d->count;
		finding->what = disagreement_text(texts, ranks);
	} else if (ranks->n_missing) {
		const struct rank_missing *m = &ranks->missing[0];

		finding = begin_order(ranks, &m->waiting, found);
		finding->count = ranks->n_missing;
		finding->what = arena_printf(
			texts,
			"at the end %s %s in operation %llu (%s) of communicator %016llx for "
			"%s, which never came to it%s",
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
	.sees = "Operations of a communicator, known by NCCL's numbers, have another size or "
		"another order in one rank than in another, or one rank makes one that another "
		"passes by; or at the end of the record ranks wait in an operation to which "
		"another recorded rank never came.",
	.blind = "Ranks that were not recorded. Where records are missing (losses, windows, cost "
		 "windows, deleted parts) only operations that both ranks have are compared.",
	.fix = "Let all ranks of a communicator make the same operations in the same order: "
	       "look for a branch that depends on the rank or on its data, an exception that "
	       "one rank catches, a loop of which one has fewer rounds (PyTorch: join(), "
	       "drop_last=True).",
	.conclude_ranks = conclude,
};
