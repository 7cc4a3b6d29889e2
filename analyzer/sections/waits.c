/*
 * analyzer/sections/waits.c: what was lost by waiting: the headline, and the order of the
 * sections behind it. Called by `report` and `why`.
 */
#include <stdlib.h>
#include "sections.h"
#include "findings/site.h"
#include "text/text.h"

/* ---- the headline --------------------------------------------------------------------------- */

struct headline_row {
	const char *lost, *causes, *maybe, *intended, *locks, *holders, *processes;
	uint64_t total_ns, lost_ns, asleep_ns, maybe_ns, cross_device_ns, holder_known_ns,
		lock_waited_ns;
	uint64_t processes_help_ns, processes_with_mps_ns, processes_do_not_help_ns, probes;
	uint64_t kernel_work_ns, kernel_overlap_ns;
#define BUCKET(name, key, text) uint64_t key##_ns;
	BUCKETS(BUCKET)
#undef BUCKET
};

/* clang-format off */
static const struct column headline_columns[] = {
	COLUMN_TEXT_TONE(struct headline_row, lost, "lost", TONE_LOSS),
	COLUMN_TEXT(struct headline_row, causes, "by"),
	COLUMN_TEXT(struct headline_row, maybe, "maybe not"),
	COLUMN_TEXT(struct headline_row, intended, "not lost"),
	COLUMN_TEXT(struct headline_row, locks, "locks"),
	COLUMN_TEXT(struct headline_row, holders, "holders"),
	COLUMN(struct headline_row, processes, "processes?", UNIT_TEXT),
	COLUMN_JSON(struct headline_row, total_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, lost_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, asleep_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, maybe_ns, UNIT_NS),
#define BUCKET(name, key, text) COLUMN_JSON(struct headline_row, key##_ns, UNIT_NS),
	BUCKETS(BUCKET)
#undef BUCKET
	COLUMN_JSON(struct headline_row, kernel_work_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, kernel_overlap_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, lock_waited_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, holder_known_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, cross_device_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, processes_help_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, processes_with_mps_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, processes_do_not_help_ns, UNIT_NS),
	COLUMN_JSON(struct headline_row, probes, UNIT_PLAIN),
};
/* clang-format on */

static const struct table_kind headline_kind = {
	TABLE("waits", "WAITS: where the time inside calls went", struct headline_row,
	      headline_columns),
	.facts = true,
};

/* "1.2 s", of what is unexplained with what of it the threads slept, of what was lost in the kernel
 * module with what of it they were not alone there. */
static const char *bucket_text(struct arena *texts, const struct headline_row *row, size_t bucket,
			       uint64_t ns)
{
	if (bucket == BUCKET_UNEXPLAINED && row->asleep_ns > ns / 20)
		return arena_printf(texts, "%s, %s of it asleep in the C library",
				    text_time(texts, ns), text_time(texts, row->asleep_ns));
	if (bucket == BUCKET_IOCTL && row->kernel_overlap_ns > ns / 20)
		return arena_printf(
			texts, "%s, up to %s of it while other threads were in it, too: inferred",
			text_time(texts, ns), text_time(texts, row->kernel_overlap_ns));
	return text_time(texts, ns);
}

/* "locks (1.2 s), hidden GPU waits (3.4 ms)": the buckets of what was lost, the largest first. */
static const char *lost_by(struct arena *texts, const struct headline_row *row,
			   const struct account *sum)
{
	uint64_t left[BUCKET_COUNT];
	const char *text = NULL;
	size_t i, best;

	for (i = 0; i < BUCKET_COUNT; i++)
		left[i] = account_lost_by(sum, (enum bucket)i);
	for (;;) {
		for (best = i = 0; i < BUCKET_COUNT; i++)
			if (left[i] > left[best])
				best = i;
		if (!left[best] || (text && left[best] < account_lost(sum) / 1000))
			return text;
		text = arena_printf(texts, "%s%s%s (%s)", text ?: "", text ? ", " : "",
				    bucket_names[best], bucket_text(texts, row, best, left[best]));
		left[best] = 0;
	}
}

