/*
 * analyzer/cmd/main.c: the command `cudaspy`: picks the verb. The verbs are the table at the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "command.h"
#include "completion.h"
#include "manual.h"

#ifndef CUDASPY_VERSION
#define CUDASPY_VERSION "unknown"
#endif

static const struct command_set tool;

static const struct command *find(const char *name)
{
	size_t i;

	for (i = 0; i < tool.n; i++)
		if (!strcmp(tool.commands[i]->name, name))
			return tool.commands[i];
	return NULL;
}

static void usage(const struct command_set *set, FILE *out)
{
	char *text = xasprintf("usage: cudaspy VERB [options] [arguments]\n\n%s. %s\n\nVerbs:\n",
			       set->summary, set->about);
	size_t i;

	command_print(text, out);
	free(text);
	for (i = 0; i < set->n; i++) {
		text = xasprintf("  %-9s  %s", set->commands[i]->name, set->commands[i]->summary);
		command_print(text, out);
		free(text);
	}
	text = xasprintf("\nExit status: %s\n\n`cudaspy --version` says which one this is.\n",
			 set->statuses);
	command_print(text, out);
	free(text);
}

static int unknown(const char *verb)
{
	fprintf(stderr, "cudaspy: no verb '%s' (cudaspy help lists them)\n", verb);
	return STATUS_USAGE;
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
};

/* clang-format off */
static const struct option_row help_options[] = {
	{"format", 'f', "FORMAT", "text (default), man: the manual page, bash or zsh: completion for that shell", offsetof(struct options, format)},
};
/* clang-format on */

static const struct help_format *find_format(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(help_formats); i++)
		if (!strcmp(help_formats[i].name, name))
			return &help_formats[i];
	warn("help: no format '%s' (%s)", name, help_options[0].help);
	return NULL;
}

static int help(const struct command *self, int argc, char **argv)
{
	struct options options = {.format = "text"};
	const struct help_format *format;
	const struct command *command;
	int status;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	format = find_format(options.format);
	if (!format)
		return STATUS_USAGE;
	if (argc == 1) {
		format->all(&tool, stdout);
		return command_said();
	}
	command = find(argv[1]);
	if (!command)
		return unknown(argv[1]);
	if (!format->one) {
		warn("help: format %s is for all verbs, not one", format->name);
		return STATUS_USAGE;
	}
	format->one(command, &tool, stdout);
	return command_said();
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		usage(&tool, stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(argv[1], "--version")) {
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
	&command_run,  &command_report,   &command_explain, &command_why,
	&command_diff, &command_dump,     &command_export,  &command_info,
	&command_ps,   &command_snapshot, &command_top,     &command_calibrate,
	&command_help_verb,
};

static const struct command_set tool = {
	.version = CUDASPY_VERSION,
	.summary = "Tells where a program waits in CUDA calls",
	.about = "Record with `cudaspy run -- app`, or with LD_PRELOAD=libcudaspy.so; look at the "
		 "traces afterwards, anywhere.",
	.statuses = "0 fine (also when a damaged trace could be read in part); 1 findings that "
		    "--fail-on or --budget of `report` do not allow; 2 could not run: wrong usage, "
		    "nothing that could be read, or no place to write it to. `run` passes on the "
		    "program's.",
	.commands = commands,
	.n = ARRAY_SIZE(commands),
};
