/*
 * analyzer/sections/trace.c: losses, headline and calls in flight. Called by `report` and
 * `info`.
 */
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "base/format.h"
#include "text/text.h"
#include "trace/losses.h"
#include "trace/names.h"
#include "trace/parts.h"

/* ---- losses --------------------------------------------------------------------------------- */

struct loss_row {
	const char *process, *kind, *text;
	uint64_t count;
};

static const struct column loss_columns[] = {
	COLUMN(struct loss_row, process, "process", UNIT_TEXT),
	COLUMN(struct loss_row, count, "count", UNIT_COUNT),
	COLUMN(struct loss_row, text, "what is missing", UNIT_TEXT),
	COLUMN_JSON(struct loss_row, kind, UNIT_TEXT),
};

static const struct table_kind loss_kind = {
	TABLE("losses", "LOSSES: missing from the rest of this report", struct loss_row,
	      loss_columns),
	.missing = true,
};

struct loss_rows {
	struct report *report;
	struct loss_row *rows;
	size_t n;
};

static void add_loss(struct loss_rows *l, const struct trace *trace, uint64_t count,
		     const char *kind, const char *text)
{
	if (!count)
		return;
	l->rows = grow(l->rows, l->n, sizeof(*l->rows));
	l->rows[l->n++] = (struct loss_row){
		.process = trace ? text_process(&l->report->arena, trace) : "-",
		.kind = kind,
		.text = report_text(l->report, "%s", text),
		.count = count,
	};
}

/* Where one part was named, it was not the others that were asked for. */
static void add_part_losses(struct loss_rows *l, const struct process *process)
{
	const struct trace *trace = process->trace;
	struct parts_missing missing = trace_parts_missing(trace);
	uint32_t removed = process->removed_parts;
	struct arena *texts = &l->report->arena;

	/* In traces without it on the board one that was removed last may not have been told of any more. */
	if (removed &&
	    (missing.first == removed || (trace->n_parts > 1 && missing.first > removed))) {
		add_loss(l, trace, process->removed_calls, "removed",
			 arena_printf(texts,
				      "records of calls in the first %s, %s, which were removed by "
				      "the recorder (--keep, --keep-for)",
				      text_count(texts, removed, "part"),
				      text_time(texts, process->removed_ns)));
		missing.first -= removed;
	}
	missing.between += missing.first;
	if (trace->n_parts > 1)
		add_loss(l, trace, missing.between, "parts",
			 "parts of the recording that are not here");
}

static void add_process_losses(struct loss_rows *l, const struct process *process)
{
	const struct trace *trace = process->trace;
	struct losses sum = losses_sum(trace);

	add_loss(l, trace, !trace->has_metadata, "no_metadata", "metadata file");
	add_loss(l, trace, !trace->board.present, "no_board",
		 "board file: calls in flight and counters");
	add_loss(l, trace, sum.streams_missing, "streams",
		 "streams missing: threads whose files are not there, or empty");
	add_loss(l, trace, sum.calls_missing, "calls",
		 "records of calls missing: the board has counted them, and the files do not have "
		 "them");
	add_loss(l, trace, sum.streams.unreadable_files, "files",
		 "stream files that cannot be read");
	add_loss(l, trace, sum.streams.discarded, "records",
		 "records the program could not write (disk, memory, or more waits in one call "
		 "than fit)");
	add_loss(l, trace, trace->board.head.lost, "no_stream",
		 "records of threads that got no stream");
	add_loss(l, trace, sum.streams.packets_dropped, "dropped",
		 "packets dropped by keep-the-last");
	add_loss(l, trace, sum.streams.packets_missing, "packets", "packets missing in the middle");
	add_loss(l, trace, sum.streams.unreadable_bytes, "damaged", "bytes of damaged files");
	add_loss(l, trace, sum.streams.disordered, "disordered",
		 "records older than the one before");
	add_part_losses(l, process);
	for (const struct note *note = process->notes; note; note = note->hh.next)
		if (note->note == SPY_NOTE_BLIND)
			add_loss(l, trace, note->count, "blind", note->text);
}

bool report_losses(struct report *report, const struct model *model)
{
	struct loss_rows l = {.report = report};

	add_loss(&l, NULL, model->set->not_found, "not_found",
		 "directories that were named, and cannot be read or hold no trace");
	add_loss(&l, NULL, model->set->unreadable, "unreadable",
		 "traces that could not be read at all");
	for (size_t i = 0; i < model->n_processes; i++)
		add_process_losses(&l, &model->processes[i]);
	return !report_add(report, &loss_kind, l.rows, l.n)->n_rows;
}

