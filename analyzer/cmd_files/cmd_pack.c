/*
 * analyzer/cmd_files/cmd_pack.c: `cudaspy pack`: one file in place of a finished trace directory.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd/command.h"
#include "packing.h"

struct options {
	const char *output;
	const char *run;
	bool remove;
	bool unfinished;
	bool quiet;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"output",     'o', "PATH", "leave the directories, and write one file with all traces; into a folder (there, or PATH ends in /) one file for each", offsetof(struct options, output)},
	{"remove",     0,   NULL,   "with --output: remove the directories that were packed; without, they are removed anyway", offsetof(struct options, remove)},
	{"unfinished", 0,   NULL,   "also traces whose processes were killed, on another host or before a restart: where it is unknown whether they run", offsetof(struct options, unfinished)},
	{"quiet",      'q', NULL,   "do not say what was packed", offsetof(struct options, quiet)},
	RUN_OPTION(struct options, run),
};
/* clang-format on */

/* A folder, or what is to be one: then it is made. */
static bool is_folder(const char *path, int *err)
{
	size_t n = strlen(path);
	struct stat st;

	*err = 0;
	if (n && path[n - 1] == '/')
		*err = make_parents(path);
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool is_trace(const char *path)
{
	char *board = xasprintf("%s/.board", path), *metadata = xasprintf("%s/metadata", path);
	bool yes = !access(board, F_OK) || !access(metadata, F_OK);

	free(board);
	free(metadata);
	return yes;
}

static int pack(const struct options *options, const struct trace_set *set, struct packing *p)
{
	bool folder;
	int err;

	if (!options->output) {
		packing_in_place(p, set);
		return 0;
	}
	folder = is_folder(options->output, &err);
	if (!err && folder && is_trace(options->output)) {
		warn("%s: is a trace directory: nothing is packed into it (without --output a "
		     "file takes its place)",
		     options->output);
		err = -EEXIST;
	}
	if (err)
		return err;
	if (folder)
		packing_into_folder(p, set, options->output, options->remove);
	else
		packing_into_file(p, set, options->output, options->remove);
	return 0;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {0};
	struct packing p = {.verb = self->name};
	struct trace_set set;
	int status, err;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	p.unfinished = options.unfinished;
	err = trace_set_open(&set, (const char *const *)argv + 1, (size_t)argc - 1,
			     &(struct trace_filter){.wanted = options.run});
	p.left = set.unreadable + set.not_found;
	if (!err)
		err = pack(&options, &set, &p);
	trace_set_release(&set);
	warnings_flush();
	if (!options.quiet && !err)
		printf("%zu trace%s packed\n", p.packed, p.packed == 1 ? "" : "s");
	err = err ?: finish_output(stdout);
	return err || p.left ? STATUS_NOTHING : STATUS_FINE;
}

const struct command command_pack = {
	.name = "pack",
	.arguments = "[options] [DIR...]",
	.summary = "Puts one file in the place of each finished trace directory in DIR (default: "
		   "here)",
	.text = "The file has the directory's name, and every verb takes it where it takes a "
		"directory; it is a ZIP file without compression, which unzip and other tools "
		"list and extract. A directory is removed when its file is complete and on the "
		"disk; if the machine stops in between, one of the two is there. `cudaspy "
		"unpack` makes directories again. Programs that run are not packed, nor is a "
		"directory that holds other things than files. Exit status 2: something was not "
		"packed.\n",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
