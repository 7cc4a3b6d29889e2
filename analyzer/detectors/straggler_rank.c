/*
 * analyzer/detectors/straggler_rank.c: one rank of a job comes last to its collective operations, and all others wait
 * for it: because of what its thread does (straggler-rank), because its GPU takes longer for the same work (slow-gpu), or
 * because the work differs (uneven-work). A job is one of these three at most.
 */
#include "table.h"
#include "findings/held_up.h"
#include "findings/rank_words.h"
#include "text/text.h"
#include "text/where.h"

static const char *cure(const struct idle_sum *sum)
{
	switch (sum ? sum->key.cause : IDLE_UNEXPLAINED) {
	case IDLE_PYTHON:
	case IDLE_CPU:
		return "Do that work on no rank alone, or beside the step: in another thread or "
		       "process, after the "
		       "step's work has been submitted. PyTorch: logging, checkpoints and "
		       "evaluation of rank 0 "
		       "in a thread; the same number of samples for each rank.";
	case IDLE_LOADER:
	case IDLE_PIPE:
	case IDLE_FILE:
	case IDLE_SOCKET:
		return "Let that rank's loader be ready before the step: more workers, prefetch, "
		       "local disks, shards "
		       "of the same size for all ranks.";
	case IDLE_NOT_RUNNING:
		return "Give that rank's process CPUs of its own: bind ranks to different cores, "
		       "and start fewer "
		       "loader workers than there are cores.";
	case IDLE_CUDA_WAIT:
	case IDLE_KERNEL_MODULE:
	case IDLE_CUDA_CALL:
	case IDLE_CUDA_LOCK:
		return "Take that call out of the step, or let all ranks make it in the same step. "
		       "PyTorch: "
		       "empty_cache() not within the loop; memory kept, not freed and taken again.";
	default:
		return "Take out of that rank's step what the others do not do, or let all ranks "
		       "do it in "
		       "the same step.";
	}
}

/* "waiting inside CUDA for a GPU, in cudaFree, at train.py:22 in step" */
static const char *reason_text(const struct analysis *a, struct arena *texts,
			       const struct idle_sum *sum)
{
	const struct idle_part *part = &sum->longest;
	struct python_line line = python_line(part->stack);
	const char *at = text_python(texts, &line), *function = text_function(a->set, part->fn);
	bool between = sum->key.cause == IDLE_PYTHON || sum->key.cause == IDLE_CPU;

	return arena_printf(texts, "%s%s%s%s%s", idle_cause_texts[sum->key.cause],
			    function ? between ? ", before " : ", in " : "", function ?: "",
			    at ? ", at " : "", at ?: "");
}

static void place(const struct analysis *a, struct arena *texts, const struct idle_sum *sum,
		  struct finding *finding)
{
	const struct idle_part *part = &sum->longest;
	const struct stack **stacks;

	finding->place.function = text_function(a->set, part->fn);
	finding->lookup.address = part->address;
	finding->lookup.address_ns = part->at_ns;
	finding->lookup.of_wait = part->fn == NO_FUNCTION;
	if (!part->stack)
		return;
	stacks = arena_take(texts, xcalloc(1, sizeof(struct stack *)));
	stacks[0] = part->stack;
	finding->lookup.stacks = stacks;
	finding->lookup.n_stacks = 1;
}

static struct finding *begin(const struct detector *detector, const struct analysis *a,
			     const struct held_up *h, struct finding **findings, size_t *n)
{
	struct finding *finding = detector_add(detector, findings, n);

	finding->origin.process = h->rank->process;
	finding->origin.processes = 1;
	finding->count = h->rank->last_count;
	held_up_price(a, finding, h->mostly ? h->rank : NULL);
	return finding;
}

/* "rank 1 (GPU 1) holds the other ranks up: it came last to 12 of 196 collectives, and their GPUs waited 243.9 ms for it,
 * 14 % of 1.8 s" */
static const char *held_text(struct arena *texts, const struct held_up *h)
{
	return arena_printf(
		texts,
		"%s holds the other ranks up: it came last to %llu of %s, and the others "
		"waited %s for it, %s of %s",
		text_rank_where(texts, h->rank), (unsigned long long)h->rank->last_count,
		text_count(texts, h->rank->timed, "collective"), text_time(texts, h->rank->late_ns),
		text_percent(texts, (double)h->rank->late_ns, (double)h->job_ns),
		text_time(texts, h->job_ns));
}

