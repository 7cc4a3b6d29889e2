/*
 * analyzer/detectors/serial_gpus.c: GPUs that could work at the same time, and work one after the other.
 *
 * One thread that serves several GPUs: a case is a wait for work that the thread handed to one GPU,
 * after it had waited for work on another one which brought nothing to the host, nor was (or may
 * have been) a copy between GPUs: the two could have been under way at once. Nothing else of the
 * process may be left to do on that GPU, nor of the thread on any. With n GPUs in turns, all but one
 * in n parts of the waits would be gone, and what it took to hand over and to notice the end would
 * be done meanwhile.
 *
 * Several threads, of one process or of several on a machine, that hand a baton on: in the whole
 * run, of GPUs that work a good part of it and are fed by different threads, no two ever work at
 * once, as far as waits prove it. Work with copies between GPUs is no case. Where most of the work
 * brings something to the host, another GPU's may need that: a note.
 *
 * One thread that never waits between one GPU's work and the next one's, for their streams wait for each other (layers on several
 * GPUs), or threads that come and go with each step: while a thread waits for GPUs, at least one of them works. How long two can
 * have worked at once is at most how long all of them did together, without that; how long each did, GPU times say, or NVML's
 * utilisation bounds it. And where nearly all that one GPU is given has to wait for what another one was given before it, by events
 * or because the host waited, they can work at once for that part of the operations at most.
 */
#include <stdlib.h>
#include "table.h"
#include "findings/site.h"
#include "findings/gpu_use.h"
#include "findings/idle_price.h"
#include "text/text.h"

#define ROUNDS_LEAST 10
#define TENTHS_LEAST 4

/* Tally: nanoseconds waited for the GPUs. */

/* Does one GPU's work follow on another's, for no reason that can be seen? */
static bool takes_turns(const struct recent_ops *recent_ops)
{
	return recent_ops->submissions && recent_ops->before && !recent_ops->brought_before &&
	       recent_ops->device != SPY_DEVICE_NONE &&
	       recent_ops->device_before != SPY_DEVICE_NONE &&
	       recent_ops->device != recent_ops->device_before;
}

static bool judge(const struct observed *o, struct verdict *v)
{
	const struct recent_ops *recent_ops = &o->account->recent_ops;
	uint64_t waited_ns = completed_ns(o->call, BUCKET_GPU_INTENDED), awaited;

	if (o->cold || !observed_means_to_wait(o) || !takes_turns(recent_ops) ||
	    observed_host_visible(o) || observed_host_sees(o) || !observed_ends(o))
		return false;
	awaited = observed_awaited(o);
	if (!awaited || observed_outstanding(o) != awaited)
		return false;
	v->cost_ns = waited_ns - waited_ns / (uint64_t)__builtin_popcountll(recent_ops->devices) +
		     completed_ns(o->call, BUCKET_OWN) + recent_ops->first_own_ns;
	v->gain_high_ns = v->cost_ns;
	v->tally = waited_ns;
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
		"%s a thread waited for one GPU, %s in all, before it handed work to "
		"the next, though the host got nothing from it: one GPU worked at a time",
		text_count(texts, site->count, "time"), text_time(texts, site->tally));
}

/* ---- the whole run --------------------------------------------------------------------------- */

#define WORK_LEAST_PERCENT 10 /* that each GPU works of the time */
#define OVERLAP_MOST_PERCENT 10 /* of the work of the one that works less */
#define IN_TURN_LEAST_PERCENT 60 /* of the time, that one of them works */
#define TURNS_LEAST 10
#define ACROSS_MOST_PART 10 /* of its turns, those with several GPUs in them */
#define LEAST_NS 50000000

#define CAUSE_BIT(name) (1ull << IDLE_##name)
#define WAITS \
	(CAUSE_BIT(LOCK) | CAUSE_BIT(JOIN) | CAUSE_BIT(PIPE) | CAUSE_BIT(SOCKET) | \
	 CAUSE_BIT(CUDA_WAIT) | CAUSE_BIT(DEPENDENCY))

/* GPUs of a machine that take turns. */
struct turns {
	size_t gpus[IDLE_PAIRED], n;
	struct span span; /* from the first one's work to the last one's */
	uint64_t busy_ns, most_ns, together_ns; /* at most */
	bool brought;
};

static uint64_t length(const struct span *span)
{
	return span->end_ns > span->begin_ns ? span->end_ns - span->begin_ns : 0;
}

