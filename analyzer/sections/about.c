/*
 * analyzer/sections/about.c: what a trace is about: processes, environment, versions, GPUs,
 * coverage. Called by `info`.
 */
#include <stdlib.h>
#include <string.h>
#include "sections.h"
#include "base/redact.h"
#include "text/text.h"
#include "trace/names.h"

/* ---- processes ------------------------------------------------------------------------------ */

struct process_row {
	const char *process, *ended, *trace, *command_line, *cwd, *host, *clock, *writer;
	const char *trace_text, *command_text, *cwd_text, *rank_text, *about;
	const char *job, *rank_from;
	uint64_t pid, ppid, records, duration_ns, threads, modules, frequency, kernels;
	uint64_t rank, local_rank, world_size, restarts;
};

static const struct column process_columns[] = {
	COLUMN(struct process_row, process, "process", UNIT_TEXT),
	COLUMN(struct process_row, ended, "ended", UNIT_TEXT),
	COLUMN(struct process_row, records, "records", UNIT_COUNT),
	COLUMN(struct process_row, duration_ns, "traced", UNIT_NS),
	COLUMN(struct process_row, threads, "threads", UNIT_COUNT),
	COLUMN(struct process_row, modules, "modules", UNIT_COUNT),
	COLUMN_TEXT_LINE(struct process_row, command_text),
	COLUMN_TEXT_LINE(struct process_row, cwd_text),
	COLUMN_TEXT_LINE(struct process_row, trace_text),
	COLUMN_TEXT_LINE(struct process_row, rank_text),
	COLUMN_TEXT_LINE(struct process_row, about),
	COLUMN_JSON(struct process_row, pid, UNIT_PLAIN),
	COLUMN_JSON(struct process_row, ppid, UNIT_PLAIN),
	COLUMN_JSON(struct process_row, trace, UNIT_TEXT),
	COLUMN_JSON(struct process_row, command_line, UNIT_TEXT),
	COLUMN_JSON(struct process_row, cwd, UNIT_TEXT),
	COLUMN_JSON(struct process_row, host, UNIT_TEXT),
	COLUMN_JSON(struct process_row, clock, UNIT_TEXT),
	COLUMN_JSON(struct process_row, frequency, UNIT_COUNT),
	COLUMN_JSON(struct process_row, kernels, UNIT_COUNT),
	COLUMN_JSON(struct process_row, writer, UNIT_TEXT),
	COLUMN_JSON(struct process_row, rank, UNIT_PLAIN_IF_KNOWN),
	COLUMN_JSON(struct process_row, local_rank, UNIT_PLAIN_IF_KNOWN),
	COLUMN_JSON(struct process_row, world_size, UNIT_COUNT),
	COLUMN_JSON(struct process_row, job, UNIT_TEXT),
	COLUMN_JSON(struct process_row, restarts, UNIT_COUNT),
	COLUMN_JSON(struct process_row, rank_from, UNIT_TEXT),
};

static const struct table_kind process_kind = {
	TABLE("processes", "PROCESSES", struct process_row, process_columns),
};

static const char *how_it_ended(const struct trace *trace)
{
	if (!trace->board.present)
		return "unknown";
	if (trace->board.head.ended)
		return "in order";
	if (trace->alive)
		return "still running";
	return trace->live ? "not in order" : "killed, crashed or exec";
}

static const char *env_text(struct arena *texts, const struct trace *trace, const char *key)
{
	const char *value = metadata_text(&trace->metadata, key);

	return value ? arena_printf(texts, "%s", value) : NULL;
}

/* "rank     3 of 8, 1 on its host, by RANK; job 4711; started again 1 time"; NULL: it has none. */
static const char *rank_words(struct arena *texts, const struct metadata *m)
{
	const char *words;

	if (!m->has_rank)
		return NULL;
	words = arena_printf(texts, "rank     %u", m->rank);
	if (m->world_size)
		words = arena_printf(texts, "%s of %u", words, m->world_size);
	if (m->local_rank >= 0)
		words = arena_printf(texts, "%s, %d on its host", words, m->local_rank);
	if (m->rank_from)
		words = arena_printf(texts, "%s, by %s", words, m->rank_from);
	if (m->job)
		words = arena_printf(texts, "%s; job %s", words, m->job);
	if (m->restarts)
		words = arena_printf(texts, "%s; started again %s", words,
				     text_count(texts, m->restarts, "time"));
	return words;
}

