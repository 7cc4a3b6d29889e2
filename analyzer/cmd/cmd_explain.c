/*
 * analyzer/cmd/cmd_explain.c: `cudaspy explain`: what cudaspy looks for: all detectors, or the
 * texts of one.
 */
#include <stdlib.h>
#include "command.h"
#include "findings/detector.h"
#include "render/render.h"

#define SCHEMA "cudaspy-explain-1"

/* ---- all ------------------------------------------------------------------------------------ */

struct list_row {
	const char *id, *title;
};

static const struct column list_columns[] = {
	COLUMN(struct list_row, id, "detector", UNIT_TEXT),
	COLUMN(struct list_row, title, "finds", UNIT_TEXT),
};

static const struct table_kind list_kind = {
	.key = "detectors",
	.title = "DETECTORS",
	.columns = list_columns,
	.n_columns = ARRAY_SIZE(list_columns),
	.row_bytes = sizeof(struct list_row),
	.advice = "cudaspy explain DETECTOR says what it sees, what it does not, and the cure.",
};

static void add_list(struct report *report)
{
	struct list_row *rows = NULL;
	const struct detector *d;
	size_t n;

	for (n = 0; (d = detectors_row(n)); n++) {
		rows = grow(rows, n, sizeof(*rows));
		rows[n] = (struct list_row){.id = d->id, .title = d->title};
	}
	report_add(report, &list_kind, rows, n);
}

/* ---- one ------------------------------------------------------------------------------------ */

struct detector_row {
	const char *id, *title, *sees, *blind, *fix;
};

static const struct column detector_columns[] = {
	COLUMN(struct detector_row, id, "detector", UNIT_TEXT),
	COLUMN(struct detector_row, title, "finds", UNIT_TEXT),
	COLUMN(struct detector_row, sees, "sees", UNIT_TEXT),
	COLUMN(struct detector_row, blind, "does not see", UNIT_TEXT),
	COLUMN(struct detector_row, fix, "cure", UNIT_TEXT),
};

static const struct table_kind detector_kind = {
	.key = "detector",
	.title = "DETECTOR",
	.columns = detector_columns,
	.n_columns = ARRAY_SIZE(detector_columns),
	.row_bytes = sizeof(struct detector_row),
	.facts = true,
};

static void add_one(struct report *report, const struct detector *d)
{
	struct detector_row *row = xcalloc(1, sizeof(*row));

	*row = (struct detector_row){d->id, d->title, d->sees, d->blind, d->fix};
	report_add(report, &detector_kind, row, 1);
}

/* ---- the verb ------------------------------------------------------------------------------- */

struct options {
	const char *format;
};

static const struct option_row option_rows[] = {
	{"format", 'f', "FORMAT", FORMATS, offsetof(struct options, format)},
};

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {.format = "text"};
	const struct detector *detector = NULL;
	const struct renderer *renderer;
	struct report report;
	int status;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	renderer = renderer_choose(self->name, options.format);
	if (!renderer)
		return STATUS_USAGE;
	if (argc > 1)
		detector = detectors_find(argv[1]);
	if (argc > 1 && !detector)
		warn("explain: no detector '%s' (cudaspy explain lists them)", argv[1]);
	else if (argc > 2)
		warn("explain: one detector at a time: '%s' is one too many", argv[2]);
	if (argc > 2 || (argc > 1 && !detector))
		return STATUS_USAGE;
	report_init(&report, SCHEMA);
	report.view = view_for(stdout);
	if (detector)
		add_one(&report, detector);
	else
		add_list(&report);
	status = renderer->render(&report, stdout) ? STATUS_NOTHING : STATUS_FINE;
	report_release(&report);
	return status;
}

const struct command command_explain = {
	.name = "explain",
	.arguments = "[options] [DETECTOR]",
	.summary = "Lists what is looked for, or explains a detector and the cure",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
