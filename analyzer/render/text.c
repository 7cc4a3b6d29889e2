/*
 * analyzer/render/text.c: a finished report as text for a person, as wide as the screen. Called by
 * the commands.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "render.h"
#include "base/lines.h"

#define LINE 80 /* where the width is unknown */
#define INDENT 2
#define GAP 2
#define CELL 64 /* of a number */
#define NARROWEST 12 /* a text that gives way keeps this much */
#define WRAPPED 40 /* so much of a line is left for a text that goes on in lines of its own */
#define FACT 20 /* a fact that would have less than this begins below its title */

/* Of the report being shown. */
static size_t line = LINE;
static bool verbose; /* those that are minor, too */

static bool left_aligned(const struct column *column)
{
	return column->unit == UNIT_TEXT;
}

static size_t shown_rows(const struct table *t)
{
	size_t most = t->kind->text_rows, rows = t->n_rows - (verbose ? 0 : t->minor_rows);

	return most && rows > most ? most : rows;
}

/* Its last column: text there may go on in lines of its own. */
static size_t last_in_row(const struct table *t)
{
	size_t i = t->kind->n_columns;

	while (i && t->kind->columns[i - 1].place != COLUMN_IN_ROW)
		i--;
	return i ? i - 1 : 0;
}

/* A cell as it is shown; row SIZE_MAX is the titles. The caller frees. */
static char *cell_text(const struct table *t, size_t row, const struct column *column)
{
	char number[CELL];

	if (row == SIZE_MAX)
		return xstrdup(column->title);
	if (column->unit == UNIT_TEXT)
		return visible(table_text(t, row, column) ?: "-");
	table_format(t, row, column, number, sizeof(number));
	return xstrdup(number);
}

/* ---- where columns are ---------------------------------------------------------------------- */

/* Of a column. One that begins a line: those to the left left no room for it. */
struct layout {
	size_t width;
	bool begins_line;
};

static void find_widths(const struct table *t, struct layout *layout)
{
	size_t i, row, n, last = last_in_row(t);

	for (i = 0; i <= last; i++) {
		const struct column *column = &t->kind->columns[i];

		if (column->place != COLUMN_IN_ROW)
			continue;
		for (row = 0; row <= shown_rows(t); row++) {
			char *text = cell_text(t, row ? row - 1 : SIZE_MAX, column);

			n = columns_of(text);
			if (n > layout[i].width)
				layout[i].width = n;
			free(text);
		}
		if (i == last && left_aligned(column))
			layout[i].width = min_u64(layout[i].width, min_u64(WRAPPED, line / 2));
	}
}

static size_t total_width(const struct table *t, const struct layout *layout)
{
	size_t i, total = INDENT - GAP;

	for (i = 0; i < t->kind->n_columns; i++)
		if (t->kind->columns[i].place == COLUMN_IN_ROW)
			total += GAP + layout[i].width;
	return total;
}

/* The widest text gives way, and the next, until a row fits; the last one, which may go on in lines
 * of its own, when no other can. False: it will not. */
static bool give_way(const struct table *t, struct layout *layout)
{
	size_t i, last = last_in_row(t), total, none = t->kind->n_columns;

	for (total = total_width(t, layout); total > line; total--) {
		size_t widest = none;

		for (i = 0; i < last; i++)
			if (left_aligned(&t->kind->columns[i]) && layout[i].width > NARROWEST &&
			    (widest == none || layout[i].width > layout[widest].width))
				widest = i;
		if (widest == none && left_aligned(&t->kind->columns[last]) &&
		    layout[last].width > NARROWEST)
			widest = last;
		if (widest == none)
			return false;
		layout[widest].width--;
	}
	return true;
}

/* A row becomes several lines: nothing is lost. */
static void break_rows(const struct table *t, struct layout *layout)
{
	size_t i, used = 0;

	for (i = 0; i < t->kind->n_columns; i++) {
		if (t->kind->columns[i].place != COLUMN_IN_ROW)
			continue;
		layout[i].width = min_u64(layout[i].width, line - 2 * INDENT);
		layout[i].begins_line = used && used + GAP + layout[i].width > line;
		used = (layout[i].begins_line ? 2 * INDENT
			: used                ? used + GAP
					      : INDENT) +
		       layout[i].width;
	}
}