/* ---- hosts ---------------------------------------------------------------------------------- */

struct host_row {
	const char *host, *boot;
	uint64_t processes, cpus;
};

static const struct column host_columns[] = {
	COLUMN_JSON(struct host_row, host, UNIT_TEXT),
	COLUMN_JSON(struct host_row, boot, UNIT_TEXT),
	COLUMN_JSON(struct host_row, processes, UNIT_COUNT),
	COLUMN_JSON(struct host_row, cpus, UNIT_COUNT),
};

static const struct table_kind host_kind = {
	TABLE("hosts", NULL, struct host_row, host_columns),
	.json_only = true,
};

static void add_hosts(struct report *report, const struct trace_set *set)
{
	struct host_row *rows = xcalloc(set->n_hosts, sizeof(*rows));

	for (size_t i = 0; i < set->n_hosts; i++)
		rows[i] = (struct host_row){
			.host = text_known_host(&report->arena, &set->hosts[i]),
			.boot = set->hosts[i].boot ? report_text(report, "%s", set->hosts[i].boot)
						   : NULL,
			.processes = set->hosts[i].traces,
			.cpus = set->hosts[i].cpus,
		};
	report_add(report, &host_kind, rows, set->n_hosts);
}

#define HOSTS_SHOWN 4

/* "2: node1 (4 processes), node2 (4 processes)"; NULL: there is only one. */
static const char *hosts_text(struct arena *texts, const struct trace_set *set)
{
	const char *text = "";
	size_t i;

	if (set->n_hosts < 2)
		return NULL;
	for (i = 0; i < set->n_hosts && i < HOSTS_SHOWN; i++)
		text = arena_printf(texts, "%s%s %s (%llu process%s)", text, i ? "," : "",
				    set->hosts[i].label, (unsigned long long)set->hosts[i].traces,
				    set->hosts[i].traces == 1 ? "" : "es");
	return arena_printf(texts, "%zu:%s%s", set->n_hosts, text, i < set->n_hosts ? ", ..." : "");
}

/* ---- phases --------------------------------------------------------------------------------- */

struct phase_row {
	const char *process, *found;
	uint64_t begin_ns, end_ns;
};

static const struct column phase_columns[] = {
	COLUMN_JSON(struct phase_row, process, UNIT_TEXT),
	COLUMN_JSON(struct phase_row, begin_ns, UNIT_NS),
	COLUMN_JSON(struct phase_row, end_ns, UNIT_NS),
	COLUMN_JSON(struct phase_row, found, UNIT_TEXT),
};

static const struct table_kind phase_kind = {
	TABLE("phases", NULL, struct phase_row, phase_columns),
	.json_only = true,
};

static uint64_t since_begin(const struct model *model, uint64_t ns)
{
	return ns - min_u64(ns, model->first_ns);
}

static const struct phase_row *add_phases(struct report *report, const struct accounting *a)
{
	struct phase_row *rows = xcalloc(a->model->n_processes, sizeof(*rows));

	for (size_t i = 0; i < a->model->n_processes; i++) {
		const struct process *process = &a->model->processes[i];
		const struct phase *phase = &a->expect->phases.all[i];

		rows[i].process = text_process(&report->arena, process->trace);
		rows[i].found = phase->found ? "yes" : "no";
		rows[i].begin_ns =
			since_begin(a->model, phase->found ? phase->begin_ns : process->first_ns);
		rows[i].end_ns =
			since_begin(a->model, phase->found ? phase->end_ns : process->last_ns);
	}
	report_add(report, &phase_kind, rows, a->model->n_processes);
	return rows;
}

/* "4.021 s to 8.050 s, where its calls recur"; NULL: there is no such phase. */
static const char *working_text(struct arena *texts, const struct phase_row *rows, size_t n,
				bool cut)
{
	uint64_t begin_ns = UINT64_MAX, end_ns = 0;
	size_t i, found = 0;

	for (i = 0; i < n; i++) {
		if (strcmp(rows[i].found, "yes") != 0)
			continue;
		found++;
		begin_ns = min_u64(begin_ns, rows[i].begin_ns);
		end_ns = rows[i].end_ns > end_ns ? rows[i].end_ns : end_ns;
	}
	if (!found)
		return NULL;
	if (n > 1)
		return arena_printf(texts, "%zu of %zu processes, between t = %s and t = %s%s",
				    found, n, text_time(texts, begin_ns), text_time(texts, end_ns),
				    cut ? ", within --from and --to" : "");
	return arena_printf(texts, "from t = %s to t = %s, %s", text_time(texts, begin_ns),
			    text_time(texts, end_ns),
			    cut ? "within --from and --to" : "where calls recur");
}

