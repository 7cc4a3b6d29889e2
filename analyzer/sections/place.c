/*
 * analyzer/sections/place.c: what happened at one place of the program, a line, a file or a function. Called by waits.c for
 * `why`, after the last record.
 */
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "base/median.h"
#include "findings/gpu_use.h"
#include "text/text.h"
#include "text/where.h"

/* ---- outside CUDA ---------------------------------------------------------------------------- */

/* A thread, or a GPU that had nothing to do meanwhile. */
struct time_row {
	const char *who, *text, *process;
	uint64_t thread, device, ns, of_ns;
	const struct table *causes;
};

static const struct column thread_columns[] = {
	COLUMN_TEXT(struct time_row, who, "thread"),
	COLUMN_TEXT(struct time_row, text, "was there for"),
	COLUMN_JSON(struct time_row, process, UNIT_TEXT),
	COLUMN_JSON(struct time_row, thread, UNIT_PLAIN),
	COLUMN_JSON(struct time_row, device, UNIT_DEVICE),
	COLUMN_JSON(struct time_row, ns, UNIT_NS),
	{.key = "outside_ns",
	 .title = "",
	 .unit = UNIT_NS,
	 .place = COLUMN_JSON_ONLY,
	 .offset = offsetof(struct time_row, of_ns)},
	COLUMN_TABLE(struct time_row, causes, &feeder_causes_kind),
};

static const struct column gpu_columns[] = {
	COLUMN_TEXT(struct time_row, who, "GPU"),
	COLUMN_TEXT(struct time_row, text, "was idle for"),
	COLUMN_JSON(struct time_row, process, UNIT_TEXT),
	COLUMN_JSON(struct time_row, device, UNIT_DEVICE),
	COLUMN_JSON(struct time_row, ns, UNIT_NS),
	{.key = "idle_ns",
	 .title = "",
	 .unit = UNIT_NS,
	 .place = COLUMN_JSON_ONLY,
	 .offset = offsetof(struct time_row, of_ns)},
	COLUMN_TABLE(struct time_row, causes, &idle_causes_kind),
};

static const struct table_kind thread_kind = {
	TABLE("place_threads",
	      "OUTSIDE CUDA: time that threads spent there between their calls, by samples and waits",
	      struct time_row, thread_columns),
	.text_rows = 12,
};

static const struct table_kind gpu_kind = {
	TABLE("place_gpus", "GPUS that were idle meanwhile", struct time_row, gpu_columns),
	.text_rows = 12,
};

static int by_ns(const void *a, const void *b)
{
	const struct time_row *x = a, *y = b;

	return COMPARE(y->ns, x->ns) ?: COMPARE(x->thread, y->thread) ?:
	       COMPARE(x->device, y->device);
}

static const char *time_words(const struct idle_writer *w, const struct time_row *row,
			      const char *whole)
{
	return arena_printf(w->texts, "%s, %s of its %s", text_time(w->texts, row->ns),
			    text_percent(w->texts, (double)row->ns, (double)row->of_ns), whole);
}

/* The GPU that the thread feeds; SPY_DEVICE_NONE: none. */
static uint8_t fed_by(const struct idle *idle, const struct thread *thread)
{
	for (size_t i = 0; i < idle->n_gpus; i++)
		if (gpu_feeder(idle, &idle->gpus[i]) == thread)
			return idle->gpus[i].device;
	return SPY_DEVICE_NONE;
}

static void add_threads(struct report *report, const struct idle_writer *w)
{
	const struct model *model = w->idle->accounts->model;
	struct time_row *rows = xcalloc(model->n_threads + 1, sizeof(*rows)), *row = rows;

	for (size_t i = 0; i < model->n_threads; i++) {
		const struct thread *thread = model->threads[i];
		const struct host_thread *h = host_thread_find(&w->idle->threads, thread);

		*row = (struct time_row){.causes = idle_causes(w, &feeder_causes_kind,
							       idle_owner_thread(thread), NULL, 0)};
		row->ns = idle_causes_ns(row->causes);
		if (!row->ns || !h)
			continue;
		row->process = text_process(w->texts, thread->process->trace);
		row->thread = thread->tid;
		row->device = fed_by(w->idle, thread);
		row->of_ns = max_u64(h->outside_ns, row->ns);
		row->who =
			arena_printf(w->texts, "%s%s", text_thread(w->texts, thread, row->device),
				     row->device == SPY_DEVICE_NONE ? "" : ", which feeds it");
		row->text = time_words(w, row, "time outside CUDA");
		row++;
	}
	qsort(rows, (size_t)(row - rows), sizeof(*rows), by_ns);
	report_add(report, &thread_kind, rows, (size_t)(row - rows));
}

