/*
 * analyzer/cmd_read/cmd_info.c: `cudaspy info`: what a trace is, and what it does not have.
 */
#include "analysis.h"
#include "cmd_report.h"
#include "cmd/output.h"
#include "base/redact.h"
#include "base/jobs.h"
#include "render/render.h"
#include "sections/sections.h"

#define SCHEMA "cudaspy-info-1"

/* All of the processes: in which of them places will be asked is not known yet. */
static void add_files(struct report *report, const struct analysis *a)
{
	struct symbolizer *symbols = symbolizer_new();

	for (size_t i = 0; i < a->model.n_processes; i++)
		for (size_t j = 0; j < a->model.processes[i].n_modules; j++)
			symbolizer_look(symbols, &a->model.processes[i].modules[j]);
	report_files(report, symbols);
	symbolizer_free(symbols);
}

int info_show(const char *const *dirs, size_t n_dirs, const struct trace_filter *filter,
	      const struct renderer *renderer, FILE *out)
{
	struct trace_set set;
	struct analysis analysis;
	struct report report;
	int err = trace_set_open(&set, dirs, n_dirs, filter);

	if (!err) {
		report_init(&report, SCHEMA);
		report.view = view_for(out);
		report.view.verbose = true;
		(void)analysis_run(&analysis, &set, NULL);
		report_losses(&report, &analysis.model);
		report_about(&report, &analysis.stats);
		add_files(&report, &analysis);
		report_in_flight(&report, &analysis.model, 0, NULL);
		err = renderer_show(renderer, &report, out);
		report_release(&report);
		analysis_release(&analysis);
	}
	trace_set_release(&set);
	warnings_flush();
	return err;
}

struct options {
	const char *format;
	const char *run;
	const char *jobs;
	struct output_options output;
	bool redact;
};

static const struct option_row option_rows[] = {
	{"format", 'f', "FORMAT", FORMATS, offsetof(struct options, format)},
	RUN_OPTION(struct options, run),
	JOBS_OPTION(struct options, jobs),
	OUTPUT_OPTIONS(struct options, output),
	REDACT_OPTION(struct options, redact),
};

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {.format = "text"};
	const struct renderer *renderer;
	struct output out;
	int status, err;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	if (jobs_choose(options.jobs))
		return STATUS_USAGE;
	if (options.redact)
		redact_begin();
	renderer = renderer_choose(self->name, options.format);
	if (!renderer)
		return STATUS_USAGE;
	status = output_begin(&out, self->name, &options.output, renderer->render == render_text);
	if (status)
		return status;
	err = info_show((const char *const *)argv + 1, (size_t)argc - 1,
			&(struct trace_filter){.wanted = options.run}, renderer, out.file);
	return output_end(&out, !err) || err ? STATUS_NOTHING : STATUS_FINE;
}

const struct command command_info = {
	.name = "info",
	.arguments = "[options] [DIR...]",
	.summary = "Says what the traces in DIR (default: here) are, cover and lack",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