/* ---- headline ------------------------------------------------------------------------------- */

struct summary_row {
	const char *program, *command, *hosts, *traced, *recorded, *overhead, *working, *besides,
		*called, *failures, *ended, *several_runs, *found, *unread;
	uint64_t processes, threads, records, duration_ns, calls, failed, call_ns, counted;
	uint64_t windows, recorded_ns; /* 0, 0: recording never was dormant */
	uint64_t only_counted; /* of functions that else are recorded one by one: in cost windows */
	uint64_t copied_bytes, lost_records, unfinished, in_flight, runs, problems, notes;
	uint64_t began_unix_s;
};

static const struct column summary_columns[] = {
	COLUMN(struct summary_row, program, "program", UNIT_TEXT),
	COLUMN_TEXT(struct summary_row, hosts, "hosts"),
	COLUMN_TEXT(struct summary_row, traced, "traced"),
	COLUMN(struct summary_row, recorded, "recorded", UNIT_TEXT),
	COLUMN_TEXT(struct summary_row, overhead, "overhead"),
	COLUMN_TEXT(struct summary_row, working, "working"),
	COLUMN(struct summary_row, besides, "besides", UNIT_TEXT),
	COLUMN_TEXT(struct summary_row, called, "calls"),
	COLUMN(struct summary_row, failures, "failed", UNIT_TEXT),
	COLUMN(struct summary_row, ended, "ended", UNIT_TEXT),
	COLUMN(struct summary_row, several_runs, "note", UNIT_TEXT),
	COLUMN_TONE(struct summary_row, found, "found", UNIT_TEXT, TONE_FOUND),
	COLUMN(struct summary_row, unread, "files", UNIT_TEXT),
	COLUMN_JSON(struct summary_row, command, UNIT_TEXT),
	COLUMN_JSON(struct summary_row, began_unix_s, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, processes, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, threads, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, records, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, duration_ns, UNIT_NS),
	COLUMN_JSON(struct summary_row, windows, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, recorded_ns, UNIT_NS),
	COLUMN_JSON(struct summary_row, calls, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, failed, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, call_ns, UNIT_NS),
	COLUMN_JSON(struct summary_row, counted, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, only_counted, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, copied_bytes, UNIT_BYTES),
	COLUMN_JSON(struct summary_row, lost_records, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, unfinished, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, runs, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, problems, UNIT_COUNT),
	COLUMN_JSON(struct summary_row, notes, UNIT_COUNT),
};

static const struct table_kind summary_kind = {
	TABLE("summary", "CUDASPY REPORT", struct summary_row, summary_columns),
	.facts = true,
};

static void count_processes(struct summary_row *row, const struct callstats *stats)
{
	struct losses losses;

	row->processes = stats->model->n_processes;
	for (size_t i = 0; i < stats->model->n_processes; i++) {
		const struct trace *trace = stats->model->processes[i].trace;

		row->unfinished += trace->board.present && !trace->board.head.ended;
		losses = losses_sum(trace);
		row->lost_records = add_capped(row->lost_records, losses_records(&losses, trace));
	}
	for (size_t i = 0; i < stats->model->n_threads; i++)
		row->threads += stats->threads[i].count || stats->threads[i].counted;
	row->runs = stats->model->set->n_runs;
}

static bool has_process(const struct trace_set *set, const struct host *host, int64_t pid)
{
	for (size_t i = 0; i < set->n_traces; i++)
		if (set->traces[i]->pid == pid && set->traces[i]->host == host)
			return true;
	return false;
}

/* The first process whose parent has left no trace: of a tree, its root. Its children may have
 * called CUDA before it did. */
static const struct trace *root_process(const struct trace_set *set)
{
	for (size_t i = 0; i < set->n_traces; i++)
		if (!has_process(set, set->traces[i]->host,
				 metadata_number(&set->traces[i]->metadata, "ppid", -1)))
			return set->traces[i];
	return set->traces[0];
}

const char *report_program(struct arena *texts, const struct trace_set *set,
			   const struct trace *trace)
{
	const char *path;

	trace = trace ?: root_process(set);
	path = metadata_text(&trace->metadata, "executable");
	if (!path || !*path)
		path = strcmp(trace->program, "?") != 0 ? trace->program : trace->dir;
	return arena_printf(texts, "%s", path);
}

