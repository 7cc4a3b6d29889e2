/*
 * analyzer/detectors/hidden_sync.c: calls that wait for the GPU although nobody would expect it of
 * them: freeing, unpinning, loading and unloading code, a changed limit, asynchronous copies from host to
 * host.
 */
#include "analysis.h"
#include "detector.h"
#include "report_words.h"

enum variant { WAITED, PERHAPS };

/* Loading takes what the code takes. With no load of an idle device to compare with, nobody can tell it
 * from a wait; that is worth a note only where it is a good part of the run: one in ... */
#define PERHAPS_PART 20

static bool judge(const struct observed *o, struct verdict *v)
{
	if (o->contract == SPY_CONTRACT_LAZY_LOAD) /* lazy_loading.c knows better */
		return false;
	v->cost_ns = finished_ns(o->call, BUCKET_GPU_HIDDEN);
	/* The thread may have to wait for the same work later. */
	v->gain_high_ns = v->cost_ns;
	if (o->contract == SPY_CONTRACT_MODULE && o->class->source == EXPECT_NONE)
		v->variant = PERHAPS;
	return o->waits->sort == GPU_WAIT_HIDDEN && v->cost_ns;
}

static const char *keep(const struct analysis *a, const struct site *site, struct finding *finding,
			struct report *report)
{
	if (site->at_the_end && !(uint64_t)site->others_ns)
		return NULL;
	if (finding->variant == PERHAPS) {
		if (site->cost_ns + (uint64_t)site->others_ns < findings_run_ns(a) / PERHAPS_PART)
			return NULL;
		finding->cost_unknown = true;
		return report_text(
			report,
			"%s loaded or unloaded code behind work of the GPU, %s "
			"inside %s: what of it was a wait for that work, nobody can tell",
			word_count(report, site->count, "call"), word_time(report, site->cost_ns),
			site->count == 1 ? "it" : "them");
	}
	return report_text(report,
			   "%s waited for the GPU for %s, which such calls do not "
			   "promise to do%s",
			   word_count(report, site->count, "call"),
			   word_time(report, site->cost_ns),
			   a->accounts.probed[site->key.process]
				   ? ""
				   : "; without probes nobody saw whether some of it was a wait "
				     "for a lock");
}

const struct detector detector_hidden_sync = {
	.id = "hidden-sync",
	.title = "calls that synchronise with the device without saying so",
	.sees = "Calls whose time goes beyond their own work and that are known to wait for work "
		"of the "
		"device: cudaFree, cudaFreeHost, cudaHostUnregister, cudaFreeArray, loading and "
		"unloading of modules, a changed stack limit, asynchronous copies from host to "
		"host.",
	.blind = "The GPU is not asked: that it was busy is concluded from what was handed to it "
		 "and not yet waited for. Calls after a process' last launch or copy are no case: "
		 "somebody has to wait for the end.",
	.fix = "Free and load outside the loop, or with the stream's order: cudaMallocAsync and "
	       "cudaFreeAsync, pools, buffers that are used again.",
	.when_long = DETECTOR_CONTRACT(FREE) | DETECTOR_CONTRACT(LIMIT) |
		     DETECTOR_CONTRACT(MODULE) | DETECTOR_CONTRACT(COPY_ASYNC) |
		     DETECTOR_CONTRACT(COPY_BATCH),
	.judge = judge,
	.keep = keep,
};
