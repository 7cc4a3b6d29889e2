/*
 * analyzer/cmd_report.c: `cudaspy report`: where the time went, and what was found.
 */
#include "cmd_report.h"
#include "render.h"
#include "report_calls.h"
#include "report_expect.h"
#include "report_findings.h"
#include "report_sharing.h"
#include "report_trace.h"
#include "report_waits.h"

#define SCHEMA "cudaspy-report-1"

int report_show(const char *const *dirs, size_t n_dirs, const struct trace_filter *filter,
		const struct report_options *options, FILE *out)
{
	struct trace_set set;
	struct analysis analysis;
	struct symbolizer *symbols;
	struct report report;
	int err = trace_set_open(&set, dirs, n_dirs, filter);

	if (!err) {
		err = analysis_run(&analysis, &set,
				   &(struct analysis_options){.profile = options->profile});
		if (err)
			analysis_release(&analysis);
	}
	if (!err) {
		symbols = symbolizer_new();
		report_init(&report, SCHEMA);
		report.view = view_for(out);
		report.view.verbose = options->verbose;
		report_losses(&report, &analysis);
		report_summary(&report, &analysis);
		report_in_flight(&report, &analysis, options->end_ns);
		report_findings(&report, &analysis, symbols);
		report_waits(&report, &analysis, symbols);
		report_sharing(&report, &analysis);
		report_calls(&report, &analysis, options->nested);
		report_expectations(&report, &analysis.expect);
		err = options->renderer->render(&report, out);
		report_release(&report);
		analysis_release(&analysis);
		symbolizer_free(symbols);
	}
	trace_set_release(&set);
	complain_flush();
	return err;
}

struct options {
	const char *format;
	const char *profile;
	bool nested, verbose;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"format",  'f', "FORMAT", "text (default) or json", offsetof(struct options, format)},
	{"nested",  'n', NULL,     "also the calls made inside other calls", offsetof(struct options, nested)},
	{"verbose", 'v', NULL,     "also locks, accounts, calls, threads, what calls are expected to cost", offsetof(struct options, verbose)},
	{"profile", 'p', "FILE",   "what calls cost on that machine, from cudaspy calibrate", offsetof(struct options, profile)},
};
/* clang-format on */

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {.format = "text"};
	int status;
	struct report_options show = {0};

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	show.renderer = renderer_choose(self->name, options.format);
	show.nested = options.nested;
	show.verbose = options.verbose || options.nested;
	show.profile = options.profile;
	if (!show.renderer)
		return STATUS_USAGE;
	return report_show((const char *const *)argv + 1, (size_t)argc - 1, NULL, &show, stdout)
		       ? STATUS_NOTHING
		       : STATUS_FINE;
}

const struct command command_report = {
	.name = "report",
	.arguments = "[options] [DIR...]",
	.summary = "Reports where the time went, from the traces in DIR (default: here)",
	.text = "A DIR is a trace directory or one that contains some. All of them together are "
		"read\n"
		"as one: the processes of a program. Damaged traces are read as far as they go, "
		"and the\n"
		"report says first what is missing.\n",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
