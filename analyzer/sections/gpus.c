/*
 * analyzer/sections/gpus.c: for each GPU, how long it worked and had nothing to do, exactly or in bounds, and what those
 * who feed it did meanwhile. Called by `report`, after the last record.
 */
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "findings/gpu_use.h"
#include "base/format.h"
#include "text/nvml.h"
#include "text/text.h"
#include "base/median.h"

/* ---- rows ------------------------------------------------------------------------------------ */

struct gpu_row {
	const char *who, *process, *name, *busy_known, *summary, *times, *unknown, *feeder;
	uint64_t device, work_ns, known_ns, busy_ns, idle_ns, idle_max_ns;
	uint64_t certain_ns; /* idle, by the calls alone */
	uint64_t estimated_ns; /* of idle_ns: by NVML, and what for by its feeder's own account */
	const char *nvml; /* what it says */
	uint64_t operations, small_ns, clock_error_ns, clock_drift_ns;
	uint64_t feeder_thread, feeder_outside_ns, feeder_query_ns, feeder_in_calls_ns;
	const struct table *idle_causes, *feeder_causes;
};

/* clang-format off */
static const struct column gpu_columns[] = {
	COLUMN_TEXT(struct gpu_row, who, "GPU"),
	COLUMN_TEXT(struct gpu_row, summary, "what it did"),
	COLUMN_JSON(struct gpu_row, device, UNIT_DEVICE),
	COLUMN_JSON(struct gpu_row, process, UNIT_TEXT),
	COLUMN_JSON(struct gpu_row, work_ns, UNIT_NS),
	COLUMN_JSON(struct gpu_row, idle_ns, UNIT_NS),
	COLUMN_JSON(struct gpu_row, idle_max_ns, UNIT_NS),
	COLUMN_JSON(struct gpu_row, name, UNIT_TEXT),
	COLUMN_JSON(struct gpu_row, busy_ns, UNIT_NS),
	COLUMN_JSON(struct gpu_row, busy_known, UNIT_TEXT),
	COLUMN_JSON(struct gpu_row, known_ns, UNIT_NS),
	COLUMN_JSON(struct gpu_row, certain_ns, UNIT_NS),
	COLUMN_JSON(struct gpu_row, estimated_ns, UNIT_NS),
	COLUMN_JSON(struct gpu_row, operations, UNIT_COUNT),
	COLUMN_JSON(struct gpu_row, small_ns, UNIT_NS),
	COLUMN_JSON(struct gpu_row, clock_error_ns, UNIT_NS),
	COLUMN_JSON(struct gpu_row, clock_drift_ns, UNIT_NS),
	{.key = "times", .title = "", .unit = UNIT_TEXT, .place = COLUMN_BELOW_WORDS,
	 .offset = offsetof(struct gpu_row, times)},
	COLUMN_LINE(struct gpu_row, unknown, UNIT_TEXT),
	COLUMN_LINE(struct gpu_row, nvml, UNIT_TEXT),
	COLUMN_TABLE(struct gpu_row, idle_causes, &idle_causes_kind),
	COLUMN_TEXT_LINE(struct gpu_row, feeder),
	COLUMN_JSON(struct gpu_row, feeder_thread, UNIT_PLAIN),
	COLUMN_JSON(struct gpu_row, feeder_outside_ns, UNIT_NS),
	COLUMN_JSON(struct gpu_row, feeder_query_ns, UNIT_NS),
	COLUMN_JSON(struct gpu_row, feeder_in_calls_ns, UNIT_NS),
	COLUMN_TABLE(struct gpu_row, feeder_causes, &feeder_causes_kind),
};
/* clang-format on */

static const struct table_kind gpus_kind = {
	TABLE("gpus",
	      "GPUS: idle time of each GPU while its program worked, and what the thread "
	      "that submitted the next work did meanwhile (indented: in shares of that time)",
	      struct gpu_row, gpu_columns),
};

/* ---- GPUs ------------------------------------------------------------------------------------ */

#define FEW_SAMPLES 30 /* fewer make a share uncertain by more than it may be large */

static void describe_feeder(const struct idle_writer *w, const struct idle_gpu *gpu,
			    struct gpu_row *row)
{
	const struct thread *thread = gpu_feeder(w->idle, gpu);
	const struct host_thread *h = thread ? host_thread_find(&w->idle->threads, thread) : NULL;
	const char *queried = "";
	double all_ns;

