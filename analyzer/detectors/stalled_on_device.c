/*
 * analyzer/detectors/stalled_on_device.c: a GPU has nothing to do, again and again, though its next work was submitted in
 * time: it waits on the device, for another stream, a host function, a copy or another GPU. Known with exact times; of host
 * functions without them, too.
 */
#include "starved_gpus.h"
#include "table.h"

static const char *who_keeps(const struct starved_gpus *h)
{
	(void)h;
	return "work that was submitted in time, and could not begin, keeps";
}

static const char *cure(const struct trace_set *set, struct arena *texts,
			const struct starved_gpus *h)
{
	(void)set;
	(void)texts;
	if (starved_gpus_cause(h) == IDLE_HOST_FUNCTION)
		return "Keep functions in streams short: let them signal a thread that does the "
		       "work, or put them into a stream of their own behind an event, so that "
		       "the next operation does not wait for them.";
	return detector_stalled_on_device.fix;
}

static const struct starved_gpus_kind kind = {
	.detector = &detector_stalled_on_device,
	.causes = IDLE_CAUSE_BIT(DEPENDENCY) | IDLE_CAUSE_BIT(HOST_FUNCTION),
	.who_keeps = who_keeps,
	.of_thread = "the next operation of ",
	.cure = cure,
};

static void conclude(const struct idle *idle, struct found *found)
{
	starved_gpus_conclude(&kind, idle, found);
}

const struct detector detector_stalled_on_device = {
	.id = "stalled-on-device",
	.title = "work that was submitted in time waits on the device, and the GPU is idle",
	.sees = "GPUs that had nothing to do for a fifth of their work or more, and for 50 ms, "
		"the longest gap aside, though the next operation had been submitted before: it "
		"waited in its stream behind a function on the host (cudaLaunchHostFunc, "
		"cudaStreamAddCallback), whose call is the place; or, with exact times (cudaspy "
		"run --gpu), for an event of another stream, a value, a copy or another GPU, "
		"where the place is that of the operation that waited.",
	.blind = "Without exact times all waits on the device but those for functions on the host; "
		 "of these the ones that graphs run, and those while other streams may have work.",
	.fix = "Let the GPU have other work meanwhile, in streams that do not wait for it; take "
	       "host functions and values that the host writes out of the stream; wait for the "
	       "event that is needed, not for the last one; copy ahead (two buffers).",
	.of_idle = true,
	.conclude_idle = conclude,
};
