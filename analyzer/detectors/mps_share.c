/*
 * analyzer/detectors/mps_share.c: clients of MPS that may use a part of the GPU only, and mostly
 * wait for it.
 */
#include <stdlib.h>
#include "table.h"
#include "account/account.h"
#include "text/text.h"

/* A process of which a thread does so for this part of the time waits for the GPU above all. */
#define MOSTLY 0.5

static bool is_client(const struct process *process)
{
	for (size_t i = 0; i < process->n_gpus; i++)
		if (process->gpus[i].client == SPY_CLIENT_YES)
			return true;
	return false;
}

/* Its share in percent; 100: all of the GPU. */
static double share_of(const struct process *process)
{
	const char *text = process->mps.ns ? process->mps.percentage : NULL;
	double percent = text && *text ? strtod(text, NULL) : 100;

	return percent > 0 ? percent : 100;
}

/* What the thread waited for the GPU that waited longest. */
static uint64_t longest_wait_ns(const struct accounting *a, const struct process *process)
{
	uint64_t ns = 0, longest_ns = 0;

	for (size_t i = 0; i < a->n_thread_accounts; i++) {
		const struct thread_account *c = a->thread_accounts[i];

		if (!c || c->thread->process != process)
			continue;
		for (size_t j = ns = 0; j < c->functions.n; j++)
			ns += c->functions.all[j].bucket_ns[BUCKET_GPU_INTENDED];
		longest_ns = ns > longest_ns ? ns : longest_ns;
	}
	return longest_ns;
}

/* While it works, if that is known: what it begins with may take long. */
static uint64_t time_ns(const struct accounting *a, const struct process *process)
{
	const struct phase *phase = &a->expect->phases.all[process->trace->index];

	return phase->found ? phase->end_ns - phase->begin_ns
			    : process->last_ns - process->first_ns;
}

static bool is_limited(const struct accounting *a, const struct process *process)
{
	return is_client(process) && share_of(process) < 100 &&
	       process->first_ns < process->last_ns &&
	       (double)longest_wait_ns(a, process) >= MOSTLY * (double)time_ns(a, process);
}

static void conclude(const struct accounting *a, struct found *found)
{
	struct arena *texts = found->texts;
	const struct process *last = NULL;
	struct finding *finding;
	const char *names = "";
	uint32_t limited = 0;

	for (size_t i = 0; i < a->model->n_processes; i++) {
		const struct process *process = &a->model->processes[i];

		if (!is_limited(a, process))
			continue;
		names = arena_printf(texts, "%s%s%s (%s %%)", names, *names ? ", " : "",
				     text_process(texts, process->trace), process->mps.percentage);
		limited++;
		last = process;
	}
	if (!last)
		return;
	finding = detector_add(&detector_mps_share, found);
	finding->origin.process = last;
	finding->origin.processes = limited;
	finding->count = limited;
	finding->cost.unknown = true;
	finding->what =
		arena_printf(texts,
			     "waited for the GPU for half of the time or more and may use a "
			     "part of it only: %s",
			     names);
}

const struct detector detector_mps_share = {
	.id = "mps-share",
	.title = "a process waits for its limited share of the GPU",
	.sees = "Clients of MPS with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE below 100 of which a "
		"thread spends half of the time and more waiting for the GPU in calls made for "
		"that.",
	.blind = "Whether the kernels are large enough to use more of the GPU. Shares that the "
		 "daemon's own default sets. The limit may be intended.",
	.fix = "If the others leave some of the GPU idle, raise CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: "
	       "shares of several processes may add up to more than 100.",
	.conclude_calls = conclude,
};
