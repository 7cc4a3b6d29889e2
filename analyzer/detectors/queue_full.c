/*
 * analyzer/detectors/queue_full.c: launches and copies that had to wait for room in their stream's
 * queue: the host was about a thousand operations ahead of the GPU. No other thread is to blame.
 */
#include "table.h"
#include "findings/site.h"
#include "text/text.h"

static bool judge(const struct observed *o, struct verdict *v)
{
	v->cost_ns = completed_ns(o->call, BUCKET_QUEUE);
	/* The GPU is no faster for it: something is gained only if the host has other work. */
	v->gain_high_ns = v->cost_ns;
	return v->cost_ns;
}

static const char *keep(const struct findings *f, const struct site *site, struct finding *finding,
			struct arena *texts)
{
	const char *places = "";

	(void)f;
	finding->remarks.maybe_harmless = true;
	if (finding->origin.places > 1)
		places = arena_printf(texts, " at %llu places, here most,",
				      (unsigned long long)finding->origin.places);
	return arena_printf(texts,
			    "%s%s waited for room in the stream's queue: the GPU was never "
			    "without work meanwhile, but the thread could do nothing else for %s",
			    text_count(texts, site->count, "call"), places,
			    text_time(texts, site->cost.own_ns));
}

const struct detector detector_queue_full = {
	.id = "queue-full",
	.title = "launches or copies wait: the stream's queue is full",
	.sees = "Launches, copies and other work that is handed to a stream and took longer than "
		"its own work, while that stream had much outstanding: a stream's queue holds "
		"about a thousand operations, and a thread that hands over one more waits until "
		"the GPU has done one.",
	.blind = "How much was outstanding is inferred from the work that was submitted and not "
		 "yet waited for, because the GPU is not asked. Streams with functions on the "
		 "host (cudaLaunchHostFunc) between their work, of which the program may have "
		 "learnt how far they have come.",
	.fix = "If the thread has nothing else to do, nothing is lost. Else hand over fewer and "
	       "larger pieces of work (a CUDA graph is one), or wait for an event some hundred "
	       "operations back where the program can use the time.",
	.everywhere = true,
	.when_long = DETECTOR_CONTRACT(SUBMIT) | DETECTOR_CONTRACT(LAUNCH) |
		     DETECTOR_CONTRACT(PEER) | DETECTOR_CONTRACT(MEMSET_SYNC) |
		     DETECTOR_CONTRACT(COPY_SYNC) | DETECTOR_CONTRACT(COPY_ASYNC) |
		     DETECTOR_CONTRACT(COPY_BATCH),
	.judge = judge,
	.keep = keep,
};
