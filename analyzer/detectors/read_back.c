/*
 * analyzer/detectors/read_back.c: a few bytes copied from the GPU and waited for at once, again and
 * again: a loss, a flag or a counter that the host reads in every step (in PyTorch, .item()).
 *
 * A case is a wait right behind a small copy to the host, in the same stream or of the whole
 * device, or a synchronous copy that waited itself. All work before it has to end before the host
 * goes on, and the GPU then has nothing to do until it does. What that costs the program is
 * unknown: the kernels have to run in any case. So it is a note.
 */
#include "table.h"
#include "findings/site.h"
#include "text/text.h"

#define ROUNDS_LEAST 20
#define TENTHS_LEAST 2

static bool waits_for_copy(const struct observed *o)
{
	const struct copy_run *run = &o->account->recent_ops.run;
	const struct spy_rec_copy *copy = record_copy(o->record);

	if (copy)
		return o->contract == SPY_CONTRACT_COPY_SYNC && copy_took_place(copy) &&
		       copy->direction == SPY_DIR_D2H && copy->bytes <= DETECTOR_FEW_BYTES;
	return run->count == 1 && run->direction == SPY_DIR_D2H &&
	       run->bytes <= DETECTOR_FEW_BYTES &&
	       (o->waits->what != GPU_WAIT_STREAM || record_stream(o->record) == run->stream);
}

static bool judge(const struct observed *o, struct verdict *v)
{
	if (o->waits->sort != GPU_WAIT_INTENDED || o->cold || record_failed(o->record) ||
	    !waits_for_copy(o))
		return false;
	v->cost_ns = completed_ns(o->call, BUCKET_GPU_INTENDED);
	v->gain_high_ns = v->cost_ns;
	return v->cost_ns;
}

static const char *keep(const struct findings *f, const struct site *site, struct finding *finding,
			struct arena *texts)
{
	if (site->rounds.count < ROUNDS_LEAST || site_spread(f->accounts, site) < TENTHS_LEAST)
		return NULL;
	finding->remarks.maybe_harmless = true;
	return arena_printf(texts,
			    "%s the thread fetched a few bytes from the GPU and waited for "
			    "them at once, and so for all work before them: %s in these waits",
			    text_count(texts, site->count, "time"),
			    text_time(texts, site->cost.own_ns));
}

const struct detector detector_read_back = {
	.id = "read-back",
	.title = "the host waits for a few bytes from the GPU in every step",
	.sees = "Copies of 256 bytes or less to the host with a wait for their stream, an event or "
		"the device right behind them, and synchronous ones, twenty times in the program's "
		"work or more: a loss, a flag or a counter that the host looks at.",
	.blind = "Whether the host needs the value before it goes on, and what the GPU could have "
		 "done meanwhile: the time in the waits is not what the cure gains, which lies "
		 "between nothing and that. Values that the host reads from memory which the GPU "
		 "writes to.",
	.fix = "Keep the value on the GPU and fetch it less often, or many at once; or copy it "
	       "to pinned memory, record an event and look one step later. In PyTorch: no "
	       ".item(), print or if on a tensor in every step.",
	.always = DETECTOR_CONTRACT(STREAM) | DETECTOR_CONTRACT(EVENT) | DETECTOR_CONTRACT(DEVICE) |
		  DETECTOR_CONTRACT(COPY_SYNC),
	.when_long = DETECTOR_CONTRACT(MEMSET_SYNC),
	.judge = judge,
	.keep = keep,
};
