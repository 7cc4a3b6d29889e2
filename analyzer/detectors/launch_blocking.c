/*
 * analyzer/detectors/launch_blocking.c: processes with CUDA_LAUNCH_BLOCKING in their environment,
 * in which each launch waits for its kernel: a help for debugging that was left on. What else the
 * report says is of such a program.
 *
 * The host cannot run ahead: its time and the GPU's are added up. What is gained without the variable, account/run_ahead.h has in
 * bounds. As much of the GPUs' idle time may be due to it, and is the price of no other finding.
 */
#include <string.h>
#include "table.h"
#include "account/account.h"
#include "account/run_ahead.h"
#include "findings/idle_price.h"
#include "text/text.h"

struct blocked {
	uint64_t launches, ns, processes; /* ns: in which they may have waited */
	uint64_t gain_low_ns, gain_high_ns;
	double idle_part; /* of a GPU's idle time: may be due to that */
	uint64_t most_ns; /* of one function in one thread: */
	uint32_t fn;
	const struct process *last;
	struct thread_costs costs;
};

/* Launches of a thread, and what they may have waited. */
static void add(struct blocked *sum, const struct trace_set *set, const struct thread_account *c)
{
	for (size_t i = 0; i < c->functions.n; i++) {
		const struct account *account = &c->functions.all[i];
		uint64_t ns = run_ahead_waited_most(account->bucket_ns[BUCKET_GPU_INTENDED],
						    account->bucket_ns[BUCKET_OWN], account->calls);

		if (set->functions.all[c->functions.fns[i]].contract != SPY_CONTRACT_LAUNCH)
			continue;
		sum->launches += account->calls;
		sum->ns += ns;
		thread_costs_add(&sum->costs, c->thread, (double)ns, (double)ns);
		if (ns < sum->most_ns)
			continue;
		sum->most_ns = ns;
		sum->fn = c->functions.fns[i];
	}
}

static bool uses(const struct idle_gpu *gpu, const struct process *process)
{
	for (size_t i = 0; i < gpu->n_processes; i++)
		if (gpu->processes[i] == process)
			return true;
	return false;
}

/* So much of the idle time of the process's GPUs might not be there without the variable; and none while it waits in launches. */
static double withhold(const struct idle *idle, const struct process *process, uint64_t ns)
{
	const struct function *functions = idle->accounts->model->set->functions.all;
	struct finding none = {0};
	double part, most = 0;

	for (struct idle_sum *sum = idle->sums.by_key; sum; sum = sum->hh.next) {
		uint32_t fn = sum->longest.fn;

		if (sum->process == process && sum->key.cause == IDLE_CUDA_WAIT &&
		    fn != NO_FUNCTION && functions[fn].contract == SPY_CONTRACT_LAUNCH)
			idle_price_take_part(idle, &none, sum, 1);
	}
	for (size_t gpu = 0; gpu < idle->n_gpus; gpu++) {
		if (!uses(&idle->gpus[gpu], process))
			continue;
		part = idle_price_withhold(idle, gpu, process, ns);
		most = part > most ? part : most;
	}
	return most;
}

static void add_gain(struct blocked *sum, const struct idle *idle, const struct process *process)
{
	const struct run_ahead *ahead = idle->accounts->processes[process->trace->index].ahead;
	uint64_t most_ns;
	double part;

	if (!ahead) /* they failed */
		return;
	most_ns = run_without_saved_ns(&ahead->most, process->last_ns);
	sum->gain_low_ns += min_u64(run_without_saved_ns(&ahead->least, process->last_ns), most_ns);
	sum->gain_high_ns += most_ns;
	part = withhold(idle, process, most_ns);
	sum->idle_part = part > sum->idle_part ? part : sum->idle_part;
}

static void add_process(struct blocked *sum, const struct idle *idle, const struct process *process)
{
	const struct accounting *a = idle->accounts;
	uint64_t before = sum->launches;

	for (size_t i = 0; i < a->n_thread_accounts; i++)
		if (a->thread_accounts[i] && a->thread_accounts[i]->thread->process == process)
			add(sum, a->model->set, a->thread_accounts[i]);
	if (sum->launches == before)
		return;
	add_gain(sum, idle, process);
	sum->processes++;
	sum->last = process;
}

