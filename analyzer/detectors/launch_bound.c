/*
 * analyzer/detectors/launch_bound.c: kernels are so short that the GPU waits for each launch: the
 * thread that feeds it is at its limit, handing work over.
 *
 * Where exact times of the GPU are recorded, a case is a GPU of whose idle time a good part passed
 * while the feeding thread was in calls that submit work, at their own cost, and whose operations
 * were short. Where NVML's utilisation proves that a GPU is idle it is estimated: its threads hand over work all the time, in many
 * calls, and what they do between these is brief each time. Without either it is inferred: a thread that spends most of its working time in such
 * calls, and waits for the GPU again and again for next to nothing. A GPU that were the slower one
 * would be waited for, or its queue would be full.
 */
#include <stdlib.h>
#include "table.h"
#include "findings/gpu_use.h"
#include "findings/idle_price.h"
#include "starved_gpus.h"
#include "text/text.h"

#define LEAST_NS 50000000

/* Exact: */
#define IDLE_LEAST_PERCENT 30 /* of the GPU's idle time */
#define WORK_LEAST_PERCENT 10 /* of its working phase */
#define SHORT_NS 20000 /* operations of the GPU, on average */

/* Inferred: of the thread's working time, but for what it was kept from running in calls */
#define SUBMITS_LEAST_PERCENT 50
#define WAITS_MOST_PERCENT 10
/* So often it found the GPU done, or next to it; and once in so many submissions. */
#define WAITS_LEAST 10
#define SUBMITS_MOST 10000

static bool is_launch(uint8_t contract)
{
	return contract == SPY_CONTRACT_LAUNCH || contract == SPY_CONTRACT_SUBMIT;
}

static bool is_wait(uint8_t contract)
{
	return contract == SPY_CONTRACT_STREAM || contract == SPY_CONTRACT_EVENT ||
	       contract == SPY_CONTRACT_DEVICE;
}

/* Of a thread, or of the threads of a process that are cases. */
struct bound {
	uint64_t submit_ns, submits, waits, waited_ns, work_ns, threads, most_ns;
	const struct thread *thread; /* the one that spends most */
	struct thread_costs costs;
};

static struct bound look_at(const struct trace_set *set, const struct thread_account *c,
			    const struct host_thread *h)
{
	struct bound b = {.work_ns = h->outside_ns + h->in_calls_ns, .thread = c->thread};

	for (size_t i = 0; i < c->functions.n; i++) {
		const struct account *account = &c->functions.all[i];
		uint8_t contract = set->functions.all[c->functions.fns[i]].contract;

		if (is_launch(contract)) {
			b.submits += account->calls;
			b.submit_ns += account->bucket_ns[BUCKET_OWN];
		}
		b.waits += is_wait(contract) ? account->calls : 0;
		b.waited_ns += account->bucket_ns[BUCKET_GPU_INTENDED] +
			       account->bucket_ns[BUCKET_GPU_HIDDEN] +
			       account->bucket_ns[BUCKET_QUEUE];
		b.work_ns -= min_u64(b.work_ns, account->bucket_ns[BUCKET_NOT_RUNNING]);
	}
	b.submit_ns = min_u64(b.submit_ns, b.work_ns); /* some were made before its work */
	return b;
}

static bool is_case(const struct bound *b)
{
	return b->submit_ns >= LEAST_NS &&
	       b->submit_ns >= b->work_ns / 100 * SUBMITS_LEAST_PERCENT &&
	       b->waited_ns <= b->work_ns / 100 * WAITS_MOST_PERCENT && b->waits >= WAITS_LEAST &&
	       b->waits >= b->submits / SUBMITS_MOST;
}

