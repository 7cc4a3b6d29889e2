/*
 * analyzer/detectors/lazy_loading.c: code that is loaded when the work has begun: a kernel at its first
 * launch or the first question about it, or whole modules again and again.
 *
 * A first launch is a case if it waited for the device, or if the program had long been working; before,
 * somebody has to load the code. A load or unload that waited for the device is told as one that waits
 * (hidden_sync.c) unless it comes again and again.
 */
#include "findings/detector.h"
#include "report/report_words.h"

/* A program that has handed over so much has begun. */
#define BEGUN 1000

/* What cost less is not worth a word: somebody has to load the code at some time. */
#define COST_LEAST_NS 1000000

#define ROUNDS_LEAST 5
#define TENTHS_LEAST 4

enum variant { FIRST_LAUNCH, FIRST_USE, MODULES };

/* Tally: nanoseconds of the cost that are a wait for all one can tell: with nothing to compare a first use with,
 * all of it may be the loading. */

static bool judge_launch(const struct observed *o, struct verdict *v)
{
	uint64_t hidden_ns = finished_ns(o->call, BUCKET_GPU_HIDDEN);
	uint64_t own_ns = finished_ns(o->call, BUCKET_OWN), warm_ns = observed_warm(o);

	if (!o->cold || (!hidden_ns && observed_submissions(o) < BEGUN))
		return false;
	v->variant = FIRST_LAUNCH;
	v->cost_ns = hidden_ns + (own_ns > warm_ns ? own_ns - warm_ns : 0);
	v->gain_high_ns = v->tally = v->cost_ns;
	return true;
}

static bool judge(const struct observed *o, struct verdict *v)
{
	switch (o->contract) {
	case SPY_CONTRACT_LAUNCH:
		return judge_launch(o, v);
	case SPY_CONTRACT_LAZY_LOAD:
		v->variant = FIRST_USE;
		v->cost_ns = v->gain_high_ns = finished_ns(o->call, BUCKET_GPU_HIDDEN);
		v->tally = observed_is_no_loading(o) ? v->cost_ns : 0;
		return v->cost_ns;
	case SPY_CONTRACT_MODULE:
	case SPY_CONTRACT_LIBRARY:
		v->variant = MODULES;
		v->cost_ns = o->call->end_ns - o->call->begin_ns -
			     finished_ns(o->call, BUCKET_LOCK) -
			     finished_ns(o->call, BUCKET_NOT_RUNNING);
		v->gain_high_ns = v->cost_ns;
		return true;
	default:
		return false;
	}
}

static const char *keep_modules(const struct analysis *a, const struct site *site,
				struct finding *finding, struct report *report)
{
	if (site->rounds < ROUNDS_LEAST || site_tenths(a, site) < TENTHS_LEAST)
		return NULL;
	finding->fix = "Load modules once, before the work, and keep them.";
	return report_text(report, "%s load or unload code while the program works, %s inside them",
			   word_count(report, site->count, "call"),
			   word_time(report, site->total_ns));
}

/* "1 first launch of a kernel", "67 uses of code that had to be loaded". */
static const char *name_uses(const struct finding *finding, bool one)
{
	if (finding->variant == FIRST_LAUNCH)
		return one ? "first launch of a kernel" : "first launches of kernels";
	return one ? "use of code that had to be loaded" : "uses of code that had to be loaded";
}

static const char *keep(const struct analysis *a, const struct site *site, struct finding *finding,
			struct report *report)
{
	if (finding->variant == MODULES)
		return keep_modules(a, site, finding, report);
	if (site->cost_ns + (uint64_t)site->others_ns < COST_LEAST_NS)
		return NULL;
	finding->perhaps_free = site->tally < site->cost_ns / 2;
	return report_text(report,
			   "%llu %s in the midst of the work, %s inside %s, the first after %s",
			   (unsigned long long)site->count, name_uses(finding, site->count == 1),
			   word_time(report, site->total_ns), site->count == 1 ? "it" : "them",
			   word_since(report, a, site->first_ns));
}

const struct detector detector_lazy_loading = {
	.id = "lazy-loading",
	.title = "code that is loaded in the midst of the work",
	.sees = "First launches of kernels and other first uses of code that waited for work of "
		"the "
		"device, or that came after a thousand launches and copies: the kernel has to be "
		"loaded, or the device's stack enlarged, and other threads of the process wait for "
		"the lock held meanwhile. Modules loaded or unloaded with work between, five times "
		"or more.",
	.blind = "Whether the kernel could have been known before. That the device was waited for "
		 "is "
		 "concluded from what was handed to it and not yet waited for. Where there are no "
		 "calls "
		 "to compare a first use with, all of it may be the loading: a note.",
	.fix = "Load before the work: CUDA_MODULE_LOADING=EAGER, or cudaFuncGetAttributes for each "
	       "kernel, or launch each once. If the kernel needs much stack, set it before "
	       "(cudaDeviceSetLimit, cudaLimitStackSize): a larger stack waits for the device, "
	       "too.",
	.absorbs = &detector_hidden_sync,
	.kernels = true,
	.always = DETECTOR_CONTRACT(MODULE) | DETECTOR_CONTRACT(LIBRARY),
	.when_long = DETECTOR_CONTRACT(LAUNCH) | DETECTOR_CONTRACT(LAZY_LOAD),
	.judge = judge,
	.keep = keep,
};
