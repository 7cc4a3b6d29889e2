/*
 * analyzer/detectors/oversubscribed_host.c: threads that were ready to go on and got no CPU:
 * because there are more of them than CPUs, whose CPUs may be kept busy by threads that wait for
 * the GPU and spin; or because other programs have the CPUs, which is a note. Which it is, the
 * process's own time on CPUs says (account/cpu_pressure.h).
 */
#include <stdlib.h>
#include "table.h"
#include "account/account.h"
#include "text/text.h"

/* From a tenth of the time of a process's threads on: on any busy machine threads lack a CPU now
 * and then. */
#define LACK_LEAST_PART 10
#define LACK_LEAST_NS 10000000

/* Spinning is to blame if it took at least this part of what the others lacked. */
#define SPUN_LEAST_PART 2

enum cause_of_lack { TOO_MANY, SPINNING, OTHER_PROGRAMS };

struct lack {
	uint64_t lacked_ns, busy_wait_ns, lacking, threads, processes;
	const struct process *worst; /* whose threads lacked most */
	uint64_t worst_ns;
	struct thread_costs costs;
};

static uint64_t lacked_ns(const struct thread_account *c)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < c->functions.n; i++)
		ns += c->functions.all[i].bucket_ns[BUCKET_NOT_RUNNING];
	return ns;
}

static void add_callers(struct lack *lack, const struct accounting *a,
			const struct process *process)
{
	for (const struct thread *thread = process->threads; thread; thread = thread->next) {
		const struct thread_account *c = thread_account_of(a, thread);
		uint64_t ns = c ? lacked_ns(c) : 0;

		if (!c)
			continue;
		lack->busy_wait_ns += c->busy_wait_ns;
		if (!ns)
			continue;
		lack->lacking++;
		thread_costs_add(&lack->costs, c->thread, (double)ns,
				 (double)c->not_running_working_ns);
	}
}

static void add(struct lack *lack, const struct accounting *a, const struct process *process)
{
	uint64_t ns = account_sum(a, process).bucket_ns[BUCKET_NOT_RUNNING], threads;
	uint64_t run_ns = callstats_process_ns(a->stats, process, &threads);

	if (ns < LACK_LEAST_NS || ns < run_ns / LACK_LEAST_PART)
		return;
	lack->lacked_ns += ns;
	add_callers(lack, a, process);
	lack->threads += threads;
	lack->processes++;
	if (lack->worst && ns <= lack->worst_ns)
		return;
	lack->worst = process;
	lack->worst_ns = ns;
}

static const struct host *host_of(const struct lack *lack)
{
	return lack->worst->trace->host;
}

static enum cause_of_lack find_cause(const struct accounting *a, const struct lack *lack)
{
	if (cpu_pressure_fits(&a->cpu_pressure[host_of(lack)->index], 1))
		return OTHER_PROGRAMS;
	return lack->threads > 1 && lack->busy_wait_ns >= lack->lacked_ns / SPUN_LEAST_PART
		       ? SPINNING
		       : TOO_MANY;
}

/* "; the program had 32 % of their time meanwhile"; nothing where that is unknown. */
static const char *own_use(struct arena *texts, const struct accounting *a, const struct lack *lack)
{
	unsigned int percent = cpu_pressure_own_percent(&a->cpu_pressure[host_of(lack)->index]);

	return percent ? arena_printf(texts,
				      ", of whose time the program itself had %u %% meanwhile",
				      percent)
		       : "";
}

static const char *why(struct arena *texts, const struct lack *lack, enum cause_of_lack cause,
		       bool use_known)
{
	switch (cause) {
	case SPINNING:
		return arena_printf(
			texts,
			"; meanwhile others of them kept CPUs busy for %s at least, waiting "
			"for the GPU in calls that spin",
			text_time(texts, lack->busy_wait_ns));
	case OTHER_PROGRAMS:
		if (use_known)
			return ": other programs on the host had the CPUs, or its cgroup's quota "
			       "kept them from it";
		return ", and mostly no more threads than that made calls at a time: other "
		       "processes on the host had the CPUs, or threads that make no CUDA calls";
	default:
		return "";
	}
}