/* Another finding says it, or the GPU's own times do; or what launches cost by themselves is unknown. */
static bool is_reported(const struct idle *idle, const struct process *process,
			const struct found *found)
{
	if (process->trace->cuda.launches_block)
		return true;
	for (size_t i = 0; i < found->n; i++)
		if (found->all[i].origin.process == process &&
		    (found->all[i].detector == &detector_launch_bound ||
		     !strcmp(found->all[i].detector->id, "sync-every-launch")))
			return true;
	for (size_t i = 0; i < idle->n_gpus; i++)
		for (size_t j = 0; j < idle->gpus[i].n_processes; j++)
			if (idle->gpus[i].processes[j] == process &&
			    idle_gpu_is_exact(&idle->gpus[i]))
				return true;
	return false;
}

static void add_thread(struct bound *process, const struct bound *b)
{
	thread_costs_add(&process->costs, b->thread, (double)b->submit_ns, (double)b->submit_ns);
	if (b->submit_ns > process->most_ns) {
		process->thread = b->thread;
		process->most_ns = b->submit_ns;
	}
	process->threads++;
	process->submit_ns += b->submit_ns;
	process->submits += b->submits;
	process->waits += b->waits;
	process->waited_ns += b->waited_ns;
	process->work_ns += b->work_ns;
}

static const char *inferred_text(const struct accounting *a, struct arena *texts,
				 const struct bound *b)
{
	const struct thread_account *c = thread_account_of(a, b->thread);
	const char *others = "";

	if (b->threads > 1)
		others = arena_printf(texts, " and %llu more", (unsigned long long)b->threads - 1);
	return arena_printf(
		texts,
		"inferred: %s%s spent %s, %s of the working time, in %s that submit work, %s each, "
		"and waited for the GPU only for %s in %s: it is done before the next launch",
		text_thread(texts, b->thread, c ? c->device : SPY_DEVICE_NONE), others,
		text_time(texts, b->submit_ns),
		text_percent(texts, (double)b->submit_ns, (double)b->work_ns),
		text_count(texts, b->submits, "call"),
		text_time(texts, b->submit_ns / (b->submits ?: 1)), text_time(texts, b->waited_ns),
		text_count(texts, b->waits, "wait"));
}

static void add_inferred(const struct accounting *a, const struct bound *b, struct found *found)
{
	struct finding *finding = detector_add(&detector_launch_bound, found);

	finding->origin.process = b->thread->process;
	finding->count = b->submits;
	finding_set_cost(finding, b->submit_ns);
	finding->cost.threads = b->costs;
	finding->what = inferred_text(a, found->texts, b);
}

static void infer(const struct idle *idle, struct found *found)
{
	const struct model *model = idle->accounts->model;
	struct bound *processes = xcalloc(model->n_processes + 1, sizeof(*processes));

	for (size_t i = 0; i < model->n_threads; i++) {
		const struct thread *thread = model->threads[i];
		const struct host_thread *h = host_thread_find(&idle->threads, thread);
		const struct thread_account *c = thread_account_of(idle->accounts, thread);
		struct bound b;

		if (!h || !c)
			continue;
		b = look_at(model->set, c, h);
		if (is_case(&b))
			add_thread(&processes[thread->process->trace->index], &b);
	}
	for (size_t i = 0; i < model->n_processes; i++) {
		struct bound *b = &processes[i];

		if (b->threads && !is_reported(idle, b->thread->process, found))
			add_inferred(idle->accounts, b, found);
		else
			thread_costs_release(&b->costs);
	}
	free(processes);
}

/* ---- exact ----------------------------------------------------------------------------------- */

/* Of a GPU: idle while work was being submitted. */
struct launched {
	uint64_t ns;
	const struct idle_sum *most;
	bool reported;
};

static struct launched *find_launched(const struct idle *idle)
{
	struct launched *gpus = xcalloc(idle->n_gpus + 1, sizeof(*gpus));

	for (const struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		size_t gpu = sum->key.cause == IDLE_LAUNCH ? gpu_of_sum(idle, sum) : idle->n_gpus;

		if (gpu >= idle->n_gpus)
			continue;
		gpus[gpu].ns += idle_price_left(idle, sum);
		if (!gpus[gpu].most || sum->ns > gpus[gpu].most->ns)
			gpus[gpu].most = sum;
	}
	return gpus;
}

