/*
 * analyzer/detectors/straggler_rank.c: one rank of a job comes last to its collective operations because of what its thread
 * does, and all others wait for it. Its GPU is the reason of slow-gpu, different work that of uneven-work: a job is one
 * of these three at most (findings/straggler.h).
 */
#include <string.h>
#include "table.h"
#include "findings/straggler.h"
#include "text/text.h"
#include "text/where.h"

static bool is_of_memory(const char *function)
{
	return function && (strstr(function, "lloc") || strstr(function, "Free"));
}

static bool is_wait(const char *function)
{
	return function && strstr(function, "Synchronize");
}

static const char *cure_of_call(const char *function)
{
	if (is_of_memory(function))
		return "Take that call out of the step, or let all ranks make it in the same "
		       "step. PyTorch: empty_cache() not within the loop; memory kept, not "
		       "freed and taken again.";
	if (is_wait(function))
		return "Let all ranks do that in the same step, or do it less often: evaluation and logging "
		       "divided among all ranks, values kept on the GPU and fetched many at once.";
	return "Take that call out of the step, or let all ranks make it in the same step.";
}

/* function: of CUDA, that the rank is in; NULL: none. */
static const char *cure(const struct idle_sum *sum, const char *function)
{
	enum idle_cause cause = sum->key.cause;

	if (idle_is_work(cause))
		return idle_cause_meanings[cause];
	switch (cause) {
	case IDLE_PYTHON:
	case IDLE_CPU:
		return "Do that work on no rank alone, or beside the step: in another thread or "
		       "process, after the step's work has been submitted. PyTorch: logging, "
		       "checkpoints and evaluation of rank 0 in a thread; the same number of "
		       "samples for each rank.";
	case IDLE_LOADER:
	case IDLE_PIPE:
	case IDLE_FILE:
	case IDLE_SOCKET:
		return "Let that rank's loader be ready before the step: more workers, "
		       "prefetch, local disks, shards of the same size for all ranks.";
	case IDLE_NOT_RUNNING:
		return "Give that rank's process CPUs of its own: bind ranks to different "
		       "cores, and start fewer loader workers than there are cores.";
	case IDLE_CUDA_WAIT:
	case IDLE_KERNEL_MODULE:
	case IDLE_CUDA_CALL:
	case IDLE_CUDA_LOCK:
		return cure_of_call(function);
	default:
		return "Take out of that rank's step what the others do not do, or let all "
		       "ranks do it in the same step.";
	}
}

/* "waiting inside CUDA for a GPU, in cudaFree, at train.py:22 in step" */
static const char *reason_text(const struct trace_set *set, struct arena *texts,
			       const struct idle_sum *sum, const struct idle_part *part)
{
	struct python_line line = python_line(part->stack);
	const char *at = text_python(texts, &line), *function = text_function(set, part->fn);
	bool between = idle_runs_python(sum->key.cause) || sum->key.cause == IDLE_CPU;

	return arena_printf(texts, "%s%s%s%s%s", idle_cause_texts[sum->key.cause],
			    function ? between ? ", before " : ", in " : "", function ?: "",
			    at ? ", at " : "", at ?: "");
}

static void place(const struct trace_set *set, struct arena *texts, const struct idle_part *part,
		  struct finding *finding)
{
	finding->place.function = text_function(set, part->fn);
	finding_look_up(finding, texts, part);
}

static void name_spread(struct arena *texts, const char *words,
			const struct straggler_reason *reason, struct finding *finding)
{
	finding->what = arena_printf(texts,
				     "%s; its thread takes longer than theirs for what all of them "
				     "do, most %s: %s",
				     finding->what, words, text_time(texts, reason->ns));
	finding->fix = "Compare the CPUs of the ranks: bind each rank to cores of its own, next "
		       "to its GPU, and look for other programs on them and for lower clocks. "
		       "If they are alike, submit the step with fewer calls (torch.compile, "
		       "CUDA graphs): then the CPU matters less.";
}

#define NEARLY_ALL_PERCENT 90

static void name_unshared(struct arena *texts, const char *words, const struct rank *rank,
			  struct finding *finding)
{
	uint64_t ns = rank->unshared.ns, late_ns = rank->late_ns;
	bool several = rank->unshared.most->ns < ns / 100 * NEARLY_ALL_PERCENT;

	finding->what = arena_printf(
		texts, "%s; %s of that, %s, is for what no other rank does: %s%s", finding->what,
		text_time(texts, ns), text_percent(texts, (double)ns, (double)late_ns),
		several ? "most of it " : "", words);
	if (ns < late_ns / 100 * NEARLY_ALL_PERCENT)
		finding->what = arena_printf(
			texts, "%s; the rest is at places where all ranks are, for longer",
			finding->what);
}

static void name_reason(const struct ranks *ranks, struct arena *texts, const struct rank *rank,
			struct finding *finding)
{
	const struct trace_set *set = ranks->idle->accounts->model->set;
	struct straggler_reason reason = straggler_reason(ranks->idle, rank);
	const struct idle_part *part;
	const char *words;

	finding->fix = detector_straggler_rank.fix;
	if (!reason.sum)
		return;
	finding->remarks.maybe_harmless = reason.kind == STRAGGLER_ALIKE;
	part = straggler_part(ranks->idle, reason.sum);
	finding->fix = cure(reason.sum, text_function(set, part->fn));
	place(set, texts, part, finding);
	words = reason_text(set, texts, reason.sum, part);
	if (reason.kind == STRAGGLER_UNSHARED)
		name_unshared(texts, words, rank, finding);
	else if (reason.kind != STRAGGLER_EXCESS)
		name_spread(texts, words, &reason, finding);
	else
		finding->what = arena_printf(texts, "%s; meanwhile, unlike them, it was %s for %s",
					     finding->what, words, text_time(texts, reason.ns));
}

static void conclude(const struct ranks *ranks, struct found *found)
{
	struct straggler h = straggler_find(ranks);
	struct finding *finding;

	if (h.by != STRAGGLER_BY_HOST)
		return;
	finding = straggler_finding(&detector_straggler_rank, ranks, &h, found);
	finding->what = straggler_words(found->texts, &h);
	name_reason(ranks, found->texts, h.rank, finding);
}

const struct detector detector_straggler_rank = {
	.id = "straggler-rank",
	.title = "one rank holds the others up: they wait for it in collective operations",
	.sees = "NCCL's operations of all recorded ranks. One rank comes last, for most of the "
		"time that GPUs wait in them, 2.5 % of the job's time or more, in nearly all "
		"parts of the run, and its thread submitted them late. Or the ranks come last in "
		"turn, and what only one of them does makes the others wait so long, more than "
		"once. The reason is what that thread did since the operation before, and the "
		"others' threads did not. Where all of them compute, and another one for two thirds as long or "
		"longer, one CPU is slower than another: a note.",
	.blind = "Ranks that were not recorded. Of CUDA graphs with collectives only when hosts "
		 "launch them is known, and that where they wait for each launch before the next: "
		 "a GPU that has more to do inside of the graph is not found.",
	.fix = "Take out of that rank's step what the others do not do, or let all do it in the "
	       "same step.",
	.conclude_ranks = conclude,
};
