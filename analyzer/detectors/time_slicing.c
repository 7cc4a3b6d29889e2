/*
 * analyzer/detectors/time_slicing.c: processes that used one GPU at the same time without MPS: it
 * works for one of them at a time. Of processes that were not recorded NVML says for how much of the time.
 */
#include <stdlib.h>
#include <string.h>
#include "table.h"
#include "account/account.h"
#include "findings/gpu_use.h"
#include "findings/sharing.h"
#include "idle/idle.h"
#include "text/text.h"

/* How long a tenant shared its GPU with others that it took turns with. */
static uint64_t sliced_ns(const struct tenant *self, const struct tenant *tenants, size_t n)
{
	struct tenant *rivals = xcalloc(n + 1, sizeof(*rivals));
	size_t i, n_rivals = 0;
	uint64_t ns;

	for (i = 0; i < n; i++)
		if (tenants_overlap(self, &tenants[i]) && !tenants_together(self, &tenants[i]))
			rivals[n_rivals++] = tenants[i];
	ns = tenant_shared_ns(self, rivals, n_rivals);
	free(rivals);
	return ns;
}

static bool is_sliced(const struct tenant *self, uint64_t ns)
{
	return sharing_is_sliced(ns, self->use->last_ns - self->use->first_ns);
}

struct sum {
	uint64_t tenants, processes, gpus, longest_ns, waited_ns;
	const struct process *busiest; /* whose calls waited for the GPU longest */
	uint64_t busiest_ns;
	const char *uuid;
};

/* Tenants come by GPU; a process that shares several GPUs counts once for each. */
static void add(struct sum *sum, const struct accounting *a, const struct tenant *self, uint64_t ns,
		bool *seen)
{
	struct account account = account_sum(a, self->process);
	uint64_t waited_ns = account.bucket_ns[BUCKET_GPU_INTENDED] +
			     account.bucket_ns[BUCKET_GPU_HIDDEN] + account.bucket_ns[BUCKET_QUEUE];
	size_t i = self->process->trace->index;

	sum->tenants++;
	if (!sum->uuid || strcmp(sum->uuid, self->gpu->uuid) != 0)
		sum->gpus++;
	sum->uuid = self->gpu->uuid;
	if (ns > sum->longest_ns)
		sum->longest_ns = ns;
	if (seen[i])
		return;
	seen[i] = true;
	sum->processes++;
	sum->waited_ns += waited_ns;
	if (!sum->busiest || waited_ns > sum->busiest_ns) {
		sum->busiest = self->process;
		sum->busiest_ns = waited_ns;
	}
}

static struct sum sum_up(const struct accounting *a)
{
	struct sum sum = {0};
	struct tenant *tenants;
	size_t i, n, begin = 0, end = 0;
	bool *seen = xcalloc(a->model->n_processes + 1, sizeof(*seen));

	tenants = tenants_find(a->stats, &n);
	for (i = 0; i < n; i++) {
		uint64_t ns;

		if (i == end)
			end = tenants_of_gpu(tenants, n, begin = i);
		ns = sliced_ns(&tenants[i], &tenants[begin], end - begin);
		if (is_sliced(&tenants[i], ns))
			add(&sum, a, &tenants[i], ns, seen);
	}
	free(tenants);
	free(seen);
	return sum;
}

static void conclude(const struct accounting *a, struct found *found)
{
	struct arena *texts = found->texts;
	struct sum sum = sum_up(a);
	struct finding *finding;
	const char *gpus = "one GPU";

	if (!sum.tenants)
		return;
	if (sum.gpus > 1)
		gpus = arena_printf(texts, "%llu GPUs", (unsigned long long)sum.gpus);
	finding = detector_add(&detector_time_slicing, found);
	finding->origin.process = sum.busiest;
	finding->origin.processes = (uint32_t)sum.processes;
	finding->count = sum.tenants;
	finding->cost.unknown = true;
	finding->what = arena_printf(
		texts,
		"%llu process%s used %s at the same time as another, up to %s, without MPS: where "
		"several had work, they took turns; their calls waited for the GPU for %s in all, "
		"for their own work, too",
		(unsigned long long)sum.processes, sum.processes == 1 ? "" : "es", gpus,
		text_time(texts, sum.longest_ns), text_time(texts, sum.waited_ns));
}

