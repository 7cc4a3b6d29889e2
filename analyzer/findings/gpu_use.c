/*
 * analyzer/findings/gpu_use.c: how GPUs were used, and what of that is certain. Called by detectors,
 * by findings and by the report's section of GPUs, after the last record.
 */
#include <stdlib.h>
#include "gpu_use.h"

struct span gpu_work_span(const struct expect *expect, const struct idle_gpu *gpu)
{
	struct span span = {UINT64_MAX, 0};

	for (size_t i = 0; i < gpu->n_processes; i++) {
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
	for (const struct note *note = process->notes; note; note = note->hh.next)
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

	for (size_t i = 0; i < gpu->n_processes; i++)
		if (is_blind(gpu->processes[i]))
			return "not all calls are seen: see LOSSES";
	if (!stats->model->complete)
		return "records are lost";
	if (named && named->client == SPY_CLIENT_YES)
		return "other clients of MPS may use it";
	if (shares_memory(stats))
		return "another process may work in memory that they share";
	return NULL;
}

const char *gpu_why_unknown(const struct callstats *stats, const struct idle_gpu *gpu)
{
	return stats->model->complete && idle_gpu_is_exact(gpu) ? NULL
								: gpu_why_uncertain(stats, gpu);
}

bool gpu_waits_prove_work(const struct accounting *a, const struct idle_gpu *gpu)
{
	uint64_t used = a->gpus_used[gpu->processes[0]->trace->index];
	uint32_t fn;

	if (gpu->n_processes > 1 || __builtin_popcountll(used) != 1)
		return false;
	for (fn = 0; fn < a->model->set->functions.count && fn < a->stats->n_functions; fn++)
		if ((a->model->set->functions.all[fn].does == FUNCTION_SHOWS_OTHERS ||
		     a->model->set->functions.all[fn].does == FUNCTION_WAITS_FOR_OTHERS) &&
		    (a->stats->direct[fn].count + a->stats->nested[fn].count ||
		     filter_saw_call(a->filtering, fn)))
			return false;
	return true;
}

static bool feeds(const struct idle *idle, const struct idle_gpu *gpu, const struct thread *thread)
{
	const struct thread_account *c = thread_account_of(idle->accounts, thread);

	return c && c->device == gpu->device && host_thread_find(&idle->threads, thread);
}

/* What of the working phase lies between its first call and its last one. */
static uint64_t working_ns(const struct idle *idle, const struct thread *thread)
{
	const struct host_thread *h = host_thread_find(&idle->threads, thread);

	return h->outside_ns + h->in_calls_ns;
}

/* By its calls, but for what it waited. */
static double weight_of(const struct idle *idle, const struct thread *thread)
{
	const struct host_thread *h = host_thread_find(&idle->threads, thread);
	double weight = (double)thread_account_of(idle->accounts, thread)->ring.n;

	if (h->outside_ns)
		weight *= 1 - (double)min_u64(h->waited_ns, h->outside_ns) / (double)h->outside_ns;
	return weight;
}

/* One that feeds it for a short time alone, as one that tries what was compiled, may make more calls than the program does in all its
 * work. */
const struct thread *gpu_feeder(const struct idle *idle, const struct idle_gpu *gpu)
{
	const struct thread *thread, *best = NULL;
	uint64_t longest_ns = 0;
	double most = 0, weight;

	for (thread = gpu->processes[0]->threads; thread; thread = thread->next)
		if (feeds(idle, gpu, thread))
			longest_ns = max_u64(longest_ns, working_ns(idle, thread));
	for (thread = gpu->processes[0]->threads; thread; thread = thread->next) {
		if (!feeds(idle, gpu, thread) || working_ns(idle, thread) < longest_ns / 2)
			continue;
		weight = weight_of(idle, thread);
		if (weight <= most)
			continue;
		most = weight;
		best = thread;
	}
	return best;
}

const struct idle_gpu *gpu_of_rank(const struct idle *idle, const struct rank *rank)
{
	for (size_t i = 0; i < idle->n_gpus; i++) {
		const struct idle_gpu *gpu = &idle->gpus[i];

		if (gpu->n_processes == 1 && gpu->processes[0] == rank->process &&
		    gpu->device == rank->device)
			return gpu;
	}
	return NULL;
}

/* ---- idle time by NVML ------------------------------------------------------------------------ */

/* Of the time: less that NVML knows more than the calls is not worth an estimate. */
#define WORTH_PART 50

/* What of a thread's time counts, and how much of the GPU's each nanosecond of it is. */
struct feeder {
	const struct thread *thread;
	uint64_t active_ns; /* outside of calls, and not waiting for another thread */
	uint64_t submitting_ns, loading_ns; /* inside of calls, but for waits for GPUs */
	/* Of its waits for other threads, what other feeders did not work meanwhile: while they did, theirs is the time that counts. */
	uint64_t alone_ns;
	uint64_t waited_ns;
	size_t gpu;
	double part;
};

struct feeders {
	struct feeder *all;
	size_t n;
	size_t *of_thread; /* by the thread's index: which one + 1; 0: none */
};

static bool is_wait_for_thread(const struct idle_sum *sum)
{
	return sum->key.cause == IDLE_LOCK || sum->key.cause == IDLE_JOIN;
}

/* Does the thread hand work over? One that pins memory for others, or waits for their work, does not. */
static bool hands_over(const struct idle *idle, const struct thread_account *c)
{
	const struct function *all = idle->accounts->model->set->functions.all;

	for (uint32_t i = 0; i < c->functions.n; i++)
		if (spy_contract_submits(all[c->functions.fns[i]].contract))
			return true;
	return false;
}

static void find_feeders(const struct idle *idle, size_t number, struct feeders *f)
{
	const struct idle_gpu *gpu = &idle->gpus[number];
	const struct thread *thread;

	for (thread = gpu->processes[0]->threads; thread; thread = thread->next) {
		const struct thread_account *c = thread_account_of(idle->accounts, thread);
		const struct host_thread *h = host_thread_find(&idle->threads, thread);
		uint64_t away_ns;

		if (!c || !h || c->device != gpu->device || !hands_over(idle, c))
			continue;
		away_ns = h->waited_ns + h->queried_ns;
		f->all = grow(f->all, f->n, sizeof(*f->all));
		f->all[f->n++] = (struct feeder){
			.thread = thread,
			.active_ns = h->outside_ns - min_u64(away_ns, h->outside_ns),
			.submitting_ns = h->in_calls_ns - h->gpu_ns - h->loading_ns,
			.loading_ns = h->loading_ns,
			.waited_ns = h->waited_ns,
			.gpu = number};
		f->of_thread[thread->index] = f->n;
	}
}

static uint64_t busy_ns(const struct feeder *f)
{
	return f->active_ns + f->submitting_ns + f->loading_ns;
}

/* The GPU was idle for so much longer than its calls prove. */
static void share_out(struct idle *idle, size_t number, uint64_t extra_ns, struct feeders *f)
{
	uint64_t active_ns = 0, whole_ns = 0;
	size_t first = f->n, i;

	find_feeders(idle, number, f);
	for (i = first; i < f->n; i++)
		active_ns += busy_ns(&f->all[i]);
	for (i = first; i < f->n; i++) {
		struct feeder *one = &f->all[i];
		uint64_t others_ns = active_ns - busy_ns(one);

		one->alone_ns = one->waited_ns - min_u64(one->waited_ns, others_ns);
		whole_ns += busy_ns(one) + one->alone_ns;
	}
	/* For the rest its threads waited for a GPU, and so for another one, or had not noticed yet. */
	if (extra_ns > whole_ns)
		idle_sums_add(&idle->sums, idle_owner_gpu(number), idle->gpus[number].processes[0],
			      &(struct idle_part){.cause = IDLE_CUDA_WAIT,
						  .fn = NO_FUNCTION,
						  .fn_before = NO_FUNCTION},
			      extra_ns - whole_ns);
	for (i = first; i < f->n && whole_ns; i++)
		f->all[i].part = (double)min_u64(extra_ns, whole_ns) / (double)whole_ns;
	idle->gpus[number].idle_ns += extra_ns;
	idle->gpus[number].estimated_ns = extra_ns;
}

/* How much of a feeder's sum counts. */
static double counted_ns(const struct feeder *f, const struct idle_sum *sum)
{
	if (sum->key.cause == IDLE_GPU_QUERY)
		return 0;
	if (!is_wait_for_thread(sum))
		return (double)sum->ns;
	return (double)sum->ns * (double)f->alone_ns / (double)(f->waited_ns ?: 1);
}

/* The sums of all threads, as they are now. */
static const struct idle_sum **sums_of_threads(const struct idle *idle, size_t *n)
{
	const struct idle_sum **sums =
		xcalloc(HASH_COUNT(idle->sums.by_key) + 1, sizeof(struct idle_sum *));

	*n = 0;
	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next)
		if (sum->ns && sum->key.owner < idle->accounts->model->n_threads)
			sums[(*n)++] = sum;
	return sums;
}

