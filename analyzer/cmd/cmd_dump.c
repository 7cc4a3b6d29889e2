/*
 * analyzer/cmd/cmd_dump.c: `cudaspy dump`: one line per record, all streams merged in the order of
 * time. For a close look, and for tests.
 */
#include "command.h"
#include "trace/dump.h"

struct options {
	const char *fields;
	bool no_times;
	bool stable;
	bool header;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"fields",   'f', "LIST", "only these columns: " DUMP_FIELDS, offsetof(struct options, fields)},
	{"no-times", 0,   NULL,   "without time and duration", offsetof(struct options, no_times)},
	{"stable",   0,   NULL,   "only what is the same in each run: no times, no addresses, ordinals as thread numbers", offsetof(struct options, stable)},
	{"header",   0,   NULL,   "column names in the first line", offsetof(struct options, header)},
};
/* clang-format on */

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {0};
	struct trace_set set;
	struct dump dump;
	int status;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	if (dump_init(&dump, stdout, options.fields, options.no_times, options.stable)) {
		fprintf(stderr,
			"cudaspy dump: no columns, or unknown ones, in '%s' (there are " DUMP_FIELDS
			")\n",
			options.fields);
		return STATUS_USAGE;
	}
	status = STATUS_NOTHING;
	if (!trace_set_open(&set, (const char *const *)argv + 1, (size_t)argc - 1, NULL)) {
		if (options.header)
			dump_header(&dump);
		status = dump_all(&dump, &set) ? STATUS_NOTHING : STATUS_FINE;
	}
	trace_set_release(&set);
	warnings_flush();
	return status;
}

const struct command command_dump = {
	.name = "dump",
	.arguments = "[options] [DIR...]",
	.summary = "Shows each record of the traces in DIR (default: here), one line each",
	.text = "Columns are separated by one blank; '-' is a value that a record does not have. "
		"Times are seconds since the first record, at the call's return; durations are "
		"seconds. What is particular to a kind of record follows as key=value.\n",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
