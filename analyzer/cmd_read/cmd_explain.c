/*
 * analyzer/cmd_read/cmd_explain.c: `cudaspy explain`: what cudaspy looks for: all detectors and causes of
 * idle time, or the texts of one.
 */
#include <stdlib.h>
#include "cmd/output.h"
#include "base/suggest.h"
#include "findings/detector.h"
#include "idle/causes.h"
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
	TABLE("detectors", "DETECTORS", struct list_row, list_columns),
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

struct cause_row {
	const char *cause, *text, *meaning;
};

static const struct column causes_columns[] = {
	COLUMN(struct cause_row, cause, "cause", UNIT_TEXT),
	COLUMN(struct cause_row, text, "the thread was", UNIT_TEXT),
};

static const struct table_kind causes_kind = {
	TABLE("causes", "CAUSES of a GPU's idle time", struct cause_row, causes_columns),
};

static struct cause_row cause_of(unsigned int cause)
{
	return (struct cause_row){idle_cause_codes[cause], idle_cause_texts[cause],
				  idle_cause_meanings[cause]};
}

static void add_causes(struct report *report)
{
	struct cause_row *rows = xcalloc(IDLE_CAUSE_COUNT, sizeof(*rows));

	for (unsigned int i = 0; i < IDLE_CAUSE_COUNT; i++)
		rows[i] = cause_of(i);
	report_add(report, &causes_kind, rows, IDLE_CAUSE_COUNT);
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
	TABLE("detector", "DETECTOR", struct detector_row, detector_columns),
	.facts = true,
};

static void add_one(struct report *report, const struct detector *d)
{
	struct detector_row *row = xcalloc(1, sizeof(*row));

	*row = (struct detector_row){d->id, d->title, d->sees, d->blind, d->fix};
	report_add(report, &detector_kind, row, 1);
}

static const struct column cause_columns[] = {
	COLUMN(struct cause_row, cause, "cause", UNIT_TEXT),
	COLUMN(struct cause_row, text, "the thread was", UNIT_TEXT),
	COLUMN(struct cause_row, meaning, "means", UNIT_TEXT),
};

static const struct table_kind cause_kind = {
	TABLE("cause", "CAUSE of a GPU's idle time", struct cause_row, cause_columns),
	.facts = true,
};

static void add_cause(struct report *report, unsigned int cause)
{
	struct cause_row *row = xcalloc(1, sizeof(*row));

	*row = cause_of(cause);
	report_add(report, &cause_kind, row, 1);
}

/* ---- the verb ------------------------------------------------------------------------------- */

struct options {
	const char *format;
	struct output_options output;
};

static const struct option_row option_rows[] = {
	{"format", 'f', "FORMAT", FORMATS, offsetof(struct options, format)},
	OUTPUT_OPTIONS(struct options, output),
};

static int unknown(const char *name)
{
	struct suggest suggest = {.word = name};
	const struct detector *d;
	char text[SUGGEST_TEXT];

	for (size_t i = 0; (d = detectors_row(i)); i++)
		suggest_try(&suggest, d->id);
	for (size_t i = 0; i < IDLE_CAUSE_COUNT; i++)
		suggest_try(&suggest, idle_cause_codes[i]);
	warn("explain: no detector '%s', nor such a cause%s (cudaspy explain lists them)", name,
	     suggest_text(&suggest, text));
	return STATUS_USAGE;
}

static int show(const struct detector *detector, unsigned int cause,
		const struct renderer *renderer, FILE *out)
{
	struct report report;
	int err;

	report_init(&report, SCHEMA);
	report.view = view_for(out);
	if (detector) {
		add_one(&report, detector);
	} else if (cause != IDLE_CAUSE_COUNT) {
		add_cause(&report, cause);
	} else {
		add_list(&report);
		add_causes(&report);
	}
	err = renderer_show(renderer, &report, out);
	report_release(&report);
	return err;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options options = {.format = "text"};
	const struct detector *detector = NULL;
	unsigned int cause = IDLE_CAUSE_COUNT;
	const struct renderer *renderer;
	struct output out;
	int status, err;

	if (!command_parse(self, &options, &argc, argv, &status))
		return status;
	renderer = renderer_choose(self->name, options.format);
	if (!renderer)
		return STATUS_USAGE;
	if (argc > 1)
		detector = detectors_find(argv[1]);
	if (argc > 1 && !detector)
		cause = idle_cause_of_code(argv[1]);
	if (argc > 1 && !detector && cause == IDLE_CAUSE_COUNT)
		return unknown(argv[1]);
	if (argc > 2) {
		warn("explain: one detector at a time: '%s' is one too many", argv[2]);
		return STATUS_USAGE;
	}
	status = output_begin(&out, self->name, &options.output, renderer->render == render_text);
	if (status)
		return status;
	err = show(detector, cause, renderer, out.file);
	return output_end(&out, !err) || err ? STATUS_NOTHING : STATUS_FINE;
}

const struct command command_explain = {
	.name = "explain",
	.arguments = "[options] [DETECTOR|CAUSE]",
	.summary = "Lists what is looked for, or explains a detector or cause, and the cure",
	.options = option_rows,
	.n_options = ARRAY_SIZE(option_rows),
	.run = run,
};
