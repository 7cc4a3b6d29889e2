/*
 * analyzer/detectors/sync_every_launch.c: a synchronisation after every launch or two. The GPU then
 * has nothing to do from the end of one kernel until the host has noticed and handed over the next.
 *
 * A case is a wait for which all this is known: the thread made the same wait before, or one that
 * came so soon, too; it handed over one or two things since, and began with that at once; none of
 * it brought data to the host, nor may have, as a graph may; the GPU had nothing else outstanding;
 * and the wait was short, for next to a long kernel the gap is nothing. The time that the kernel
 * takes is no cost: it has to run.
 */
#include "table.h"
#include "findings/site.h"
#include "text/text.h"

#define SUBMISSIONS_MOST 2
/* Of those, and events and waits for events around them. */
#define OUTSTANDING_MOST 5
/* Went on at once: else the host had something to do, maybe with results. */
#define AT_ONCE_NS 50000
#define SHORT_WAIT_NS 1000000
#define ROUNDS_LEAST 10
#define TENTHS_LEAST 4

/* Tally: nanoseconds from the wait before to what was handed over next. */

static bool waits_for_work(const struct observed *o)
{
	return o->waits->sort == GPU_WAIT_INTENDED && !o->cold && o->record->event != SPY_EV_COPY &&
	       o->record->event != SPY_EV_MEMORY && !record_failed(o->record);
}

static bool is_few(uint64_t submissions)
{
	return submissions && submissions <= SUBMISSIONS_MOST;
}

static bool is_round(const struct observed *o)
{
	const struct recent_ops *recent_ops = &o->account->recent_ops;

	return is_few(recent_ops->submissions) && !observed_host_visible(o) &&
	       (is_few(recent_ops->before) ||
		recent_ops->waited_at == record_return_address(o->record)) &&
	       recent_ops->first_ns >= recent_ops->waited_ns &&
	       recent_ops->first_ns - recent_ops->waited_ns <= AT_ONCE_NS;
}

static bool judge(const struct observed *o, struct verdict *v)
{
	uint64_t awaited;

	if (!waits_for_work(o) || !is_round(o) || observed_host_sees(o) ||
	    completed_ns(o->call, BUCKET_GPU_INTENDED) > SHORT_WAIT_NS)
		return false;
	awaited = observed_awaited(o);
	if (!awaited || awaited > OUTSTANDING_MOST || observed_outstanding(o) != awaited)
		return false;
	v->cost_ns = completed_ns(o->call, BUCKET_OWN) + o->account->recent_ops.first_own_ns;
	/* Without the wait both would have been done while the GPU works: if the results can
	 * wait. */
	v->gain_high_ns = v->cost_ns;
	v->tally = o->account->recent_ops.first_ns - o->account->recent_ops.waited_ns;
	return true;
}

static const char *keep(const struct findings *f, const struct site *site, struct finding *finding,
			struct arena *texts)
{
	(void)finding;
	if (site->rounds.count < ROUNDS_LEAST || site_spread(f->accounts, site) < TENTHS_LEAST)
		return NULL;
	return arena_printf(
		texts,
		"%s the thread waited for one or two launches or copies, and handed "
		"over the next %s later: the GPU had nothing to do from the end of one to the "
		"next",
		text_count(texts, site->count, "time"),
		text_time(texts, site->tally / site->count));
}

const struct detector detector_sync_every_launch = {
	.id = "sync-every-launch",
	.title = "the host synchronises after every launch or two",
	.sees = "cudaDeviceSynchronize, cudaStreamSynchronize, cudaEventSynchronize and their "
		"relatives at one place, ten times in the program's work or more, each after "
		"one or two launches or copies of its thread that brought nothing to the host, "
		"and each followed by the next within 50 us. The cost is the calls' own work, "
		"during which the GPU has nothing to do: not the time that the kernels take.",
	.blind = "Results that the host reads from pinned memory which the GPU writes to, and "
		 "programs that want to measure each launch. Programs that use managed memory, "
		 "what comes behind graphs and functions on the host, waits of more than 1 ms, "
		 "and a GPU that has other work meanwhile are no case. Nor are loops that ask "
		 "until the work is done (cudaStreamQuery, cudaEventQuery): questions are "
		 "counted only.",
	.fix = "Synchronise where results are needed: what is handed to a stream runs in order "
	       "without it. For order between streams use cudaStreamWaitEvent, for many small "
	       "kernels a CUDA graph.",
	.always = DETECTOR_CONTRACT(STREAM) | DETECTOR_CONTRACT(EVENT) | DETECTOR_CONTRACT(DEVICE),
	.idle_behind = true,
	.judge = judge,
	.keep = keep,
};