static void charge_calls(struct idle *idle, const struct feeder *f, enum idle_cause cause,
			 uint64_t in_calls_ns)
{
	uint64_t ns = (uint64_t)(f->part * (double)in_calls_ns);

	if (ns)
		idle_sums_add(&idle->sums, idle_owner_gpu(f->gpu), f->thread->process,
			      &(struct idle_part){.cause = cause,
						  .thread = f->thread,
						  .fn = NO_FUNCTION,
						  .fn_before = NO_FUNCTION},
			      ns);
}

static void charge_all(struct idle *idle, const struct feeders *f,
		       const struct idle_sum *const *sums, size_t n_sums)
{
	uint64_t ns;

	for (size_t i = 0; i < n_sums; i++) {
		size_t number = f->of_thread[sums[i]->key.owner];
		const struct feeder *one = number ? &f->all[number - 1] : NULL;

		ns = one ? (uint64_t)(one->part * counted_ns(one, sums[i])) : 0;
		if (ns)
			idle_sums_add_of(&idle->sums, idle_owner_gpu(one->gpu), &sums[i]->longest,
					 ns, sums[i]);
	}
	for (size_t i = 0; i < f->n; i++) {
		charge_calls(idle, &f->all[i], IDLE_LAUNCH, f->all[i].submitting_ns);
		charge_calls(idle, &f->all[i], IDLE_CODE_LOADING, f->all[i].loading_ns);
	}
}

