/*
 * analyzer/detectors/early_sync.c: a synchronisation that could come later. The host waits for the
 * GPU, gets nothing by it, and then works on its own while the GPU has nothing to do: they take
 * turns.
 *
 * A case is a wait, not a copy, that took a while, which brought nothing to the host and after
 * which the GPU was idle, if the thread then spends a while outside of CUDA before it goes on
 * working with the GPU, and no other thread gives that GPU work meanwhile. Of the two times the
 * shorter one would have been saved, had the host's work come first. Whether it could, the trace
 * does not show: the host may refill the one buffer of its input, hand results to a library or a
 * network card that reads the GPU's memory, take the time, or sleep. So it is a note.
 *
 * Once does not count: at the end of a measurement, of a phase or of a thread's preparations every
 * program waits, and it is no problem. So it takes ten rounds of each thread, and not at the begin
 * and in the middle only.
 */
#include "table.h"
#include "findings/site.h"
#include "text/text.h"

#define WAIT_LEAST_NS 50000
/* More than sync_every_launch.c takes for "at once". */
#define HOST_LEAST_NS 100000
#define ROUNDS_LEAST 10
#define TENTHS_LEAST 3

/* Tally: nanoseconds that the host was on its own. Mark: what the device had been given. */

static bool judge(const struct observed *o, struct verdict *v)
{
	uint64_t waited_ns = completed_ns(o->call, BUCKET_GPU_INTENDED);

	if (waited_ns < WAIT_LEAST_NS || o->waits->sort != GPU_WAIT_INTENDED ||
	    o->record->event == SPY_EV_COPY || o->record->event == SPY_EV_MEMORY ||
	    record_failed(o->record) || !observed_awaited(o) || observed_host_visible(o) ||
	    observed_host_sees(o) || !observed_ends(o))
		return false;
	v->cost_ns = waited_ns;
	v->mark = observed_handed_over(o, o->call->device);
	v->open = v->alone = true;
	return true;
}

/* Calls about which the GPU does not care do not end the host's time; what they take is not part of
 * it. */
static bool goes_on(uint8_t contract)
{
	switch (contract) {
	case SPY_CONTRACT_HOST:
	case SPY_CONTRACT_ALLOC:
	case SPY_CONTRACT_PIN:
	case SPY_CONTRACT_GRAPH_BUILD:
	case SPY_CONTRACT_INIT: /* cudaSetDevice */
	case SPY_CONTRACT_FREE: /* what is cleared away at the end gives the GPU nothing to do */
	case SPY_CONTRACT_MODULE:
	case SPY_CONTRACT_LIBRARY:
		return false;
	default:
		return true;
	}
}

static enum settled settle(const struct claim *claim, const struct observed *next,
			   struct verdict *v)
{
	if (!next || observed_starts_up(next)) /* then another context's work comes */
		return SETTLED_NONE;
	if (!goes_on(next->contract))
		return SETTLED_NOT;
	if (claim->outside_ns < HOST_LEAST_NS + claim->looks_ns ||
	    observed_handed_over(next, claim->device) != v->mark)
		return SETTLED_NONE;
	if (v->cost_ns > claim->outside_ns)
		v->cost_ns = claim->outside_ns;
	v->gain_high_ns = v->cost_ns;
	v->tally = claim->outside_ns;
	return SETTLED_CASE;
}

/* Pinned memory, and not one copy to the host: its results must get there in that memory. */
static bool writes_to_host(const struct accounting *a, const struct site *site)
{
	const struct host_view *view = &a->work.views[site->key.process];

	return view->pinned && !view->copies;
}

static const char *keep(const struct findings *f, const struct site *site, struct finding *finding,
			struct arena *texts)
{
	if (site->rounds.count < ROUNDS_LEAST || site->count < ROUNDS_LEAST * site->threads ||
	    site_spread(f->accounts, site) < TENTHS_LEAST || writes_to_host(f->accounts, site))
		return NULL;
	finding->remarks.maybe_harmless = true;
	return arena_printf(
		texts,
		"%llu times the thread waited for the GPU, %s in all, which brought "
		"nothing to the host; then it spent %s outside of CUDA, and the GPU had "
		"nothing to do: host and GPU took turns",
		(unsigned long long)site->count, text_time(texts, site->total_ns),
		text_time(texts, site->tally));
}

const struct detector detector_early_sync = {
	.id = "early-sync",
	.title = "the host waits for the GPU before it needs the results",
	.sees = "cudaDeviceSynchronize, cudaStreamSynchronize, cudaEventSynchronize and their "
		"relatives at one place, ten times or more in each thread and in the program's "
		"work, that waited 50 us or more, brought nothing to the host and left the GPU "
		"idle, and after which the thread spent 100 "
		"us or more outside of CUDA before it went on. The cost is the shorter of the two "
		"times, each time: so much would have been saved with the wait behind the host's "
		"work.",
	.blind = "Why the host waited: whether it refills a buffer from which a copy was still "
		 "reading, measures the time, hands results to MPI, a network card or another "
		 "process, or reads pinned memory which the GPU writes to. Whether it worked, or "
		 "slept, or waited for another thread. So the cure gains between nothing and "
		 "the cost. Programs with managed memory, or with pinned memory and no copy to the "
		 "host, what comes behind graphs and functions "
		 "on the host, a GPU that other threads give work meanwhile, and a wait that is "
		 "made a few times are no case.",
	.fix = "Do the host's work first and synchronise where results are needed; a blocking "
	       "copy to the host waits by itself. If it is for a buffer that the host refills: "
	       "use two in turns, and wait for an event behind the copy only.",
	.when_long =
		DETECTOR_CONTRACT(STREAM) | DETECTOR_CONTRACT(EVENT) | DETECTOR_CONTRACT(DEVICE),
	.idle_behind = true,
	.judge = judge,
	.settle = settle,
	.keep = keep,
};