/* Does the program ask whether work is done, as it may do instead of waiting? */
static bool asks(const struct callstats *stats)
{
	const struct functions *functions = &stats->model->set->functions;

	for (uint32_t fn = 0; fn < functions->count && fn < stats->n_functions; fn++)
		if (stats->counted[fn] && (strstr(functions->all[fn].name, "StreamQuery") ||
					   strstr(functions->all[fn].name, "EventQuery")))
			return true;
	return false;
}

/* Of several processes: in how many. */
static const char *where_text(struct arena *texts, const struct model *model,
			      const struct blocked *sum)
{
	if (model->n_processes == 1)
		return "";
	if (sum->processes == model->n_processes)
		return arena_printf(texts, " in all %zu processes", model->n_processes);
	if (sum->processes == 1)
		return arena_printf(texts, " in %s, 1 of %zu processes",
				    text_process(texts, sum->last->trace), model->n_processes);
	return arena_printf(texts, " in %llu of %zu processes", (unsigned long long)sum->processes,
			    model->n_processes);
}

#define IDLE_LEAST 0.5 /* from there on most of the idle time may have this reason alone */
#define GAIN_LEAST_PART 10 /* of the launches' waits: else the GPU has hardly any to speak of */

static const char *unknown_text(struct arena *texts, const struct blocked *sum)
{
	if (sum->idle_part < IDLE_LEAST || sum->gain_high_ns < sum->ns / GAIN_LEAST_PART)
		return "";
	return arena_printf(texts,
			    "; up to %s of the GPU's idle time is due to that: what else it waits "
			    "for, a recording without the variable shows",
			    text_percent(texts, sum->idle_part, 1));
}

static void conclude(const struct idle *idle, struct found *found)
{
	const struct model *model = idle->accounts->model;
	struct blocked sum = {0};
	struct finding *finding;

	for (size_t i = 0; i < model->n_processes; i++)
		if (model->processes[i].trace->cuda.launches_block)
			add_process(&sum, idle, &model->processes[i]);
	if (!sum.launches)
		return;
	finding = detector_add(&detector_launch_blocking, found);
	finding->origin.process = sum.last;
	finding->origin.processes = (uint32_t)sum.processes;
	finding->place.function = text_function(model->set, sum.fn);
	finding->count = sum.launches;
	finding_set_cost(finding, sum.ns);
	finding->cost.threads = sum.costs;
	finding->cost.gain_high_ns = min_u64(sum.gain_high_ns, sum.ns);
	if (!asks(idle->accounts->stats))
		finding->cost.gain_low_ns = min_u64(sum.gain_low_ns, finding->cost.gain_high_ns);
	finding->remarks.shown = true;
	finding->what = arena_printf(
		found->texts,
		"CUDA_LAUNCH_BLOCKING is set%s: %llu launch%s waited for the kernel's end, up to %s in "
		"all, and the GPU then for the next one: the host's time and the GPU's add up "
		"instead of passing side by side%s",
		where_text(found->texts, model, &sum), (unsigned long long)sum.launches,
		sum.launches == 1 ? "" : "es", text_time(found->texts, sum.ns),
		unknown_text(found->texts, &sum));
}

const struct detector detector_launch_blocking = {
	.id = "launch-blocking",
	.title = "each launch waits for its kernel: CUDA_LAUNCH_BLOCKING is set",
	.sees = "Launches of kernels in processes that were started with CUDA_LAUNCH_BLOCKING=1. "
		"Each then waits until its kernel has ended, and neither host and GPU nor two "
		"streams of a thread work at the same time.",
	.blind =
		"How long kernels ran: no longer than their launches, and for as long as these took "
		"more than the shortest ones; with that in mind each launch and wait is made again without "
		"the variable, and the gain is what lies between. As much idle time of the GPU is no "
		"other finding's. Nothing is gained for certain where the program asks for work "
		"(cudaStreamQuery, cudaEventQuery). Whether the variable was set only when CUDA had "
		"started.",
	.fix = "Leave the variable out, because it is for debugging, and record again.",
	.conclude_idle = conclude,
};
