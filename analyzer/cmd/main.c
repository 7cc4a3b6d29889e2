/*
 * analyzer/cmd/main.c: the command `cudaspy`: picks the verb. The verbs are the table at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "command.h"
#include "completion.h"
#include "manual.h"
#include "output.h"
#include "base/suggest.h"

#ifndef CUDASPY_VERSION
#define CUDASPY_VERSION "unknown"
#endif

static const struct command_set tool;

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < tool.n; i++)
		if (!strcmp(tool.commands[i]->name, name))
			return tool.commands[i];
	return NULL;
}

static void usage(const struct command_set *set, FILE *out)
{
	char *text = xasprintf("usage: cudaspy VERB [options] [arguments]\n\n%s. %s\n\nVerbs:\n",
			       set->summary, set->about);

	command_print(text, out);
	free(text);
	for (size_t i = 0; i < set->n; i++) {
		text = xasprintf("  %-9s  %s", set->commands[i]->name, set->commands[i]->summary);
		command_print(text, out);
		free(text);
	}
	text = xasprintf("\nExit status: %s\n\n`cudaspy -V` or --version prints the version.\n",
			 set->statuses);
	command_print(text, out);
	free(text);
}

static int unknown(const char *verb)
{
	struct suggest suggest = {.word = verb};
	char text[SUGGEST_TEXT];

	for (size_t i = 0; i < tool.n; i++)
		suggest_try(&suggest, tool.commands[i]->name);
	warn("no verb '%s'%s (cudaspy help lists them)", verb, suggest_text(&suggest, text));
	return STATUS_USAGE;
}

/* What is opened must not become standard output, where a report would be written into it. Programs that are started
 * get them closed, as they were. */
static void occupy_standard_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null",
				    (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

/* ---- help ----------------------------------------------------------------------------------- */

static void help_verb(const struct command *command, const struct command_set *set, FILE *out)
{
	(void)set;
	command_help(command, out);
}

static const struct help_format {
	const char *name;
	void (*all)(const struct command_set *set, FILE *out);
	/* NULL: there is only one of all verbs */
	void (*one)(const struct command *command, const struct command_set *set, FILE *out);
} help_formats[] = {
	{"text", usage, help_verb},
	{"man", manual_overview, manual_verb},
	{"bash", completion_bash, NULL},
	{"zsh", completion_zsh, NULL},
};

struct options {
	const char *format;
	struct output_options output;
};

/* clang-format off */
static const struct option_row help_options[] = {
	{"format", 'f', "FORMAT", "text (default), man: the manual page, bash or zsh: completion for that shell", offsetof(struct options, format)},
	OUTPUT_OPTIONS(struct options, output),
};
/* clang-format on */

static const struct help_format *find_format(const char *name)
{
	struct suggest suggest = {.word = name};
	char text[SUGGEST_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(help_formats); i++)
		if (!strcmp(help_formats[i].name, name))
			return &help_formats[i];
	for (size_t i = 0; i < ARRAY_SIZE(help_formats); i++)
		suggest_try(&suggest, help_formats[i].name);
	warn("help: no format '%s' (text, man, bash or zsh)%s", name, suggest_text(&suggest, text));
	return NULL;
}

static int show_help(const struct help_format *format, const struct command *command,
		     const struct options *options)
{
	struct output out;
	int status = output_begin(&out, "help", &options->output, format == help_formats);
	bool written;

	if (status)
		return status;
	if (command)
		format->one(command, &tool, out.file);
	else
		format->all(&tool, out.file);
	written = !finish_output(out.file);
	return output_end(&out, written) || !written ? STATUS_NOTHING : STATUS_FINE;
}

static int help(const struct command *self, int argc, char **argv)
{
	struct options options = {.format = "text"};
	const struct help_format *format;
	const struct command *command = NULL;
	int status;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	format = find_format(options.format);
	if (!format)
		return STATUS_USAGE;
	if (argc > 2) {
		warn("help: one verb at a time: '%s' is one too many", argv[2]);
		return STATUS_USAGE;
	}
	if (argc > 1)
		command = find(argv[1]);
	if (argc > 1 && !command)
		return unknown(argv[1]);
	if (command && !format->one) {
		warn("help: format %s is for all verbs, not one", format->name);
		return STATUS_USAGE;
	}
	return show_help(format, command, &options);
}

/*
 * Large tables, most of whose places are never used, are to come from the kernel each time, as zeros that take no memory.
 * The C library would take them from memory that was freed once it has seen such sizes.
 */
#define LARGE_BYTES (1 << 20)

static void go_on(int number)
{
	(void)number;
}

/*
 * Who reads the output may stop before its end, as `head` does: no failure (finish_output), and the status is the one that
 * the verb found. A handler, because programs that are run are not to inherit that a signal is ignored.
 */
static void outlive_readers(void)
{
	struct sigaction now, outlive = {.sa_handler = go_on, .sa_flags = SA_RESTART};

	if (!sigaction(SIGPIPE, NULL, &now) && now.sa_handler == SIG_DFL)
		sigaction(SIGPIPE, &outlive, NULL);
}

int main(int argc, char **argv)
{
	const struct command *command;

	outlive_readers();
	occupy_standard_files();
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	if (argc < 2) {
		usage(&tool, stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("cudaspy %s\n", tool.version);
		return command_said();
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		usage(&tool, stdout);
		return command_said();
	}
	command = find(argv[1]);
	return command ? command->run(command, argc - 1, argv + 1) : unknown(argv[1]);
}

static const struct command command_help_verb = {
	.name = "help",
	.arguments = "[options] [VERB]",
	.summary = "Explains a verb and its options",
	.options = help_options,
	.n_options = ARRAY_SIZE(help_options),
	.run = help,
};

static const struct command *const commands[] = {
#define VERB(name) &command_##name,
#include "verbs.def"
	&command_help_verb,
};

static const struct command_set tool = {
	.version = CUDASPY_VERSION,
	.summary = "Shows where a program waits in CUDA calls",
	.about = "Record with `cudaspy run -- app`, or with LD_PRELOAD=libcudaspy.so; look at the "
		 "traces afterwards, anywhere.",
	.statuses = "0 fine (also when a damaged trace could be read in part); 1 findings that "
		    "--fail-on or --budget of `report` do not allow, or digests that `merge` "
		    "left out; 2 could not run: wrong usage, "
		    "nothing that could be read, or no place to write it to. `run` passes on the "
		    "program's.",
	.commands = commands,
	.n = ARRAY_SIZE(commands),
};
