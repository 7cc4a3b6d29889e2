/*
 * analyzer/render_text.c: a finished report as text for a person, as wide as the screen. Called by the
 * commands.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "render.h"

#define LINE 80 /* where nobody says how wide it is */
#define INDENT 2
#define GAP 2
#define CELL 1024
#define NARROWEST 12 /* a text that gives way keeps this much */
#define WRAPPED 40 /* so much of a line is left for a text that goes on in lines of its own */

/* Of the report being shown. */
static size_t line = LINE;

static bool left_aligned(const struct column *column)
{
	return column->unit == UNIT_TEXT;
}

/* Longer texts lose their middle: both ends of a path or a mangled name say something. */
static void shorten(char *text, size_t width)
{
	size_t length = strlen(text), head, tail;

	if (length <= width || width < 5)
		return;
	head = (width - 2) / 2;
	tail = width - 2 - head;
	memcpy(text + head, "..", 2);
	memmove(text + head + 2, text + length - tail, tail + 1);
}

static size_t shown_rows(const struct table *t)
{
	size_t most = t->kind->text_rows, rows = t->n_rows - t->minor_rows;

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

/* Width of each column; where that is too much for a line, the widest text gives way. */
static void find_widths(const struct table *t, size_t *widths)
{
	size_t i, row, total = INDENT, widest, last = last_in_row(t);
	char text[CELL];

	for (i = 0; i < t->kind->n_columns; i++) {
		const struct column *column = &t->kind->columns[i];

		widths[i] = 0;
		if (column->place != COLUMN_IN_ROW)
			continue;
		widths[i] = strlen(column->title);
		for (row = 0; row < shown_rows(t); row++) {
			table_format(t, row, column, text, sizeof(text));
			if (strlen(text) > widths[i])
				widths[i] = strlen(text);
		}
		if (i == last && left_aligned(column) && widths[i] > WRAPPED)
			widths[i] = WRAPPED;
		total += widths[i] + GAP;
	}
	total -= GAP;
	while (total > line) {
		widest = t->kind->n_columns;
		for (i = 0; i < t->kind->n_columns; i++)
			if (i != last && left_aligned(&t->kind->columns[i]) &&
			    widths[i] > NARROWEST &&
			    (widest == t->kind->n_columns || widths[i] > widths[widest]))
				widest = i;
		if (widest == t->kind->n_columns)
			break;
		widths[widest]--;
		total--;
	}
}

/* Words, broken into lines that begin with `indent` blanks; `used` columns are taken already. */
static void print_words(const char *text, size_t indent, size_t used, FILE *out)
{
	while (*text) {
		size_t n = strcspn(text, " ");

		if (used > indent && used + 1 + n > line) {
			fprintf(out, "\n%*s", (int)indent, "");
			used = indent;
		} else if (used > indent) {
			fputc(' ', out);
			used++;
		}
		fwrite(text, 1, n, out);
		used += n;
		text += n;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void print_cell(const struct table *t, size_t row, const struct column *column, size_t width,
		       char *text, size_t size)
{
	if (row == SIZE_MAX)
		snprintf(text, size, "%s", column->title);
	else
		table_format(t, row, column, text, size);
	if (width)
		shorten(text, width);
}

/* A table in a cell. Rows that have nothing to say for people are passed over. */
static void print_below(const struct table *t, FILE *out)
{
	const struct column *column = &t->kind->columns[0];
	size_t row, left = t->kind->text_rows ?: t->n_rows;
	char text[CELL];

	if (t->intro)
		fprintf(out, "%*s%s\n", 2 * INDENT, "", t->intro);
	for (row = 0; row < t->n_rows && left; row++) {
		if (!table_text(t, row, column))
			continue;
		print_cell(t, row, column, line - 3 * INDENT, text, sizeof(text));
		fprintf(out, "%*s%s\n", 3 * INDENT, "", text);
		left--;
	}
}

/* One line of a table; row SIZE_MAX is the titles. */
static void print_line(const struct table *t, size_t row, const size_t *widths, FILE *out)
{
	size_t i, used = 0, last = last_in_row(t);
	char text[CELL];

	for (i = 0; i <= last; i++) {
		const struct column *column = &t->kind->columns[i];

		if (column->place != COLUMN_IN_ROW)
			continue;
		used += (size_t)fprintf(out, "%*s", used ? GAP : INDENT, "");
		if (i == last && left_aligned(column)) {
			print_cell(t, row, column, 0, text, sizeof(text));
			print_words(text, used, used, out);
			break;
		}
		print_cell(t, row, column, widths[i], text, sizeof(text));
		used += (size_t)fprintf(out, left_aligned(column) ? "%-*s" : "%*s", (int)widths[i],
					text);
		if (i == last)
			fputc('\n', out);
	}
	for (i = 0; row != SIZE_MAX && i < t->kind->n_columns; i++) {
		if (t->kind->columns[i].place == COLUMN_BELOW_WORDS &&
		    table_text(t, row, &t->kind->columns[i])) {
			fprintf(out, "%*s", 2 * INDENT, "");
			print_words(table_text(t, row, &t->kind->columns[i]), 2 * INDENT,
				    2 * INDENT, out);
		}
		if (t->kind->columns[i].place != COLUMN_BELOW)
			continue;
		if (t->kind->columns[i].unit == UNIT_TABLE) {
			if (table_table(t, row, &t->kind->columns[i]))
				print_below(table_table(t, row, &t->kind->columns[i]), out);
			continue;
		}
		print_cell(t, row, &t->kind->columns[i], line - 2 * INDENT, text, sizeof(text));
		if (strcmp(text, "-"))
			fprintf(out, "%*s%s\n", 2 * INDENT, "", text);
	}
}

static void print_table(const struct table *t, FILE *out)
{
	size_t *widths = xcalloc(t->kind->n_columns, sizeof(*widths)), row;

	find_widths(t, widths);
	if (shown_rows(t))
		print_line(t, SIZE_MAX, widths, out);
	for (row = 0; row < shown_rows(t); row++)
		print_line(t, row, widths, out);
	if (t->n_rows > shown_rows(t))
		fprintf(out, "%*sand %zu more%s (--format=json has all)\n", INDENT, "",
			t->n_rows - shown_rows(t),
			!t->minor_rows  ? ""
			: t->minor_name ? t->minor_name
					: ", minor ones");
	free(widths);
}

static void print_facts(const struct table *t, FILE *out)
{
	size_t i, width = 0;
	char text[CELL];

	for (i = 0; i < t->kind->n_columns; i++)
		if (t->kind->columns[i].place == COLUMN_IN_ROW &&
		    strlen(t->kind->columns[i].title) > width)
			width = strlen(t->kind->columns[i].title);
	for (i = 0; i < t->kind->n_columns && t->n_rows; i++) {
		if (t->kind->columns[i].place != COLUMN_IN_ROW)
			continue;
		table_format(t, 0, &t->kind->columns[i], text, sizeof(text));
		if (!strcmp(text, "-"))
			continue;
		fprintf(out, "%*s%-*s  ", INDENT, "", (int)width, t->kind->columns[i].title);
		print_words(text, INDENT + width + 2, INDENT + width + 2, out);
	}
}

static void print_title(const char *title, const struct view *view, FILE *out)
{
	fprintf(out, view->colour ? "\033[1m%s\033[0m\n" : "%s\n", title);
}

static bool is_shown(const struct table *t, const struct view *view)
{
	if (t->kind->json_only || t->kind->unlisted || (t->kind->detail && !view->verbose))
		return false;
	return t->n_rows || t->kind->when_empty;
}

int render_text(const struct report *report, FILE *out)
{
	const struct view *view = &report->view;
	bool any = false, left_out = false;
	size_t i;

	line = view->width ? view->width : LINE;
	for (i = 0; i < report->n_tables; i++) {
		const struct table *t = &report->tables[i];

		left_out |= t->kind->detail && !view->verbose && t->n_rows;
		if (!is_shown(t, view))
			continue;
		if (any)
			fputc('\n', out);
		print_title(t->kind->title, view, out);
		any = true;
		if (t->n_rows && t->intro) {
			fprintf(out, "%*s", INDENT, "");
			print_words(t->intro, INDENT, INDENT, out);
		}
		if (!t->n_rows)
			fprintf(out, "%*s%s\n", INDENT, "", t->kind->when_empty);
		else if (t->kind->facts)
			print_facts(t, out);
		else
			print_table(t, out);
		if (t->n_rows && t->kind->advice) {
			fprintf(out, "%*s", INDENT, "");
			print_words(t->kind->advice, INDENT, INDENT, out);
		}
	}
	if (left_out)
		print_words(
			"\nMore: --verbose has locks, accounts, calls, threads and what they were "
			"expected to cost; cudaspy why THREAD|CALL|LOCK|GPU one of them in detail.",
			0, 0, out);
	return fflush(out) || ferror(out) ? -EIO : 0;
}
