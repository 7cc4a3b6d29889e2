/*
 * analyzer/detectors/lazy_loading.c: code that is loaded when the work has begun: a kernel at its
 * first launch or the first question about it, or whole modules again and again.
 *
 * A first use is a case if it waited for the device, or if the program had long been working;
 * before, the code has to be loaded, which is worth a note where it takes a good part of the run. A
 * load or unload that waited for the device is told as one that waits (hidden_sync.c) unless it
 * comes again and again.
 */
#include "table.h"
#include "findings/site.h"
#include "text/text.h"

/* A program that has handed over so much has begun. */
#define BEGUN 1000

/* What cost less is negligible: the code has to be loaded at some time. */
#define COST_LEAST_NS 1000000

/* To load a kernel takes tens of microseconds and more: what a question about it takes beyond others, and is less, is noise. */
#define LOAD_LEAST_NS 20000

/* As the program starts: so much, and one in so many of the run. */
#define START_COST_LEAST_NS 100000000
#define START_SHARE 0.05

#define ROUNDS_LEAST 5
#define TENTHS_LEAST 4

enum variant { FIRST_LAUNCH, FIRST_USE, MODULES, START_LAUNCH, START_USE };

/* Tally: nanoseconds of the cost that are a wait for all one can tell: with nothing to compare a
 * first use with, all of it may be the loading. */

static bool judge_first(const struct observed *o, enum variant variant, enum variant at_start,
			struct verdict *v)
{
	uint64_t hidden_ns = completed_ns(o->call, BUCKET_GPU_HIDDEN);
	uint64_t loading_ns = completed_ns(o->call, BUCKET_LOADING);

	v->variant = !hidden_ns && observed_submissions(o) < BEGUN ? at_start : variant;
	v->cost_ns = v->gain_high_ns = hidden_ns + loading_ns;
	return v->cost_ns;
}

static bool judge(const struct observed *o, struct verdict *v)
{
	switch (o->contract) {
	case SPY_CONTRACT_LAUNCH:
		if (!o->cold || !judge_first(o, FIRST_LAUNCH, START_LAUNCH, v))
			return false;
		v->tally = v->cost_ns;
		return true;
	case SPY_CONTRACT_LAZY_LOAD:
		if (!judge_first(o, FIRST_USE, START_USE, v) || v->cost_ns < LOAD_LEAST_NS)
			return false;
		v->tally = completed_ns(o->call, BUCKET_LOADING);
		if (observed_is_no_loading(o))
			v->tally = v->cost_ns;
		return true;
	case SPY_CONTRACT_MODULE:
	case SPY_CONTRACT_LIBRARY:
		v->variant = MODULES;
		v->cost_ns = o->call->end_ns - o->call->begin_ns -
			     completed_ns(o->call, BUCKET_LOCK) -
			     completed_ns(o->call, BUCKET_NOT_RUNNING);
		v->gain_high_ns = v->cost_ns;
		return true;
	default:
		return false;
	}
}

static bool comes_back(const struct accounting *a, const struct site *site)
{
	return site->rounds.count >= ROUNDS_LEAST && site_tenths(a, site) >= TENTHS_LEAST;
}

static const char *keep_modules(const struct accounting *a, const struct site *site,
				struct finding *finding, struct arena *texts)
{
	if (!comes_back(a, site))
		return NULL;
	finding->fix = "Load modules once, before the work, and keep them.";
	return arena_printf(texts, "%s load or unload code while the program works, %s inside them",
			    text_count(texts, site->count, "call"),
			    text_time(texts, site->total_ns));
}

/* "1 first launch of a kernel", "67 uses of code that had to be loaded". */
static const char *name_uses(const struct finding *finding, bool one)
{
	if (finding->variant == FIRST_LAUNCH || finding->variant == START_LAUNCH)
		return one ? "first launch of a kernel" : "first launches of kernels";
	return one ? "use of code that had to be loaded" : "uses of code that had to be loaded";
}

static const char *keep_start(const struct accounting *a, const struct site *site,
			      struct finding *finding, struct arena *texts)
{
	uint64_t ns = site->cost.own_ns + (uint64_t)site->cost.others_ns;