/* Those that began last are named. */
static const char *runs_words(struct arena *texts, const struct trace_set *set)
{
	const char *list = "";
	size_t i, first = set->n_runs > 4 ? set->n_runs - 4 : 0;

	for (i = first; i < set->n_runs; i++) {
		char *text = run_text(&set->runs[i]);

		list = arena_printf(texts, "%s%s%s", list, *list ? ", " : "", text);
		free(text);
	}
	return arena_printf(texts,
			    "traces of %zu runs are shown as one: %s%s (--run=last reads the last)",
			    set->n_runs, first ? "..., " : "", list);
}

/* "1.200 s of 60.0 s, in 4 windows"; NULL: recording never was dormant. */
static const char *windows_text(struct summary_row *row, const struct model *model,
				struct arena *texts)
{
	uint64_t recorded_ns = 0, whole_ns = 0, windows = 0, countings = 0, missing = 0;
	size_t i, n = 0;

	for (i = 0; i < model->n_processes; i++) {
		const struct process *process = &model->processes[i];
		uint64_t there_ns = process->last_ns - min_u64(process->first_ns, process->last_ns);

		if (!process->windows && !process->dormant_ns)
			continue;
		n++;
		windows += process->windows;
		countings += process->countings;
		missing += trace_parts_missing(process->trace).between;
		whole_ns += there_ns;
		recorded_ns += there_ns - min_u64(process->dormant_ns, there_ns);
	}
	if (!n)
		return NULL;
	row->windows = windows;
	row->recorded_ns = recorded_ns;
	if (!windows && missing)
		return arena_printf(texts, "%s of %s; the rest was in parts that are not here",
				    text_time(texts, recorded_ns), text_time(texts, whole_ns));
	if (!windows && countings)
		return arena_printf(texts,
				    "%s of %s; in the rest calls were only counted (cost windows)",
				    text_time(texts, recorded_ns), text_time(texts, whole_ns));
	if (!windows)
		return arena_printf(
			texts,
			"nothing: no window was opened (--capture-range, --delay, cudaspy start)");
	return arena_printf(texts, "%s of %s, in %llu window%s%s", text_time(texts, recorded_ns),
			    text_time(texts, whole_ns), (unsigned long long)windows,
			    windows == 1 ? "" : "s",
			    n == 1 ? "" : arena_printf(texts, " of %zu processes", n));
}

/* "1 of these calls returned an error: cudaSetDevice, cudaErrorInvalidDevice": a program may have ended because of the last. */
static const char *failures_text(const struct trace_set *set, uint64_t n,
				 const struct last_failed *last, struct arena *texts)
{
	char count[32];

	format_count(count, sizeof(count), n);
	if (!last->result)
		return arena_printf(texts, "%s of these calls returned an error", count);
	return arena_printf(texts, "%s of these calls returned an error%s %s, %s", count,
			    n == 1 ? ":" : ", the last one", text_function(set, last->fn),
			    text_result(set, last->fn, last->result));
}

static void write_summary(struct summary_row *row, const struct accounting *a,
			  const struct cost_study *cost, struct arena *texts)
{
	const struct trace *first = root_process(a->model->set);
	char time[32], count[32], counted[32];
	struct last_failed last;
	uint64_t answers = callstats_answers(a->stats, &last);

	row->program = row->processes > 1 ? text_program(texts, first) : text_process(texts, first);
	if (row->processes > 1)
		row->program = arena_printf(texts, "%s and %llu more process%s", row->program,
					    (unsigned long long)row->processes - 1,
					    row->processes > 2 ? "es" : "");
	row->command = metadata_text(&first->metadata, "command_line");
	row->command =
		row->command && *row->command ? arena_printf(texts, "%s", row->command) : NULL;
	row->began_unix_s =
		(uint64_t)metadata_number(&first->metadata, "start_realtime_ns", 0) / 1000000000;
	row->hosts = hosts_text(texts, a->model->set);
	format_ns(time, sizeof(time), row->duration_ns);
	format_count(count, sizeof(count), row->records);
	row->traced = arena_printf(texts, "%s, %s records", time, count);
	row->recorded = windows_text(row, a->model, texts);
	row->overhead = report_cost_text(texts, cost);
	format_count(count, sizeof(count), row->calls);
	format_count(counted, sizeof(counted), row->counted);
	row->called =
		arena_printf(texts, "%s by %llu thread%s, %s inside them; and %s getters", count,
			     (unsigned long long)row->threads, row->threads == 1 ? "" : "s",
			     text_thread_time(texts, row->call_ns, row->threads), counted);
	if (row->only_counted) {
		format_count(count, sizeof(count), row->only_counted);
		row->called =
			arena_printf(texts, "%s; %s more were only counted", row->called, count);
	}
	if (row->failed > answers)
		row->failures = failures_text(a->model->set, row->failed - answers, &last, texts);
	if (row->unfinished)
		row->ended = arena_printf(texts,
					  "%llu of %llu processes not in order: killed, "
					  "crashed, exec or still running",
					  (unsigned long long)row->unfinished,
					  (unsigned long long)row->processes);
	if (row->runs > 1)
		row->several_runs = runs_words(texts, a->model->set);
}