static uint64_t part_of(uint64_t percent, uint64_t ns)
{
	return ns / 100 * percent;
}

/* From its first work in its process's working phase to the last. */
static struct span span_of(const struct accounting *a, const struct idle_gpu *gpu)
{
	const struct device_use *use = &a->stats->uses[callstats_index(
		a->stats, gpu->processes[0]->trace->index, gpu->device)];
	struct span span = gpu_work_span(a->expect, gpu);

	span.begin_ns = max_u64(span.begin_ns, use->first_ns);
	span.end_ns = min_u64(span.end_ns, use->last_ns);
	return span;
}

static struct span span_of_both(const struct span *x, const struct span *y)
{
	return (struct span){min_u64(x->begin_ns, y->begin_ns), max_u64(x->end_ns, y->end_ns)};
}

/* At most. */
static uint64_t busy_ns(const struct idle_gpu *gpu, uint64_t span_ns)
{
	return span_ns - min_u64(idle_known_ns(gpu), span_ns);
}

/* Where launches wait for their kernels, a thread's GPUs take turns for that. */
static bool launches_block(const struct process *process)
{
	return process->trace->cuda.launches_block;
}

/* Does the GPU work again and again, for a good part of the time and with nothing of others? Only
 * intervals that waits prove are compared with those of other GPUs. */
static bool may_take_turns(const struct accounting *a, const struct idle_gpu *gpu)
{
	struct span span = span_of(a, gpu);

	return gpu->certain && !idle_gpu_is_exact(gpu) && gpu->n_processes == 1 &&
	       !launches_block(gpu->processes[0]) &&
	       !a->work.views[gpu->processes[0]->trace->index].managed &&
	       gpu->turns >= TURNS_LEAST && gpu->turns_across <= gpu->turns / ACROSS_MOST_PART &&
	       busy_ns(gpu, length(&span)) >= part_of(WORK_LEAST_PERCENT, length(&span));
}

/* So long both may have worked. Time before and behind one's work counts as work. That one was idle while the other worked,
 * only calls prove: of NVML's idle time it is not known when it was. */
static uint64_t together_ns(const struct idle *idle, size_t x, size_t y, uint64_t span_ns)
{
	const struct idle_gpu *gpu = &idle->gpus[x], *other = &idle->gpus[y];
	uint64_t idle_ns = idle_proven_ns(gpu) + idle_proven_ns(other);

	idle_ns -= min_u64(gpu->together_ns[y], idle_ns);
	return span_ns - min_u64(idle_ns, span_ns);
}

static bool is_serial(const struct idle *idle, const struct turns *t, size_t gpu)
{
	const struct idle_gpu *other = &idle->gpus[gpu];
	struct span its = span_of(idle->accounts, other);

	for (size_t i = 0; i < t->n; i++) {
		const struct idle_gpu *one = &idle->gpus[t->gpus[i]];
		struct span span = span_of(idle->accounts, one);
		uint64_t span_ns, least_ns;

		span = span_of_both(&span, &its);
		span_ns = length(&span);
		least_ns = min_u64(busy_ns(one, span_ns), busy_ns(other, span_ns));
		if (!gpu_feeder(idle, one) || !gpu_feeder(idle, other) ||
		    gpu_feeder(idle, one) == gpu_feeder(idle, other) ||
		    together_ns(idle, t->gpus[i], gpu, span_ns) >
			    part_of(OVERLAP_MOST_PERCENT, least_ns))
			return false;
	}
	return true;
}

static void add_gpu(const struct idle *idle, struct turns *t, size_t gpu)
{
	const struct idle_gpu *g = &idle->gpus[gpu];
	struct span its = span_of(idle->accounts, g), both;
	uint64_t ns = busy_ns(g, length(&its));

	for (size_t i = 0; i < t->n; i++) {
		both = span_of(idle->accounts, &idle->gpus[t->gpus[i]]);
		both = span_of_both(&both, &its);
		t->together_ns += together_ns(idle, t->gpus[i], gpu, length(&both));
	}
	t->span = span_of_both(&t->span, &its);
	t->gpus[t->n++] = gpu;
	t->busy_ns += ns;
	t->most_ns = max_u64(t->most_ns, ns);
	t->brought |= g->turns_brought > g->turns / 2;
}

