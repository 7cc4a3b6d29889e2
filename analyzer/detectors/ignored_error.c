/*
 * analyzer/detectors/ignored_error.c: calls that failed, after which their thread went on as if
 * nothing had happened.
 *
 * Some results are answers (answers[]): the program asked and will know what to do. They are minor,
 * or notes where asking took long, and never problems. An error that stays with its context is
 * returned by every call from then on: that is one finding, where it showed first. That, and
 * launches and copies which did not take place, are problems whatever they cost.
 */
#include <string.h>
#include "table.h"
#include "findings/site.h"
#include "text/text.h"

/* Variant: the result. */

#define OUT_OF_MEMORY 2
#define OUT_OF_RESOURCES 701

/* The context cannot be used any more. */
static bool stays(uint32_t result)
{
	return result == 214 || result == 220 || result == 700 || result == 702 || result == 710 ||
	       (result >= 714 && result <= 719);
}

static const char *answer(const struct trace_set *set, const struct site *site, uint32_t result)
{
	uint8_t contract = set->functions.all[site->key.fn].contract;
	const char *function = set->functions.all[site->key.fn].name;
	const char *why = callstats_answer(result) ?: callstats_trial(function, contract, result);

	if (why)
		return why;
	/* Allocators try, free what they keep, and try again. */
	if (result == OUT_OF_MEMORY &&
	    (contract == SPY_CONTRACT_ALLOC || contract == SPY_CONTRACT_ALLOC_POOL ||
	     contract == SPY_CONTRACT_PIN))
		return "memory was asked for";
	return NULL;
}

/* What only makes work faster, and what not all GPUs and systems can do. */
static bool is_hint(const char *function)
{
	return strstr(function, "Prefetch") || strstr(function, "Advise");
}

/* Of contract SUBMIT: graphs, memsets and copies; else events, host functions, hints. */
static bool hands_over_work(const char *function)
{
	return !is_hint(function) && (strstr(function, "GraphLaunch") ||
				      strstr(function, "Memset") || strstr(function, "Memcpy"));
}

/* Work for a GPU that was not done. Programs that tune kernels try which launches are too large for
 * it. */
static bool is_work_undone(const struct trace_set *set, const struct site *site, uint32_t result)
{
	switch (set->functions.all[site->key.fn].contract) {
	case SPY_CONTRACT_LAUNCH:
		return result != OUT_OF_RESOURCES;
	case SPY_CONTRACT_COPY_SYNC:
	case SPY_CONTRACT_COPY_ASYNC:
	case SPY_CONTRACT_COPY_BATCH:
	case SPY_CONTRACT_PEER:
	case SPY_CONTRACT_MEMSET_SYNC:
		return true;
	case SPY_CONTRACT_SUBMIT:
		return hands_over_work(set->functions.all[site->key.fn].name);
	default:
		return false;
	}
}

static bool judge(const struct observed *o, struct verdict *v)
{
	uint16_t result = o->record->result;

	if (!record_failed(o->record))
		return false;
	v->cost_ns = completed_ns(o->call, BUCKET_OWN);
	v->variant = result;
	return true;
}

/* Calls of the process that returned the same at other places; was one of them earlier? */
static uint64_t count_elsewhere(const struct findings *f, const struct site *site, bool *earlier)
{
	uint64_t n = 0;

	*earlier = false;
	for (const struct site *other = f->sites; other; other = other->hh.next) {
		if (other == site || other->key.detector != site->key.detector ||
		    other->key.variant != site->key.variant ||
		    other->key.process != site->key.process)
			continue;
		n += other->count;
		*earlier |= other->first_ns < site->first_ns;
	}
	return n;
}

static const char *keep_staying(const struct findings *f, const struct site *site,
				struct finding *finding, struct arena *texts, const char *name)
{
	bool earlier;
	uint64_t elsewhere = count_elsewhere(f, site, &earlier);

	if (earlier || (!elsewhere && !site_went_on(f->accounts, site)))
		return NULL;
	finding->fix = "Check results. The fault is in work handed over before: compute-sanitizer "
		       "finds it, and CUDA_LAUNCH_BLOCKING=1 moves the error to the call that "
		       "launched it.";
	return arena_printf(texts,
			    "%s, first at %s: the context cannot be used any more, and the program "
			    "went on: %llu calls here and %llu elsewhere returned it",
			    name, text_since(texts, f->accounts->model, site->first_ns),
			    (unsigned long long)site->count, (unsigned long long)elsewhere);
}

static const char *keep(const struct findings *f, const struct site *site, struct finding *finding,
			struct arena *texts)
{
	const struct model *model = f->accounts->model;
	const char *name = text_result(model->set, site->key.fn, finding->variant);
	const char *why = answer(model->set, site, finding->variant);

	finding->cost.gain_known = false;
	finding->remarks.shown = !why;
	finding->remarks.wrong = !why && (stays(finding->variant) ||
					  is_work_undone(model->set, site, finding->variant));
	finding->remarks.ends_all = stays(finding->variant);
	finding->remarks.maybe_harmless = why; /* the thread that asks pays for the answer */
	if (stays(finding->variant))
		return keep_staying(f, site, finding, texts, name);
	if (!site_went_on(f->accounts, site))
		return NULL;
	if (why)
		return arena_printf(texts,
				    "%s returned %s, first at %s; %s, so this may be "
				    "as it should be",
				    text_count(texts, site->count, "call"), name,
				    text_since(texts, model, site->first_ns), why);
	return arena_printf(texts, "%s returned %s, first at %s, and the thread went on working",
			    text_count(texts, site->count, "call"), name,
			    text_since(texts, model, site->first_ns));
}

const struct detector detector_ignored_error = {
	.id = "ignored-error",
	.title = "a call failed, and the program went on",
	.sees = "Calls that returned an error (not cudaErrorNotReady), when the same thread "
		"then went on to allocate, copy, launch or synchronise. An error that makes the "
		"context unusable is reported once, at the call that returned it first. That "
		"and launches, copies and memsets that failed are problems, whatever they cost.",
	.blind = "Whether the program looked at the result: it may have handled the error and "
		 "gone on rightly. Errors that are mostly answers (out of memory for an "
		 "allocation, peer access enabled already, not supported, …) are minor for that "
		 "reason, or notes, however long they took. Errors of work on the GPU are "
		 "returned by some later call.",
	.fix = "Check the result of every call, and cudaGetLastError() after a launch.",
	.failures = true,
	.judge = judge,
	.keep = keep,
};