static struct process_row describe(const struct callstats *stats, const struct process *process,
				   struct arena *texts)
{
	const struct trace *trace = process->trace;
	const struct metadata *m = &trace->metadata;
	struct process_row row = {
		.process = text_process(texts, trace),
		.ended = how_it_ended(trace),
		.trace = arena_printf(texts, "%s", trace->dir),
		.command_line = env_text(texts, trace, "command_line"),
		.cwd = env_text(texts, trace, "cwd"),
		.host = env_text(texts, trace, "hostname"),
		.clock = env_text(texts, trace, "clock_source"),
		.writer = env_text(texts, trace, "cudaspy_version"),
		.pid = trace->pid,
		.ppid = (uint64_t)metadata_number(m, "ppid", 0),
		.records = process->records,
		.duration_ns = process->records ? process->last_ns - process->first_ns : 0,
		.modules = process->n_modules,
		.frequency = m->frequency,
		.rank = m->has_rank ? m->rank : UNKNOWN_NS,
		.local_rank = m->local_rank >= 0 ? (uint64_t)m->local_rank : UNKNOWN_NS,
		.world_size = m->world_size,
		.job = env_text(texts, trace, "job"),
		.restarts = m->restarts,
		.rank_from = env_text(texts, trace, "rank_from"),
		.rank_text = rank_words(texts, m),
	};

	for (size_t i = 0; i < stats->model->n_threads; i++)
		row.threads += stats->model->threads[i]->process == process &&
			       (stats->threads[i].count || stats->threads[i].counted);
	row.kernels = HASH_COUNT(process->kernels);
	row.trace_text = arena_printf(texts, "trace    %s", row.trace);
	if (row.command_line)
		row.command_text = arena_printf(texts, "command  %s", row.command_line);
	else if (redact_is_on())
		row.command_text = "command  left out, and so are variables (--redact)";
	else if (metadata_number(m, "redacted", 0))
		row.command_text = "command  left out, and so are variables (CUDASPY_REDACT)";
	if (row.cwd)
		row.cwd_text = arena_printf(texts, "in       %s", row.cwd);
	row.about = arena_printf(texts, "cudaspy  %s on %s, clock %s of %llu Hz",
				 row.writer ? row.writer : "?", row.host ? row.host : "?",
				 row.clock ? row.clock : "?", (unsigned long long)row.frequency);
	return row;
}

static void add_processes(struct report *report, const struct callstats *stats)
{
	struct process_row *rows = xcalloc(stats->model->n_processes, sizeof(*rows));

	for (size_t i = 0; i < stats->model->n_processes; i++)
		rows[i] = describe(stats, &stats->model->processes[i], &report->arena);
	report_add(report, &process_kind, rows, stats->model->n_processes);
}

/* ---- environment ---------------------------------------------------------------------------- */

struct env_row {
	const char *name, *value;
	uint64_t processes;
};

static const struct column env_columns[] = {
	COLUMN(struct env_row, name, "variable", UNIT_TEXT),
	COLUMN(struct env_row, value, "value", UNIT_TEXT),
	COLUMN(struct env_row, processes, "processes", UNIT_COUNT),
};

static const struct table_kind env_kind = {
	TABLE("environment", "ENVIRONMENT that matters", struct env_row, env_columns),
};

static void add_environment(struct report *report, const struct trace_set *set)
{
	struct env_row *rows = NULL;
	size_t i, j, k, n = 0;

	for (i = 0; i < set->n_traces; i++) {
		const struct metadata *m = &set->traces[i]->metadata;

		for (j = 0; j < m->n_env; j++) {
			if (strncmp(m->env[j].key, "env_", 4))
				continue;
			for (k = 0; k < n; k++)
				if (!strcmp(rows[k].name, m->env[j].key + 4) &&
				    !strcmp(rows[k].value, m->env[j].value))
					break;
			if (k == n) {
				rows = grow(rows, n, sizeof(*rows));
				rows[n++] = (struct env_row){
					report_text(report, "%s", m->env[j].key + 4),
					report_text(report, "%s", m->env[j].value), 0};
			}
			rows[k].processes++;
		}
	}
	report_add(report, &env_kind, rows, n);
}