/* Of a machine, or of a process where that is given. */
static bool is_there(const struct idle_gpu *gpu, const struct host *host,
		     const struct process *process)
{
	if (gpu->left_out)
		return false;
	return process ? gpu->processes[0] == process : gpu->processes[0]->trace->host == host;
}

/* Of GPU `first` and those behind it: each one that works in turn with all before it. */
static struct turns turns_from(const struct idle *idle, const struct host *host,
			       const struct process *process, size_t first)
{
	struct turns t = {.span = {UINT64_MAX, 0}};

	for (size_t i = first; i < idle->n_gpus && i < IDLE_PAIRED; i++)
		if (is_there(&idle->gpus[i], host, process) &&
		    may_take_turns(idle->accounts, &idle->gpus[i]) && is_serial(idle, &t, i))
			add_gpu(idle, &t, i);
	return t;
}

static bool find_turns(const struct idle *idle, const struct host *host,
		       const struct process *process, struct turns *found)
{
	*found = (struct turns){0};
	for (size_t i = 0; i < idle->n_gpus && i < IDLE_PAIRED; i++) {
		struct turns t = turns_from(idle, host, process, i);

		if (t.busy_ns - t.most_ns > found->busy_ns - found->most_ns)
			*found = t;
	}
	return found->n > 1 && found->busy_ns - found->most_ns >= LEAST_NS &&
	       found->busy_ns - min_u64(found->together_ns, found->busy_ns) >=
		       part_of(IN_TURN_LEAST_PERCENT, length(&found->span));
}

static bool has(const struct turns *t, size_t gpu)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->gpus[i] == gpu)
			return true;
	return false;
}

/* Those that waited meanwhile, each for its part; and that is idle time of their GPUs. */
static void add_costs(const struct idle *idle, const struct turns *t, struct finding *finding)
{
	uint64_t cost_ns = t->busy_ns - t->most_ns, sum_ns = 0;

	for (struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next)
		if (has(t, gpu_of_sum(idle, sum)) && WAITS >> sum->key.cause & 1)
			sum_ns += idle_price_left(idle, sum);
	for (struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		uint64_t ns = has(t, gpu_of_sum(idle, sum)) && WAITS >> sum->key.cause & 1
				      ? idle_price_left(idle, sum)
				      : 0;
		double part = ns ? (double)cost_ns * (double)ns / (double)sum_ns : 0;

		if (!ns)
			continue;
		if (sum->longest.thread)
			thread_costs_add(&finding->cost.threads, sum->longest.thread, part, part);
		finding->cost.idle_gpu_ns += ns;
		sum->priced_ns = sum->ns;
	}
	finding->cost.idle_gpu_known = true;
	finding_set_cost(finding, cost_ns);
}

static const char *gpus_text(const struct idle *idle, struct arena *texts, const struct turns *t)
{
	const char *text = "";

	for (size_t i = 0; i < t->n; i++)
		text = arena_printf(texts, "%s%s%u", text,
				    !i              ? "GPUs "
				    : i + 1 == t->n ? " and "
						    : ", ",
				    idle->gpus[t->gpus[i]].device);
	return text;
}

static uint32_t count_processes(const struct idle *idle, const struct turns *t)
{
	uint32_t n = 0;
	size_t i, j;

	for (i = 0; i < t->n; i++) {
		const struct process *process = idle->gpus[t->gpus[i]].processes[0];

		for (j = 0; j < i && idle->gpus[t->gpus[j]].processes[0] != process; j++)
			;
		n += j == i;
	}
	return n;
}

static void add_finding(const struct idle *idle, const struct turns *t,
			const struct process *process, struct found *found)
{
	struct arena *texts = found->texts;
	struct finding *finding = detector_add(&detector_serial_gpus, found);

	finding->origin.process = process ?: idle->gpus[t->gpus[0]].processes[0];
	finding->origin.processes = count_processes(idle, t);
	for (size_t i = 0; i < t->n; i++)
		finding->count += idle->gpus[t->gpus[i]].turns;
	add_costs(idle, t, finding);
	finding->remarks.maybe_harmless = t->brought;
	finding->what = arena_printf(
		texts,
		"%s%s, fed by different threads, work in turn: in %s one of them worked for %s at "
		"most, and two at once for no more than %s%s",
		gpus_text(idle, texts, t), process ? "" : " of different processes",
		text_time(texts, length(&t->span)), text_time(texts, t->busy_ns),
		text_time(texts, t->together_ns),
		t->brought ? "; their work brings results to the host, which the next may need"
			   : "");
	finding->fix = "See what makes one thread wait for the other: a lock around the work on "
		       "GPUs, a barrier, a queue of one. Let each GPU's thread go on by itself; "
		       "where one needs what another computed, let its stream wait for an event.";
}

