/*
 * analyzer/cmd_live/cmd_mark.c: `cudaspy mark`: puts a text into the traces of running programs.
 */
#include <string.h>
#include "ask.h"
#include "cmd/command.h"

static int run(const struct command *self, int argc, char **argv)
{
	struct asking asking = {.wanted = SPY_WANTED_MARK};
	int status;

	if (!command_parse(self, NULL, &argc, argv, &status))
		return status;
	if (argc < 2 || !*argv[1]) {
		warn("mark: no text (cudaspy help mark)");
		return STATUS_USAGE;
	}
	asking.text = argv[1];
	if (strlen(asking.text) >= sizeof(((struct spy_board *)0)->wanted_text))
		warn("mark: only the first %zu bytes of the text are kept",
		     sizeof(((struct spy_board *)0)->wanted_text) - 1);
	return ask_all(self->name, &asking, argv + 2, (size_t)argc - 2);
}

const struct command command_mark = {
	.name = "mark",
	.arguments = "TEXT [PID|DIR...]",
	.summary = "Puts a text into the traces of running programs, with the time",
	.text = "`cudaspy dump` shows it. Without PID or DIR: in all recorded programs, yours, or "
		"for root all.\n",
	.run = run,
};