static void add_gpus(struct report *report, const struct idle_writer *w)
{
	struct time_row *rows = xcalloc(w->idle->n_gpus + 1, sizeof(*rows)), *row = rows;

	for (size_t i = 0; i < w->idle->n_gpus; i++) {
		const struct idle_gpu *gpu = &w->idle->gpus[i];
		bool exact = w->idle->accounts->model->complete && idle_gpu_is_exact(gpu);

		if (gpu->left_out || (!exact && gpu_why_uncertain(w->idle->accounts->stats, gpu)))
			continue;
		*row = (struct time_row){
			.causes = idle_causes(w, &idle_causes_kind,
					      exact ? idle_owner_exact(i) : idle_owner_gpu(i),
					      exact ? NULL : gpu, 0)};
		row->ns = idle_causes_ns(row->causes);
		if (!row->ns)
			continue;
		row->process = gpu->n_processes > 1
				       ? "several"
				       : text_process(w->texts, gpu->processes[0]->trace);
		row->device = gpu->device;
		row->of_ns = max_u64(exact ? gpu->exact.idle_ns : idle_certain_ns(gpu), row->ns);
		row->who = report_gpu_name(w, gpu);
		row->text = time_words(w, row, exact ? "idle time" : "known idle time");
		row++;
	}
	qsort(rows, (size_t)(row - rows), sizeof(*rows), by_ns);
	report_add(report, &gpu_kind, rows, (size_t)(row - rows));
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct call_row {
	const char *function, *at;
	uint64_t calls, calls_all, total_ns, lost_ns;
};

static const struct column call_columns[] = {
	COLUMN(struct call_row, function, "call", UNIT_TEXT),
	COLUMN(struct call_row, at, "at", UNIT_TEXT),
	COLUMN(struct call_row, calls, "calls", UNIT_COUNT),
	COLUMN(struct call_row, calls_all, "of all", UNIT_COUNT),
	COLUMN(struct call_row, total_ns, "took", UNIT_NS),
	COLUMN(struct call_row, lost_ns, "lost", UNIT_NS),
};

static const struct table_kind call_kind = {
	TABLE("place_calls", "CALLS that are known to be made there, by line", struct call_row,
	      call_columns),
	.text_rows = 12,
};

static int by_total(const void *a, const void *b)
{
	const struct call_row *x = a, *y = b;

	return COMPARE(y->total_ns, x->total_ns) ?: COMPARE(y->calls, x->calls) ?:
	       strcmp(x->function, y->function) ?: strcmp(x->at ?: "", y->at ?: "");
}

static const char *line_words(struct arena *texts, const struct place_call *call)
{
	if (!names_file(call->file))
		return NULL;
	return call->line ? arena_printf(texts, "%s:%llu", path_basename(call->file),
					 (unsigned long long)call->line)
			  : arena_printf(texts, "%s", path_basename(call->file));
}

static void add_calls(struct report *report, const struct callstats *stats,
		      const struct subject_place *place)
{
	struct call_row *rows = xcalloc(place->n_calls + 1, sizeof(*rows));

	for (size_t i = 0; i < place->n_calls; i++)
		rows[i] = (struct call_row){
			.function = text_function(stats->model->set, place->calls[i].fn),
			.at = line_words(&report->arena, &place->calls[i]),
			.calls = place->calls[i].count,
			.calls_all = stats->direct[place->calls[i].fn].count,
			.total_ns = place->calls[i].total_ns,
			.lost_ns = place->calls[i].lost_ns,
		};
	qsort(rows, place->n_calls, sizeof(*rows), by_total);
	report_add(report, &call_kind, rows, place->n_calls)->intro =
		"By their return addresses, and by their stacks, which are recorded of some calls.";
}

/* ---- waits of others ------------------------------------------------------------------------- */

struct wait_row {
	const char *process, *site, *how;
	uint64_t waiter, ns;
};

static const struct column wait_columns[] = {
	COLUMN(struct wait_row, waiter, "thread", UNIT_PLAIN),
	COLUMN(struct wait_row, site, "waited at", UNIT_TEXT),
	COLUMN(struct wait_row, how, "while another thread", UNIT_TEXT),
	COLUMN(struct wait_row, ns, "waited", UNIT_NS),
	COLUMN_JSON(struct wait_row, process, UNIT_TEXT),
};

static const struct table_kind wait_kind = {
	TABLE("place_waiters", "OTHER THREADS that waited while one was there", struct wait_row,
	      wait_columns),
	.text_rows = 12,
};

static int by_wait(const void *a, const void *b)
{
	const struct wait_row *x = a, *y = b;

	return COMPARE(y->ns, x->ns) ?: COMPARE(x->waiter, y->waiter) ?:
	       strcmp(x->site ?: "", y->site ?: "");
}

/* What another thread most often did there meanwhile, by samples; NULL: it was elsewhere, or that is unknown. */
static const char *how_others_wait(struct subject_place *place, const struct idle_sum *sum)
{
	if (!sum->ns || !sum->longest.thread ||
	    sum->key.owner != idle_owner_thread(sum->longest.thread))
		return NULL;
	if (sum->gil_held_at && place->lies_there(place, sum->process, sum->gil_held_at, 0, 0))
		return "had Python's GIL, most often";
	if (sum->meanwhile && place->lies_there(place, sum->process, sum->meanwhile, 0, 0))
		return "ran there, most often";
	return NULL;
}

static void add_waiters(struct report *report, const struct idle_writer *w,
			struct subject_place *place)
{
	struct wait_row *rows = NULL;
	size_t n = 0;

	for (size_t i = 0; i < w->n_sums; i++) {
		const struct idle_sum *sum = w->sums[i];
		const char *how = how_others_wait(place, sum);

		if (!how)
			continue;
		rows = grow(rows, n, sizeof(*rows));
		rows[n++] = (struct wait_row){
			.process = text_process(w->texts, sum->process->trace),
			.site = idle_part_place(w, sum->process, &sum->longest),
			.how = how,
			.waiter = sum->longest.thread->tid,
			.ns = sum->ns,
		};
	}
	if (rows)
		qsort(rows, n, sizeof(*rows), by_wait);
	report_add(report, &wait_kind, rows, n);
}

void report_place(struct report *report, const struct idle *idle, struct symbolizer *symbols,
		  struct subject_place *place)
{
	struct idle_writer w;

	idle_writer_init(&w, &report->arena, idle, symbols);
	w.only = place;
	add_threads(report, &w);
	add_gpus(report, &w);
	add_calls(report, idle->accounts->stats, place);
	add_waiters(report, &w, place);
	idle_writer_release(&w);
	report_own_locks(report, idle, symbols, place);
}
