/*
 * analyzer/idle/busy.c: for how long a GPU certainly worked: threads waited for it. Called by idle.c for calls and for the
 * scheduler's accounts of threads, and by the report.
 *
 * A thread that waits for work of a GPU returns when that is done, but for what it takes to wake it, and to give it a CPU.
 * It may also have waited, where no probe sees it, for another thread that held something inside CUDA and had no CPU. So
 * of the union of all waits as much is in doubt as threads of the process were ready and on no CPU. A wait after which the
 * scheduler was not asked proves nothing until it is.
 */
#include "idle.h"

#define WAKING_NS 100000 /* it takes to wake a thread, at most */

/* Does a call that waited for the GPU prove that it worked? One that does anything else may have taken longer for that. */
static bool proves_work(const struct record *record)
{
	if (record_failed(record))
		return false;
	switch (record->contract) {
	case SPY_CONTRACT_STREAM:
	case SPY_CONTRACT_EVENT:
	case SPY_CONTRACT_DEVICE:
		return true;
	case SPY_CONTRACT_COPY_SYNC:
		return record->event == SPY_EV_COPY && !copy_is_pageable(record_copy(record));
	default:
		return false;
	}
}

/* Of the time [begin_ns, end_ns), which ends the last so far, what others have not waited for. */
static uint64_t add_wait(struct idle_gpu *gpu, const struct phase *phase, uint64_t begin_ns,
			 uint64_t end_ns)
{
	end_ns = min_u64(end_ns, phase->end_ns);
	begin_ns = max_u64(begin_ns, max_u64(phase->begin_ns, gpu->waited_until_ns));
	if (begin_ns >= end_ns)
		return 0;
	gpu->waited_ns += end_ns - begin_ns;
	gpu->waited_until_ns = end_ns;
	return end_ns - begin_ns;
}

void busy_see_call(struct idle_gpu *gpu, struct host_thread *h, const struct phase *phase,
		   const struct record *record, const struct completed_call *f,
		   uint64_t in_calls_ns)
{
	bool looked = h->looked_ns == record->ns;
	uint64_t ns;

	if (looked)
		h->looked_in_calls_ns = in_calls_ns;
	if (!proves_work(record))
		return;
	ns = completed_ns(f, BUCKET_GPU_INTENDED) + completed_ns(f, BUCKET_NOT_RUNNING);
	ns = min_u64(ns, f->end_ns - f->begin_ns);
	if (ns <= WAKING_NS)
		return;
	ns = add_wait(gpu, phase, f->end_ns - ns, f->end_ns - WAKING_NS);
	if (!looked)
		h->unsure_ns += ns;
}

void busy_see_look(struct host_thread *h, const struct phase *phase, const struct record *record,
		   uint64_t in_calls_ns)
{
	const struct sched_record sched = decode_sched(record);
	uint64_t begin_ns =
		max_u64(record->ns - min_u64(sched.window_ns, record->ns), phase->begin_ns);
	uint64_t end_ns = min_u64(record->ns, phase->end_ns);
	uint64_t lacked_ns = add_capped(sched.not_running_ns, sched.unknown_ns);

	h->looked_ns = record->ns;
	h->unsure_ns = 0;
	if (record->event == SPY_EV_GAP) { /* most of the time was between calls */
		lacked_ns = min_u64(lacked_ns, in_calls_ns - h->looked_in_calls_ns);
		h->looked_in_calls_ns = in_calls_ns;
	}
	if (begin_ns < end_ns)
		h->lacked_ns += min_u64(lacked_ns, end_ns - begin_ns);
}

uint64_t busy_certain_ns(const struct idle *idle, const struct idle_gpu *gpu)
{
	const struct thread *thread;
	uint64_t doubt_ns = 0;

	for (thread = gpu->processes[0]->threads; thread; thread = thread->next) {
		const struct host_thread *h = host_thread_find(&idle->threads, thread);

		if (h)
			doubt_ns += h->lacked_ns + h->unsure_ns;
	}
	return gpu->waited_ns - min_u64(doubt_ns, gpu->waited_ns);
}
