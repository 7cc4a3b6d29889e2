/*
 * analyzer/findings/gpu_use.c: how GPUs were used, and what of that is certain. Called by detectors,
 * by findings and by the report's section of GPUs, after the last record.
 */
#include "gpu_use.h"

struct span gpu_work_span(const struct analysis *a, const struct idle_gpu *gpu)
{
	struct span span = {UINT64_MAX, 0};
	size_t i;

	for (i = 0; i < gpu->n_processes; i++) {
		const struct process *process = gpu->processes[i];
		const struct phase *phase = &a->expect.phases.all[process->trace->index];

		span.begin_ns =
			min_u64(span.begin_ns, phase->found ? phase->begin_ns : process->first_ns);
		span.end_ns = max_u64(span.end_ns, phase->found ? phase->end_ns : process->last_ns);
	}
	return span;
}

uint64_t gpu_work_ns(const struct analysis *a, const struct idle_gpu *gpu)
{
	struct span span = gpu_work_span(a, gpu);
	uint64_t ns = span.end_ns > span.begin_ns ? span.end_ns - span.begin_ns : 0;

	if (gpu->n_processes == 1)
		ns -= process_dormant_ns(gpu->processes[0], span.begin_ns, span.begin_ns + ns);
	return ns;
}

static bool is_blind(const struct process *process)
{
	const struct note *note;

	for (note = process->notes; note; note = note->hh.next)
		if (note->note == SPY_NOTE_BLIND)
			return true;
	return false;
}

static bool shares_memory(const struct analysis *a)
{
	uint32_t fn;

	for (fn = 0; fn < a->set->functions.count && fn < a->stats.n_functions; fn++)
		if (a->set->functions.all[fn].does == FUNCTION_OPENS_SHARED &&
		    (a->stats.direct[fn].count || filter_saw_call(&a->filtering, fn)))
			return true;
	return false;
}

const char *gpu_why_uncertain(const struct analysis *a, const struct idle_gpu *gpu)
{
	const struct gpu *named = idle_named(gpu);
	size_t i;

	if (!a->complete)
		return "records are lost";
	if (named && named->client == SPY_CLIENT_YES)
		return "other clients of MPS may use it";
	if (shares_memory(a))
		return "another process may work in memory that they share";
	for (i = 0; i < gpu->n_processes; i++)
		if (is_blind(gpu->processes[i]))
			return "not all calls are seen: see the notes";
	return NULL;
}

const char *gpu_why_unknown(const struct analysis *a, const struct idle_gpu *gpu)
{
	return a->complete && idle_gpu_is_exact(gpu) ? NULL : gpu_why_uncertain(a, gpu);
}

const struct thread *gpu_feeder(const struct analysis *a, const struct idle_gpu *gpu)
{
	const struct thread *thread, *best = NULL;
	uint64_t most = 0;

	for (thread = gpu->processes[0]->threads; thread; thread = thread->next) {
		const struct thread_account *c = thread_account_of(&a->accounts, thread);

		if (!c || c->device != gpu->device || !host_thread_find(&a->idle.threads, thread) ||
		    c->ring.n <= most)
			continue;
		most = c->ring.n;
		best = thread;
	}
	return best;
}