/* ---- with processes that were not recorded ---------------------------------------------------- */

/* By its threads, for the GPU or for room in its queues: so long at most the others' kernels can have held it up. */
static uint64_t waited_ns(const struct idle *idle, const struct process *process)
{
	struct account account = account_sum(idle->accounts, process);
	uint64_t ns = account.bucket_ns[BUCKET_GPU_INTENDED] +
		      account.bucket_ns[BUCKET_GPU_HIDDEN] + account.bucket_ns[BUCKET_QUEUE];

	for (const struct thread *thread = process->threads; thread; thread = thread->next) {
		const struct host_thread *h = host_thread_find(&idle->threads, thread);

		ns += h ? h->queried_ns : 0;
	}
	return ns;
}

static void add_unrecorded(const struct idle *idle, const struct idle_gpu *gpu, struct found *found)
{
	struct arena *texts = found->texts;
	const struct process *process = gpu->processes[0];
	const struct gpu_looks *looks = &gpu->looks;
	const struct thread *feeder = gpu_feeder(idle, gpu);
	uint64_t work_ns = gpu_work_ns(idle->accounts->expect, gpu);
	uint64_t others_ns = (uint64_t)(gpu_looks_others(looks) * (double)work_ns);
	uint64_t waits_ns = waited_ns(idle, process), cost_ns = min_u64(others_ns, waits_ns);
	const char *who = "another process";
	struct finding *finding;

	if (!feeder || !cost_ns)
		return;
	if (looks->other_pid)
		who = arena_printf(texts, "%s (%u%s)", who, looks->other_pid,
				   looks->others_most > 1 ? " and others" : "");
	finding = detector_add(&detector_time_slicing, found);
	finding->origin.process = process;
	finding->count = 1;
	finding_set_cost(finding, cost_ns);
	thread_costs_add(&finding->cost.threads, feeder, (double)cost_ns, (double)cost_ns);
	finding->what = arena_printf(
		texts,
		"estimated: %s has work on GPU %u, too: as NVML says, its kernels ran for %s of the time, this program's for %s "
		"of %s of work; without MPS they take turns, and this program's threads waited for the GPU for %s",
		who, gpu->device, text_percent(texts, gpu_looks_others(looks), 1),
		text_percent(texts, (double)looks->own_busy, 100 * (double)looks->shares_n),
		text_time(texts, work_ns), text_time(texts, waits_ns));
	finding->fix =
		"Give each program a GPU of its own (CUDA_VISIBLE_DEVICES, the scheduler's request for GPUs), or end "
		"the other one. Where both must share it: MPS, if their kernels leave room on the GPU.";
}

static void conclude_unrecorded(const struct idle *idle, struct found *found)
{
	for (size_t i = 0; i < idle->n_gpus; i++) {
		const struct idle_gpu *gpu = &idle->gpus[i];

		if (gpu->n_processes == 1 && !gpu->processes[0]->mps.server && gpu_has_others(gpu))
			add_unrecorded(idle, gpu, found);
	}
}

const struct detector detector_time_slicing = {
	.id = "time-slicing",
	.title = "processes take turns on a GPU: MPS is not used",
	.sees = "Recorded processes whose use of one GPU overlaps by 50 ms and a tenth at least, "
		"and which are not clients of the same MPS server. Without it a GPU works for one "
		"process at a time, a slice of time each; kernels of different processes never run "
		"at the same time, however small they are. And, by NVML, processes that were not "
		"recorded, where their kernels run for a tenth of the time or more: these cost what "
		"the program waits for the GPU, and no more than their share of the time.",
	.blind =
		"Processes that are not in the report, in containers with their own numbers of processes. What the turns cost: that depends on how "
		"much of the GPU each would have left to the others, and on how busy they "
		"were; a process counts as using the GPU from its first call to its last one.",
	.fix = "Start the MPS daemon before the processes (nvidia-cuda-mps-control -d), all of one "
	       "user: kernels that leave room on the GPU then run at the same time; those that "
	       "fill it gain nothing. Or give each process a GPU of its own.",
	.conclude_calls = conclude,
	.conclude_idle = conclude_unrecorded,
};
