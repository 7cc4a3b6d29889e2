/*
 * analyzer/findings/gpu_use.c: how GPUs were used, and what of that is certain. Called by detectors,
 * by findings and by the report's section of GPUs, after the last record.
 */
#include <stdlib.h>
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

/* How long the thread waited between its calls for other threads of the program. */
static uint64_t waited_ns(const struct idle *idle, const struct thread *thread)
{
	const struct idle_sum *sum;
	uint64_t ns = 0;

	for (sum = idle->sums.by_key; sum; sum = sum->hh.next)
		if (sum->key.owner == idle_owner_thread(thread) &&
		    (sum->key.cause == IDLE_LOCK || sum->key.cause == IDLE_JOIN))
			ns += sum->ns;
	return ns;
}

const struct thread *gpu_feeder(const struct idle *idle, const struct idle_gpu *gpu)
{
	const struct thread *thread, *best = NULL;
	double most = 0, weight;

	for (thread = gpu->processes[0]->threads; thread; thread = thread->next) {
		const struct thread_account *c = thread_account_of(idle->accounts, thread);
		const struct host_thread *h = host_thread_find(&idle->threads, thread);

		if (!c || c->device != gpu->device || !h)
			continue;
		weight = (double)c->ring.n;
		if (h->outside_ns)
			weight *= 1 - (double)min_u64(waited_ns(idle, thread), h->outside_ns) /
					      (double)h->outside_ns;
		if (weight <= most)
			continue;
		most = weight;
		best = thread;
	}
	return best;
}

/* ---- idle time by NVML ------------------------------------------------------------------------ */

#define WORTH_PART \
	50 /* of the time: less that NVML knows more than the calls is not worth an estimate */

/* A thread that feeds the GPU: its time but for waits for the GPU. */
struct feeder {
	const struct thread *thread;
	uint64_t active_ns; /* outside of calls, and not waiting for another thread */
	uint64_t waited_ns; /* for other threads */
	uint64_t submitting_ns;
	/* Of waited_ns, what other feeders did not work meanwhile: while they did, theirs is the time that counts. */
	uint64_t alone_ns;
};

#define FEEDERS_MOST 64

static bool is_wait_for_thread(const struct idle_sum *sum)
{
	return sum->key.cause == IDLE_LOCK || sum->key.cause == IDLE_JOIN;
}

static struct feeder feeder_of(const struct idle *idle, const struct thread *thread,
			       const struct thread_account *c, const struct host_thread *h)
{
	struct feeder f = {.thread = thread,
			   .submitting_ns = h->in_calls_ns - min_u64(c->gpu_ns, h->in_calls_ns)};
	const struct idle_sum *sum;

	for (sum = idle->sums.by_key; sum; sum = sum->hh.next)
		if (sum->key.owner == idle_owner_thread(thread) && sum->key.cause != IDLE_GPU_QUERY)
			*(is_wait_for_thread(sum) ? &f.waited_ns : &f.active_ns) += sum->ns;
	return f;
}

static size_t find_feeders(const struct idle *idle, const struct idle_gpu *gpu,
			   struct feeder feeders[FEEDERS_MOST])
{
	const struct thread *thread;
	uint64_t active_ns = 0;
	size_t n = 0, i;

	for (thread = gpu->processes[0]->threads; thread && n < FEEDERS_MOST;
	     thread = thread->next) {
		const struct thread_account *c = thread_account_of(idle->accounts, thread);
		const struct host_thread *h = host_thread_find(&idle->threads, thread);

		if (c && h && c->device == gpu->device)
			feeders[n++] = feeder_of(idle, thread, c, h);
	}
	for (i = 0; i < n; i++)
		active_ns += feeders[i].active_ns + feeders[i].submitting_ns;
	for (i = 0; i < n; i++) {
		uint64_t others_ns = active_ns - feeders[i].active_ns - feeders[i].submitting_ns;

		feeders[i].alone_ns =
			feeders[i].waited_ns - min_u64(feeders[i].waited_ns, others_ns);
	}
	return n;
}

/* How much of the sum counts. */
static uint64_t counted_ns(const struct feeder *f, const struct idle_sum *sum)
{
	if (sum->key.cause == IDLE_GPU_QUERY)
		return 0;
	if (!is_wait_for_thread(sum))
		return sum->ns;
	return (uint64_t)((double)sum->ns * (double)f->alone_ns / (double)(f->waited_ns ?: 1));
}

/* So many nanoseconds for each of a feeder's. */
static void charge_feeder(struct idle *idle, size_t gpu, const struct feeder *f, double part)
{
	size_t n = 0, i;
	const struct idle_sum **sums =
		xcalloc(HASH_COUNT(idle->sums.by_key) + 1, sizeof(struct idle_sum *));
	const struct idle_sum *sum;
	uint64_t ns;

	for (sum = idle->sums.by_key; sum; sum = sum->hh.next)
		if (sum->key.owner == idle_owner_thread(f->thread) && sum->ns)
			sums[n++] = sum;
	for (i = 0; i < n; i++) {
		ns = (uint64_t)(part * (double)counted_ns(f, sums[i]));
		if (ns)
			idle_sums_add_of(&idle->sums, idle_owner_gpu(gpu), &sums[i]->longest, ns,
					 sums[i]);
	}
	free(sums);
	ns = (uint64_t)(part * (double)f->submitting_ns);
	if (ns)
		idle_sums_add(&idle->sums, idle_owner_gpu(gpu), f->thread->process,
			      &(struct idle_part){.cause = IDLE_LAUNCH,
						  .thread = f->thread,
						  .fn = NO_FUNCTION,
						  .fn_before = NO_FUNCTION},
			      ns);
}

static void charge(struct idle *idle, size_t number, uint64_t extra_ns)
{
	struct idle_gpu *gpu = &idle->gpus[number];
	struct feeder feeders[FEEDERS_MOST];
	size_t n = find_feeders(idle, gpu, feeders), i;
	uint64_t whole_ns = 0;

	for (i = 0; i < n; i++)
		whole_ns += feeders[i].active_ns + feeders[i].alone_ns + feeders[i].submitting_ns;
	if (!whole_ns)
		return;
	for (i = 0; i < n; i++)
		charge_feeder(idle, number, &feeders[i], (double)extra_ns / (double)whole_ns);
	gpu->idle_ns += extra_ns;
	gpu->estimated_ns = extra_ns;
}

void gpu_estimate_idle(const struct expect *expect, struct idle *idle)
{
	size_t i;

	for (i = 0; i < idle->n_gpus; i++) {
		struct idle_gpu *gpu = &idle->gpus[i];
		uint64_t work_ns = gpu_work_ns(expect, gpu), known_ns = idle_certain_ns(gpu);
		uint64_t ns = gpu_looks_idle_ns(&gpu->looks, work_ns);

		if (gpu->n_processes == 1 && !idle_gpu_is_exact(gpu) &&
		    ns > known_ns + work_ns / WORTH_PART)
			charge(idle, i, ns - known_ns);
	}
}
