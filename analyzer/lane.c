/*
 * analyzer/lane.c: the short way of calls as most are opens and closes. Called by the main reading.
 */
#include "lane.h"

void lane_open(struct lane *lane, const struct accounting *a, struct callstats *s,
	       const struct record *record)
{
	const struct thread *thread = record->thread;
	const struct process *process = &a->model->processes[record->process];
	struct caller *c = account_caller(a, thread);
	uint8_t device = record->raw->call_head.device;

	if (lane->caller == c && lane->device == device && record->ns < lane->until_ns)
		return;
	lane_close(lane, s);
	if (!c || !c->stream || c->n_finished < FINISHED_KEPT ||
	    !a->work.submissions[record->process] ||
	    !s->uses[record->process * CALLSTATS_DEVICES + device].first_ns ||
	    (process->mps_before.ns && !process->mps.ns))
		return;
	lane->caller = c;
	lane->thread = record->thread;
	lane->tid = record->stream->reader.tid;
	lane->device = device;
	lane->until_ns = crowd_slice_ns(c->crowd, c->slices);
}

void lane_close(struct lane *lane, struct callstats *s)
{
	struct calls_sum *thread, *device;
	size_t of_device;

	if (!lane->caller)
		return;
	of_device = lane->thread->process->trace->index * CALLSTATS_DEVICES + lane->device;
	thread = &s->threads[lane->thread->index];
	device = &s->devices[of_device];
	thread->count += lane->calls;
	thread->total_ns += lane->total_ns;
	thread->copied_bytes = add_capped(thread->copied_bytes, lane->copied_bytes);
	device->count += lane->calls;
	device->total_ns += lane->total_ns;
	device->copied_bytes = add_capped(device->copied_bytes, lane->copied_bytes);
	if (s->uses[of_device].last_ns < lane->last_ns)
		s->uses[of_device].last_ns = lane->last_ns;
	*lane = (struct lane){0};
}
