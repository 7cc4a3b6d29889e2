/*
 * analyzer/detectors/starved_by_calls.c: a GPU has nothing to do, again and again, while the thread that feeds it is inside
 * CUDA calls that no other finding is about: they allocate, ask, create, go through the kernel module, load code, or wait.
 */
#include "holder_cure.h"
#include "starved_gpus.h"
#include "table.h"

static const char *who_keeps(const struct starved_gpus *h)
{
	(void)h;
	return "CUDA calls keep";
}

/* Of the call in which most of it passed, by what it was there for. */
static const char *cure(const struct trace_set *set, struct arena *texts,
			const struct starved_gpus *h)
{
	uint32_t fn = h->most->longest.fn;

	switch (starved_gpus_cause(h)) {
	case IDLE_CUDA_LOCK:
		return "Cure what holds the lock: WAITS and the findings of stalls name its "
		       "holder.";
	case IDLE_CUDA_WAIT:
		return "Hand the next work over before you wait for the last one: a stream "
		       "keeps it until its turn, and the GPU has something to do when the wait "
		       "ends.";
	case IDLE_CODE_LOADING:
		return "Load code before the work: CUDA_MODULE_LOADING=EAGER, or a first use of "
		       "each kernel and library at the start.";
	case IDLE_LAUNCH:
		return detector_launch_bound.fix;
	default:
		return holder_cure(texts, set, fn, false) ?: detector_starved_by_calls.fix;
	}
}

/* Code is loaded once; what waits for a lock has its cost in the findings of the holder's call, too. */
static void remark(const struct starved_gpus *h, struct finding *finding)
{
	finding->remarks.once = starved_gpus_cause(h) == IDLE_CODE_LOADING;
	finding->cost.elsewhere_ns = h->by_cause[IDLE_CUDA_LOCK];
	finding->cost.overlaps = finding->cost.elsewhere_ns > 0;
}

static const struct starved_gpus_kind kind = {
	.detector = &detector_starved_by_calls,
	.causes = IDLE_CAUSE_BIT(LAUNCH) | IDLE_CAUSE_BIT(CUDA_CALL) | IDLE_CAUSE_BIT(CUDA_LOCK) |
		  IDLE_CAUSE_BIT(CUDA_WAIT) | IDLE_CAUSE_BIT(KERNEL_MODULE) |
		  IDLE_CAUSE_BIT(CODE_LOADING),
	.who_keeps = who_keeps,
	.of_thread = "",
	.cure = cure,
	.remark = remark,
};

static void conclude(const struct idle *idle, struct found *found)
{
	starved_gpus_conclude(&kind, idle, found);
}

const struct detector detector_starved_by_calls = {
	.id = "starved-by-calls",
	.title = "a GPU has nothing to do while its thread is in other CUDA calls",
	.sees = "GPUs that certainly had nothing to do for a fifth of their work or more, and "
		"for 50 ms, the longest gap aside, while the thread that submits their work was "
		"inside CUDA calls: that allocate, ask or create, at their own cost, in the "
		"kernel module, for a lock, for another GPU, or submitting. What other findings "
		"have of the idle time does not count. Mostly the loading of code, it is a note.",
	.blind = "Calls that may hand work to the GPU themselves: without exact times "
		 "(cudaspy run --gpu) nothing is certain from their beginning on, and what NVML "
		 "proves is estimated.",
	.fix = "Take the call out of the loop, or submit the next work before it.",
	.of_function = true,
	.of_idle = true,
	.of_host = true,
	.conclude_idle = conclude,
};
