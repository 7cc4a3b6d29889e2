/*
 * analyzer/detectors/same_device_stall.c: threads that share a GPU, each with streams of its own,
 * and wait for each other in calls that have no reason to.
 */
#include "stall.h"
#include "table.h"
#include "account/account.h"
#include "text/text.h"

static const char *what(struct arena *texts, const struct trace_set *set, const struct stall *stall)
{
	return arena_printf(
		texts,
		"%s waited %s in %s for others that work on the same GPU%s, for locks inside "
		"CUDA: %s",
		text_count(texts, stall->waiters, "thread"),
		text_time(texts, (uint64_t)stall->waited_ns),
		text_count(texts, stall->calls, "call"),
		stall->measured ? "" : " (inferred from calls that overlap in time)",
		stall_mostly(texts, set, stall));
}

static void conclude(const struct accounting *a, struct found *found)
{
	struct stall stall = stall_sum(a, false, found);
	struct finding *finding;

	if (!stall_is_significant(&stall))
		return;
	finding = detector_add(&detector_same_device_stall, found);
	stall_fill(found->texts, a->model, &stall,
		   "processes instead of threads, which have locks of their own but take turns on "
		   "the GPU unless they share it through MPS",
		   finding);
	finding->what = what(found->texts, a->model->set, &stall);
}

const struct detector detector_same_device_stall = {
	.id = "same-device-stall",
	.title = "threads on one GPU wait for each other's locks",
	.sees = "Calls that waited for a lock inside CUDA while another thread that works on "
		"the same GPU held it, though each may have streams of its own. Worst is a "
		"holder that waits for the GPU: a copy of pageable memory, or cudaFree, behind "
		"a long kernel stops the copies and launches of all others. Waits are followed "
		"to the thread that was not itself waiting for a lock. Reported from 1 % of the "
		"threads' time on; waits of a few calls that began before any work was "
		"submitted to a GPU do not count. A note if most of it is the first use of "
		"kernels, which are loaded once unless modules are loaded again and again, or a "
		"few threads that prepare their work side by side, three calls of each at most "
		"and not all through the run.",
	.blind = "Threads that wait for each other on the GPU itself, which is busy with one's "
		 "work. Locks that are not the C library's: such waits are inferred from calls "
		 "that overlap in time.",
	.fix = "Avoid the call that holds the lock, or let it find its work done.",
	.stalls = STALLS_WITHIN,
	.conclude_calls = conclude,
};
