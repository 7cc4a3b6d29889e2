/*
 * analyzer/detectors/capture_break.c: calls that a stream's capture does not permit, and that break
 * it.
 *
 * CUDA says so in the call's result (CAPTURE_FIRST to CAPTURE_LAST), and from then on in those of
 * the calls that go on with the capture (CAPTURE_INVALIDATED): these are part of the finding.
 */
#include "table.h"
#include "findings/site.h"
#include "text/text.h"

#define CAPTURE_FIRST 900
#define CAPTURE_INVALIDATED 901
#define CAPTURE_LAST 908

/* Variant: the result. */

static bool judge(const struct observed *o, struct verdict *v)
{
	uint16_t result = o->record->result;

	if (!record_failed(o->record) || result < CAPTURE_FIRST || result > CAPTURE_LAST)
		return false;
	v->cost_ns = completed_ns(o->call, BUCKET_OWN);
	v->variant = result;
	return true;
}

/* Calls of the process that found their capture broken; and is any other one known to have
 * done it? */
static uint64_t count_broken(const struct findings *f, const struct site *site, bool *breaker)
{
	uint64_t n = 0;

	*breaker = false;
	for (const struct site *other = f->sites; other; other = other->hh.next) {
		if (detectors_row(other->key.detector) != &detector_capture_break ||
		    other->key.process != site->key.process)
			continue;
		if (other->key.variant == CAPTURE_INVALIDATED)
			n += other->count;
		else
			*breaker = true;
	}
	return n;
}

static const char *keep(const struct findings *f, const struct site *site, struct finding *finding,
			struct arena *texts)
{
	const struct model *model = f->accounts->model;
	const char *name = text_result(model->set, site->key.fn, finding->variant);
	const char *calls = site->count == 1 ? "call" : "calls";
	bool breaker;
	uint64_t broken = count_broken(f, site, &breaker);

	if (finding->variant == CAPTURE_INVALIDATED && breaker)
		return NULL;
	finding->cost.gain_known = false;
	finding->remarks.wrong = true;
	if (finding->variant == CAPTURE_INVALIDATED)
		return arena_printf(texts,
				    "%llu %s found a capture broken (%s), first at %s; which call "
				    "broke it is not in the trace",
				    (unsigned long long)site->count, calls, name,
				    text_since(texts, model, site->first_ns));
	return arena_printf(texts,
			    "%llu %s that a stream's capture does not permit: %s, first at %s; "
			    "%llu later calls found the capture broken",
			    (unsigned long long)site->count, calls, name,
			    text_since(texts, model, site->first_ns), (unsigned long long)broken);
}

const struct detector detector_capture_break = {
	.id = "capture-break",
	.title = "a call breaks the capture of a stream",
	.sees = "Calls that return one of the errors of stream capture, "
		"cudaErrorStreamCaptureUnsupported to cudaErrorStreamCaptureWrongThread: such as a "
		"synchronisation, an allocation or the use of the legacy default stream while a "
		"stream captures. The graph is lost.",
	.blind = "Whether the program captures again, or does without the graph. If code that "
		 "cudaspy does not see made the breaking call, only the calls that found the "
		 "capture broken are named.",
	.fix = "Make the call before the capture or after it. If another thread makes it, "
	       "without relation to the capture, begin the capture with "
	       "cudaStreamCaptureModeThreadLocal; work in streams made with "
	       "cudaStreamNonBlocking.",
	.failures = true,
	.judge = judge,
	.keep = keep,
};
