/*
 * analyzer/cmd_read/cmd_diff.c: `cudaspy diff`: two sides compared, each one run or several. A run is a
 * directory of traces, reported like `cudaspy report` would, or a report in JSON that was kept.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd_files/cmd_job.h"
#include "cmd_report.h"
#include "cmd/output.h"
#include "base/redact.h"
#include "diff/diff.h"
#include "base/jobs.h"
#include "render/render.h"

#define SCHEMA "cudaspy-diff-1"
#define SCHEMA_PREFIX "cudaspy-report-"

struct options {
	const char *jobs;
	const char *format;
	const char *profile;
	struct output_options output;
	bool redact;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{.name = "format", .letter = 'f', .argument = "FORMAT", .help = FORMATS, .offset = offsetof(struct options, format)},
	{.name = "profile", .letter = 'p', .argument = "FILE", .help = "what calls cost on that machine, from cudaspy calibrate", .offset = offsetof(struct options, profile)},
	JOBS_OPTION(struct options, jobs),
	OUTPUT_OPTIONS(struct options, output),
	REDACT_OPTION(struct options, redact),
};
/* clang-format on */

/* ---- a run ---------------------------------------------------------------------------------- */

static int take_report(const char *name, json_t *parsed, const json_error_t *why, json_t **report)
{
	const char *schema = json_string_value(json_object_get(parsed, "schema"));

	if (!parsed)
		warn("%s:%d: no JSON: %s", name, why->line, why->text);
	else if (!schema || strncmp(schema, SCHEMA_PREFIX, strlen(SCHEMA_PREFIX)) != 0)
		warn("%s: no report of cudaspy's (cudaspy report --format=json)", name);
	else
		return *report = parsed, 0;
	json_decref(parsed);
	return -EINVAL;
}

static int read_report(const char *path, json_t **report)
{
	FILE *file = open_regular(path);
	json_error_t why;
	int err;

	if (!file)
		return -errno;
	err = take_report(path, json_loadf(file, 0, &why), &why, report);
	fclose(file);
	return err;
}

static int report_traces(const char *dir, const char *profile, json_t **report)
{
	struct report_options show = {.renderer = renderer_find("json"), .profile = profile};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	json_error_t why;
	int err;

	if (!out)
		return -errno;
	err = report_show(&dir, 1, NULL, &show, out);
	fclose(out);
	if (!err)
		err = take_report(dir, json_loadb(text, size, 0, &why), &why, report);
	free(text);
	return err;
}

static int read_run(const char *name, const char *profile, json_t **report)
{
	struct stat status;

	if (!stat(name, &status) && S_ISREG(status.st_mode) && !container_begins(name))
		return read_report(name, report);
	return report_traces(name, profile, report);
}

static int read_side(struct diff_side *side, const char *profile)
{
	int err = 0;

	side->reports = xcalloc(side->n, sizeof(json_t *));
	for (size_t i = 0; i < side->n && !err; i++)
		err = read_run(side->names[i], profile, &side->reports[i]);
	return err;
}

static void side_release(struct diff_side *side)
{
	for (size_t i = 0; side->reports && i < side->n; i++)
		json_decref(side->reports[i]);
	free(side->reports);
	free((void *)side->names);
}

/* ---- which runs ----------------------------------------------------------------------------- */

static void add_name(struct diff_side *side, const char *name)
{
	side->names = grow((void *)side->names, side->n, sizeof(*side->names));
	side->names[side->n++] = name;
}

/* "A1,A2": but a name with a comma that is there is one run. Writes into the word. */
static void add_names(struct diff_side *side, char *word)
{
	char *name;

	if (!access(word, F_OK)) {
		add_name(side, word);
		return;
	}
	while ((name = strsep(&word, ",")))
		if (*name)
			add_name(side, name);
}

/* Where the sides are parted: the first "--" that has arguments before it. argc: there is none. */
static int find_parting(int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		if (!strcmp(argv[i], "--"))
			return i;
	return argc;
}

/* A1 A2 -- B1 B2, or A B. The words before "--" are argv[1] to argv[n - 1], without the options. */
static bool take_sides(int n, char **argv, int n_b, char **b_argv, struct diff_side *a,
		       struct diff_side *b)
{
	if (!b_argv && n == 3) {
		add_names(a, argv[1]);
		add_names(b, argv[2]);
	}
	for (int i = 1; b_argv && i < n; i++)
		add_names(a, argv[i]);
	for (int i = 0; b_argv && i < n_b; i++)
		add_names(b, b_argv[i]);
	if (a->n && b->n)
		return true;
	warn("diff: two runs are wanted: diff A B, or several on each side: diff A1 A2 -- B1 "
	     "B2");
	return false;
}

/* ---- the verb ------------------------------------------------------------------------------- */

static int compare(struct diff_side *a, struct diff_side *b, const struct options *options,
		   const struct renderer *renderer, FILE *out)
{
	struct report report;
	int err;

	if (job_any_digest(a->names, a->n) || job_any_digest(b->names, b->n))
		return job_diff(a->names, a->n, b->names, b->n, renderer, out);
	err = read_side(a, options->profile);

	if (!err)
		err = read_side(b, options->profile);
	if (err)
		return err;
	report_init(&report, SCHEMA);
	report.view = view_for(out);
	report.view.always_brief = true;
	diff_report(&report, a, b);
	err = renderer_show(renderer, &report, out);
	report_release(&report);
	return err;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {.format = "text"};
	const struct renderer *renderer;
	struct diff_side a = {0}, b = {0};
	struct output out;
	int n = find_parting(argc, argv), status, err, n_b = argc - n - 1;
	char **b_argv = n < argc ? argv + n + 1 : NULL;

	if (b_argv) /* command_parse ends them so */
		argv[n] = NULL;
	if (!command_parse(self, &options, &n, argv, &status))
		return status;
	if (jobs_choose(options.jobs))
		return STATUS_USAGE;
	if (options.redact)
		redact_begin();
	renderer = renderer_choose(self->name, options.format);
	if (!renderer || !take_sides(n, argv, n_b, b_argv, &a, &b))
		status = STATUS_USAGE;
	else
		status = output_begin(&out, self->name, &options.output,
				      renderer->render == render_text);
	if (!status) {
		err = compare(&a, &b, &options, renderer, out.file);
		status = output_end(&out, !err) || err ? STATUS_NOTHING : STATUS_FINE;
	}
	side_release(&a);
	side_release(&b);
	warnings_flush();
	return status;
}

const struct command command_diff = {
	.name = "diff",
	.arguments = "[options] A B | A1 A2... -- B1 B2...",
	.summary = "Compares two runs, or several with several: what changed, and what is noise",
	.text = "A run is a directory of traces, a report in JSON, or digests, of which all on "
		"a side are one job. Several runs of a side are given before and after --, or "
		"with commas between them: A1,A2 B1,B2. A difference that is not larger than "
		"what the runs of a side differ by among themselves is called noise; with one "
		"run on each side it is unknown. A finding is the same one if its detector, its "
		"CUDA function and the function that calls that one are. If the program will be "
		"built again, keep reports (cudaspy report --format=json): traces of a program "
		"that is gone have no names of places.\n",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
