/*
 * analyzer/detectors/gpus_in_turn.c: one thread that serves several GPUs and waits for each before
 * it hands work to the next: one GPU works at a time.
 *
 * A case is a wait for work that the thread handed to one GPU, after it had waited for work on
 * another one which brought nothing to the host, nor was (or may have been) a copy between GPUs:
 * the two could have been under way at once. Nothing else of the process may be left to do on that
 * GPU, nor of the thread on any. With n GPUs in turns, all but one in n parts of the waits would be
 * gone, and what it took to hand over and to notice the end would be done meanwhile.
 */
#include "table.h"
#include "text/text.h"

#define ROUNDS_LEAST 10
#define TENTHS_LEAST 4

/* Tally: nanoseconds waited for the GPUs. */

/* Does one GPU's work follow on another's, for no reason that can be seen? */
static bool takes_turns(const struct recent_ops *recent_ops)
{
	return recent_ops->submissions && recent_ops->before && !recent_ops->brought_before &&
	       recent_ops->device != SPY_DEVICE_NONE &&
	       recent_ops->device_before != SPY_DEVICE_NONE &&
	       recent_ops->device != recent_ops->device_before;
}

static bool judge(const struct observed *o, struct verdict *v)
{
	const struct recent_ops *recent_ops = &o->account->recent_ops;
	uint64_t waited_ns = completed_ns(o->call, BUCKET_GPU_INTENDED), awaited;

	if (o->cold || !observed_means_to_wait(o) || !takes_turns(recent_ops) ||
	    observed_host_visible(o) || observed_host_sees(o) || !observed_ends(o))
		return false;
	awaited = observed_awaited(o);
	if (!awaited || observed_outstanding(o) != awaited)
		return false;
	v->cost_ns = waited_ns - waited_ns / (uint64_t)__builtin_popcountll(recent_ops->devices) +
		     completed_ns(o->call, BUCKET_OWN) + recent_ops->first_own_ns;
	v->gain_high_ns = v->cost_ns;
	v->tally = waited_ns;
	return true;
}

static const char *keep(const struct analysis *a, const struct site *site, struct finding *finding,
			struct arena *texts)
{
	(void)finding;
	if (site->rounds.count < ROUNDS_LEAST || site_spread(a, site) < TENTHS_LEAST)
		return NULL;
	return arena_printf(
		texts,
		"%s a thread waited for one GPU, %s in all, before it handed work to "
		"the next, though the host got nothing from it: one GPU worked at a time",
		text_count(texts, site->count, "time"), text_time(texts, site->tally));
}

const struct detector detector_gpus_in_turn = {
	.id = "gpus-in-turn",
	.title = "one thread uses its GPUs in turn, not at the same time",
	.sees = "cudaDeviceSynchronize, cudaStreamSynchronize, cudaEventSynchronize and their "
		"relatives at one place, ten times in the program's work or more, each for what "
		"the thread handed to one GPU after it had waited for another, with nothing under "
		"way on any other. The cost is what the waits would not take if the GPUs worked "
		"at once, and the calls' own work.",
	.blind = "Whether a kernel needs what another GPU computed, which it may read there by "
		 "peer access, or the host wants to see in pinned memory. Work with copies between "
		 "GPUs in it, or between memory of unknown location, or to the host, is no case, "
		 "nor are programs that use managed memory.",
	.fix = "Hand work to all GPUs first, and wait then; or use a thread for each GPU. Where "
	       "one needs what another computed, let its stream wait: cudaStreamWaitEvent.",
	.always = DETECTOR_CONTRACT(STREAM) | DETECTOR_CONTRACT(EVENT) | DETECTOR_CONTRACT(DEVICE),
	.judge = judge,
	.keep = keep,
};
