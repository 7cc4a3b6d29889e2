/*
 * analyzer/cmd_live/cmd_ps.c: `cudaspy ps`: which recorded programs are running.
 */
#include "cmd/command.h"
#include "live_view/tables.h"
#include "live_options.h"
#include "render/render.h"

#define SCHEMA "cudaspy-ps-1"
#define APART_NS 250000000

struct options {
	const char *format;
	bool json;
};

static const struct option_row option_rows[] = {
	{"format", 'f', "FORMAT", FORMATS, offsetof(struct options, format)},
	{"json", 0, NULL, "the same as --format=json", offsetof(struct options, json)},
};

static int show(struct live_targets *targets, const struct renderer *renderer)
{
	struct live_options options = {.recorded = &targets->recorded, .apart_ns = APART_NS};
	struct live_words words;
	struct report report;
	struct live live = {0};
	int err;

	if (targets->n_dirs)
		live_look(&live, targets->dirs, targets->n_dirs, &options);
	report_init(&report, SCHEMA);
	report.view = view_for(stdout);
	live_words_init(&words, &live, &report.arena);
	live_add_processes(&report, &words);
	if (!live.n_processes && renderer->render == render_text)
		puts("No recorded program is running. (`cudaspy run -- app` records one.)");
	err = renderer->render(&report, stdout);
	live_words_release(&words);
	report_release(&report);
	live_release(&live);
	return err;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {.format = "text"};
	const struct renderer *renderer;
	struct live_targets targets;
	int status, err;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	if (argc > 1) {
		warn("ps: '%s': ps has no arguments", argv[1]);
		return STATUS_USAGE;
	}
	renderer = renderer_choose(self->name, options.json ? "json" : options.format);
	if (!renderer)
		return STATUS_USAGE;
	live_targets_find(&targets, self->name, NULL, 0);
	if (targets.recorded.unreadable)
		warn("ps: %zu recorded processes have traces that cannot be read from here",
		     targets.recorded.unreadable);
	err = show(&targets, renderer);
	live_targets_release(&targets);
	warnings_flush();
	return err ? STATUS_NOTHING : STATUS_FINE;
}

const struct command command_ps = {
	.name = "ps",
	.arguments = "[options]",
	.summary = "Lists recorded programs that are running: yours, or for root all",
	.text = "Calls a second and waiting threads are measured for a quarter of a second. "
		"`cudaspy snapshot PID` shows what one of them is doing, `cudaspy top` keeps "
		"showing it.\n",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
