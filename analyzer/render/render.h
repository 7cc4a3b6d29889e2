/*
 * analyzer/render/render.h: a finished report, shown. A renderer is one file and one row of
 * `renderers`.
 */
#ifndef CUDASPY_RENDER_H
#define CUDASPY_RENDER_H

#include <stdio.h>
#include "base/report.h"

struct renderer {
	const char *name; /* as in --format=NAME */
	/* Returns 0, or -errno if the file could not be written. */
	int (*render)(const struct report *report, FILE *out);
	bool findings; /* shows what only `report` and `run` have */
	bool timeline; /* shows report->timeline, too: likewise */
};

/* The rows, as the help of --format tells them; the second with those that show only findings. */
#define FORMATS "text (default) or json"
#define FORMATS_FINDINGS "text (default), json, html, junit or sarif"

extern const struct renderer renderers[];
extern const size_t n_renderers;

/* NULL if there is none of that name. */
const struct renderer *renderer_find(const char *name);

/* The same for `cudaspy VERB --format=NAME`: says what there is if there is none of that name. The
 * second also for reports with findings, which more formats can show. */
const struct renderer *renderer_choose(const char *verb, const char *name);
const struct renderer *renderer_choose_findings(const char *verb, const char *name);

/* Shows the report, redacted if that was asked for. 0, or -errno if the file could not be written. */
int renderer_show(const struct renderer *renderer, struct report *report, FILE *out);

/* How text suits a file: a terminal's width, and colour unless NO_COLOR is set; else $COLUMNS, or
 * 80. */
struct view view_for(FILE *out);

/* COLOUR_AUTO: on a terminal, as above; the others whatever the file is, and NO_COLOR says. */
enum colour_choice { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };
void view_choose_colour(enum colour_choice choice);

/* What is written to the file is shown on the terminal that standard output is; NULL: no file is such. */
void view_of_terminal(const FILE *out);

int render_text(const struct report *report, FILE *out);
int render_json(const struct report *report, FILE *out);
int render_junit(const struct report *report, FILE *out);
/* Of a report that render_html_pack has prepared. */
int render_html(const struct report *report, FILE *out);
int render_sarif(const struct report *report, FILE *out);

/* The same of a report without a timeline: its tables. */
int render_html_tables(const struct report *report, FILE *out);

/* Packs a finished report for render_html; *room: bytes that its packed timeline may have, so that the file has no more than
 * 10 MB. -errno. */
int render_html_pack(struct report *report, size_t *room);

#endif
