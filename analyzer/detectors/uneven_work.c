/*
 * analyzer/detectors/uneven_work.c: ranks have different amounts of work for their GPUs: one has more than the others, or now
 * one and now another.
 */
#include "table.h"
#include "findings/straggler.h"
#include "text/text.h"

static void conclude(const struct ranks *ranks, struct found *found)
{
	struct arena *texts = found->texts;
	struct straggler h = straggler_find(ranks);
	struct finding *finding;

	if (h.by != STRAGGLER_BY_WORK)
		return;
	finding = straggler_finding(&detector_uneven_work, ranks, &h, found);
	if (h.mostly)
		finding->what = arena_printf(texts, "%s; its GPU had other work than the others'",
					     straggler_words(texts, &h));
	else
		finding->what = arena_printf(
			texts,
			"ranks wait for each other %s in collectives, %s of %s, now for one and "
			"now for another, because the work of their GPUs takes different times",
			text_time(texts, h.late_ns),
			text_percent(texts, (double)h.late_ns, (double)h.job_ns),
			text_time(texts, h.job_ns));
	finding->fix = detector_uneven_work.fix;
}

const struct detector detector_uneven_work = {
	.id = "uneven-work",
	.title = "ranks have different amounts of work, and wait for the one that has most",
	.sees = "As slow-gpu, but the last rank's thread had submitted more or other work than "
		"the others'; or the last rank changes, and ranks wait a tenth of the job's "
		"time for GPUs that are still at work.",
	.blind = "Kernels that take longer because of their data.",
	.fix = "Divide the work evenly: batches of the same number of tokens (sort or pack "
	       "sequences by length), the same number of layers or experts for each rank.",
	.conclude_ranks = conclude,
};