/* The caller frees. */
static struct layout *lay_out(const struct table *t)
{
	struct layout *layout = xcalloc(t->kind->n_columns, sizeof(*layout));

	find_widths(t, layout);
	if (!give_way(t, layout)) {
		memset(layout, 0, t->kind->n_columns * sizeof(*layout));
		find_widths(t, layout);
		break_rows(t, layout);
	}
	return layout;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* On as many lines as it takes, each after `indent` blanks. */
static void print_indented(const char *text, size_t indent, FILE *out)
{
	fprintf(out, "%*s", (int)indent, "");
	print_words(text, indent, indent, line, out);
}

/* A text of which at most as much is shown as fits a line, or LINE where lines are shorter. */
static void print_shortened(const char *text, size_t indent, FILE *out)
{
	char *copy = visible(text);

	shorten(copy, (line > LINE ? line : LINE) - indent);
	if (indent + columns_of(copy) <= line)
		fprintf(out, "%*s%s\n", (int)indent, "", copy);
	else
		print_indented(copy, indent, out);
	free(copy);
}

/* A table in a cell. Rows that have nothing to say for people are passed over. */
static void print_below(const struct table *t, FILE *out)
{
	const struct column *column = &t->kind->columns[0];
	size_t row, left = t->kind->text_rows ?: t->n_rows;

	if (t->intro)
		print_indented(t->intro, 2 * INDENT, out);
	for (row = 0; row < t->n_rows && left; row++) {
		if (!table_text(t, row, column))
			continue;
		print_shortened(table_text(t, row, column), 3 * INDENT, out);
		left--;
	}
}

/* What stands below a row, in a column. */
static void print_column_below(const struct table *t, size_t row, const struct column *column,
			       FILE *out)
{
	const struct table *below;
	char *text;

	if (column->place == COLUMN_BELOW_WORDS && table_text(t, row, column))
		print_indented(table_text(t, row, column), 2 * INDENT, out);
	if (column->place != COLUMN_BELOW)
		return;
	if (column->unit == UNIT_TABLE) {
		below = table_table(t, row, column);
		if (below)
			print_below(below, out);
		return;
	}
	text = cell_text(t, row, column);
	if (strcmp(text, "-") != 0)
		print_shortened(text, 2 * INDENT, out);
	free(text);
}

/* A row's own line, or lines. Blanks are put before what follows, so that none end a line. */
static void print_row(const struct table *t, size_t row, const struct layout *layout, FILE *out)
{
	size_t i, used = 0, blanks = INDENT, last = last_in_row(t), width, n;

	for (i = 0; i <= last; i++) {
		const struct column *column = &t->kind->columns[i];
		char *text;

		if (column->place != COLUMN_IN_ROW)
			continue;
		if (layout[i].begins_line) {
			fputc('\n', out);
			used = 0;
			blanks = 2 * INDENT;
		}
		text = cell_text(t, row, column);
		if (i == last && left_aligned(column)) {
			if (*text)
				fprintf(out, "%*s", (int)blanks, "");
			print_words(text, used + blanks, used + blanks, line, out);
			free(text);
			return;
		}
		width = layout[i].width;
		shorten(text, width);
		n = columns_of(text);
		if (!left_aligned(column) && n < width)
			blanks += width - n;
		if (n)
			fprintf(out, "%*s%s", (int)blanks, "", text);
		free(text);
		used += n ? blanks + n : 0;
		blanks = (n ? 0 : blanks) + GAP;
		if (left_aligned(column) && n < width)
			blanks += width - n;
	}
	fputc('\n', out);
}

/* How many rows are not shown, and what they are. */
static void print_more(const struct table *t, FILE *out)
{
	size_t n = t->n_rows - shown_rows(t), minor = t->minor_rows < n ? t->minor_rows : n;
	const char *what = t->minor_name ?: "minor";
	char *more;

	if (!n)
		return;
	if (!shown_rows(t))
		more = xasprintf("%zu that %s %s (--verbose has %s)", n, n == 1 ? "is" : "are",
				 what, n == 1 ? "it" : "them");
	else if (!minor)
		more = xasprintf("and %zu more (--format=json has all)", n);
	else if (minor == n)
		more = xasprintf("and %zu more, %s (--format=json has all)", n, what);
	else
		more = xasprintf("and %zu more, %zu of them %s (--format=json has all)", n, minor,
				 what);
	print_indented(more, INDENT, out);
	free(more);
}

static void print_table(const struct table *t, FILE *out)
{
	struct layout *layout = lay_out(t);
	size_t row, i;

	if (shown_rows(t))
		print_row(t, SIZE_MAX, layout, out);
	for (row = 0; row < shown_rows(t); row++) {
		print_row(t, row, layout, out);
		for (i = 0; i < t->kind->n_columns; i++)
			print_column_below(t, row, &t->kind->columns[i], out);
	}
	free(layout);
	print_more(t, out);
}

static void print_fact(const char *title, size_t width, const char *text, FILE *out)
{
	size_t indent = INDENT + width + GAP;

	if (indent + FACT <= line || indent + columns_of(text) <= line) {
		fprintf(out, "%*s%-*s  ", INDENT, "", (int)width, title);
		print_words(text, indent, indent, line, out);
		return;
	}
	print_indented(title, INDENT, out);
	print_indented(text, 2 * INDENT, out);
}

/* Of the table's one row. */
static void print_facts(const struct table *t, FILE *out)
{
	size_t i, width = 0;

	for (i = 0; i < t->kind->n_columns; i++)
		if (t->kind->columns[i].place == COLUMN_IN_ROW &&
		    strlen(t->kind->columns[i].title) > width)
			width = strlen(t->kind->columns[i].title);
	for (i = 0; i < t->kind->n_columns; i++) {
		char *text;

		if (t->kind->columns[i].place != COLUMN_IN_ROW)
			continue;
		text = cell_text(t, 0, &t->kind->columns[i]);
		if (strcmp(text, "-") != 0)
			print_fact(t->kind->columns[i].title, width, text, out);
		free(text);
	}
}

static void print_title(const char *title, const struct view *view, FILE *out)
{
	if (view->colour)
		fputs("\033[1m", out);
	print_words(title, 0, 0, line, out);
	if (view->colour)
		fputs("\033[0m", out);
}

static bool is_shown(const struct report *report, const struct table *t)
{
	return !report_hides(report, t->kind) && (t->n_rows || t->kind->when_empty);
}

int render_text(const struct report *report, FILE *out)
{
	const struct view *view = &report->view;
	bool any = false, left_out = false;
	size_t i;

	line = view->width ? view->width : LINE;
	verbose = view->verbose;
	for (i = 0; i < report->n_tables; i++) {
		const struct table *t = &report->tables[i];

		left_out |= t->kind->detail && !view->verbose && t->n_rows;
		if (!is_shown(report, t))
			continue;
		if (any)
			fputc('\n', out);
		print_title(t->kind->title, view, out);
		any = true;
		if (t->n_rows && t->intro)
			print_indented(t->intro, INDENT, out);
		if (!t->n_rows)
			print_indented(t->kind->when_empty, INDENT, out);
		else if (t->kind->facts)
			print_facts(t, out);
		else
			print_table(t, out);
		if (t->n_rows && t->kind->advice)
			print_indented(t->kind->advice, INDENT, out);
	}
	if (left_out) {
		fputc('\n', out);
		print_words(
			"More: --verbose has locks, accounts, calls, threads and what they were "
			"expected to cost; cudaspy why THREAD|CALL|LOCK|GPU one of them in detail.",
			0, 0, line, out);
	}
	return finish_output(out);
}
