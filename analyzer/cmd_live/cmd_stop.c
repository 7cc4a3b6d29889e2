/*
 * analyzer/cmd_live/cmd_stop.c: `cudaspy stop`: ends the window of running programs.
 */
#include "ask.h"
#include "cmd/command.h"

static int run(const struct command *self, int argc, char **argv)
{
	const struct asking asking = {.wanted = SPY_WANTED_STOP};
	int status;

	if (!command_parse(self, NULL, &argc, argv, &status))
		return status;
	return ask_all(self->name, &asking, argv + 1, (size_t)argc - 1);
}

const struct command command_stop = {
	.name = "stop",
	.arguments = "[PID|DIR...]",
	.summary = "Ends recording of running programs, until it is started again",
	.text = "Without arguments: of all recorded programs, yours, or for root all. A DIR is a "
		"trace, or has traces in it: those of all ranks of a job, say.\n",
	.run = run,
};