/* ---- GPUs ----------------------------------------------------------------------------------- */

struct gpu_row {
	const char *process, *name, *capability, *uuid, *pci;
	uint64_t device, bytes;
};

static const struct column gpu_columns[] = {
	COLUMN(struct gpu_row, process, "process", UNIT_TEXT),
	COLUMN(struct gpu_row, device, "device", UNIT_PLAIN),
	COLUMN(struct gpu_row, name, "name", UNIT_TEXT),
	COLUMN(struct gpu_row, capability, "cc", UNIT_TEXT),
	COLUMN(struct gpu_row, bytes, "memory", UNIT_BYTES),
	COLUMN(struct gpu_row, pci, "PCI", UNIT_TEXT),
	COLUMN_JSON(struct gpu_row, uuid, UNIT_TEXT),
};

static const struct table_kind gpu_kind = {
	TABLE("gpus", "GPUS", struct gpu_row, gpu_columns),
	.when_empty = "none was seen",
};

static void add_gpus(struct report *report, const struct model *model)
{
	struct gpu_row *rows = NULL;
	size_t i, j, n = 0;

	for (i = 0; i < model->n_processes; i++) {
		const struct process *process = &model->processes[i];

		for (j = 0; j < process->n_gpus; j++) {
			const struct gpu *gpu = &process->gpus[j];

			rows = grow(rows, n, sizeof(*rows));
			rows[n++] = (struct gpu_row){
				.process = text_process(&report->arena, process->trace),
				.name = report_text(report, "%s", gpu->name),
				.capability =
					report_text(report, "%u.%u", gpu->cc_major, gpu->cc_minor),
				.uuid = report_text(report, "%s", gpu->uuid),
				.pci = report_text(report, "%s", gpu->pci),
				.device = gpu->device,
				.bytes = gpu->bytes,
			};
		}
	}
	report_add(report, &gpu_kind, rows, n);
}

/* ---- coverage ------------------------------------------------------------------------------- */

struct note_row {
	const char *process, *kind, *text;
	uint64_t count;
};

static const struct column note_columns[] = {
	COLUMN(struct note_row, process, "process", UNIT_TEXT),
	COLUMN(struct note_row, kind, "what", UNIT_TEXT),
	COLUMN(struct note_row, count, "count", UNIT_COUNT),
	COLUMN(struct note_row, text, "note", UNIT_TEXT),
};

static const struct table_kind note_kind = {
	TABLE("notes", "COVERAGE: blind spots, functions unknown or missing, versions",
	      struct note_row, note_columns),
	.when_empty = "nothing to say",
};

static int by_kind(const void *a, const void *b)
{
	const struct note_row *x = a, *y = b;
	int order = strcmp(x->process, y->process);

	order = order ? order : strcmp(x->kind, y->kind);
	return order ? order : strcmp(x->text, y->text);
}

static void add_notes(struct report *report, const struct model *model)
{
	struct note_row *rows = NULL;
	size_t i, n = 0;

	for (i = 0; i < model->n_processes; i++) {
		const struct process *process = &model->processes[i];

		for (const struct note *note = process->notes; note; note = note->hh.next) {
			rows = grow(rows, n, sizeof(*rows));
			rows[n++] = (struct note_row){
				.process = text_process(&report->arena, process->trace),
				.kind = report_text(report, "%s", name_note(note->note)),
				.text = report_text(report, "%s", note->text),
				.count = note->count,
			};
		}
	}
	if (n)
		qsort(rows, n, sizeof(*rows), by_kind);
	report_add(report, &note_kind, rows, n);
}

/* ---- the recorder's own memory -------------------------------------------------------------- */

struct memory_row {
	const char *process;
	uint64_t kernels, range_names, notes, spare_stubs, heap_bytes, slots, left_out;
	uint64_t functions_unwatched;
};