static bool is_reported(const struct process *process, const struct found *found)
{
	for (size_t i = 0; i < found->n; i++)
		if (found->all[i].detector == &detector_serial_gpus &&
		    found->all[i].origin.process == process)
			return true;
	return false;
}

/* ---- by waits --------------------------------------------------------------------------------- */

#define WAITED_LEAST_PERCENT 60 /* of the time: else the host keeps them waiting */
#define WAITED_IN_ORDER_PERCENT 40 /* where they cannot work at once in any case */
#define APART_LEAST_PART 3 /* of the work that could be done beside another's, certainly in turn */
#define BESIDE_MOST_PART 4 /* of its operations, those that need not come behind another GPU's */

/* The GPUs of a process. */
struct by_waits {
	struct turns turns; /* those that work a good part of the time */
	const struct thread *thread; /* that waits most for GPUs, and how long */
	uint64_t waited_ns, all_ns, work_ns;
	bool estimated; /* how long some of them worked: NVML says */
	bool exact; /* how long all of them did: GPU times say */
	bool unknown; /* of some nothing does */
	bool in_order; /* nearly all of their operations come behind another's, by events or waits */
};

static void find_waits(const struct idle *idle, const struct process *process, struct by_waits *w)
{
	for (const struct thread *thread = process->threads; thread; thread = thread->next) {
		const struct host_thread *h = host_thread_find(&idle->threads, thread);

		if (!h || h->gpu_ns <= w->waited_ns)
			continue;
		w->thread = thread;
		w->waited_ns = h->gpu_ns;
	}
}

static void add_by_waits(const struct idle *idle, size_t gpu, struct by_waits *w)
{
	const struct idle_gpu *g = &idle->gpus[gpu];
	uint64_t work_ns = gpu_work_ns(idle->accounts->expect, g), ns = busy_ns(g, work_ns);

	w->work_ns = work_ns;
	w->all_ns += ns;
	w->estimated |= g->estimated_ns > 0;
	w->exact &= idle_gpu_is_exact(g);
	w->unknown |= g->left_out || g->n_processes > 1;
	if (ns < part_of(WORK_LEAST_PERCENT, work_ns) || w->turns.n == IDLE_PAIRED)
		return;
	w->turns.gpus[w->turns.n++] = gpu;
	w->turns.busy_ns += ns;
	w->turns.most_ns = max_u64(w->turns.most_ns, ns);
}

/* Of its operations so many, of the GPU that has fewest, may have been done while another one worked: 0 to 1. */
static double part_beside(const struct idle *idle, const struct process *process,
			  const struct turns *t)
{
	const struct gpu_work *w = &idle->accounts->work;
	uint32_t index = process->trace->index;
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < t->n; i++)
		least = min_u64(least,
				w->devices[work_index(w, index, idle->gpus[t->gpus[i]].device)]
					.handed_over);
	return least && w->turns[index].beside < least
		       ? (double)w->turns[index].beside / (double)least
		       : 1;
}

static bool find_by_waits(const struct idle *idle, const struct process *process,
			  struct by_waits *w)
{
	struct turns *t = &w->turns;
	uint64_t beside_ns;
	double beside;

	*w = (struct by_waits){.exact = true};
	for (size_t i = 0; i < idle->n_gpus; i++)
		for (size_t j = 0; j < idle->gpus[i].n_processes; j++)
			if (idle->gpus[i].processes[j] == process)
				add_by_waits(idle, i, w);
	find_waits(idle, process, w);
	t->together_ns = w->all_ns - min_u64(w->waited_ns, w->all_ns);
	beside_ns = t->busy_ns - t->most_ns;
	beside = part_beside(idle, process, t);
	w->in_order = beside * BESIDE_MOST_PART <= 1 &&
		      idle->accounts->work.turns[process->trace->index].n >= TURNS_LEAST;
	if (w->in_order)
		t->together_ns = min_u64(t->together_ns, (uint64_t)(beside * (double)beside_ns));
	return t->n > 1 && !launches_block(process) && !w->unknown && (w->estimated || w->exact) &&
	       beside_ns >= LEAST_NS &&
	       w->waited_ns >= part_of(w->in_order ? WAITED_IN_ORDER_PERCENT : WAITED_LEAST_PERCENT,
				       w->work_ns) &&
	       t->together_ns <= beside_ns - beside_ns / APART_LEAST_PART;
}