/* ---- straggler-rank -------------------------------------------------------------------------- */

static void conclude_straggler(const struct analysis *a, struct arena *texts,
			       struct finding **findings, size_t *n)
{
	struct held_up h = held_up_judge(a);
	const struct idle_sum *sum;
	struct finding *finding;

	if (h.by != HELD_UP_BY_HOST)
		return;
	sum = held_up_reason(a, h.rank);
	finding = begin(&detector_straggler_rank, a, &h, findings, n);
	finding->what = held_text(texts, &h);
	if (sum) {
		place(a, texts, sum, finding);
		finding->what = arena_printf(texts, "%s; meanwhile, unlike them, it was %s for %s",
					     finding->what, reason_text(a, texts, sum),
					     text_time(texts, sum->ns));
	}
	finding->fix = cure(sum);
}

const struct detector detector_straggler_rank = {
	.id = "straggler-rank",
	.title = "one rank holds the others up: they wait for it in collective operations",
	.sees = "NCCL's operations of all recorded ranks. One rank comes last, for most of the "
		"time that "
		"GPUs wait in them, a twentieth of the job's time or more, and its thread "
		"submitted them "
		"late. The reason is what that thread did since the operation before, and the "
		"others' "
		"threads did not.",
	.blind = "Ranks that were not recorded, and operations in CUDA graphs, as far as it "
		 "depends on when "
		 "they were submitted. What a thread does between its calls on a CPU.",
	.fix = "Take out of that rank's step what the others do not do, or let all do it in the "
	       "same step.",
	.conclude = conclude_straggler,
};

/* ---- slow-gpu -------------------------------------------------------------------------------- */

static void conclude_slow(const struct analysis *a, struct arena *texts, struct finding **findings,
			  size_t *n)
{
	struct held_up h = held_up_judge(a);
	struct finding *finding;

	if (h.by != HELD_UP_BY_GPU)
		return;
	finding = begin(&detector_slow_gpu, a, &h, findings, n);
	finding->what = arena_printf(texts,
				     "%s; it had as much work submitted, and in time, as the "
				     "others: its GPU takes longer for it",
				     held_text(texts, &h));
	finding->fix = detector_slow_gpu.fix;
}

const struct detector detector_slow_gpu = {
	.id = "slow-gpu",
	.title = "one rank's GPU takes longer for the same work, and all ranks wait for it",
	.sees = "As straggler-rank, but the last rank's thread had submitted its operations in "
		"time, and as "
		"many other operations of the GPU as the others' threads since the collective "
		"before.",
	.blind = "Whether kernels of the same number have the same work: uneven data in them looks "
		 "the same. With "
		 "--gpu it is known how long they ran.",
	.fix = "Compare clocks, temperature and power limit of that GPU with the others' "
	       "(nvidia-smi -q -d "
	       "PERFORMANCE,CLOCK), and see whether others use it; else take it out of the job.",
	.conclude = conclude_slow,
};

/* ---- uneven-work ----------------------------------------------------------------------------- */

static void conclude_uneven(const struct analysis *a, struct arena *texts,
			    struct finding **findings, size_t *n)
{
	struct held_up h = held_up_judge(a);
	struct finding *finding;

	if (h.by != HELD_UP_BY_WORK)
		return;
	finding = begin(&detector_uneven_work, a, &h, findings, n);
	if (h.mostly)
		finding->what = arena_printf(texts, "%s; its GPU had other work than the others'",
					     held_text(texts, &h));
	else
		finding->what = arena_printf(
			texts,
			"ranks wait for each other %s in collectives, %s of %s, now for one and "
			"now for another: their GPUs' work takes different times",
			text_time(texts, h.late_ns),
			text_percent(texts, (double)h.late_ns, (double)h.job_ns),
			text_time(texts, h.job_ns));
	finding->fix = detector_uneven_work.fix;
}

const struct detector detector_uneven_work = {
	.id = "uneven-work",
	.title = "ranks have different amounts of work, and wait for the one that has most",
	.sees = "As slow-gpu, but the last rank's thread had submitted more or other work than the "
		"others'; or the "
		"last rank changes, and ranks wait a tenth of the job's time for GPUs that are "
		"still at work.",
	.blind = "Kernels that take longer because of their data.",
	.fix = "Divide the work evenly: batches of the same number of tokens (sort or pack "
	       "sequences by length), "
	       "the same number of layers or experts for each rank.",
	.conclude = conclude_uneven,
};