/* What was told of has its price. */
static void take_prices(const struct idle *idle, const struct launched *gpus)
{
	for (struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		size_t gpu = sum->key.cause == IDLE_LAUNCH ? gpu_of_sum(idle, sum) : idle->n_gpus;

		if (gpu < idle->n_gpus && gpus[gpu].reported)
			sum->priced_ns = sum->ns;
	}
}

static void add_exact(const struct idle *idle, size_t gpu, uint64_t ns, const struct idle_sum *most,
		      struct found *found)
{
	struct arena *texts = found->texts;
	const struct idle_gpu *g = &idle->gpus[gpu];
	const struct thread *thread = most->longest.thread ?: gpu_feeder(idle, g);
	struct finding *finding = detector_add(&detector_launch_bound, found);

	finding->origin.process = most->process;
	finding->variant = (uint32_t)gpu + 1;
	finding->count = g->exact.operations;
	finding->cost.own_ns = finding->cost.gain_high_ns = finding->cost.idle_gpu_ns = ns;
	finding->cost.gain_known = finding->cost.idle_gpu_known = true;
	finding->place.function = text_function(idle->accounts->model->set, most->longest.fn);
	finding_look_up(finding, texts, &most->longest);
	if (thread)
		thread_costs_add(&finding->cost.threads, thread, (double)ns, (double)ns);
	finding->what = arena_printf(texts,
				     "GPU %u had nothing to do for %s, %s of its idle time, "
				     "while the next work was being submitted; what it works on "
				     "takes %s on average",
				     g->device, text_time(texts, ns),
				     text_percent(texts, (double)ns, (double)idle_known_ns(g)),
				     text_time(texts, g->exact.busy_ns / g->exact.operations));
}

static void look_at_gpu(const struct idle *idle, size_t gpu, struct launched *launched,
			struct found *found)
{
	const struct idle_gpu *g = &idle->gpus[gpu];
	uint64_t ns = launched->ns;

	if (!idle_gpu_is_exact(g) || !g->exact.operations ||
	    g->exact.busy_ns / g->exact.operations >= SHORT_NS)
		return;
	if (ns >= LEAST_NS && ns >= idle_known_ns(g) / 100 * IDLE_LEAST_PERCENT &&
	    ns >= gpu_work_ns(idle->accounts->expect, g) / 100 * WORK_LEAST_PERCENT) {
		add_exact(idle, gpu, ns, launched->most, found);
		launched->reported = true;
	}
}

/* ---- estimated ------------------------------------------------------------------------------- */

#define BRIEF_LEAST_PERCENT 70 /* of what the threads ran between their calls */
#define MEANWHILE_LEAST_PERCENT 80 /* of the GPU's idle time: else another reason is the main one */
#define EACH_WAIT_LEAST 20 /* submissions; else it reads back or waits too often */
/* With what comes before it; else that is where the time goes: work of the program's own. */
#define SUBMIT_MOST_NS 100000

#define CAUSE_BIT(name) (1ull << IDLE_##name)
#define HANDING_OVER (CAUSE_BIT(LAUNCH) | CAUSE_BIT(PYTHON) | CAUSE_BIT(CPU))

/* The threads that feed a GPU, together. */
struct handing_over {
	uint64_t submits, waits, brief_ns, between_ns, in_calls_ns; /* without waits for GPUs */
	uint64_t idle_ns; /* of the GPU, meanwhile */
	/* Of idle_ns and between_ns: in work of the program's own; left out of both if it is a finding of its own. */
	uint64_t own_ns, own_between_ns;
	const struct idle_sum *most;
};

static bool feeds(const struct idle *idle, const struct thread *thread, const struct idle_gpu *gpu)
{
	const struct thread_account *c = thread_account_of(idle->accounts, thread);

	return c && thread->process == gpu->processes[0] && c->device == gpu->device &&
	       host_thread_find(&idle->threads, thread);
}

