/*
 * analyzer/cmd_live/cmd_rotate.c: `cudaspy rotate`: running programs end a part of their recording and begin another one.
 */
#include "ask.h"
#include "cmd/command.h"

static int run(const struct command *self, int argc, char **argv)
{
	const struct asking asking = {.wanted = SPY_WANTED_ROTATE};
	int status;

	if (!command_parse(self, NULL, &argc, argv, &status))
		return status;
	return ask_all(self->name, &asking, argv + 1, (size_t)argc - 1);
}

const struct command command_rotate = {
	.name = "rotate",
	.arguments = "[PID|DIR...]",
	.summary = "Ends a part of running programs' traces, and begins another one",
	.text = "What has been recorded so far is then a trace of its own, "
		"PROGRAM-PID.NNNN.cudaspy, that can be read, copied and deleted. Recording goes "
		"on in PROGRAM-PID.cudaspy, and nothing is lost. Commands that are given all "
		"parts, or the directory they lie in, read them as one. Without PID or DIR: of "
		"all recorded programs, yours, or for root all.\n",
	.run = run,
};
