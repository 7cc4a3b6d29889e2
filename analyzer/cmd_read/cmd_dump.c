/*
 * analyzer/cmd_read/cmd_dump.c: `cudaspy dump`: one line per record, all streams merged in the order of
 * time. For a close look, and for tests.
 */
#include "cmd_files/cmd_job.h"
#include "cmd/output.h"
#include "account/ranges.h"
#include "base/redact.h"
#include "base/suggest.h"
#include "expect/expect.h"
#include "filter/filter.h"
#include "model/dump.h"

#define DUMP_FORMATS \
	"text (default): columns separated by a blank; tsv: by a tab, with their names in the " \
	"first line; of digests text or json"

struct options {
	const char *format;
	const char *fields;
	struct filter_words words;
	bool no_times;
	bool stable;
	bool header;
	const char *run;
	struct output_options output;
	bool redact;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"format",   'f', "FORMAT", DUMP_FORMATS, offsetof(struct options, format)},
	{"fields",   'F', "LIST", "only these columns: " DUMP_FIELDS, offsetof(struct options, fields)},
	{"no-times", 0,   NULL,   "without time and duration", offsetof(struct options, no_times)},
	{"stable",   0,   NULL,   "only what is the same in each run: no times, no addresses, ordinals as thread numbers", offsetof(struct options, stable)},
	{"header",   0,   NULL,   "column names in the first line", offsetof(struct options, header)},
	FILTER_OPTIONS(struct options, words),
	RUN_OPTION(struct options, run),
	OUTPUT_OPTIONS(struct options, output),
	REDACT_OPTION(struct options, redact),
};
/* clang-format on */

/* ---- which records ---------------------------------------------------------------------------- */

struct only {
	struct filtering filtering;
	struct ranges ranges;
	const char *range; /* pattern for their names; NULL: --range was not given */
};

/* A record of a range is in if the range is, also the one that ends it. */
static bool is_outside_ranges(struct only *only, struct model *model, const struct record *record)
{
	bool before;

	if (!only->range)
		return false;
	if (!only->ranges.model) {
		ranges_init(&only->ranges, model);
		only->ranges.only = only->range;
	}
	before = ranges_leave_out(&only->ranges, record->thread);
	if (record_is_of_range(record))
		ranges_follow(&only->ranges, record);
	return before && ranges_leave_out(&only->ranges, record->thread);
}

static bool skip(void *data, struct model *model, const struct record *record)
{
	struct only *only = data;
	bool outside = is_outside_ranges(only, model, record);

	return filter_outside(&only->filtering, record) || outside;
}

/* When the working phase is, the first reading of a report finds. */
static int begin_only(struct only *only, const struct filter *filter, struct trace_set *set)
{
	struct expect expect = {0};
	bool learn = filter_needs_phase(filter);
	int err;

	*only = (struct only){.range = filter->words.of[FILTER_RANGE]};
	if (learn)
		expect_learn(&expect, set);
	err = filtering_begin(&only->filtering, filter, set, &expect.phases);
	if (learn)
		expect_release(&expect);
	return err;
}

static void end_only(struct only *only)
{
	filtering_end(&only->filtering);
	ranges_release(&only->ranges);
}

/* ---- the verb --------------------------------------------------------------------------------- */

static int show(struct dump *dump, const char *const *dirs, size_t n_dirs,
		const struct options *options, const struct filter *filter)
{
	const struct trace_filter traces = {.wanted = options->run};
	struct only only = {0};
	struct trace_set set;
	int err = trace_set_open(&set, dirs, n_dirs, &traces);

	if (!err)
		err = begin_only(&only, filter, &set);
	if (!err) {
		if (filter->kinds) {
			dump->skip = skip;
			dump->skip_data = &only;
		}
		if (options->header)
			dump_header(dump);
		err = dump_all(dump, &set);
	}
	end_only(&only);
	trace_set_release(&set);
	warnings_flush();
	return err ? STATUS_NOTHING : STATUS_FINE;
}

/* ---- digests ---------------------------------------------------------------------------------- */

static bool limits(const struct options *options)
{
	for (size_t i = 0; i < FILTER_KINDS; i++)
		if (options->words.of[i])
			return true;
	return options->fields || options->no_times || options->stable || options->run;
}

static int show_digests(const struct command *self, const struct options *options,
			const char *const *names, size_t n)
{
	bool json = options->format && !strcmp(options->format, "json"), incomplete;
	struct digest *digest;
	struct output out;
	int status, err;

	if (limits(options) || (options->format && !json && strcmp(options->format, "text") != 0)) {
		warn("dump: of digests there is all, as text or json");
		return STATUS_USAGE;
	}
	status = output_begin(&out, self->name, &options->output, true);
	if (status)
		return status;
	digest = digest_new();
	err = job_load(digest, names, n, &incomplete);
	if (!err)
		err = digest_dump(digest, json, out.file);
	digest_free(digest);
	status = output_end(&out, !err) || err ? STATUS_NOTHING : STATUS_FINE;
	warnings_flush();
	return status;
}

/* ---- the verb --------------------------------------------------------------------------------- */

static bool choose_format(struct options *options, struct dump *dump)
{
	struct suggest suggest = {.word = options->format ?: "text"};
	char text[SUGGEST_TEXT];

	if (!strcmp(suggest.word, "text"))
		return true;
	if (!strcmp(suggest.word, "tsv")) {
		dump->separator = '\t';
		options->header = true;
		return true;
	}
	suggest_try(&suggest, "text");
	suggest_try(&suggest, "tsv");
	warn("dump: no format '%s' (text or tsv)%s; --fields chooses columns", options->format,
	     suggest_text(&suggest, text));
	return false;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {0};
	struct filter filter = {0};
	struct output out;
	struct dump dump;
	int status;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	if (options.redact)
		redact_begin();
	if (job_any_digest((const char *const *)argv + 1, (size_t)argc - 1))
		return show_digests(self, &options, (const char *const *)argv + 1,
				    (size_t)argc - 1);
	if (dump_init(&dump, stdout, options.fields, options.no_times, options.stable) ||
	    !choose_format(&options, &dump))
		return STATUS_USAGE;
	status = filter_parse(&filter, &options.words) ? STATUS_USAGE : STATUS_FINE;
	if (!status)
		status = output_begin(&out, self->name, &options.output, true);
	if (!status) {
		dump.out = out.file;
		status = show(&dump, (const char *const *)argv + 1, (size_t)argc - 1, &options,
			      &filter);
		if (output_end(&out, !status))
			status = STATUS_NOTHING;
	}
	filter_release(&filter);
	return status;
}

const struct command command_dump = {
	.name = "dump",
	.arguments = "[options] [DIR... | DIGEST...]",
	.summary = "Shows each record of the traces in DIR (default: here), one line each",
	.text = "Columns are separated by one blank (tsv: a tab); '-' is a value that a record "
		"does not have. Times are seconds since the first record, at the call's return; "
		"durations are seconds. What is particular to a kind of record follows as "
		"key=value. Of digests it shows all rows, with what is not 0.\n\n" FILTER_HELP,
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
