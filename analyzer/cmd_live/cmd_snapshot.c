/*
 * analyzer/cmd_live/cmd_snapshot.c: `cudaspy snapshot`: what a running program is doing now; if it hangs, on what.
 */
#include <errno.h>
#include "base/lines.h"
#include "cmd/command.h"
#include "live/ras.h"
#include "live_view/tables.h"
#include "live_options.h"
#include "render/render.h"

#define SCHEMA "cudaspy-snapshot-1"
#define WHOLE_BYTES ((uint64_t)192 << 20) /* half a second to read */

struct options {
	const char *format, *after, *apart, *ras;
	bool json, no_stacks;
};

/* clang-format off */
static const struct option_row option_rows[] = {
	{"format", 'f', "FORMAT", FORMATS, offsetof(struct options, format)},
	{"json", 0, NULL, "the same as --format=json", offsetof(struct options, json)},
	{"after", 0, "TIME", "waits that have lasted for less are not called a hang (default: 2s); lock cycles always are", offsetof(struct options, after)},
	{"apart", 0, "TIME", "between the two looks at each thread (default: 200ms)", offsetof(struct options, apart)},
	{"ras", 0, "1", "also ask NCCL's RAS, at localhost:28028 or --ras=HOST:PORT, which ranks disagree", offsetof(struct options, ras)},
	{"no-stacks", 0, NULL, "leave out the last recorded stacks", offsetof(struct options, no_stacks)},
};
/* clang-format on */

/* Text begins with the verdict, for who reads no further. */
static void print_verdicts(const struct verdicts *v, const struct report *report)
{
	for (size_t i = 0; i < v->n; i++) {
		if (report->view.colour)
			fputs(verdicts_hang(v) ? "\033[1;31m" : "\033[1m", stdout);
		print_words(v->all[i].text, 0, 0, report->view.width ?: 80, stdout);
		if (report->view.colour)
			fputs("\033[0m", stdout);
	}
	fputc('\n', stdout);
}

static void fill(struct report *report, const struct live_words *words, const struct verdicts *v,
		 uint64_t after_ns, const struct options *options)
{
	const char *address = options->ras;
	struct ras ras;

	live_add_verdicts(report, v);
	live_add_chains(report, words, after_ns);
	live_add_ranks(report, words, after_ns);
	if (address) {
		address = strcmp(address, "1") ? address : RAS_ADDRESS;
		ras_ask(&ras, address, RAS_WITHIN_NS);
		live_add_ras(report, words, &ras, address);
		ras_release(&ras);
	}
	live_add_threads(report, words, after_ns, !options->no_stacks);
	live_add_locks(report, words);
	live_add_gpus(report, words);
	live_add_processes(report, words);
}

static int show(const struct live *live, const struct renderer *renderer, uint64_t after_ns,
		const struct options *options)
{
	struct live_words words;
	struct verdicts verdicts;
	struct report report;
	int err, status;

	report_init(&report, SCHEMA);
	report.view = view_for(stdout);
	report.view.always_brief = true;
	live_words_init(&words, live, &report.arena);
	words.name_columns =
		renderer->render == render_text ? live_name_columns(report.view.width) : 0;
	verdicts_find(&verdicts, &words, after_ns);
	fill(&report, &words, &verdicts, after_ns, options);
	if (renderer->render == render_text)
		print_verdicts(&verdicts, &report);
	err = renderer->render(&report, stdout);
	status = verdicts_hang(&verdicts)      ? STATUS_GATE
		 : verdicts_unknown(&verdicts) ? STATUS_NOTHING
					       : STATUS_FINE;
	verdicts_release(&verdicts);
	live_words_release(&words);
	report_release(&report);
	return err ? STATUS_NOTHING : status;
}

static int look(const struct command *self, struct live_targets *targets,
		const struct renderer *renderer, const struct options *options)
{
	uint64_t after_ns = 2000000000, apart_ns = 200000000;
	struct live live = {0};
	int err, status = STATUS_NOTHING;

	if ((options->after && !live_read_time(self->name, "after", options->after, &after_ns)) ||
	    (options->apart && !live_read_time(self->name, "apart", options->apart, &apart_ns)))
		return STATUS_USAGE;
	if (!targets->n_dirs) {
		warn("snapshot: no recorded program is running");
		return STATUS_NOTHING;
	}
	err = live_look(&live, targets->dirs, targets->n_dirs,
			&(struct live_options){.recorded = &targets->recorded,
					       .apart_ns = apart_ns,
					       .whole_bytes = WHOLE_BYTES});
	if (!err)
		status = show(&live, renderer, after_ns, options);
	else if (err == -ESRCH)
		warn("snapshot: nothing of it is running any more (%zu process%s ended): `cudaspy "
		     "report` says what they did, `cudaspy info` what they were in when they were "
		     "killed",
		     live.n_ended, live.n_ended == 1 ? " has" : "es have");
	live_release(&live);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {.format = "text"};
	const struct renderer *renderer;
	struct live_targets targets;
	int status;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	renderer = renderer_choose(self->name, options.json ? "json" : options.format);
	if (!renderer)
		return STATUS_USAGE;
	status = STATUS_NOTHING;
	if (live_targets_find(&targets, self->name, argv + 1, (size_t)argc - 1))
		status = look(self, &targets, renderer, &options);
	live_targets_release(&targets);
	warnings_flush();
	return status;
}

const struct command command_snapshot = {
	.name = "snapshot",
	.arguments = "[options] [PID|DIR...]",
	.summary = "Shows what running programs are doing now, and if they hang, why",
	.text = "PID is a recorded process, DIR a folder with traces of running ones: of all "
		"ranks of a job, say, on a file system that all nodes share. Default: all of "
		"your recorded programs that are running here.\n\n"
		"The first line is the verdict: DEADLOCK and its cycle of locks; the rank that "
		"has not entered a collective operation, and what it does instead; the GPU "
		"whose work does not end; the thread that all wait for; or that nothing hangs. "
		"Then come the chains, each thread, locks, GPUs.\n\n"
		"Nothing is stopped, signalled or attached to. Exit status: 0 nothing hangs; 1 "
		"something does; 2 it cannot be known, because recording is dormant (`cudaspy "
		"start` opens a window), there is nothing to look at, wrong usage.\n",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
