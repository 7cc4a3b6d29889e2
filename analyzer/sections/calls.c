/*
 * analyzer/sections/calls.c: where the time went: calls by function, by thread, by device, and
 * counted functions. Called by `report`.
 */
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "text/text.h"
#include "base/median.h"

/* ---- by function ---------------------------------------------------------------------------- */

struct call_row {
	const char *function;
	uint64_t count, failed, total_ns, median_ns, p99_ns, max_ns;
};

static const struct column call_columns[] = {
	COLUMN(struct call_row, function, "function", UNIT_TEXT),
	COLUMN(struct call_row, count, "calls", UNIT_COUNT),
	COLUMN(struct call_row, total_ns, "total", UNIT_NS),
	COLUMN(struct call_row, median_ns, "median", UNIT_NS),
	COLUMN(struct call_row, p99_ns, "p99", UNIT_NS),
	COLUMN(struct call_row, max_ns, "max", UNIT_NS),
	COLUMN_JSON(struct call_row, failed, UNIT_COUNT),
};

static const struct table_kind direct_kind = {
	TABLE("calls", "CALLS of the application, by total host time", struct call_row,
	      call_columns),
	.detail = true,
	.text_rows = 25,
	.when_empty = "none were recorded",
};

static const struct table_kind nested_kind = {
	TABLE("nested_calls", "CALLS made inside other calls and timed (part of the above)",
	      struct call_row, call_columns),
	.detail = true,
	.text_rows = 25,
	.when_empty = "none were recorded",
};

static int by_total(const void *a, const void *b)
{
	const struct call_row *x = a, *y = b;

	return COMPARE(y->total_ns, x->total_ns) ?: strcmp(x->function, y->function);
}

static void add_calls(struct report *report, const struct table_kind *kind,
		      const struct callstats *stats, const struct calls *calls)
{
	size_t i, n = 0;
	struct call_row *rows = xcalloc(stats->n_functions, sizeof(*rows));

	for (i = 0; i < stats->n_functions; i++)
		if (calls[i].count)
			rows[n++] = (struct call_row){
				.function = report_text(report, "%s",
							stats->model->set->functions.all[i].name),
				.count = calls[i].count,
				.failed = calls[i].failed,
				.total_ns = calls[i].total_ns,
				.median_ns = histogram_quantile(&calls[i].durations_ns, 0.5),
				.p99_ns = histogram_quantile(&calls[i].durations_ns, 0.99),
				.max_ns = calls[i].durations_ns.max,
			};
	qsort(rows, n, sizeof(*rows), by_total);
	report_add(report, kind, rows, n);
}

/* ---- by thread ------------------------------------------------------------------------------ */

struct thread_row {
	const char *process;
	const char *name;
	uint64_t pid, tid, count, counted, total_ns, copied_bytes;
};

static const struct column thread_columns[] = {
	COLUMN(struct thread_row, process, "process", UNIT_TEXT),
	COLUMN(struct thread_row, tid, "thread", UNIT_PLAIN),
	COLUMN(struct thread_row, name, "name", UNIT_TEXT),
	COLUMN(struct thread_row, count, "calls", UNIT_COUNT),
	COLUMN(struct thread_row, total_ns, "total", UNIT_NS),
	COLUMN(struct thread_row, copied_bytes, "copied", UNIT_BYTES),
	COLUMN_JSON(struct thread_row, pid, UNIT_PLAIN),
	COLUMN_JSON(struct thread_row, counted, UNIT_COUNT),
};

static const struct table_kind thread_kind = {
	TABLE("threads", "THREADS, by total host time in calls", struct thread_row, thread_columns),
	.detail = true,
	.text_rows = 16,
};

static int by_thread_total(const void *a, const void *b)
{
	const struct thread_row *x = a, *y = b;

	return COMPARE(y->total_ns, x->total_ns) ?: COMPARE(x->pid, y->pid) ?:
	       COMPARE(x->tid, y->tid);
}

static void add_threads(struct report *report, const struct callstats *stats)
{
	size_t i, n = 0;
	struct thread_row *rows = xcalloc(stats->model->n_threads, sizeof(*rows));

	for (i = 0; i < stats->model->n_threads; i++) {
		const struct thread *thread = stats->model->threads[i];
		const struct calls_sum *sum = &stats->threads[i];
		const struct trace *trace = thread->process->trace;

		if (sum->count || sum->counted || sum->copied_bytes)
			rows[n++] = (struct thread_row){
				.process = text_process(&report->arena, trace),
				.name = report_text(report, "%s", thread_name(thread)),
				.pid = trace->pid,
				.tid = thread->tid,
				.count = sum->count,
				.counted = sum->counted,
				.total_ns = sum->total_ns,
				.copied_bytes = sum->copied_bytes,
			};
	}
	qsort(rows, n, sizeof(*rows), by_thread_total);
	report_add(report, &thread_kind, rows, n);
}