	if (!h || !w->idle->accounts->gaps_recorded[gpu->processes[0]->trace->index])
		return;
	row->feeder_thread = thread->tid;
	row->feeder_outside_ns = h->outside_ns;
	row->feeder_query_ns = h->queried_ns;
	row->feeder_in_calls_ns = h->in_calls_ns;
	all_ns = (double)(h->outside_ns + h->in_calls_ns);
	if (h->queried_ns)
		queried = arena_printf(w->texts,
				       "waited for the GPU for %s of its time, by asking "
				       "whether it is done, and ",
				       text_percent(w->texts, (double)h->queried_ns, all_ns));
	row->feeder = arena_printf(
		w->texts, "%s, which feeds it, %swas outside CUDA for %s%s%s:",
		text_thread(w->texts, thread, gpu->device), queried,
		text_percent(w->texts, (double)(h->outside_ns - h->queried_ns), all_ns),
		h->queried_ns ? "; of both" : " of its time",
		h->n_samples && h->n_samples < FEW_SAMPLES
			? arena_printf(w->texts, " (places by %s alone)",
				       text_count(w->texts, h->n_samples, "sample"))
			: "");
	row->feeder_causes =
		idle_causes(w, &feeder_causes_kind, idle_owner_thread(thread), NULL, h->outside_ns);
}

/* ---- exact times ----------------------------------------------------------------------------- */

/* Of its processes the first one whose times are not complete; else those of the first one. */
static const struct gpu_times *times_of(const struct idle *idle, const struct idle_gpu *gpu)
{
	const struct gpu_times *times = idle->ops.times;
	size_t i = 0;

	while (i < gpu->n_processes && !gpu_times_lost(&times[gpu->processes[i]->trace->index]))
		i++;
	return &times[gpu->processes[i < gpu->n_processes ? i : 0]->trace->index];
}

/* What became of it where times of GPUs were asked for; NULL: nothing to say. */
static const char *times_words(const struct idle_writer *w, const struct idle_gpu *gpu,
			       const struct gpu_row *row)
{
	const struct gpu_times *t = times_of(w->idle, gpu);
	const char *small = "";

	switch (t->state) {
	case SPY_GPU_TAKEN:
		return arena_printf(w->texts, "no GPU times: CUPTI is in use by %s", t->text);
	case SPY_GPU_MISSING:
		return arena_printf(w->texts, "no GPU times: %s", t->text);
	default:
		break;
	}
	if (!t->ops)
		return NULL;
	if (gpu_times_lost(t))
		return arena_printf(w->texts,
				    "GPU times are not complete: %s were lost, %s have impossible "
				    "times, %s came too late, %s did not end",
				    text_count(w->texts, t->dropped, "record"),
				    text_count(w->texts, t->damaged, "operation"),
				    text_count(w->texts, t->late, "operation"),
				    text_count(w->texts, t->unfinished, "operation"));
	if (row->small_ns && row->small_ns * 20 >= row->busy_ns)
		small = arena_printf(
			w->texts, "; with fewer blocks than it has multiprocessors for %s",
			text_percent(w->texts, (double)row->small_ns, (double)row->busy_ns));
	return arena_printf(
		w->texts,
		"GPU times of %s by CUPTI, known for %s%s%s; its clock drifted by %s, at most %s "
		"off%s",
		text_count(w->texts, t->ops, "operation"), text_time(w->texts, row->known_ns),
		t->state == SPY_GPU_GAVE_WAY ? ", until another tool began to use CUPTI: " : "",
		t->state == SPY_GPU_GAVE_WAY ? t->text : "",
		text_time(w->texts, row->clock_drift_ns), text_time(w->texts, row->clock_error_ns),
		small);
}

static void describe_times(const struct idle_writer *w, const struct idle_gpu *gpu,
			   struct gpu_row *row)
{
	const struct gpu_times *t = times_of(w->idle, gpu);
	uint64_t first_ns = (uint64_t)t->first_offset_ns, last_ns = (uint64_t)t->last_offset_ns;

	row->operations = t->ops;
	row->small_ns = gpu->exact.small_ns;
	row->known_ns = exact_known_ns(&gpu->exact);
	row->clock_error_ns = t->error_ns;
	row->clock_drift_ns =
		t->last_offset_ns < t->first_offset_ns ? first_ns - last_ns : last_ns - first_ns;
	row->times = times_words(w, gpu, row);
}

/* ---- a row ----------------------------------------------------------------------------------- */

#define UNKNOWN_PERCENT 20 /* of the time, from there on exact times would tell more */

/* "worked 18 %, idle 82 % of 1.8 s of work: running Python 41 %, …" */
static const char *exact_words(const struct idle_writer *w, const struct gpu_row *row)
{
	const char *causes = idle_causes_words(w, row->idle_causes, row->known_ns);

	return arena_printf(w->texts, "worked %s, idle %s of %s of work%s%s",
			    text_percent(w->texts, (double)row->busy_ns, (double)row->known_ns),
			    text_percent(w->texts, (double)row->idle_ns, (double)row->known_ns),
			    text_time(w->texts, row->known_ns), *causes ? ": " : "", causes);
}