struct summary_row *report_summary(struct report *report, const struct accounting *a,
				   const struct cost_study *cost)
{
	struct summary_row *row = xcalloc(1, sizeof(*row));

	*row = (struct summary_row){
		.records = a->model->records,
		.duration_ns = a->model->last_ns - a->model->first_ns,
		.calls = a->stats->all.count,
		.call_ns = a->stats->all.total_ns,
		.counted = a->stats->all.counted,
		.only_counted = cost->counted,
		.copied_bytes = a->stats->all.copied_bytes,
	};
	for (size_t i = 0; i < a->stats->n_functions; i++)
		row->failed += a->stats->direct[i].failed;
	count_processes(row, a->stats);
	write_summary(row, a, cost, &report->arena);
	report_add(report, &summary_kind, row, 1);
	add_hosts(report, a->model->set);
	row->working = working_text(&report->arena, add_phases(report, a), a->model->n_processes,
				    filter_has_window(a->filtering));
	return row;
}

void report_besides(struct summary_row *row, const char *words)
{
	row->besides = words;
}

/* Is something wrong, and how much? What it is, and what to do, the findings say. */
void report_found(struct arena *texts, struct summary_row *row, uint64_t problems, uint64_t notes,
		  const char *first)
{
	const char *besides = notes ? arena_printf(texts, "%llu note%s", (unsigned long long)notes,
						   notes == 1 ? "" : "s")
				    : NULL;

	row->problems = problems;
	row->notes = notes;
	if (problems)
		row->found =
			arena_printf(texts, "%llu problem%s%s%s%s", (unsigned long long)problems,
				     problems == 1 ? ": " : "s, the first ", first,
				     besides ? "; and " : "", besides ?: "");
	else if (!row->calls && !notes)
		row->found = row->in_flight ? "nothing: no call returned"
					    : "nothing: there are no calls to look at";
	else if (row->failures) /* a program that died of one, say */
		row->found =
			arena_printf(texts, "no problem but the calls that returned an error%s%s",
				     besides ? "; " : "", besides ?: "");
	else
		row->found = arena_printf(texts, "no %sproblem%s%s%s", besides ? "sure " : "",
					  row->in_flight ? " in the calls that returned" : "",
					  besides ? "; " : "", besides ?: "");
}

void report_judge_calls(struct gate *gate, const struct summary_row *row)
{
	gate_judge_calls(gate, row->failures, !row->calls && row->in_flight);
}

void report_unread(struct arena *texts, struct summary_row *row, size_t n)
{
	if (n)
		row->unread = arena_printf(
			texts,
			"%zu that ran %s gone or changed since: places there are offsets, "
			"without functions and lines (FILES, below)",
			n, n == 1 ? "is" : "are");
}

/* ---- in flight ------------------------------------------------------------------------------ */

struct flight_row {
	const char *process, *function, *inner, *inside, *elapsed, *waiting;
	uint64_t holder, pid, tid, elapsed_ns, since_ns, device, alive;
};

static const struct column flight_columns[] = {
	COLUMN(struct flight_row, process, "process", UNIT_TEXT),
	COLUMN(struct flight_row, tid, "thread", UNIT_PLAIN),
	COLUMN_TEXT(struct flight_row, inside, "was inside"),
	COLUMN_TEXT(struct flight_row, elapsed, "for"),
	COLUMN(struct flight_row, since_ns, "since t =", UNIT_NS),
	COLUMN_JSON(struct flight_row, elapsed_ns, UNIT_NS),
	COLUMN_JSON(struct flight_row, function, UNIT_TEXT),
	COLUMN_JSON(struct flight_row, inner, UNIT_TEXT),
	COLUMN_JSON(struct flight_row, pid, UNIT_PLAIN),
	COLUMN_JSON(struct flight_row, device, UNIT_PLAIN),
	COLUMN_JSON(struct flight_row, alive, UNIT_PLAIN),
	COLUMN_JSON(struct flight_row, holder, UNIT_PLAIN),
	COLUMN_LINE(struct flight_row, waiting, UNIT_TEXT),
};

