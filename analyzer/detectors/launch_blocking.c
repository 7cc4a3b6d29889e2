/*
 * analyzer/detectors/launch_blocking.c: processes with CUDA_LAUNCH_BLOCKING in their environment,
 * in which each launch waits for its kernel: a help for debugging that was left on. What else the
 * report says is of such a program.
 */
#include "table.h"
#include "account/account.h"
#include "text/text.h"

struct blocked {
	uint64_t launches, ns, processes;
	uint64_t most_ns; /* of one function in one thread: */
	uint32_t fn;
	const struct process *last;
};

/* Launches of a thread, and what they waited. */
static void add(struct blocked *sum, const struct trace_set *set, const struct thread_account *c)
{
	for (size_t i = 0; i < c->functions.n; i++) {
		uint64_t ns = c->functions.all[i].bucket_ns[BUCKET_GPU_INTENDED];

		if (set->functions.all[c->functions.fns[i]].contract != SPY_CONTRACT_LAUNCH)
			continue;
		sum->launches += c->functions.all[i].calls;
		sum->ns += ns;
		if (ns < sum->most_ns)
			continue;
		sum->most_ns = ns;
		sum->fn = c->functions.fns[i];
	}
}

static struct blocked sum_up(const struct accounting *a)
{
	struct blocked sum = {0};
	size_t i, j;

	for (i = 0; i < a->model->n_processes; i++) {
		const struct process *process = &a->model->processes[i];
		uint64_t before = sum.launches;

		for (j = 0; process->trace->cuda.launches_block && j < a->n_thread_accounts; j++)
			if (a->thread_accounts[j] &&
			    a->thread_accounts[j]->thread->process == process)
				add(&sum, a->model->set, a->thread_accounts[j]);
		if (sum.launches == before)
			continue;
		sum.processes++;
		sum.last = process;
	}
	return sum;
}

static void conclude(const struct accounting *a, struct found *found)
{
	struct blocked sum = sum_up(a);
	struct finding *finding;

	if (!sum.launches)
		return;
	finding = detector_add(&detector_launch_blocking, found);
	finding->origin.process = sum.last;
	finding->origin.processes = (uint32_t)sum.processes;
	finding->place.function = text_function(a->model->set, sum.fn);
	finding->count = sum.launches;
	finding_set_cost(finding, sum.ns);
	finding->remarks.shown = true;
	finding->remarks.maybe_harmless =
		true; /* a wait for the GPU might come later in any case */
	finding->what = arena_printf(
		found->texts,
		"CUDA_LAUNCH_BLOCKING is set: %llu launch%s waited for the kernel's end, %s in "
		"all; without it launches return at once, and the program waits elsewhere",
		(unsigned long long)sum.launches, sum.launches == 1 ? "" : "es",
		text_time(found->texts, sum.ns));
}

const struct detector detector_launch_blocking = {
	.id = "launch-blocking",
	.title = "each launch waits for its kernel: CUDA_LAUNCH_BLOCKING is set",
	.sees = "Launches of kernels in processes that were started with CUDA_LAUNCH_BLOCKING=1. "
		"Each then waits until its kernel has ended, and neither host and GPU nor two "
		"streams of a thread work at the same time.",
	.blind = "What the launches cost without it: from launches whose kernel had ended at once "
		 "that is known roughly, if there were any. Whether the variable was set only when "
		 "CUDA had started.",
	.fix = "Leave the variable out, because it is for debugging, and record again.",
	.conclude_calls = conclude,
};