/* A lower bound: a share, or where that is too small to be written as one, the time. */
static const char *at_least(const struct idle_writer *w, uint64_t ns, uint64_t work_ns)
{
	if (ns < work_ns / 1000)
		return text_time(w->texts, ns);
	return text_percent(w->texts, (double)ns, (double)work_ns);
}

/* The same in bounds: only what there is to say. */
static const char *bounds_words(const struct idle_writer *w, const struct gpu_row *row)
{
	const char *causes = idle_causes_words(w, row->idle_causes, row->work_ns);
	uint64_t unknown_ns = row->idle_max_ns - min_u64(row->idle_ns, row->idle_max_ns);
	const char *words = "";

	if (row->busy_ns)
		words = arena_printf(w->texts, "worked %s or more%s",
				     at_least(w, row->busy_ns, row->work_ns),
				     row->idle_ns ? ", " : "");
	if (row->idle_ns)
		words = arena_printf(w->texts, "%sidle %s or more", words,
				     at_least(w, row->idle_ns, row->work_ns));
	if (row->estimated_ns)
		words = arena_printf(w->texts, "%s (by NVML; the calls prove %s)", words,
				     row->certain_ns ? at_least(w, row->certain_ns, row->work_ns)
						     : "nothing");
	words = arena_printf(w->texts, "%s%s%s of work%s%s", words, *words ? " of " : "",
			     text_time(w->texts, row->work_ns), *causes ? ": " : "", causes);
	if (unknown_ns * 100 < row->work_ns * UNKNOWN_PERCENT || row->times)
		return words;
	return arena_printf(w->texts,
			    "%s; the rest is unknown without GPU times (cudaspy run --gpu)", words);
}

/* "train.123"; "rank 3", "rank 3, node7" where it has one. */
static const char *whose(const struct idle_writer *w, const struct process *process)
{
	const struct host *host = process->trace->host;
	const char *rank = text_rank(w->texts, process->trace);

	if (!rank)
		return text_process(w->texts, process->trace);
	return host->alone ? rank : arena_printf(w->texts, "%s, %s", rank, host->label);
}

const char *report_gpu_name(const struct idle_writer *w, const struct idle_gpu *gpu)
{
	const struct process *only = w->idle->gpus[0].processes[0];
	bool several = false;

	for (size_t i = 0; i < w->idle->n_gpus; i++)
		several |=
			w->idle->gpus[i].n_processes > 1 || w->idle->gpus[i].processes[0] != only;
	if (!several)
		return arena_printf(w->texts, "GPU %u", gpu->device);
	if (gpu->n_processes > 1)
		return arena_printf(w->texts, "GPU %u (%zu processes)", gpu->device,
				    gpu->n_processes);
	return arena_printf(w->texts, "GPU %u (%s)", gpu->device, whose(w, gpu->processes[0]));
}

#define LIMIT_TOLD_PERCENT 5 /* of the looks */

static const char *limits_words(const struct idle_writer *w, const struct gpu_looks *looks)
{
	const char *words = "";

	for (unsigned int bit = 0; bit < ARRAY_SIZE(looks->limited); bit++)
		if (text_nvml_limit(bit) &&
		    looks->limited[bit] * 100 >= looks->n_rest * LIMIT_TOLD_PERCENT)
			words = arena_printf(w->texts, "%s, slowed by %s for %s of the time", words,
					     text_nvml_limit(bit),
					     text_percent(w->texts, (double)looks->limited[bit],
							  (double)looks->n_rest));
	return words;
}

/* "; power 312 of 700 W, 64 degrees C at most", as far as that is known. */
static const char *power_words(const struct idle_writer *w, const struct gpu_looks *looks)
{
	const char *words = "", *limit = "";

	if (looks->power_limit_most)
		limit = arena_printf(w->texts, " of %llu",
				     (unsigned long long)(looks->power_limit_most + 500) / 1000);
	if (looks->n_power)
		words = arena_printf(
			w->texts, "; power %llu%s W",
			(unsigned long long)(looks->power / looks->n_power + 500) / 1000, limit);
	if (looks->temperature_most)
		words = arena_printf(w->texts, "%s%s %llu degrees C at most", words,
				     *words ? "," : ";",
				     (unsigned long long)looks->temperature_most);
	return words;
}

