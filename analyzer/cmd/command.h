/*
 * analyzer/cmd/command.h: the verbs of the command line and their options.
 */
#ifndef CUDASPY_COMMAND_H
#define CUDASPY_COMMAND_H

#include <stdio.h>
#include "base/util.h"

/* Exit statuses. A partial result is a result: 0, with a warning on stderr and in the report. 1 is
 * only for a gate that was asked for: a build must be able to tell "too slow" from "unknown". */
enum {
	STATUS_FINE = 0,
	STATUS_GATE = 1, /* findings above what --fail-on and --budget allow */
	/* Nothing that could be read, or output could not be written; with a gate also if part of
	 * what was to be judged could not be read. */
	STATUS_NOTHING = 2,
	STATUS_USAGE = 2,
};

/* The argument of an option that may be given several times. */
#define OPTION_SEVERAL "FILE..."
#define OPTION_VALUES 16

/* What was given to an option that may be given several times. */
struct option_values {
	const char *values[OPTION_VALUES];
	size_t n;
};

/* An option of a verb. */
struct option_row {
	const char *name; /* --name */
	char letter; /* -l; 0: none */
	/* What follows it, for the help. NULL: nothing, a flag. "1": nothing either, but it stands
	 * for a variable that is set to 1. OPTION_SEVERAL: see there. */
	const char *argument;
	const char *help;
	/* In the verb's options: of a bool for a flag, of a struct option_values for
	 * OPTION_SEVERAL, else of a const char *. */
	size_t offset;
};

/* What each verb takes that shows texts of traces; `member` is a bool. */
#define REDACT_OPTION(type, member) \
	{ \
		"redact", 0, NULL, \
			"without command lines, variables, paths and users' names, to be sent " \
			"on; hosts keep theirs", \
			offsetof(type, member) \
	}

/* A row for verbs that read traces: which of several runs in a folder. */
/* clang-format off */
#define RUN_OPTION(type, member) \
	{"run", 0, "RUN", "only that run of several in a DIR: last, or PROGRAM.PID of one of its processes", offsetof(type, member)}
/* clang-format on */

struct command {
	const char *name;
	const char *arguments; /* for the help */
	const char *summary; /* one line, for the list of verbs */
	const char *text; /* the rest of the help; may be NULL */
	const struct option_row *options;
	size_t n_options;
	bool apart; /* a program of its own, cudaspy-NAME */
	bool first_ends; /* the first argument that is no option ends the options */
	/* argv[0] is the verb. Returns an exit status. */
	int (*run)(const struct command *self, int argc, char **argv);
};

/* The tool as a whole: `cudaspy help`, its manual page and the completions are made from this. */
struct command_set {
	const char *version;
	const char *summary; /* one line */
	const char *about; /* how to use it */
	const char *statuses; /* the exit statuses */
	const struct command *const *commands;
	size_t n;
};

#define VERB(name) extern const struct command command_##name;
#include "verbs.def"

/*
 * Sets the verb's options from argv and takes them out of it: argv[1] to argv[*argc - 1] are then
 * the arguments, and a NULL follows. False after a message or after the help, with the exit status
 * in *status.
 */
bool command_parse(const struct command *self, void *options, int *argc, char **argv, int *status);

/* What has to follow an option, for the help; NULL: nothing. */
const char *option_argument(const struct option_row *o);

/* Words for people, as wide as the screen: print_paragraphs. */
void command_print(const char *text, FILE *out);

void command_help(const struct command *self, FILE *out);

/* The exit status when words on standard output were all there was to do. */
int command_said(void);

#endif