static const struct column memory_columns[] = {
	COLUMN(struct memory_row, process, "process", UNIT_TEXT),
	COLUMN(struct memory_row, kernels, "kernels", UNIT_COUNT),
	COLUMN_JSON(struct memory_row, range_names, UNIT_COUNT),
	COLUMN(struct memory_row, notes, "notes", UNIT_COUNT),
	COLUMN(struct memory_row, spare_stubs, "spare stubs", UNIT_COUNT),
	COLUMN(struct memory_row, slots, "threads at once", UNIT_COUNT),
	COLUMN(struct memory_row, heap_bytes, "memory", UNIT_BYTES),
	COLUMN(struct memory_row, left_out, "left out", UNIT_COUNT),
	COLUMN_JSON(struct memory_row, functions_unwatched, UNIT_COUNT),
};

static const struct table_kind memory_kind = {
	TABLE("recorder_memory",
	      "RECORDER: names and texts that it keeps, and what was left out at their bounds",
	      struct memory_row, memory_columns),
	.when_empty = "unknown: there is no board",
};

static void add_memory(struct report *report, const struct model *model)
{
	struct memory_row *rows = NULL;
	size_t n = 0;

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct process *process = &model->processes[i];
		const struct board *board = &process->trace->board;

		if (!board->present)
			continue;
		rows = grow(rows, n, sizeof(*rows));
		rows[n++] = (struct memory_row){
			.process = text_process(&report->arena, process->trace),
			.kernels = board->head.kernels,
			.range_names = board->head.range_names,
			.notes = board->head.notes,
			.spare_stubs = board->head.spare_stubs,
			.slots = board->head.slots ? board->head.slots - 1 : 0,
			.heap_bytes = board->head.heap,
			.left_out = (uint64_t)board->head.kernels_unnamed +
				    board->head.notes_dropped + board->head.ranges_unnamed,
			.functions_unwatched = board->head.functions_unwatched,
		};
	}
	report_add(report, &memory_kind, rows, n);
}

/* ---- parts ------------------------------------------------------------------------------------ */

struct part_row {
	const char *process, *part, *trace;
	uint64_t begin_ns, duration_ns, calls;
};

static const struct column part_columns[] = {
	COLUMN(struct part_row, process, "process", UNIT_TEXT),
	COLUMN(struct part_row, part, "part", UNIT_TEXT),
	COLUMN(struct part_row, begin_ns, "from t =", UNIT_NS),
	COLUMN(struct part_row, duration_ns, "lasted", UNIT_NS_IF_KNOWN),
	COLUMN(struct part_row, calls, "calls", UNIT_COUNT),
	COLUMN(struct part_row, trace, "directory", UNIT_TEXT),
};

static const struct table_kind part_kind = {
	TABLE("parts",
	      "PARTS: of recordings that have several; of the last one calls are not counted yet",
	      struct part_row, part_columns),
};

static const struct part_seen *find_part(const struct process *process, uint32_t number)
{
	for (size_t i = 0; i < process->n_parts_seen; i++)
		if (process->parts_seen[i].number == number)
			return &process->parts_seen[i];
	return NULL;
}

static void add_parts(struct report *report, const struct model *model)
{
	struct part_row *rows = NULL;
	size_t n = 0;

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct process *process = &model->processes[i];
		const struct trace *trace = process->trace;

		for (size_t j = 0; j < trace->n_parts; j++) {
			const struct part_seen *seen = find_part(process, trace->parts[j].number);
			uint64_t begin_ns = max_u64(seen ? seen->begin_ns : 0, model->first_ns);

			rows = grow(rows, n, sizeof(*rows));
			rows[n++] = (struct part_row){
				.process = text_process(&report->arena, trace),
				.part = arena_printf(&report->arena, "%u", trace->parts[j].number),
				.trace = arena_printf(&report->arena, "%s", trace->parts[j].dir),
				.begin_ns = begin_ns - model->first_ns,
				.duration_ns =
					seen && seen->end_ns
						? seen->end_ns - min_u64(begin_ns, seen->end_ns)
						: UNKNOWN_NS,
				.calls = seen ? seen->calls : 0,
			};
		}
	}
	if (n)
		report_add(report, &part_kind, rows, n);
}

void report_about(struct report *report, const struct callstats *stats)
{
	add_processes(report, stats);
	add_gpus(report, stats->model);
	report_mps(report, stats->model);
	add_parts(report, stats->model);
	add_environment(report, stats->model->set);
	add_notes(report, stats->model);
	add_memory(report, stats->model);
}
