/*
 * analyzer/detectors/cross_device_stall.c: threads that work on different GPUs and wait for each
 * other all the same, because calls of one process share locks inside the driver.
 */
#include "stall.h"
#include "table.h"
#include "account/account.h"
#include "text/text.h"

static const char *what(struct arena *texts, const struct trace_set *set, const struct stall *stall)
{
	return arena_printf(texts,
			    "%llu threads that work on %llu GPUs waited %s for each other in %s%s, "
			    "for locks inside CUDA that all GPUs of a process share: %s",
			    (unsigned long long)stall->threads, (unsigned long long)stall->devices,
			    text_time(texts, (uint64_t)stall->waited_ns),
			    text_count(texts, stall->calls, "call"),
			    stall->measured ? "" : " (inferred from calls that overlap in time)",
			    stall_mostly(texts, set, stall));
}

static const char *processes(struct arena *texts, const struct stall *stall)
{
	static const char text[] = "a process for each GPU, which has locks of its own";

	if (stall->help_ns[HELP_NOT] <= stall->waited_ns / 20)
		return text;
	return arena_printf(texts,
			    "%s (but %s of these waits would move into the kernel module, which "
			    "all processes share)",
			    text, text_time(texts, (uint64_t)stall->help_ns[HELP_NOT]));
}

static void conclude(const struct accounting *a, struct found *found)
{
	struct arena *texts = found->texts;
	struct stall stall = stall_sum(a, true, found);
	struct finding *finding;

	if (!stall_is_significant(&stall))
		return;
	finding = detector_add(&detector_cross_device_stall, found);
	stall_fill(texts, a->model, &stall, processes(texts, &stall), finding);
	finding->what = what(texts, a->model->set, &stall);
}

const struct detector detector_cross_device_stall = {
	.id = "cross-device-stall",
	.title = "threads on different GPUs wait for each other's locks",
	.sees = "Calls that waited for a lock inside CUDA while a thread that works on another "
		"GPU held it: the GPUs have nothing to do with each other, but the calls of one "
		"process share locks. Allocating, pinning, managed memory, building graphs and "
		"loading code hold them long; launches and copies then wait. Waits are followed "
		"to the thread that was not itself waiting for a lock. Reported from 1 % of a "
		"thread's time on; waits of a few calls that began before any work was "
		"submitted to a GPU do not count. A note if most of it is the first use of "
		"kernels, which are loaded once unless modules are loaded again and again, or a "
		"few threads that prepare their work side by side, three calls of each at most "
		"and not all through the run.",
	.blind = "Locks that are not the C library's (a recording without probes, too): such "
		 "waits are inferred from calls that overlap in time. Whether processes would "
		 "meet in the kernel module instead, where they did not yet.",
	.fix = "Take the call that holds the lock out of the threads' loops, or use a process for "
	       "each GPU.",
	.stalls = STALLS_ACROSS,
	.conclude_calls = conclude,
};