static const struct table_kind flight_kind = {
	TABLE("in_flight", "IN FLIGHT when the trace ends: calls that had not returned",
	      struct flight_row, flight_columns),
	.text_rows = 16,
};

static const char *function_name(struct trace_set *set, struct trace *trace, uint16_t fn,
				 struct arena *texts)
{
	uint32_t number = trace_function(set, trace, fn);

	return arena_printf(texts, "%s", set->functions.all[number].name);
}

/* What a thread that had not returned was waiting for. */
static const char *waiting_text(const struct process *process, const struct spy_slot_page *slot,
				struct arena *texts)
{
	unsigned int kind = (unsigned int)slot->wait_kind - 1;
	const char *text, *held = "";
	char *place;

	if (!slot->wait_kind || slot->wait_kind > SPY_WAIT_KINDS)
		return NULL;
	if (!spy_wait_is_lock(kind))
		return arena_printf(texts, "waiting in the C library: %s", name_wait(kind));
	if (slot->wait_holder)
		held = arena_printf(texts, ", held by thread %u when that began",
				    slot->wait_holder);
	place = lock_place(process, slot->wait_object, process->last_ns);
	text = arena_printf(texts, "waiting for a lock, %s%s", place, held);
	free(place);
	return text;
}

/* When the call began; 0: unknown. A thread that is killed between two words of its page has shown the call and no time. */
static uint64_t since_of(const struct process *process, const struct spy_slot_page *slot)
{
	uint64_t since_ns = timeline_ns(&process->trace->timeline, slot->since);

	return !slot->since || (process->records && since_ns < process->first_ns) ? 0 : since_ns;
}

/* exact: end_ns is when the process ended, or now; else there is only its last record, which may be
 * older than the call. */
static struct flight_row flight(const struct model *model, const struct process *process,
				const struct spy_slot_page *slot, uint64_t end_ns, bool exact,
				struct arena *texts)
{
	struct trace *trace = process->trace;
	uint64_t since_ns = since_of(process, slot);
	const char *outer = function_name(model->set, trace, slot->outer_fn, texts);
	const char *inner = function_name(model->set, trace, slot->fn, texts);
	struct flight_row row = {
		.process = text_process(texts, trace),
		.function = outer,
		.inner = inner,
		.inside = slot->depth > 1 || slot->fn != slot->outer_fn
				  ? arena_printf(texts, "%s (in %s)", outer, inner)
				  : outer,
		.pid = trace->pid,
		.tid = slot->tid,
		.elapsed_ns = since_ns && end_ns > since_ns ? end_ns - since_ns : 0,
		.since_ns =
			max_u64(since_ns ?: process->last_ns, model->first_ns) - model->first_ns,
		.device = slot->device,
		.waiting = waiting_text(process, slot, texts),
		.holder = slot->wait_kind ? slot->wait_holder : 0,
	};
	char text[32];

	format_ns(text, sizeof(text), row.elapsed_ns);
	if (row.elapsed_ns)
		row.elapsed = arena_printf(texts, "%s%s", exact ? "" : "at least ", text);
	return row;
}

void report_in_flight(struct report *report, const struct model *model, uint64_t end_ns,
		      struct summary_row *summary)
{
	struct flight_row *rows = NULL;
	size_t i, j, n = 0;

	for (i = 0; i < model->n_processes; i++) {
		const struct process *process = &model->processes[i];
		const struct board *board = &process->trace->board;
		bool alive = process->trace->alive;
		bool exact = alive || (end_ns && !board->head.ended);
		uint64_t until_ns = alive ? now_ns() : exact ? end_ns : process->last_ns;

		for (j = 0; j < board->n_slots; j++) {
			const struct spy_slot_page *slot = &board->slots[j];

			if (!slot->tid || !slot->depth)
				continue;
			rows = grow(rows, n, sizeof(*rows));
			rows[n] = flight(model, process, slot, until_ns, exact, &report->arena);
			rows[n++].alive = alive;
		}
	}
	report_add(report, &flight_kind, rows, n);
	if (summary)
		summary->in_flight = n;
}
