/*
 * analyzer/detectors/oversubscribed_host.c: threads that were ready to go on and got no CPU; among them those
 * whose CPUs are kept busy by other threads of the process, which wait for the GPU and spin.
 */
#include "detector.h"
#include "report_words.h"

/* From a tenth of the threads' time on: on any busy machine threads lack a CPU now and then. */
#define LACK_LEAST_PART 10
#define LACK_LEAST_NS 10000000

/* Spinning is to blame if it took at least this part of what the others lacked. */
#define SPUN_LEAST_PART 2

struct lack {
	uint64_t lacked_ns, spun_ns, lacking, threads, processes;
	int64_t cpus; /* the fewest that any of the processes may use, 0 unknown */
	const struct process *last;
};

static bool lacked(const struct caller *c)
{
	size_t i;

	for (i = 0; i < c->n_accounts; i++)
		if (c->accounts[i].bucket_ns[BUCKET_NOT_RUNNING])
			return true;
	return false;
}

static void add_callers(struct lack *lack, const struct analysis *a, const struct process *process)
{
	size_t i;

	for (i = 0; i < a->accounts.n_callers; i++) {
		const struct caller *c = a->accounts.callers[i];

		if (!c || c->thread->process != process)
			continue;
		lack->spun_ns += c->spun_ns;
		lack->lacking += lacked(c);
	}
}

static void add(struct lack *lack, const struct analysis *a, const struct process *process)
{
	uint64_t ns = account_sum(&a->accounts, process).bucket_ns[BUCKET_NOT_RUNNING], threads;
	uint64_t run_ns = findings_process_ns(a, process, &threads);
	int64_t cpus = metadata_number(&process->trace->metadata, "cpus", 0);

	if (ns < LACK_LEAST_NS || ns < run_ns / LACK_LEAST_PART)
		return;
	lack->lacked_ns += ns;
	add_callers(lack, a, process);
	lack->threads += threads;
	lack->processes++;
	lack->last = process;
	if (cpus > 0 && (!lack->cpus || cpus < lack->cpus))
		lack->cpus = cpus;
}

static const char *what(struct report *report, const struct lack *lack, bool spinning)
{
	const char *cpus = "", *spun = "";

	if (lack->cpus)
		cpus = report_text(report, "; they may use %lld CPU%s", (long long)lack->cpus,
				   lack->cpus == 1 ? "" : "s");
	if (spinning)
		spun = report_text(
			report,
			"; meanwhile others of them kept CPUs busy for %s at least, waiting "
			"for the GPU in calls that spin",
			word_time(report, lack->spun_ns));
	return report_text(report,
			   "%llu thread%s of %llu, ready to go on, got no CPU for %s inside CUDA "
			   "calls%s%s",
			   (unsigned long long)lack->lacking, lack->lacking == 1 ? "" : "s",
			   (unsigned long long)lack->threads, word_time(report, lack->lacked_ns),
			   cpus, spun);
}

static void conclude(const struct analysis *a, struct report *report, struct finding **findings,
		     size_t *n)
{
	struct lack lack = {0};
	struct finding *finding;
	bool spinning;
	size_t i;

	for (i = 0; i < a->model.n_processes; i++)
		add(&lack, a, &a->model.processes[i]);
	if (!lack.last)
		return;
	spinning = lack.threads > 1 && lack.spun_ns >= lack.lacked_ns / SPUN_LEAST_PART;
	finding = detector_add(&detector_oversubscribed_host, findings, n);
	finding->process = lack.last;
	finding->processes = (uint32_t)lack.processes;
	finding->count = lack.lacking;
	finding->variant = spinning;
	finding->own_ns = finding->gain_high_ns = lack.lacked_ns;
	finding->gain_known = true;
	finding->what = what(report, &lack, spinning);
	if (spinning)
		finding->fix = "Let threads sleep while they wait for the GPU: "
			       "cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync) before the "
			       "first call of "
			       "each device, or cudaDeviceScheduleYield; events with "
			       "cudaEventBlockingSync. Else fewer threads, or more CPUs.";
}

const struct detector detector_oversubscribed_host = {
	.id = "oversubscribed-host",
	.title = "too few CPUs for the threads",
	.sees = "Time inside long calls in which the thread was ready to run and on no CPU, by the "
		"scheduler's own account, from a tenth of the threads' time on. And calls that "
		"keep "
		"a CPU busy while they wait for the GPU, which is what CUDA does by default: as "
		"long "
		"as there are enough CPUs, it is the fastest way.",
	.blind =
		"Calls shorter than a quarter of a millisecond, and time outside of calls. Who had "
		"the CPUs, if no thread of the process spun: other processes, or threads that make "
		"no calls. Limits other than the set of CPUs, such as a container's quota.",
	.fix = "Fewer threads, or more CPUs for the process (taskset, the container's limit, the "
	       "batch system's).",
	.conclude = conclude,
};