/* "; another process is on it (4711), with 3.00 GiB; kernels that are not this program's ran for 48 % of the time". */
static const char *others_words(const struct idle_writer *w, const struct gpu_looks *looks)
{
	const char *words = "; another process is on it", *named = "";
	char bytes[32];

	if (!looks->others_n)
		return "";
	if (looks->others_most > 1)
		words = arena_printf(w->texts, "; up to %llu other processes are on it",
				     (unsigned long long)looks->others_most);
	if (looks->other_pid)
		named = arena_printf(w->texts, looks->others_most > 1 ? " (one is %u)" : " (%u)",
				     looks->other_pid);
	words = arena_printf(w->texts, "%s%s", words, named);
	format_bytes(bytes, sizeof(bytes), looks->others_bytes_most);
	if (looks->others_bytes_most)
		words = arena_printf(w->texts, "%s, with %s", words, bytes);
	if (gpu_looks_others(looks) < 0)
		return words;
	return arena_printf(w->texts,
			    "%s; kernels that are not this program's ran for %s of the time", words,
			    text_percent(w->texts, gpu_looks_others(looks), 1));
}

/* What NVML says of it; NULL: nothing. */
static const char *nvml_words(const struct idle_writer *w, const struct gpu_looks *looks)
{
	const char *words;

	if (!looks->n || !looks->n_rest)
		return NULL;
	words = arena_printf(w->texts, "NVML: a kernel ran for %s of the time at most",
			     text_percent(w->texts, gpu_looks_busy(looks), 1));
	if (looks->clock_most)
		words = arena_printf(w->texts, "%s; clock %llu of %llu MHz%s", words,
				     (unsigned long long)(looks->clock / looks->n_rest),
				     (unsigned long long)(looks->clock_most / looks->n_rest),
				     limits_words(w, looks));
	return arena_printf(w->texts, "%s%s%s", words, power_words(w, looks),
			    others_words(w, looks));
}

/* Behind the summary; nothing where launches return at once. */
static const char *blocking_words(const struct idle_gpu *gpu)
{
	for (size_t i = 0; i < gpu->n_processes; i++)
		if (gpu->processes[i]->trace->cuda.launches_block)
			return "; CUDA_LAUNCH_BLOCKING is set: behind each kernel the GPU waits for the "
			       "host's next launch";
	return "";
}

static struct gpu_row describe(const struct idle_writer *w, size_t number)
{
	const struct idle_gpu *gpu = &w->idle->gpus[number];
	const char *unknown = gpu_why_uncertain(w->idle->accounts->stats, gpu);
	bool exact = w->idle->accounts->model->complete && idle_gpu_is_exact(gpu);
	struct gpu_row row = {
		.who = report_gpu_name(w, gpu),
		.process = gpu->n_processes > 1 ? "several"
						: text_process(w->texts, gpu->processes[0]->trace),
		.name = idle_named(gpu) ? idle_named(gpu)->name : NULL,
		.device = gpu->device,
		.work_ns = gpu_work_ns(w->idle->accounts->expect, gpu),
		.busy_known = exact ? "exact" : "bounds",
	};

	if (!unknown && !exact)
		row.estimated_ns = gpu->estimated_ns;
	if (!unknown)
		row.certain_ns = min_u64(idle_proven_ns(gpu), row.work_ns);
	else if (!exact)
		row.unknown = arena_printf(w->texts, "nothing certain: %s", unknown);
	if (exact) {
		row.idle_ns = row.idle_max_ns = gpu->exact.idle_ns;
		row.busy_ns = gpu->exact.busy_ns;
	} else {
		row.idle_ns = min_u64(row.certain_ns + row.estimated_ns, row.work_ns);
		if (!unknown && gpu_waits_prove_work(w->idle->accounts, gpu))
			row.busy_ns =
				min_u64(busy_certain_ns(w->idle, gpu), row.work_ns - row.idle_ns);
		row.idle_max_ns = row.work_ns - row.busy_ns;
	}
	describe_times(w, gpu, &row);
	row.nvml = nvml_words(w, &gpu->looks);
	if (row.idle_ns)
		row.idle_causes =
			idle_causes(w, &idle_causes_kind,
				    exact ? idle_owner_exact(number) : idle_owner_gpu(number),
				    exact ? NULL : gpu, row.idle_ns);
	row.summary =
		arena_printf(w->texts, "%s%s", exact ? exact_words(w, &row) : bounds_words(w, &row),
			     blocking_words(gpu));
	describe_feeder(w, gpu, &row);
	return row;
}

static int by_device(const void *a, const void *b)
{
	const struct gpu_row *x = a, *y = b;

	return COMPARE(x->device, y->device) ?: strcmp(x->process, y->process);
}

void report_gpus(struct report *report, const struct idle *idle, struct symbolizer *symbols)
{
	struct idle_writer w;
	struct gpu_row *rows = xcalloc(idle->n_gpus + 1, sizeof(*rows));
	size_t i, n = 0;

	idle_writer_init(&w, &report->arena, idle, symbols);
	for (i = 0; i < idle->n_gpus; i++)
		if (!idle->gpus[i].left_out)
			rows[n++] = describe(&w, i);
	idle_writer_release(&w);
	qsort(rows, n, sizeof(*rows), by_device);
	report_add(report, &gpus_kind, rows, n);
}