	if (ns < START_COST_LEAST_NS || site_cost_share(a, site).share < START_SHARE)
		return NULL;
	finding->remarks.once = true;
	return arena_printf(texts, "%llu %s as the program starts, %s inside %s",
			    (unsigned long long)site->count, name_uses(finding, site->count == 1),
			    text_time(texts, site->total_ns), site->count == 1 ? "it" : "them");
}

/* Where the process loads modules about as often as it uses some for the first time: one such call. To load before the work,
 * or eagerly, changes nothing then. NULL: what is used was there. */
static const struct site *loads_of_new_code(const struct findings *f, const struct site *uses)
{
	const struct site *site = comes_back(f->accounts, uses) ? f->sites : NULL;

	for (; site; site = site->hh.next)
		if (site->key.process == uses->key.process &&
		    detectors_row(site->key.detector) == &detector_lazy_loading &&
		    site->key.variant == MODULES && comes_back(f->accounts, site) &&
		    2 * site->rounds.count >= uses->rounds.count)
			return site;
	return NULL;
}

static const char *keep_new_code(const struct trace_set *set, const struct site *loads,
				 struct finding *finding, struct arena *texts)
{
	finding->fix = "Let the program meet few sizes, and each of them before the work: pad to "
		       "some lengths, or keep what was made for one. The code is made for sizes "
		       "and options as they come (cuDNN, NVRTC, Triton, torch.compile); "
		       "CUDA_MODULE_LOADING=EAGER moves the time, and does not save it.";
	return arena_printf(texts, "; it is new code each time: %s loads some with work between",
			    text_function(set, loads->key.fn));
}

static const char *keep(const struct findings *f, const struct site *site, struct finding *finding,
			struct arena *texts)
{
	const struct model *model = f->accounts->model;
	const struct site *loads;

	if (finding->variant == MODULES)
		return keep_modules(f->accounts, site, finding, texts);
	if (finding->variant == START_LAUNCH || finding->variant == START_USE)
		return keep_start(f->accounts, site, finding, texts);
	if (site->cost.own_ns + (uint64_t)site->cost.others_ns < COST_LEAST_NS)
		return NULL;
	finding->remarks.maybe_harmless = site->tally < site->cost.own_ns / 2;
	loads = loads_of_new_code(f, site);
	return arena_printf(texts,
			    "%llu %s in the midst of the work, %s inside %s, the first at %s%s",
			    (unsigned long long)site->count, name_uses(finding, site->count == 1),
			    text_time(texts, site->total_ns), site->count == 1 ? "it" : "them",
			    text_since(texts, model, site->first_ns),
			    loads ? keep_new_code(model->set, loads, finding, texts) : "");
}

const struct detector detector_lazy_loading = {
	.id = "lazy-loading",
	.title = "code is loaded while the program works",
	.sees = "First launches of kernels and other first uses of code that waited for work of "
		"the device, or that came after a thousand launches and copies: the kernel has "
		"to be loaded, or the device's stack enlarged, and other threads of the process "
		"wait for the lock held meanwhile. Before that they are a note, where they take "
		"100 ms or more and a twentieth of the run. Modules loaded or unloaded with "
		"work between, five times or more.",
	.blind = "Whether the kernel could have been known before. A wait for the device is "
		 "inferred from the work that was submitted to it and not yet waited for. Where "
		 "there are no calls to compare a first use with, all of it may be the loading: "
		 "a note.",
	.fix = "Load before the work: CUDA_MODULE_LOADING=EAGER, or cudaFuncGetAttributes for each "
	       "kernel, or launch each once. If the kernel needs much stack, set it before "
	       "(cudaDeviceSetLimit, cudaLimitStackSize): a larger stack waits for the device, "
	       "too.",
	.free_behind_work = true,
	.absorbs = &detector_hidden_sync,
	.kernels = true,
	.always = DETECTOR_CONTRACT(MODULE) | DETECTOR_CONTRACT(LIBRARY),
	.when_long = DETECTOR_CONTRACT(LAUNCH) | DETECTOR_CONTRACT(LAZY_LOAD),
	.judge = judge,
	.keep = keep,
};