static void add_feeders(const struct idle *idle, const struct idle_gpu *gpu, struct handing_over *o)
{
	const struct thread *thread;
	struct bound b;

	for (thread = gpu->processes[0]->threads; thread; thread = thread->next) {
		const struct host_thread *h = host_thread_find(&idle->threads, thread);

		if (!feeds(idle, thread, gpu))
			continue;
		b = look_at(idle->accounts->model->set, thread_account_of(idle->accounts, thread),
			    h);
		o->submits += b.submits;
		o->waits += b.waits;
		o->brief_ns += h->brief_ns;
		o->in_calls_ns += h->in_calls_ns - h->gpu_ns;
	}
}

/* Lines of Python that call a library, which launches for them, before those that compute for themselves. */
static bool tells_more(const struct idle_sum *sum, const struct idle_sum *most)
{
	bool calls = python_called(sum->longest.stack).code, most_calls;

	if (!most)
		return true;
	most_calls = python_called(most->longest.stack).code;
	return calls == most_calls ? sum->ns > most->ns : calls;
}

/* What of so much of a sum the program's own lines took in times so long that it has something else to do than to launch. */
static uint64_t own_work_ns(const struct idle_sum *sum, uint64_t ns)
{
	if (!sum->ns || !idle_sum_is_own_python(sum))
		return 0;
	return (uint64_t)((double)ns * (double)sum->long_ns / (double)sum->ns);
}

/* starved-by-host tells of it if it is enough. */
static void leave_own_work(struct handing_over *o, uint64_t work_ns)
{
	if (o->own_ns < work_ns / STARVED_LEAST_PART) {
		o->own_ns = 0;
		return;
	}
	o->idle_ns -= o->own_ns;
	o->between_ns -= o->own_between_ns;
}

static struct handing_over find_handing_over(const struct idle *idle, size_t number)
{
	const struct idle_gpu *gpu = &idle->gpus[number];
	const struct model *model = idle->accounts->model;
	struct handing_over o = {0};
	const struct idle_sum *sum;

	add_feeders(idle, gpu, &o);
	for (sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		if (!(HANDING_OVER >> sum->key.cause & 1))
			continue;
		if (sum->key.owner < model->n_threads &&
		    feeds(idle, model->threads[sum->key.owner], gpu)) {
			o.between_ns += sum->ns;
			o.own_between_ns += own_work_ns(sum, sum->ns);
		}
		if (gpu_of_sum(idle, sum) != number)
			continue;
		o.idle_ns += idle_price_left(idle, sum);
		o.own_ns += own_work_ns(sum, idle_price_left(idle, sum));
		if (tells_more(sum, o.most))
			o.most = sum;
	}
	return o;
}

static bool is_estimated(const struct handing_over *o, uint64_t idle_ns, uint64_t work_ns)
{
	return o->most && o->submits && o->idle_ns >= LEAST_NS &&
	       o->idle_ns >= work_ns / 100 * IDLE_LEAST_PERCENT &&
	       o->idle_ns + o->own_ns >= idle_ns / 100 * MEANWHILE_LEAST_PERCENT &&
	       o->between_ns + o->in_calls_ns <= o->submits * SUBMIT_MOST_NS &&
	       o->submits >= o->waits * EACH_WAIT_LEAST &&
	       o->brief_ns >= o->between_ns / 100 * BRIEF_LEAST_PERCENT;
}

static void add_estimated(const struct idle *idle, size_t gpu, const struct handing_over *o,
			  struct found *found)
{
	struct arena *texts = found->texts;
	const struct idle_gpu *g = &idle->gpus[gpu];
	const struct thread *thread = o->most->longest.thread ?: gpu_feeder(idle, g);
	struct finding *finding = detector_add(&detector_launch_bound, found);
	uint64_t most_ns = max_u64(o->idle_ns, o->between_ns + o->in_calls_ns);
	struct idle_sum *sum;

