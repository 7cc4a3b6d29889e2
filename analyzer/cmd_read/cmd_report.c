/*
 * analyzer/cmd_read/cmd_report.c: `cudaspy report`: where the time went, and what was found.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis.h"
#include "cmd_files/cmd_job.h"
#include "cmd_report.h"
#include "cmd/output.h"
#include "base/lines.h"
#include "base/redact.h"
#include "findings/gate.h"
#include "lanes/lanes.h"
#include "base/jobs.h"
#include "render/render.h"
#include "sections/sections.h"

/* What a report is made of, while it is. */
struct making {
	const struct report_options *options;
	const char *const *dirs;
	size_t n_dirs;
	struct trace_set set;
	struct analysis analysis;
	struct symbolizer *symbols;
	struct lanes *lanes; /* NULL: there is no timeline */
	struct report report;
};

static int read_traces(struct making *m, struct analysis *analysis, struct lanes *lanes)
{
	int err = analysis_run(
		analysis, &m->set,
		&(struct analysis_options){.profile = m->options->profile,
					   .filter = m->options->only,
					   .listener = lanes ? lanes_listener(lanes) : NULL});

	if (err)
		analysis_release(analysis);
	return err;
}

/* A word as a shell takes it. */
static const char *quoted(struct arena *texts, const char *word)
{
	const char *rest = word, *text = "";

	if (*word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789_./:=,@%+-")])
		return word;
	for (;;) {
		size_t n = strcspn(rest, "'");

		text = arena_printf(texts, "%s%.*s", text, (int)n, rest);
		if (!rest[n])
			return arena_printf(texts, "'%s'", text);
		text = arena_printf(texts, "%s'\\''", text);
		rest += n + 1;
	}
}

/* The command, as a shell finds it where it is not on the PATH. */
static const char *called(struct arena *texts)
{
	const char *name = program_invocation_name;

	return strchr(name, '/') ? quoted(texts, name) : "cudaspy";
}

/* " --gpu=0 --run=last traces": what `why` needs to find the same. */
static const char *asked_again(struct arena *texts, const struct report_options *options,
			       const char *const *dirs, size_t n_dirs, bool several_runs)
{
	const struct filter *only = options->only;
	const char *words =
		options->again && several_runs ? arena_printf(texts, " %s", options->again) : "";

	for (size_t i = 0; only && i < FILTER_KINDS; i++)
		if (only->words.of[i])
			words = arena_printf(texts, "%s --%s=%s", words, filter_option(i),
					     quoted(texts, only->words.of[i]));
	if (options->profile)
		words = arena_printf(texts, "%s --profile=%s", words,
				     quoted(texts, options->profile));
	for (size_t i = 0; i < n_dirs; i++)
		words = arena_printf(texts, "%s %s", words, quoted(texts, dirs[i]));
	return words;
}

void report_add_sections(struct report *report, struct analysis *a, struct symbolizer *symbols,
			 const struct report_options *options)
{
	struct gate none = {0}, *gate = options->gate ?: &none;
	struct summary_row *summary;

	a->model.complete = report_losses(report, &a->model);
	if (options->gate)
		gate_look(gate, a->set, a->model.complete);
	summary = report_summary(report, &a->accounts, &a->cost);
	report_cost(report, &a->cost);
	if (options->cost_only)
		return;
	report_besides(summary, report_around(&report->arena, &a->idle, symbols));
	report_only(report, &a->ranks);
	report_in_flight(report, &a->model, options->end_ns, summary);
	if (options->gate)
		report_judge_calls(gate, summary);
	report_ranks(report, &a->ranks, symbols);
	report_gpus(report, &a->idle, symbols);
	report_findings(report, &a->findings, &a->ranks, symbols, gate, summary);
	report_waits(report, &a->findings, &a->ranks, symbols);
	report_ranges(report, &a->idle);
	report_sharing(report, &a->stats);
	report_unread(&report->arena, summary, report_files(report, symbols));
	report_calls(report, &a->stats, options->nested);
	report_expectations(report, &a->expect);
}

/* A long trace is read once more, now that it is known what of it is worth a look. */
static int add_timeline(struct making *m)
{
	struct analysis analysis;
	struct lanes *lanes;
	size_t room;
	int err = render_html_pack(&m->report, &room);

	if (err)
		return err;
	lanes = lanes_again(m->lanes, &m->report, &analysis);
	if (!lanes) {
		lanes_report(m->lanes, &m->report, room);
		return 0;
	}
	err = read_traces(m, &analysis, lanes);
	if (!err) {
		free(locks_name(&analysis.accounts.locks, &(size_t){0}));
		lanes_report(lanes, &m->report, room);
		analysis_release(&analysis);
	}
	lanes_free(lanes);
	return err;
}

static int make_report(struct making *m, FILE *out)
{
	int err = 0;

	report_init(&m->report, REPORT_SCHEMA);
	m->report.view = view_for(out);
	m->report.view.verbose = m->options->verbose || m->options->cost_only;
	if (m->options->hints) {
		m->report.called = called(&m->report.arena);
		m->report.again = asked_again(&m->report.arena, m->options, m->dirs, m->n_dirs,
					      m->set.n_runs > 1);
	}
	jobs_phase("sections");
	m->report.text_only = m->options->renderer->render == render_text;
	report_add_sections(&m->report, &m->analysis, m->symbols, m->options);
	if (m->lanes)
		err = add_timeline(m);
	jobs_phase("rendering");
	if (!err)
		err = renderer_show(m->options->renderer, &m->report, out);
	jobs_phase("releasing");
	report_release(&m->report);
	return err;
}

int report_show(const char *const *dirs, size_t n_dirs, const struct trace_filter *filter,
		const struct report_options *options, FILE *out)
{
	struct making m = {.options = options, .dirs = dirs, .n_dirs = n_dirs};
	int err;

	jobs_phase("opening");
	err = trace_set_open(&m.set, dirs, n_dirs, filter);
	if (!err) {
		m.symbols = symbolizer_new();
		if (options->renderer->timeline)
			m.lanes = lanes_new(&m.analysis, m.symbols);
		err = read_traces(&m, &m.analysis, m.lanes);
		if (!err) {
			err = make_report(&m, out);
			analysis_release(&m.analysis);
		}
		lanes_free(m.lanes);
		symbolizer_free(m.symbols);
	}
	trace_set_release(&m.set);
	jobs_phase(NULL);
	warnings_flush();
	return err;
}

/* ---- the gate -------------------------------------------------------------------------------- */

struct options {
	const char *format;
	const char *profile;
	struct filter_words words;
	const struct filter *filter; /* the same, parsed */
	const char *fail_on;
	const char *budget;
	const char *baseline;
	struct option_values suppress;
	const char *run;
	const char *jobs;
	bool nested, verbose, redact;
	struct output_options output;
};

/* The traces of then, reported as those of now will be. */
static int baseline_from_traces(struct baseline *b, const struct options *options)
{
	struct report_options show = {.renderer = renderer_find("json"),
				      .profile = options->profile,
				      .only = options->filter};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int err = out ? report_show(&options->baseline, 1, NULL, &show, out) : -errno;

	if (out)
		fclose(out);
	if (!err)
		err = baseline_take(b, options->baseline, json_loadb(text, size, 0, NULL));
	free(text);
	return err;
}

static int read_gate(struct gate *gate, const struct options *options)
{
	struct stat status;
	int err = gate_init(gate, options->fail_on, options->budget, options->suppress.values,
			    options->suppress.n);

	if (err || !options->baseline)
		return err;
	if ((!stat(options->baseline, &status) && S_ISDIR(status.st_mode)) ||
	    container_begins(options->baseline))
		return baseline_from_traces(&gate->baseline, options);
	return baseline_read(&gate->baseline, options->baseline);
}

#define PLACE_WIDTH 100 /* names of C++ templates take a screen each; the report has them in full */

/* On standard error, too: what is on standard output may be for a machine. */
static void say_why(const struct gate *gate)
{
	char *where, *place;

	for (size_t i = 0; i < gate->suppressions.n; i++) {
		const struct suppression *e = &gate->suppressions.all[i];

		if (e->expired)
			warn("%s:%llu: expired on %s: %s%s%s", e->path, (unsigned long long)e->line,
			     e->until, e->id, e->place ? " " : "", e->place ?: "");
		else if (!e->findings)
			warn("%s:%llu: not used: %s%s%s", e->path, (unsigned long long)e->line,
			     e->id, e->place ? " " : "", e->place ?: "");
	}
	if (gate->unnamed)
		warn("%s: " GATE_UNNAMED, gate->unnamed);
	if (gate_cannot_judge(gate))
		warn("the gate cannot judge: %s", gate->unjudged);
	else if (gate_asked(gate) && gate->lost_records)
		warn("the gate judges incomplete data: %llu record%s lost",
		     (unsigned long long)gate->lost_records, gate->lost_records == 1 ? "" : "s");
	else if (gate_asked(gate) && gate->incomplete)
		warn("the gate judges incomplete data: LOSSES says what is missing");
	for (size_t i = 0; i < gate->n_failures; i++) {
		place = visible(gate->failures[i].where ?: "");
		where = shorten_to(place, PLACE_WIDTH);
		free(place);
		warn("the gate fails: %s: %s%s%s", gate->failures[i].rule, gate->failures[i].text,
		     *where ? ", " : "", where);
		free(where);
	}
	warnings_flush();
}

/* What could not be judged did not pass, whatever the rest is like. */
static int gate_status(const struct gate *gate)
{
	if (gate_cannot_judge(gate))
		return STATUS_NOTHING;
	return gate_failed(gate) ? STATUS_GATE : STATUS_FINE;
}

/* clang-format off */
static const struct option_row option_rows[] = {
	{"format",   'f', "FORMAT", FORMATS_FINDINGS, offsetof(struct options, format)},
	{"nested",   'n', NULL,     "also the calls made inside other calls", offsetof(struct options, nested)},
	{"verbose",  'v', NULL,     "also locks, accounts, calls, threads, what calls are expected to cost", offsetof(struct options, verbose)},
	{"profile",  'p', "FILE",   "what calls cost on that machine, from cudaspy calibrate", offsetof(struct options, profile)},
	FILTER_OPTIONS(struct options, words),
	RUN_OPTION(struct options, run),
	JOBS_OPTION(struct options, jobs),
	{"fail-on",  0,   "LIST",   "status 1 if one is found: any, problem, DETECTOR", offsetof(struct options, fail_on)},
	{"budget",   0,   "LIST",   "status 1 if its cure gains more: DETECTOR|all:LIMIT", offsetof(struct options, budget)},
	{"suppress", 0,   OPTION_SEVERAL, "findings that are accepted, with reasons", offsetof(struct options, suppress)},
	{"baseline", 0,   "OLD",    "only what is new or worse than in OLD counts", offsetof(struct options, baseline)},
	OUTPUT_OPTIONS(struct options, output),
	REDACT_OPTION(struct options, redact),
};
/* clang-format on */

/* A page of a megabyte is no text for a screen. */
static bool fits_output(const struct renderer *renderer, const struct options *options)
{
	bool fits =
		renderer->render != render_html || options->output.path || !isatty(STDOUT_FILENO);

	if (!fits)
		warn("report: --format=html is a page for a browser: name its file, with "
		     "--output=FILE");
	return fits;
}

/* A gate is asked by a build, not by somebody who would page. */
static int show_report(const struct command *self, const struct options *options,
		       struct report_options *show, const char *const *dirs, size_t n_dirs)
{
	bool page = show->renderer->render == render_text && !options->fail_on && !options->budget;
	const struct trace_filter filter = {.wanted = options->run};
	struct output out;
	int err, status = output_begin(&out, self->name, &options->output, page);

	if (status)
		return status;
	err = report_show(dirs, n_dirs, &filter, show, out.file);
	if (output_end(&out, !err) || err)
		return STATUS_NOTHING;
	say_why(show->gate);
	return gate_status(show->gate);
}

/* ---- digests --------------------------------------------------------------------------------- */

/* An option that asks what only traces can tell; NULL: there is none. */
static const char *wants_traces(const struct options *options)
{
	for (size_t i = 0; i < FILTER_KINDS; i++)
		if (options->words.of[i])
			return filter_option(i);
	return options->fail_on      ? "fail-on"
	       : options->budget     ? "budget"
	       : options->baseline   ? "baseline"
	       : options->suppress.n ? "suppress"
	       : options->run        ? "run"
	       : options->nested     ? "nested"
				     : NULL;
}

static int show_job(const struct command *self, const struct options *options,
		    const char *const *names, size_t n)
{
	const struct renderer *renderer = renderer_choose_findings(self->name, options->format);
	const char *option = wants_traces(options);
	bool incomplete = false;
	struct output out;
	int status, err;

	if (option)
		warn("report: --%s is for traces: a digest has sums only", option);
	if (!renderer || option || !fits_output(renderer, options))
		return STATUS_USAGE;
	if (renderer->findings && !renderer->timeline) { /* forms of a gate's answer */
		warn("report: --format=%s is for traces: of digests there are text, json and html",
		     renderer->name);
		return STATUS_USAGE;
	}
	status = output_begin(&out, self->name, &options->output, renderer->render == render_text);
	if (status)
		return status;
	err = job_show(names, n, renderer, options->verbose, out.file, &incomplete);
	status = output_end(&out, !err) || err ? STATUS_NOTHING : STATUS_FINE;
	warnings_flush();
	return status;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {.format = "text"};
	struct filter filter = {0};
	struct gate gate;
	char *again = NULL;
	int status;
	struct report_options show = {.gate = &gate, .only = &filter};

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	if (jobs_choose(options.jobs))
		return STATUS_USAGE;
	if (options.redact)
		redact_begin();
	if (job_any_digest((const char *const *)argv + 1, (size_t)argc - 1))
		return show_job(self, &options, (const char *const *)argv + 1, (size_t)argc - 1);
	show.renderer = renderer_choose_findings(self->name, options.format);
	show.nested = options.nested;
	show.verbose = options.verbose || options.nested;
	show.profile = options.profile;
	show.hints = true;
	if (options.run)
		show.again = again = xasprintf("--run=%s", options.run);
	options.filter = &filter;
	status = STATUS_USAGE;
	if (show.renderer && fits_output(show.renderer, &options) &&
	    !filter_parse(&filter, &options.words)) {
		status = STATUS_NOTHING;
		if (!read_gate(&gate, &options))
			status = show_report(self, &options, &show, (const char *const *)argv + 1,
					     (size_t)argc - 1);
		gate_release(&gate);
	}
	filter_release(&filter);
	free(again);
	return status;
}

const struct command command_report = {
	.name = "report",
	.arguments = "[options] [DIR... | DIGEST...]",
	.summary = "Reports where the time went, from the traces in DIR (default: here) or from "
		   "digests",
	.text = "A DIR is a trace directory or one that contains some, or folders with some, "
		"two deep. All of them together are read as one: the processes of a program. "
		"Damaged traces are read as far as they go, and the report says first what is "
		"missing. Of a DIGEST (cudaspy digest, merge), or a folder of them, it is the "
		"report of the job: which ranks, hosts and GPUs differ from the rest and "
		"why.\n\nAs a gate of a build: the exit status is 1 if --fail-on or --budget "
		"find too much, 0 if not or if neither is given, 2 if there is no report, or if "
		"with --fail-on, --budget or --baseline a DIR or a trace cannot be read or has "
		"lost all of its calls. Lists are separated by commas.\n  --fail-on   any "
		"finding; any of severity problem (its cure gives back 1 ms and 0.5 % of a "
		"thread's working time); those of a DETECTOR\n  --budget    LIMIT is a time "
		"(100ms, 2s, 500us; ms if bare), a share of the working time of the thread that "
		"pays most (2.5%), or a number of calls (10x). Of a finding counts what its "
		"cure would give back, at most; where that is unknown, its cost\n  --suppress  "
		"a line for each: DETECTOR [PLACE] [until YYYY-MM-DD] -- REASON. PLACE is a "
		"function, FILE:LINE, file or module, with * and ?; # begins a comment; may be "
		"given several times\n  --baseline  an earlier report in JSON, or its traces. "
		"Worse is: costs over 20 % and over 1 ms more than then\n\n" FILTER_HELP,
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
