/*
 * analyzer/cmd_files/cmd_merge.c: `cudaspy merge`: the digests of many ranks in one.
 */
#include <stdlib.h>
#include "cmd_digest.h"
#include "cmd/output.h"

struct options {
	const char *output;
	const char *list;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"output",    'o', "FILE", "the digest; - is standard output", offsetof(struct options, output)},
	{"from-list", 'l', "FILE", "also the digests whose names are in FILE, one a line; - is standard input", offsetof(struct options, list)},
};
/* clang-format on */

/* What could be read is worth having; that not all of it could be has to be known. */
static int status_of(const struct digest_inputs *inputs)
{
	if (inputs->differ || !inputs->read)
		return STATUS_NOTHING;
	return inputs->bad ? STATUS_GATE : STATUS_FINE;
}

static int merge(const struct options *options, char **names, size_t n, FILE *out)
{
	struct digest *digest = digest_new();
	struct digest_inputs inputs = {0};
	char *list = options->list ? xasprintf("@%s", options->list) : NULL;
	int status;

	digest_read_all(digest, (const char *const *)names, n, &inputs);
	if (list)
		digest_read_all(digest, (const char *const *)&list, 1, &inputs);
	status = status_of(&inputs);
	if (inputs.differ)
		warn("merge: nothing is written: digests that differ cannot both be right");
	else if (!inputs.read)
		warn("merge: nothing is written: no digest could be read");
	else if (inputs.bad)
		warn("merge: %zu of %zu could not be read, and are left out", inputs.bad,
		     inputs.bad + inputs.read);
	if (status != STATUS_NOTHING && digest_save(digest, out))
		status = STATUS_NOTHING;
	free(list);
	digest_free(digest);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {0};
	struct output out;
	int status;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	if (!options.output || (argc < 2 && !options.list)) {
		warn("merge: %s", options.output ? "which digests?" : "where to? -o FILE says it");
		return STATUS_USAGE;
	}
	status = output_begin(&out, self->name, &(struct output_options){.path = options.output},
			      false);
	if (status)
		return status;
	status = merge(&options, argv + 1, (size_t)argc - 1, out.file);
	if (output_end(&out, status != STATUS_NOTHING))
		status = STATUS_NOTHING;
	warnings_flush();
	return status;
}

const struct command command_merge = {
	.name = "merge",
	.arguments = "-o FILE [options] DIGEST...",
	.summary = "Puts digests together, in any order and any tree",
	.text = "A DIGEST is a file of cudaspy digest or merge; a folder, for all *.digest in "
		"it; or @FILE, for those whose names are in FILE, one a line (@-: standard "
		"input). A rank that is in several of them counts once. If it differs there, "
		"nothing is written, and the status is 2. What is torn, damaged or of a version "
		"that cannot be read is left out: a message says so, and the status is 1. The "
		"result is the same, byte for byte, whatever the order and grouping.",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