	finding->origin.process = o->most->process;
	finding->variant = (uint32_t)gpu + 1;
	finding->count = o->submits;
	finding->cost.own_ns = finding->cost.gain_high_ns = finding->cost.idle_gpu_ns = o->idle_ns;
	finding->cost.gain_known = finding->cost.idle_gpu_known = true;
	finding_look_up(finding, texts, &o->most->longest);
	if (thread)
		thread_costs_add(&finding->cost.threads, thread, (double)o->idle_ns,
				 (double)o->idle_ns);
	finding->what = arena_printf(
		texts,
		"estimated: GPU %u had nothing to do, as NVML says, for %s to %s of %s of work, while "
		"what feeds it handed over work all the time: %s, with %s on average for each and "
		"what comes before it",
		g->device, text_time(texts, o->idle_ns),
		text_time(texts, min_u64(most_ns, gpu_work_ns(idle->accounts->expect, g))),
		text_time(texts, gpu_work_ns(idle->accounts->expect, g)),
		text_count(texts, o->submits, "call"),
		text_time(texts, (o->between_ns + o->in_calls_ns) / o->submits));
	for (sum = idle->sums.by_key; sum; sum = sum->hh.next)
		if (HANDING_OVER >> sum->key.cause & 1 && gpu_of_sum(idle, sum) == gpu)
			sum->priced_ns = sum->ns - (o->own_ns ? own_work_ns(sum, sum->ns) : 0);
}

static void estimate(const struct idle *idle, struct found *found)
{
	for (size_t i = 0; i < idle->n_gpus; i++) {
		const struct idle_gpu *gpu = &idle->gpus[i];
		struct handing_over o;

		if (!gpu->estimated_ns || gpu->n_processes != 1 ||
		    is_reported(idle, gpu->processes[0], found))
			continue;
		o = find_handing_over(idle, i);
		leave_own_work(&o, gpu_work_ns(idle->accounts->expect, gpu));
		if (is_estimated(&o, idle_known_ns(gpu), gpu_work_ns(idle->accounts->expect, gpu)))
			add_estimated(idle, i, &o, found);
	}
}

static void conclude(const struct idle *idle, struct found *found)
{
	struct launched *gpus = find_launched(idle);

	for (size_t i = 0; i < idle->n_gpus; i++)
		look_at_gpu(idle, i, &gpus[i], found);
	take_prices(idle, gpus);
	free(gpus);
	estimate(idle, found);
	infer(idle, found);
}

const struct detector detector_launch_bound = {
	.id = "launch-bound",
	.title = "kernels are so short that the GPU waits for each launch",
	.sees = "With exact times of the GPU: idle time of which 30 % or more passed while the "
		"feeding thread was in calls that submit work, with operations under 20 us on "
		"average. Where NVML's utilisation proves idle time: 30 % of the work or "
		"more, and 80 % of the idle time, while threads handed over work, in 100 us or less for a call and what comes "
		"before it, 20 calls or more for each wait, and of what they ran between calls 70 % in times of less than a millisecond; "
		"then it is estimated; what lines of the program's own take between calls, 250 us or more at a time, is "
		"starved-by-host's where it is a fifth of the work. Without either: threads that spend half of their working time or more in "
		"such calls, at their own cost, and wait for the GPU ten times or more, all "
		"together for a tenth of that time at most; then it is inferred, and the idle "
		"time is unknown.",
	.blind = "Without exact times, how long kernels take, and programs that never wait for the "
		 "GPU or only ask whether it is done. Python between launches is not in the cost: "
		 "starved-by-host has it where waits prove an idle GPU.",
	.fix = "Fewer, larger pieces of work: CUDA graphs, fused kernels, larger batches. PyTorch: "
	       "torch.compile(mode=\"reduce-overhead\"), torch.cuda.graph, foreach or fused "
	       "optimizers. JAX: jit the whole step.",
	.of_code = true,
	.of_host = true,
	.conclude_idle = conclude,
};
