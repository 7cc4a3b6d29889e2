/*
 * analyzer/detectors/hidden_sync.c: calls that wait for the GPU unexpectedly: freeing, unpinning,
 * loading and unloading code, a changed limit, asynchronous copies from host to host.
 *
 * Without the wait the thread may come to the next one earlier, and wait there for the same: then
 * the cure gives back no more than what it did in between. That is certain where no work was handed
 * over meanwhile, and the next wait is for the device, or for the one stream that had work when the
 * call came. One that is hidden, too, does not count: the cure is for all of them.
 */
#include "table.h"
#include "findings/site.h"
#include "text/text.h"

/* Mark: the stream that alone had work; 0: several had. */

enum variant { WAITED, PERHAPS };

/* Loading takes what the code takes. Without loads on an idle device that took far less, it cannot
 * be told from a wait; that is worth a note only where it is a good part of a thread's time. */
#define PERHAPS_SHARE 0.05

static bool is_load(uint8_t contract)
{
	return contract == SPY_CONTRACT_MODULE || contract == SPY_CONTRACT_LIBRARY;
}

static bool judge(const struct observed *o, struct verdict *v)
{
	if (o->contract == SPY_CONTRACT_LAZY_LOAD) /* lazy_loading.c knows better */
		return false;
	v->cost_ns = completed_ns(o->call, BUCKET_GPU_HIDDEN);
	if (o->waits->sort != GPU_WAIT_HIDDEN || !v->cost_ns)
		return false;
	/* The thread may have to wait for the same work later. */
	v->gain_high_ns = v->cost_ns;
	if (is_load(o->contract) && !observed_is_no_loading(o))
		v->variant = PERHAPS;
	else
		v->open = o->waits->what == GPU_WAIT_DEVICE &&
			  observed_nothing_submitted(o, &v->mark);
	return true;
}

static bool covers(const struct claim *claim, const struct observed *next, const struct verdict *v)
{
	return (v->mark || next->waits->what == GPU_WAIT_DEVICE) &&
	       observed_covers(next, v->mark, claim);
}

static enum settled settle(const struct claim *claim, const struct observed *next,
			   struct verdict *v)
{
	if (!next || claim_between_ns(claim) >= v->cost_ns ||
	    observed_submissions(next) != claim->submissions)
		return SETTLED_CASE;
	if (!observed_means_to_wait(next) || !covers(claim, next, v))
		return SETTLED_NOT;
	claim_waits_anyway(claim, v);
	return SETTLED_CASE;
}

/* Of calls that free, the detector's. */
static const char *cure(const struct trace_set *set, const struct site *site)
{
	switch (set->functions.all[site->key.fn].contract) {
	case SPY_CONTRACT_LIMIT:
		return "Set limits once, before the work.";
	case SPY_CONTRACT_MODULE:
	case SPY_CONTRACT_LIBRARY:
		return "Load code before the work, keep it, and unload it behind the work.";
	case SPY_CONTRACT_COPY_ASYNC:
	case SPY_CONTRACT_COPY_BATCH:
		return "Copying from host to host is the CPU's work in any case: use memcpy where "
		       "the data is known to be there, or have the stream call a function that "
		       "copies (cudaLaunchHostFunc).";
	default:
		return detector_hidden_sync.fix;
	}
}

static bool is_good_part(const struct accounting *a, const struct site *site)
{
	return site_cost_share(a, site).share >= PERHAPS_SHARE;
}

static const char *keep(const struct findings *f, const struct site *site, struct finding *finding,
			struct arena *texts)
{
	const char *anyway = site_waits_anyway(site);

	if (site->rounds.at_the_end && !(uint64_t)site->cost.others_ns)
		return NULL;
	finding->fix = cure(f->accounts->model->set, site);
	if (finding->variant == PERHAPS) {
		if (!is_good_part(f->accounts, site))
			return NULL;
		finding->cost.unknown = true;
		return arena_printf(
			texts,
			"%s loaded or unloaded code behind work of the GPU, %s inside %s: what of "
			"it was a wait for that work is unknown",
			text_count(texts, site->count, "call"), text_time(texts, site->cost.own_ns),
			site->count == 1 ? "it" : "them");
	}
	finding->cost.cost_share = finding_cost_share(f->accounts, finding);
	finding->remarks.maybe_harmless = *anyway && finding_gains_little(finding);
	return arena_printf(texts,
			    "%s waited for the GPU for %s, which such calls do not "
			    "promise to do%s%s",
			    text_count(texts, site->count, "call"),
			    text_time(texts, site->cost.own_ns), anyway,
			    f->accounts->probed[site->key.process]
				    ? ""
				    : "; without probes it is unknown whether some of it was a "
				      "wait for a lock");
}

const struct detector detector_hidden_sync = {
	.id = "hidden-sync",
	.title = "a call that is no synchronisation waits for the GPU",
	.sees = "Calls whose time goes beyond their own work and that are known to wait for "
		"work of the device: cudaFree, cudaFreeHost, cudaHostUnregister, cudaFreeArray, "
		"loading and unloading of modules, a changed stack limit, asynchronous copies "
		"from host to host.",
	.blind = "That the GPU was busy is inferred from the work that was submitted and not "
		 "yet waited for, because the GPU is not asked. Calls after a process' last "
		 "launch or copy are no case: the end has to be waited for. What the wait would "
		 "have cost elsewhere: where the thread then waits for the same work in any "
		 "case, the gain has only what it did in between; if that is next to nothing, "
		 "it is a note. Where several streams had work and the next wait is for one of "
		 "them, or more was handed over before it, it is unknown.",
	.fix = "Free outside the loop, or in the stream's order: cudaMallocAsync and "
	       "cudaFreeAsync, pools, buffers that are used again. Load code and set limits "
	       "before the work.",
	.free_behind_work = true,
	.when_long = DETECTOR_CONTRACT(FREE) | DETECTOR_CONTRACT(LIMIT) |
		     DETECTOR_CONTRACT(MODULE) | DETECTOR_CONTRACT(LIBRARY) |
		     DETECTOR_CONTRACT(COPY_ASYNC) | DETECTOR_CONTRACT(COPY_BATCH),
	.judge = judge,
	.settle = settle,
	.keep = keep,
};