static const char *what(struct arena *texts, const struct accounting *a, const struct lack *lack,
			enum cause_of_lack cause)
{
	uint64_t n = host_of(lack)->cpus;
	const char *cpus = "", *host = "", *use = own_use(texts, a, lack);

	if (n)
		cpus = arena_printf(texts, "; they may use %s%s", text_count(texts, n, "CPU"), use);
	if (!host_of(lack)->alone)
		host = arena_printf(texts, " on %s", host_of(lack)->label);
	return arena_printf(
		texts,
		"%llu thread%s of %llu%s, ready to go on, got no CPU for %s inside CUDA "
		"calls%s%s",
		(unsigned long long)lack->lacking, lack->lacking == 1 ? "" : "s",
		(unsigned long long)lack->threads, host, text_time(texts, lack->lacked_ns), cpus,
		why(texts, lack, cause, *use));
}

static const char *cure(enum cause_of_lack cause)
{
	switch (cause) {
	case SPINNING:
		return "Let threads sleep while they wait for the GPU: "
		       "cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync) before the first call "
		       "of each device, or cudaDeviceScheduleYield; events with "
		       "cudaEventBlockingSync. Else fewer threads, or more CPUs.";
	case OTHER_PROGRAMS:
		return "Give the program CPUs of its own (a cpuset, taskset for it and for the "
		       "others, the batch system's), or a quieter host; see that no quota of its "
		       "cgroup takes them away.";
	default:
		return detector_oversubscribed_host.fix;
	}
}

/* Hosts share no CPUs: each has a finding of its own. */
static void add_finding(const struct accounting *a, const struct lack *lack, struct found *found)
{
	struct finding *finding = detector_add(&detector_oversubscribed_host, found);
	enum cause_of_lack cause = find_cause(a, lack);

	finding->origin.process = lack->worst;
	finding->origin.host = host_of(lack);
	finding->origin.processes = (uint32_t)lack->processes;
	finding->count = lack->lacking;
	finding->variant = cause;
	finding_set_cost(finding, lack->lacked_ns);
	finding->cost.threads = lack->costs;
	finding->remarks.not_ours = cause == OTHER_PROGRAMS;
	finding->what = what(found->texts, a, lack, cause);
	finding->fix = cure(cause);
}

static void conclude(const struct accounting *a, struct found *found)
{
	struct lack *lacks = xcalloc(a->model->set->n_hosts, sizeof(*lacks));

	for (size_t i = 0; i < a->model->n_processes; i++) {
		const struct process *process = &a->model->processes[i];

		add(&lacks[process->trace->host->index], a, process);
	}
	for (size_t i = 0; i < a->model->set->n_hosts; i++)
		if (lacks[i].worst)
			add_finding(a, &lacks[i], found);
	free(lacks);
}

const struct detector detector_oversubscribed_host = {
	.id = "oversubscribed-host",
	.title = "threads are ready to run and get no CPU",
	.sees = "Time inside long calls in which the thread was ready to run and on no CPU, by "
		"the scheduler's own account, from a tenth of the time of a process's threads on. "
		"If the program's own threads, of all kinds, had less than half of the CPUs' time "
		"meanwhile, other programs had the CPUs: a note. So it is where that time is not "
		"known and no more threads make calls at a time than there are CPUs for them. And "
		"calls that keep a CPU busy while they wait "
		"for the GPU, which is what CUDA does by default: as long as there are enough "
		"CPUs, it is the fastest way.",
	.blind =
		"Calls shorter than a quarter of a millisecond, and time outside of calls. Which "
		"other programs had the CPUs. Limits other than the set of CPUs the process starts "
		"with and the quota of its cgroup (version 2); processes of a host that have "
		"different CPUs count as if they shared them.",
	.fix = "Fewer threads, or more CPUs for the process (taskset, the container's limit, the "
	       "batch system's).",
	.conclude_calls = conclude,
};