static void add_by_waits_finding(const struct idle *idle, const struct process *process,
				 const struct by_waits *w, struct found *found)
{
	struct arena *texts = found->texts;
	const struct turns *t = &w->turns;
	const struct thread_account *c = thread_account_of(idle->accounts, w->thread);
	struct finding *finding = detector_add(&detector_serial_gpus, found);

	finding->origin.process = process;
	finding->count = t->n;
	add_costs(idle, t, finding);
	finding->what = arena_printf(
		texts,
		"%s%s work in turn: %sthey worked for %s%s, all together, "
		"and for %s of %s %s waited for one of them%s: two at once worked for 0 to %s",
		w->estimated ? "estimated: " : "", gpus_text(idle, texts, t),
		w->estimated ? "as NVML says, " : "", text_time(texts, w->all_ns),
		w->estimated ? " at most" : "", text_time(texts, w->waited_ns),
		text_time(texts, w->work_ns),
		text_thread(texts, w->thread, c ? c->device : SPY_DEVICE_NONE),
		w->in_order ? "; what one is given comes behind what another has" : "",
		text_time(texts, t->together_ns));
	finding->fix = "Cut each batch into parts, so that one GPU works on the next part while "
		       "another has the last one (torch.distributed.pipelining); or give each GPU "
		       "a whole model and its own part of the data (DistributedDataParallel, not "
		       "DataParallel), or its own part of each layer (tensor parallelism).";
}

/* Each process by itself, and those of one GPU each together. */
static void conclude(const struct idle *idle, struct found *found)
{
	const struct model *model = idle->accounts->model;
	size_t i, many = found->n;
	struct by_waits by_waits;
	struct turns t;

	if (idle->n_gpus < 2)
		return;
	for (i = 0; i < idle->n_gpus && i < IDLE_PAIRED; i++) {
		const struct process *process = idle->gpus[i].processes[0];

		if (!is_reported(process, found) && find_turns(idle, NULL, process, &t))
			add_finding(idle, &t, process, found);
		if (!is_reported(process, found) && find_by_waits(idle, process, &by_waits))
			add_by_waits_finding(idle, process, &by_waits, found);
	}
	for (i = 0; i < model->set->n_hosts && found->n == many; i++)
		if (find_turns(idle, &model->set->hosts[i], NULL, &t) &&
		    idle->gpus[t.gpus[0]].processes[0] != idle->gpus[t.gpus[1]].processes[0])
			add_finding(idle, &t, NULL, found);
}

const struct detector detector_serial_gpus = {
	.id = "serial-gpus",
	.title = "GPUs work in turn, not at the same time",
	.sees = "One thread: cudaDeviceSynchronize, cudaStreamSynchronize, cudaEventSynchronize "
		"and their relatives at one place, ten times in the program's work or more, "
		"each for what the thread handed to one GPU after it had waited for another, "
		"with nothing under way on any other. The cost is what the waits would not take "
		"if the GPUs worked at once, and the calls' own work. Several threads, or "
		"processes of a machine: GPUs that take ten turns or more, for most of the "
		"time, of which waits prove that no two work at once; a note if their work "
		"brings results to the host, which the next one may need. Layers on several "
		"GPUs, whose streams wait for each other: by GPU times, or by NVML's utilisation (then it "
		"is estimated), while a thread waits for GPUs most of the time; at least a third of "
		"the work that could be done at once is certainly done in turn, or events order nearly all of it.",
	.blind =
		"Whether a kernel needs what another GPU computed, which it may read there by "
		"peer access, or the host wants to see in pinned memory. Work with copies "
		"between GPUs in it, or between memory of unknown location, or to the host, is "
		"no case where waits prove it, nor are programs that use managed memory. The reasons for which "
		"several threads wait for each other; GPUs beyond the first 16.",
	.fix = "Hand work to all GPUs first, and wait then; or use a thread for each GPU. Where "
	       "one needs what another computed, let its stream wait: cudaStreamWaitEvent.",
	.always = DETECTOR_CONTRACT(STREAM) | DETECTOR_CONTRACT(EVENT) | DETECTOR_CONTRACT(DEVICE),
	.judge = judge,
	.keep = keep,
	.of_idle = true,
	.conclude_idle = conclude,
};
