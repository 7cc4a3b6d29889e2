/*
 * analyzer/detectors/uneven_work.c: ranks have different amounts of work for their GPUs: one has more than the others, or now
 * one and now another.
 */
#include "table.h"
#include "findings/rank_words.h"
#include "findings/straggler.h"
#include "text/text.h"

/* Of all operations in which a GPU was late, those with no more work submitted than the others had. */
#define SAME_PERCENT 80

static bool had_same_work(const struct ranks *ranks)
{
	uint64_t late = 0, same = 0;

	for (size_t i = 0; i < ranks->n; i++) {
		late += ranks->all[i]->gpu_late_count;
		same += ranks->all[i]->gpu_late_same_work;
	}
	return same * 100 >= late * SAME_PERCENT;
}

#define NAMED_MOST 4

/* "rank 0 in 30 of 63 steps, rank 1 in 31"; where no steps are known, of the operations. */
static const char *in_turn(struct arena *texts, const struct ranks *ranks)
{
	bool by_steps = ranks->steps.count > 0;
	const char *words = "";
	size_t named = 0;

	for (size_t i = 0; i < ranks->n && named < NAMED_MOST; i++) {
		const struct rank *rank = ranks->order[i];
		uint64_t n = by_steps ? rank->steps : rank->last_count;
		const char *of =
			arena_printf(texts, " of %s",
				     by_steps ? text_count(texts, ranks->steps.count, "step")
					      : text_count(texts, rank->timed, "collective"));

		if (!n)
			continue;
		words = arena_printf(texts, "%s%s%s in %llu%s", words, named ? ", " : "",
				     text_rank_name(texts, rank), (unsigned long long)n,
				     named ? "" : of);
		named++;
	}
	return words;
}

static const char *by_turns(struct arena *texts, const struct ranks *ranks,
			    const struct straggler *h)
{
	return arena_printf(
		texts,
		"ranks wait for each other %s in collectives, %s of %s, now for one and now for "
		"another, because the work of their GPUs takes different times: last was %s%s",
		text_time(texts, h->late_ns),
		text_percent(texts, (double)h->late_ns, (double)h->job_ns),
		text_time(texts, h->job_ns), in_turn(texts, ranks),
		had_same_work(ranks)
			? "; it had as many operations submitted as the others, which took its "
			  "GPU longer, as longer sequences do"
			: "");
}

static const char *other_work(struct arena *texts, const struct ranks *ranks,
			      const struct straggler *h)
{
	double times = straggler_share(ranks, h->rank);

	if (times <= 1)
		return "its GPU had other work than the others'";
	return arena_printf(texts,
			    "its GPU had more work than the others': in all-to-all exchanges it "
			    "received %.1f times what they did on average",
			    times);
}

static void conclude(const struct ranks *ranks, struct found *found)
{
	struct arena *texts = found->texts;
	struct straggler h = straggler_find(ranks);
	struct finding *finding;

	if (h.by != STRAGGLER_BY_WORK)
		return;
	finding = straggler_finding(&detector_uneven_work, ranks, &h, found);
	if (h.stages)
		finding->what = arena_printf(texts, "%s; its GPU works longer than theirs",
					     straggler_words(texts, &h));
	else if (h.mostly)
		finding->what = arena_printf(texts, "%s; %s", straggler_words(texts, &h),
					     other_work(texts, ranks, &h));
	else
		finding->what = by_turns(texts, ranks, &h);
	finding->fix =
		h.mostly && straggler_share(ranks, h.rank) > 1
			? "Even out what each rank receives: a limit or a balancing loss for "
			  "experts, experts placed by how much they get, shards of equal size."
		: h.stages ? "Move layers from that rank's stage to the others', until all wait as "
			     "long in sends and receives. What they wait then is the "
			     "schedule's: more microbatches a step make it less."
			   : detector_uneven_work.fix;
}

const struct detector detector_uneven_work = {
	.id = "uneven-work",
	.title = "ranks have different amounts of work, and wait for the one that has most",
	.sees = "As slow-gpu, but the last rank's thread had submitted more or other work than "
		"the others'; or the last rank changes, and ranks wait a quarter of the job's "
		"time for GPUs that are still at work. Where collectives run beside other work, "
		"a GPU that took longer for as many operations before the first of them is taken "
		"to do so beside the rest, too. Of ranks that wait in sends and receives, as the "
		"stages of a pipeline do, the one that waits least has most work: it is named if stages "
		"of equal work would save 5 % of the job's time.",
	.blind = "Kernels of one rank that always take longer because of their data: a slow GPU "
		 "looks the same.",
	.fix = "Divide the work evenly: batches of the same number of tokens (sort or pack "
	       "sequences by length), the same number of layers or experts for each rank.",
	.conclude_ranks = conclude,
};