/* Would one process for each thread have waited as well? */
static void judge_processes(struct headline_row *row, const struct accounting *a)
{
	const struct blame_edge *edge;
	double lost_ns;
	double sums[] = {[HELP_UNKNOWN] = 0, [HELP_ALONE] = 0, [HELP_WITH_MPS] = 0, [HELP_NOT] = 0};

	EDGES_ITER (edge, &a->blame->roots)
		blame_add_help(edge, sums);
	/* To wake a waiter is not needed where there is none. */
	for (size_t i = 0; i < a->locks.count; i++) {
		const struct lock *lock = a->locks.all[i];
		uint64_t gpus = a->gpus_used[lock->process->trace->index];

		sums[gpus & (gpus - 1) ? HELP_ALONE : HELP_WITH_MPS] += (double)lock->waking_ns;
	}
	row->processes_help_ns = (uint64_t)(sums[HELP_ALONE] + account_avoidable_ns(a));
	row->processes_with_mps_ns = (uint64_t)sums[HELP_WITH_MPS];
	row->processes_do_not_help_ns = (uint64_t)sums[HELP_NOT];
	/* Other processes would be in the kernel module as other threads are. Where there was none,
	 * it is unknown. */
	lost_ns = (double)(row->ioctl_ns - row->kernel_work_ns);
	if (lost_ns > account_avoidable_ns(a))
		row->processes_do_not_help_ns += min_u64(
			(uint64_t)(lost_ns - account_avoidable_ns(a)), row->kernel_overlap_ns);
}

/* What of the loss processes would save, in words; no part that is less than a twentieth. */
static const char *saving_text(struct arena *texts, const struct headline_row *row)
{
	uint64_t min_u64 = row->lost_ns / 20;
	const char *text = "";

	if (row->processes_help_ns >= min_u64)
		text = arena_printf(texts,
				    "one process for each thread would save up to %s: waits for "
				    "locks of this process",
				    text_time(texts, row->processes_help_ns));
	if (row->processes_with_mps_ns >= min_u64)
		text = arena_printf(
			texts,
			*text ? "%s; and up to %s more among threads of one GPU, if they "
				"share it through MPS, else they take turns"
			      : "%sone process for each thread would save up to %s if "
				"they share the GPU through MPS, else they take turns on "
				"it: waits for locks of this process",
			text, text_time(texts, row->processes_with_mps_ns));
	if (row->processes_do_not_help_ns >= min_u64)
		text = arena_printf(
			texts,
			*text ? "%s; %s would stay, in the kernel module"
			      : "%sone process for each thread would not help: %s of the "
				"loss are in the kernel module, which is one for all processes",
			text, text_time(texts, row->processes_do_not_help_ns));
	return *text ? text : NULL;
}

/* Is there a process of which more than one thread calls CUDA? */
static bool has_threads(const struct callstats *stats)
{
	uint64_t n_threads = 0;

	for (size_t i = 0; i < stats->model->n_processes && n_threads < 2; i++)
		callstats_process_ns(stats, &stats->model->processes[i], &n_threads);
	return n_threads > 1;
}

static const char *processes_text(struct arena *texts, const struct accounting *a,
				  const struct headline_row *row)
{
	if (row->lost_ns <= row->total_ns / 100 || !has_threads(a->stats))
		return NULL;
	if (!row->probes)
		return "unknown: recorded without probes";
	if (row->unexplained_ns > row->lost_ns / 2)
		return "unknown: most of the loss is unexplained";
	if (row->not_running_ns > row->lost_ns / 2)
		return cpu_pressure_fits(a->cpu_pressure, a->model->set->n_hosts)
			       ? "would not help: other programs had the CPUs"
			       : "would not help: the host has too few CPUs for these threads";
	return saving_text(texts, row);
}

/* Were the probes on in all of the processes? */
static bool probed(const struct accounting *a)
{
	for (size_t i = 0; i < a->model->set->n_traces; i++)
		if (!a->probed[i])
			return false;
	return true;
}

static void sum_edges(struct headline_row *row, const struct accounting *a)
{
	const struct blame_edge *edge;
	double all = 0, known = 0, cross = 0, kernel_overlap = 0;

	EDGES_ITER (edge, &a->blame->direct) {
		all += edge->waited_ns;
		if (edge->key.holder)
			known += edge->waited_ns;
		if (edge->key.holder && edge->key.holder_device != SPY_DEVICE_NONE &&
		    edge->key.waiter_device != SPY_DEVICE_NONE &&
		    edge->key.holder_device != edge->key.waiter_device)
			cross += edge->waited_ns;
	}
	row->lock_waited_ns = (uint64_t)all;
	row->holder_known_ns = (uint64_t)known;
	row->cross_device_ns = (uint64_t)cross;
	EDGES_ITER (edge, &a->blame->kernel_overlap.edges)
		kernel_overlap += edge->waited_ns;
	row->kernel_overlap_ns = (uint64_t)(kernel_overlap + 0.5);
}

static const char *not_lost(struct arena *texts, const struct headline_row *row)
{
	const char *loading = "", *in_kernel = "";

	if (row->loading_ns)
		loading =
			arena_printf(texts, "loading code %s, ", text_time(texts, row->loading_ns));
	/* Of buckets it is in the kernel module's, in which JSON and timelines have it. */
	if (row->kernel_work_ns)
		in_kernel = arena_printf(texts, " (%s of it in the kernel module)",
					 text_time(texts, row->kernel_work_ns));
	return arena_printf(texts,
			    "own work %s%s, %swaits for the GPU that the calls are made for %s",
			    text_time(texts, row->own_ns + row->kernel_work_ns), in_kernel, loading,
			    text_time(texts, row->gpu_intended_ns));
}

