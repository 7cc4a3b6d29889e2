/*
 * analyzer/detectors/hidden_sync.c: calls that wait for the GPU although nobody would expect it of
 * them: freeing, unpinning, loading and unloading code, a changed limit, asynchronous copies from host to
 * host.
 */
#include "detector.h"
#include "report_words.h"

static bool judge(const struct observed *o, struct verdict *v)
{
	if (o->contract == SPY_CONTRACT_LAZY_LOAD) /* lazy_loading.c knows better */
		return false;
	v->cost_ns = finished_ns(o->call, BUCKET_GPU_HIDDEN);
	/* The thread may have to wait for the same work later. */
	v->gain_high_ns = v->cost_ns;
	return o->waits->sort == GPU_WAIT_HIDDEN && v->cost_ns;
}

static const char *keep(const struct analysis *a, const struct site *site, struct finding *finding,
			struct report *report)
{
	(void)a;
	(void)finding;
	return report_text(report,
			   "%llu call%s waited for the GPU for %s, which such calls do not "
			   "promise to do",
			   (unsigned long long)site->count, site->count == 1 ? "" : "s",
			   word_time(report, site->cost_ns));
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
		 "and not "
		 "yet waited for.",
	.fix = "Free and load outside the loop, or with the stream's order: cudaMallocAsync and "
	       "cudaFreeAsync, pools, buffers that are used again.",
	.judge = judge,
	.keep = keep,
};
