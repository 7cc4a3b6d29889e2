/*
 * analyzer/findings/gpu_use.c: how GPUs were used, and what of that is certain. Called by detectors,
 * by findings and by the report's section of GPUs, after the last record.
 */
#include "gpu_use.h"

struct span gpu_work_span(const struct expect *expect, const struct idle_gpu *gpu)
{
	struct span span = {UINT64_MAX, 0};
	size_t i;

	for (i = 0; i < gpu->n_processes; i++) {
		const struct process *process = gpu->processes[i];
		const struct phase *phase = &expect->phases.all[process->trace->index];

		span.begin_ns =
			min_u64(span.begin_ns, phase->found ? phase->begin_ns : process->first_ns);
		span.end_ns = max_u64(span.end_ns, phase->found ? phase->end_ns : process->last_ns);
	}
	return span;
}

uint64_t gpu_work_ns(const struct expect *expect, const struct idle_gpu *gpu)
{
	struct span span = gpu_work_span(expect, gpu);
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

static bool shares_memory(const struct callstats *stats)
{
	uint32_t fn;

	for (fn = 0; fn < stats->model->set->functions.count && fn < stats->n_functions; fn++)
		if (stats->model->set->functions.all[fn].does == FUNCTION_OPENS_SHARED &&
		    (stats->direct[fn].count || filter_saw_call(stats->filtering, fn)))
			return true;
	return false;
}

const char *gpu_why_uncertain(const struct callstats *stats, const struct idle_gpu *gpu)
{
	const struct gpu *named = idle_named(gpu);
	size_t i;

	if (!stats->model->complete)
		return "records are lost";
	if (named && named->client == SPY_CLIENT_YES)
		return "other clients of MPS may use it";
	if (shares_memory(stats))
		return "another process may work in memory that they share";
	for (i = 0; i < gpu->n_processes; i++)
		if (is_blind(gpu->processes[i]))
			return "not all calls are seen: see the notes";
	return NULL;
}

const char *gpu_why_unknown(const struct callstats *stats, const struct idle_gpu *gpu)
{
	return stats->model->complete && idle_gpu_is_exact(gpu) ? NULL
								: gpu_why_uncertain(stats, gpu);
}

const struct thread *gpu_feeder(const struct idle *idle, const struct idle_gpu *gpu)
{
	const struct thread *thread, *best = NULL;
	uint64_t most = 0;

	for (thread = gpu->processes[0]->threads; thread; thread = thread->next) {
		const struct thread_account *c = thread_account_of(idle->accounts, thread);

		if (!c || c->device != gpu->device || !host_thread_find(&idle->threads, thread) ||
		    c->ring.n <= most)
			continue;
		most = c->ring.n;
		best = thread;
	}
	return best;
}
