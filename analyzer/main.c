/*
 * analyzer/main.c: the command `cudaspy`: picks the verb. The verbs are the table at the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "command.h"

#ifndef CUDASPY_VERSION
#define CUDASPY_VERSION "unknown"
#endif

static const struct command command_help_verb;
static const struct command *const commands[9];

static const struct command *find(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static void usage(FILE *out)
{
	size_t i;

	command_print(
		"usage: cudaspy VERB [options] [arguments]\n\n"
		"Tells where a program waits in CUDA calls. Record with `cudaspy run -- app`, or "
		"with LD_PRELOAD=libcudaspy.so; look at the traces afterwards, anywhere.\n\n"
		"Verbs:\n",
		out);
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		char *text = xasprintf("  %-9s  %s", commands[i]->name, commands[i]->summary);

		command_print(text, out);
		free(text);
	}
	command_print(
		"\nExit status: 0 fine (also when a damaged trace could be read in part); 1 "
		"findings that --fail-on or --budget of `report` do not allow; 2 could not run: "
		"wrong usage, nothing that could be read, or no place to write it to. `run` passes "
		"on the program's.\n\n`cudaspy --version` says which one this is.\n",
		out);
}

static int unknown(const char *verb)
{
	fprintf(stderr, "cudaspy: no verb '%s' (cudaspy help lists them)\n", verb);
	return STATUS_USAGE;
}

static int help(const struct command *self, int argc, char **argv)
{
	const struct command *command;
	int status;

	if (!command_parse(self, NULL, &argc, argv, &status))
		return status;
	if (argc == 1) {
		usage(stdout);
		return command_said();
	}
	command = find(argv[1]);
	if (!command)
		return unknown(argv[1]);
	command_help(command, stdout);
	return command_said();
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		usage(stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("cudaspy " CUDASPY_VERSION);
		return command_said();
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		usage(stdout);
		return command_said();
	}
	command = find(argv[1]);
	return command ? command->run(command, argc - 1, argv + 1) : unknown(argv[1]);
}

static const struct command command_help_verb = {
	.name = "help",
	.arguments = "[VERB]",
	.summary = "Explains a verb and its options",
	.run = help,
};

static const struct command *const commands[9] = {
	&command_run,  &command_report, &command_explain,   &command_why,       &command_diff,
	&command_dump, &command_info,   &command_calibrate, &command_help_verb,
};