static void add_headline(struct report *report, const struct accounting *a, struct account sum,
			 size_t n_locks)
{
	struct headline_row *row = xcalloc(1, sizeof(*row));
	uint64_t threads = callstats_callers(a->stats);

	row->total_ns = sum.total_ns;
	row->lost_ns = account_lost(&sum);
	row->kernel_work_ns = sum.kernel_ns;
	row->asleep_ns = sum.asleep_ns;
	row->maybe_ns = sum.maybe_ns;
	row->probes = probed(a);
#define BUCKET(name, key, text) row->key##_ns = sum.bucket_ns[BUCKET_##name];
	BUCKETS(BUCKET)
#undef BUCKET
	sum_edges(row, a);
	judge_processes(row, a);
	row->lost = report_text(
		report, "%s of the %s inside calls: %s",
		text_percent(&report->arena, (double)row->lost_ns, (double)row->total_ns),
		text_thread_time(&report->arena, row->total_ns, threads),
		text_thread_time(&report->arena, row->lost_ns, threads));
	row->causes = lost_by(&report->arena, row, &sum);
	if (row->maybe_ns > row->lost_ns / 20)
		row->maybe = report_text(
			report,
			"%s of that in calls that had work of their own on the GPU to wait "
			"for: part of it they would have waited in any case",
			text_time(&report->arena, row->maybe_ns));
	row->intended = not_lost(&report->arena, row);
	if (row->lock_waited_ns && n_locks)
		row->locks = report_text(
			report, "%zu lock%s; %s of the waiting crosses from one GPU to another",
			n_locks, n_locks == 1 ? "" : "s",
			text_percent(&report->arena, (double)row->cross_device_ns,
				     (double)row->lock_waited_ns));
	if (!row->probes)
		row->holders = "recorded without probes: waits for locks are inferred from "
			       "calls that overlap in time";
	else if (row->lock_waited_ns)
		row->holders =
			report_text(report, "measured; known for %s of the time waited",
				    text_percent(&report->arena, (double)row->holder_known_ns,
						 (double)row->lock_waited_ns));
	row->processes = processes_text(&report->arena, a, row);
	report_add(report, &headline_kind, row, 1)->intro =
		threads < 2
			? NULL
			: report_text(report,
				      "Times are thread-seconds: those of %llu threads, added up.",
				      (unsigned long long)threads);
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* Where next to nothing was lost, a call that lost little is not worth a line. */
#define LITTLE_LOST_NS 1000000

static uint64_t least_lost(const struct account *sum)
{
	return account_lost(sum) < sum->total_ns / 100 ? LITTLE_LOST_NS : 0;
}

/* All calls. */
static struct account sum_up(const struct accounting *a)
{
	struct account sum = {0}, more;

	for (size_t i = 0; i < a->model->n_processes; i++) {
		more = account_sum(a, &a->model->processes[i]);
		account_add(&sum, &more);
	}
	return sum;
}

void report_waits(struct report *report, struct findings *f, const struct ranks *ranks,
		  struct symbolizer *symbols)
{
	const struct model *model = f->accounts->model;
	const struct subject *subject = &f->accounts->blame->subject;
	bool all = subject->kind == SUBJECT_ALL;
	bool place = subject->kind == SUBJECT_PLACE || subject->kind == SUBJECT_FINDING;
	struct account sum = sum_up(f->accounts);
	size_t n_locks;
	struct lock **locks = locks_name(&f->accounts->locks, &n_locks);

	if (all) {
		add_headline(report, f->accounts, sum, n_locks);
	} else {
		report_subject(report, f->accounts);
		if (subject->kind == SUBJECT_PLACE)
			report_place(report, ranks->idle, symbols, subject->place);
		report_findings_about(report, f, ranks, symbols);
	}
	report_worst_calls(report, f->accounts, symbols, all ? least_lost(&sum) : 0);
	if (place) {
		free(locks);
		return;
	}
	report_edges(report, f->accounts);
	if (all || subject->kind == SUBJECT_LOCK)
		report_locks(report, model->set, locks, n_locks, subject);
	if (all) {
		report_own_locks(report, ranks->idle, symbols, NULL);
		report_ioctls(report, f->accounts);
		report_non_cuda_threads(report, model);
	}
	if (subject->kind != SUBJECT_LOCK)
		report_accounts(report, f->accounts, subject);
	free(locks);
}
