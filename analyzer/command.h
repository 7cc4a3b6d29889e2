/*
 * analyzer/command.h: the verbs of the command line and their options.
 */
#ifndef CUDASPY_COMMAND_H
#define CUDASPY_COMMAND_H

#include <stdio.h>
#include "util.h"

/* Exit statuses. A partial result is a result: 0, with a warning on stderr and in the report. */
enum {
	STATUS_FINE = 0,
	STATUS_NOTHING = 1, /* nothing that could be read, or output could not be written */
	STATUS_USAGE = 2,
};

/* An option of a verb. */
struct option_row {
	const char *name; /* --name */
	char letter; /* -l; 0: none */
	/* What follows it, for the help. NULL: nothing, a flag. "1": nothing either, but it stands
	 * for a variable that is set to 1. */
	const char *argument;
	const char *help;
	size_t offset; /* in the verb's options: of a bool for a flag, else of a const char * */
};

struct command {
	const char *name;
	const char *arguments; /* for the help */
	const char *summary; /* one line, for the list of verbs */
	const char *text; /* the rest of the help; may be NULL */
	const struct option_row *options;
	size_t n_options;
	bool first_ends; /* the first argument that is no option ends the options */
	/* argv[0] is the verb. Returns an exit status. */
	int (*run)(const struct command *self, int argc, char **argv);
};

extern const struct command command_run, command_report, command_why, command_dump, command_info,
	command_calibrate, command_diff;

/*
 * Sets the verb's options from argv and takes them out of it: argv[1] to argv[*argc - 1] are then
 * the arguments, and a NULL follows. False after a message or after the help, with the exit status in
 * *status.
 */
bool command_parse(const struct command *self, void *options, int *argc, char **argv, int *status);

void command_help(const struct command *self, FILE *out);

#endif
