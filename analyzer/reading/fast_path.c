/*
 * analyzer/reading/fast_path.c: the fast path of a thread opens and closes. Called by the main reading.
 */
#include "fast_path.h"

/* Before the ring of a thread's calls has no room for more. */
#define DIVIDED_OFTEN_NS 50000

void fast_path_open(struct fast_path *path, const struct accounting *a, struct callstats *s,
		    const struct record *record)
{
	const struct thread *thread = record->thread;
	const struct process *process = &a->model->processes[record->process];
	struct thread_account *c = thread_account_of(a, thread);
	uint8_t device = record->device;

	if (path->account == c && path->device == device && record->ns < path->until_ns)
		return;
	fast_path_close(path, s);
	/* What other filters decide upon does not change while it is open. */
	if (unlikely(filter_has(a->filtering, FILTER_FUNCTION)))
		return;
	if (!c || c->left_out || !c->stream || c->ring.n < COMPLETED_KEPT ||
	    !a->work.submissions[record->process] ||
	    !s->uses[callstats_index(s, record->process, device)].first_ns ||
	    (process->mps_before.ns && !process->mps.ns))
		return;
	path->account = c;
	path->thread = record->thread;
	path->tid = record->tid;
	path->device = device;
	path->until_ns =
		min_u64(cpu_pressure_slice_ns(c->cpu_pressure, c->slices), a->filtering->to_ns);
	if (c->divided_often)
		path->until_ns = min_u64(path->until_ns, record->ns + DIVIDED_OFTEN_NS);
}

void fast_path_close(struct fast_path *path, struct callstats *s)
{
	struct calls_sum *thread, *device;
	size_t of_device;

	if (!path->account)
		return;
	of_device = callstats_index(s, path->thread->process->trace->index, path->device);
	thread = &s->threads[path->thread->index];
	device = &s->devices[of_device];
	thread->count += path->calls;
	thread->total_ns += path->total_ns;
	thread->copied_bytes = add_capped(thread->copied_bytes, path->copied_bytes);
	device->count += path->calls;
	device->total_ns += path->total_ns;
	device->copied_bytes = add_capped(device->copied_bytes, path->copied_bytes);
	device->fast_copies_ns += path->copies_ns;
	if (s->uses[of_device].last_ns < path->last_ns)
		s->uses[of_device].last_ns = path->last_ns;
	*path = (struct fast_path){0};
}