/* How long each thread waited between its calls for other threads of the program. */
static void sum_up_waits(struct idle *idle, const struct idle_sum *const *sums, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_wait_for_thread(sums[i]) && sums[i]->key.owner < idle->threads.n &&
		    idle->threads.all[sums[i]->key.owner])
			idle->threads.all[sums[i]->key.owner]->waited_ns += sums[i]->ns;
}

static uint64_t fast_copies_ns(const struct idle *idle, const struct idle_gpu *gpu)
{
	const struct callstats *stats = idle->accounts->stats;
	uint32_t process = gpu->processes[0]->trace->index;

	return stats->devices[callstats_index(stats, process, gpu->device)].fast_copies_ns;
}

uint64_t gpu_worked_most_ns(const struct idle *idle, const struct idle_gpu *gpu)
{
	const struct expect *expect = idle->accounts->expect;
	uint64_t work_ns = gpu_work_ns(expect, gpu);

	return gpu->looks.others_n || !gpu_waits_prove_work(idle->accounts, gpu)
		       ? work_ns
		       : gpu_looks_worked_ns(&gpu->looks, work_ns,
					     gpu_work_span(expect, gpu).end_ns,
					     fast_copies_ns(idle, gpu));
}

void gpu_estimate_idle(const struct expect *expect, struct idle *idle)
{
	struct feeders f = {.of_thread =
				    xcalloc(idle->accounts->model->n_threads + 1, sizeof(size_t))};
	const struct idle_sum **sums;
	size_t n, i;

	sums = sums_of_threads(idle, &n);
	sum_up_waits(idle, sums, n);
	for (i = 0; i < idle->n_gpus; i++) {
		struct idle_gpu *gpu = &idle->gpus[i];
		uint64_t work_ns = gpu_work_ns(expect, gpu), known_ns = idle_certain_ns(gpu);
		uint64_t end_ns = gpu_work_span(expect, gpu).end_ns;
		uint64_t ns =
			gpu_looks_idle_ns(&gpu->looks, work_ns, end_ns, fast_copies_ns(idle, gpu));

		if (gpu->n_processes == 1 && !idle_gpu_is_exact(gpu) &&
		    ns > known_ns + work_ns / WORTH_PART)
			share_out(idle, i, ns - known_ns, &f);
	}
	charge_all(idle, &f, sums, n);
	free(sums);
	free(f.all);
	free(f.of_thread);
}