/* ---- by device ------------------------------------------------------------------------------ */

struct device_row {
	const char *process, *device, *gpu, *uuid;
	uint64_t pid, count, total_ns, copied_bytes;
};

static const struct column device_columns[] = {
	COLUMN(struct device_row, process, "process", UNIT_TEXT),
	COLUMN(struct device_row, device, "device", UNIT_TEXT),
	COLUMN(struct device_row, gpu, "GPU", UNIT_TEXT),
	COLUMN(struct device_row, count, "calls", UNIT_COUNT),
	COLUMN(struct device_row, total_ns, "total", UNIT_NS),
	COLUMN(struct device_row, copied_bytes, "copied", UNIT_BYTES),
	COLUMN_JSON(struct device_row, pid, UNIT_PLAIN),
	COLUMN_JSON(struct device_row, uuid, UNIT_TEXT),
};

static const struct table_kind device_kind = {
	TABLE("devices", "DEVICES that were current, by process", struct device_row,
	      device_columns),
	.detail = true,
	.text_rows = 16,
};

static void add_devices(struct report *report, const struct callstats *stats)
{
	struct device_row *rows = NULL;
	size_t i, n = 0;

	for (i = 0; i < stats->model->n_processes * CALLSTATS_DEVICES; i++) {
		const struct process *process = &stats->model->processes[i / CALLSTATS_DEVICES];
		unsigned int device = i % CALLSTATS_DEVICES;
		const struct calls_sum *sum =
			&stats->devices[callstats_index(stats, i / CALLSTATS_DEVICES, device)];
		const struct gpu *gpu;

		if (!sum->count && !sum->copied_bytes)
			continue;
		gpu = model_gpu(process, (uint16_t)device);
		rows = grow(rows, n, sizeof(*rows));
		rows[n++] = (struct device_row){
			.process = text_process(&report->arena, process->trace),
			.device = device == SPY_DEVICE_NONE ? "none yet"
							    : report_text(report, "%u", device),
			.gpu = gpu ? report_text(report, "%s", gpu->name) : NULL,
			.uuid = gpu ? report_text(report, "%s", gpu->uuid) : NULL,
			.pid = process->trace->pid,
			.count = sum->count,
			.total_ns = sum->total_ns,
			.copied_bytes = sum->copied_bytes,
		};
	}
	report_add(report, &device_kind, rows, n);
}

/* ---- counted functions ---------------------------------------------------------------------- */

struct counted_row {
	const char *function;
	uint64_t count;
	uint64_t recorded; /* the program's own that have records */
};

static const struct column counted_columns[] = {
	COLUMN(struct counted_row, function, "function", UNIT_TEXT),
	COLUMN(struct counted_row, count, "calls", UNIT_COUNT),
	COLUMN(struct counted_row, recorded, "recorded", UNIT_COUNT),
};

static const struct table_kind counted_kind = {
	TABLE("counted", "COUNTED and not timed: getters, queries, what calls do inside",
	      struct counted_row, counted_columns),
	.detail = true,
	.text_rows = 10,
};

static int by_count(const void *a, const void *b)
{
	const struct counted_row *x = a, *y = b;

	return COMPARE(y->count, x->count) ?: strcmp(x->function, y->function);
}

static void add_counted(struct report *report, const struct callstats *stats)
{
	size_t i, n = 0;
	struct counted_row *rows = xcalloc(stats->n_functions, sizeof(*rows));

	for (i = 0; i < stats->n_functions; i++)
		if (stats->counted[i])
			rows[n++] = (struct counted_row){
				report_text(report, "%s", stats->model->set->functions.all[i].name),
				stats->counted[i], stats->direct[i].count};
	qsort(rows, n, sizeof(*rows), by_count);
	report_add(report, &counted_kind, rows, n);
}

void report_calls(struct report *report, const struct callstats *stats, bool nested)
{
	add_calls(report, &direct_kind, stats, stats->direct);
	if (nested)
		add_calls(report, &nested_kind, stats, stats->nested);
	if (report_rows(report, &thread_kind, 1))
		add_threads(report, stats);
	if (report_rows(report, &device_kind, 1))
		add_devices(report, stats);
	add_counted(report, stats);
}
