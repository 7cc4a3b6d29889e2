/*
 * analyzer/cmd_read/cmd_export.c: `cudaspy export`: a recording in the format of another tool.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "analysis.h"
#include "cmd_report.h"
#include "base/redact.h"
#include "base/report.h"
#include "export/export.h"
#include "base/jobs.h"

struct options {
	const char *jobs;
	const char *format;
	const char *out;
	const char *by;
	const char *window;
	const char *table;
	const char *profile;
	const char *run;
	struct filter_words words;
	bool redact;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"format",  'f', "FORMAT", EXPORT_NAMES, offsetof(struct options, format)},
	{"output",  'o', "FILE",   "where to write, as a whole or not at all; -: standard output, which is the default unless it is a terminal", offsetof(struct options, out)},
	{"by",      'b', "ORDER",  "folded: thread (default): the cause is the innermost frame; or cause: the outermost", offsetof(struct options, by)},
	{"window",  'w', "MB",     "perfetto: no file is larger, in million bytes (default: 300)", offsetof(struct options, window)},
	{"table",   't', "NAME",   "csv: only that table, which can go to standard output", offsetof(struct options, table)},
	{"profile", 'p', "FILE",   "what calls cost on that machine, from cudaspy calibrate", offsetof(struct options, profile)},
	RUN_OPTION(struct options, run),
	FILTER_OPTIONS(struct options, words),
	JOBS_OPTION(struct options, jobs),
	REDACT_OPTION(struct options, redact),
};
/* clang-format on */

/* What is exported, while it is. */
struct exporting {
	const struct export_format *format;
	struct analysis_options reading;
	struct export_options options;
	struct trace_set set;
	struct analysis known, shown;
	struct report report;
	struct symbolizer *symbols;
	struct export_target out;
};

/* Another reading, for who listens. */
static int show(struct exporting *e, void *state)
{
	int err;

	if (!e->format->listener)
		return 0;
	e->reading.listener = e->format->listener(state);
	err = analysis_run(&e->shown, &e->set, &e->reading);
	e->reading.listener = NULL;
	return err;
}

static int write_all(struct exporting *e)
{
	const struct export_job job = {.options = &e->options,
				       .report = &e->report,
				       .known = &e->known,
				       .shown = &e->shown,
				       .symbols = e->symbols,
				       .out = &e->out};
	void *state = e->format->begin(&job);
	int err;

	if (!state)
		return -EINVAL;
	err = show(e, state);
	err = e->format->end(state, err) ?: err;
	analysis_release(&e->shown);
	return err;
}

/* One table is a file like those of other formats. */
static bool is_named(const struct export_format *format, const char *table)
{
	return format->named && !table;
}

static int open_output(struct exporting *e)
{
	return is_named(e->format, e->options.table) ? target_reserve(&e->out, e->options.path)
						     : target_open(&e->out, e->options.path);
}

/* The output is opened first: who cannot write need not read. */
static int export_read(struct exporting *e)
{
	static const struct report_options whole = {.nested = true, .verbose = true};
	int err = open_output(e) ?: analysis_run(&e->known, &e->set, &e->reading);

	if (!err) {
		report_init(&e->report, REPORT_SCHEMA);
		report_add_sections(&e->report, &e->known, e->symbols, &whole);
		report_redact(&e->report);
		err = write_all(e);
		report_release(&e->report);
	}
	analysis_release(&e->known);
	if (!err)
		return target_commit(&e->out);
	target_discard(&e->out);
	return err;
}

static int export_traces(struct exporting *e, const char *const *dirs, size_t n_dirs,
			 const struct trace_filter *traces)
{
	int err = trace_set_open(&e->set, dirs, n_dirs, traces);

	if (!err) {
		e->symbols = symbolizer_new();
		err = export_read(e);
		symbolizer_free(e->symbols);
	}
	trace_set_release(&e->set);
	warnings_flush();
	return err ? STATUS_NOTHING : STATUS_FINE;
}

/* NULL after a message. */
static const char *choose_path(const struct export_format *format, const char *path,
			       const char *table)
{
	if (path)
		return path;
	if (!is_named(format, table) && !isatty(STDOUT_FILENO))
		return "-";
	warn("export: --output is missing: the FILE to write");
	return NULL;
}

/* A format without a listener is one of tables alone. False after a message. */
static bool may_choose_table(const struct export_format *format, const char *table)
{
	if (!table || !format->listener)
		return true;
	warn("export: --table=%s: %s has no tables to choose from", table, format->name);
	return false;
}

#define WINDOW_MB "300" /* what browsers open */
#define WINDOW_MB_MOST 100000

/* False after a message. */
static bool parse_window(struct export_options *options, const char *text)
{
	char *end;
	unsigned long mb = strtoul(text, &end, 10);

	options->window_bytes = mb * 1000000;
	if (*text >= '0' && *text <= '9' && !*end && mb >= 1 && mb <= WINDOW_MB_MOST)
		return true;
	warn("export: --window=%s: a number of million bytes is needed, 1 or more", text);
	return false;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {.window = WINDOW_MB};
	struct filter filter = {0};
	struct exporting e = {.reading = {.filter = &filter}};
	int status;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	if (jobs_choose(options.jobs))
		return STATUS_USAGE;
	if (options.redact)
		redact_begin();
	e.format = export_find(options.format);
	if (e.format)
		e.options.path = choose_path(e.format, options.out, options.table);
	if (!e.format || !e.options.path || !may_choose_table(e.format, options.table) ||
	    !parse_window(&e.options, options.window))
		return STATUS_USAGE;
	e.options.by = options.by;
	e.options.table = options.table;
	e.reading.profile = options.profile;
	status = filter_parse(&filter, &options.words)
			 ? STATUS_USAGE
			 : export_traces(&e, (const char *const *)argv + 1, (size_t)argc - 1,
					 &(struct trace_filter){.wanted = options.run});
	filter_release(&filter);
	return status;
}

const struct command command_export = {
	.name = "export",
	.arguments = "[options] --format=FORMAT [DIR...]",
	.summary = "Writes the traces in DIR (default: here) in the format of another tool",
	.text = "Formats:\n" EXPORT_HELP "DIR as for report. The file has its name once it is "
		"complete; an older one stays until then.\n\n" FILTER_HELP,
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
