/*
 * analyzer/detectors/redundant_sync.c: synchronisations that have nothing to wait for: of a device
 * or a stream that was given no work since the last one, or none at all.
 */
#include "table.h"
#include "findings/site.h"
#include "text/text.h"

#define CALLS_LEAST 3

/* It took more than twice as long as such calls do: what it waited for was not seen being handed
 * over (a library's work), or seemed done (a copy in the default stream does not wait for all
 * streams). */
static bool has_waited(const struct observed *o)
{
	return completed_ns(o->call, BUCKET_GPU_INTENDED) > completed_ns(o->call, BUCKET_OWN);
}

static bool judge(const struct observed *o, struct verdict *v)
{
	/* Not behind an asynchronous copy that waits, but should not, nor where launches block:
	 * without that the wait is needed. */
	if (o->cold || o->record->stream->trace->cuda.launches_block ||
	    o->account->recent_ops.blocks_on_pageable || o->waits->sort != GPU_WAIT_INTENDED ||
	    o->record->event == SPY_EV_COPY || o->record->event == SPY_EV_MEMORY ||
	    record_failed(o->record) || observed_awaited(o) || has_waited(o))
		return false;
	v->cost_ns =
		o->call->end_ns - o->call->begin_ns - completed_ns(o->call, BUCKET_NOT_RUNNING);
	/* It is left out, and nothing comes in its place. */
	v->gain_low_ns = v->gain_high_ns = v->cost_ns;
	return true;
}

/* What such calls wait for, and have no work of. */
static const struct scope {
	const char *nothing, *fix;
} of_stream = {"the stream has been given no work since it was waited for last",
	       "Leave the call out, or wait for the stream that has the work."},
  of_event = {"what comes before the event had been waited for already",
	      "Leave the call out where what is before the event has been waited for."},
  of_device = {"the device has been given no work since it was waited for last",
	       "Leave the call out, or synchronise the device that works."};

static const struct scope *scope_of(const struct trace_set *set, const struct site *site)
{
	switch (set->functions.all[site->key.fn].contract) {
	case SPY_CONTRACT_STREAM:
		return &of_stream;
	case SPY_CONTRACT_EVENT:
		return &of_event;
	default:
		return &of_device;
	}
}

static const char *keep(const struct findings *f, const struct site *site, struct finding *finding,
			struct arena *texts)
{
	const struct scope *scope;

	if (site->count < CALLS_LEAST)
		return NULL;
	scope = scope_of(f->accounts->model->set, site);
	finding->fix = scope->fix;
	return arena_printf(texts, "%s had nothing to wait for: %s",
			    text_count(texts, site->count, "call"), scope->nothing);
}

const struct detector detector_redundant_sync = {
	.id = "redundant-sync",
	.title = "a synchronisation has nothing to wait for",
	.sees = "cudaDeviceSynchronize, cudaStreamSynchronize, cudaEventSynchronize and their "
		"relatives of a device, stream or event for which everything handed over had "
		"been waited for already.",
	.blind = "Work that cudaspy cannot see (see `cudaspy info`). Of a call that waits now "
		 "and then, only the times without anything to wait for are reported. A call "
		 "behind an asynchronous copy to pageable memory or from host to host, which "
		 "has waited itself, is no case: with that cured it is needed; nor is one in a "
		 "process with CUDA_LAUNCH_BLOCKING.",
	.fix = "Leave the call out, or wait for the device or stream that works.",
	.always = DETECTOR_CONTRACT(STREAM) | DETECTOR_CONTRACT(EVENT) | DETECTOR_CONTRACT(DEVICE),
	.judge = judge,
	.keep = keep,
};
