/*
 * analyzer/render/text.c: a finished report as text for a person, as wide as the screen. Called by
 * the commands.
 */
#include <stdlib.h>
#include <string.h>
#include "render.h"
#include "base/lines.h"

#define LINE 80 /* where the width is unknown */
#define INDENT 2
#define GAP 2
#define CELL 64 /* of a number */
#define NARROWEST 12 /* a text that gives way keeps this much */
#define WRAPPED 40 /* so much of a line is left for the text of the last column */
#define FACT 20 /* a fact that would have less than this begins below its title */

/* Of the report being shown. */
static size_t line = LINE;
static bool verbose; /* those that are minor, too */
static bool always_brief;
static bool colours;

static bool left_aligned(const struct column *column)
{
	return column->unit == UNIT_TEXT;
}

static size_t shown_rows(const struct table *t)
{
	size_t most = t->kind->text_rows, rows = t->n_rows - (verbose ? 0 : t->minor_rows);

	return most && rows > most ? most : rows;
}

/* Its last column: text there takes as many lines as it needs. */
static size_t last_in_row(const struct table *t)
{
	size_t i = t->kind->n_columns;

	while (i && t->kind->columns[i - 1].place != COLUMN_IN_ROW)
		i--;
	return i ? i - 1 : 0;
}

/* A cell's value; the caller frees. */
static char *cell_text(const struct table *t, size_t row, const struct column *column)
{
	char number[CELL];

	if (column->unit == UNIT_TEXT)
		return visible(table_text(t, row, column) ?: "-");
	table_format(t, row, column, number, sizeof(number));
	return xstrdup(number);
}

/* ---- colours --------------------------------------------------------------------------------- */

#define PLAIN "\033[0m"
#define BOLD "\033[1m"
#define RED "\033[1;31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define MAGENTA "\033[35m"

/* NULL: as all text is. */
static const char *colour_of(const struct table *t, size_t row, const struct column *column)
{
	const char *severity;

	switch (colours ? column->tone : TONE_PLAIN) {
	case TONE_LOSS:
		return MAGENTA;
	case TONE_SEVERITY:
		severity = table_text_at(t, row, "severity") ?: "";
		return !strcmp(severity, "problem") ? RED
		       : !strcmp(severity, "note")  ? YELLOW
						    : NULL;
	case TONE_FOUND:
		return table_number_at(t, row, "problems") ? RED
		       : table_number_at(t, row, "notes")  ? YELLOW
							   : GREEN;
	default:
		return NULL;
	}
}

static void begin_colour(const char *colour, FILE *out)
{
	if (colour)
		fputs(colour, out);
}

static void end_colour(const char *colour, FILE *out)
{
	if (colour)
		fputs(PLAIN, out);
}

/* ---- where columns are ---------------------------------------------------------------------- */

/* A column of a table. One that begins a line: those to the left left no room for it. */
struct layout {
	const struct column *column;
	size_t width, least, whole; /* least: its longest word; whole: its longest text */
	bool begins_line, last;
	char **texts; /* of each row shown, as they are shown; owned */
};

struct layouts {
	struct layout *all;
	size_t n, rows;
	size_t gap; /* between columns */
};

static void free_texts(char **texts, size_t n)
{
	for (size_t i = 0; texts && i < n; i++)
		free(texts[i]);
	free(texts);
}

static void layouts_release(struct layouts *l)
{
	for (size_t i = 0; i < l->n; i++)
		free_texts(l->all[i].texts, l->rows);
	free(l->all);
}

static size_t widest(char *const *texts, size_t n, size_t (*measure)(const char *text))
{
	size_t most = 0, i;

	for (i = 0; i < n; i++) {
		size_t width = measure(texts[i]);

		most = width > most ? width : most;
	}
	return most;
}

/* Names lose what they can do without, as far as the width wants it. */
static void shorten_column(struct layout *c, size_t rows, size_t width)
{
	char **shown = xcalloc(rows, sizeof(*shown));

	shorten_apart((const char *const *)c->texts, shown, rows, width, !c->last);
	free_texts(c->texts, rows);
	c->texts = shown;
}

static void measure_column(struct layout *c, size_t rows)
{
	char **shown;
	size_t title = longest_word(c->column->title);

	c->width = max_u64(widest(c->texts, rows, columns_of), columns_of(c->column->title));
	c->least = c->whole = c->width;
	if (!left_aligned(c->column))
		return;
	shown = xcalloc(rows, sizeof(*shown));
	shorten_apart((const char *const *)c->texts, shown, rows, NARROWEST, false);
	c->least = max_u64(widest(shown, rows, longest_word), title);
	c->least = min_u64(max_u64(c->least, NARROWEST), c->width);
	free_texts(shown, rows);
	if (c->last)
		c->width = min_u64(c->width, max_u64(c->least, min_u64(WRAPPED, line / 2)));
}

static struct layouts take_columns(const struct table *t)
{
	struct layouts l = {.all = xcalloc(t->kind->n_columns, sizeof(*l.all)),
			    .rows = shown_rows(t),
			    .gap = GAP};
	size_t i, row, last = last_in_row(t);

	for (i = 0; i <= last; i++) {
		struct layout *c = &l.all[l.n];

		if (t->kind->columns[i].place != COLUMN_IN_ROW)
			continue;
		c->column = &t->kind->columns[i];
		c->last = i == last && left_aligned(c->column);
		c->texts = xcalloc(l.rows, sizeof(*c->texts));
		for (row = 0; row < l.rows; row++)
			c->texts[row] = cell_text(t, row, c->column);
		measure_column(c, l.rows);
		l.n++;
	}
	return l;
}

static size_t total_width(const struct layouts *l)
{
	size_t i, total = INDENT - l->gap;

	for (i = 0; i < l->n; i++)
		total += l->gap + l->all[i].width;
	return total;
}

/* The widest text gives way, and the next, until a row fits; the last one when no other can. False: it will not. */
static bool give_way(struct layouts *l)
{
	for (size_t total = total_width(l); total > line; total--) {
		struct layout *most = NULL;

		for (size_t i = 0; i < l->n; i++) {
			struct layout *c = &l->all[i];

			if (c->width > c->least &&
			    (!most || most->last || (c->width > most->width && !c->last)))
				most = c;
		}
		if (!most)
			return false;
		most->width--;
	}
	return true;
}

/* Names of the first column that are longer get a line of their own, so that the other columns keep theirs. */
static bool overhang(struct layouts *l)
{
	struct layout *c = &l->all[0];
	size_t total = total_width(l);

	if (!left_aligned(c->column) || c->last || total <= line ||
	    c->width < NARROWEST + (total - line))
		return false;
	c->width -= total - line;
	return true;
}

/* Closer together, all of it may fit. */
static bool move_together(struct layouts *l)
{
	l->gap = 1;
	if (total_width(l) <= line)
		return true;
	l->gap = GAP;
	return false;
}

/* Of the last column the rest of the line, or a line of its own. */
static size_t last_width(const struct layout *c, size_t used)
{
	size_t room = used < line ? line - used : 0;

	return room >= c->least && room >= min_u64(c->whole, WRAPPED) ? room : line - 2 * INDENT;
}

/* A row becomes several lines: nothing is lost. */
static void break_rows(struct layouts *l)
{
	size_t i, used = 0;

	for (i = 0; i < l->n; i++) {
		struct layout *c = &l->all[i];

		c->width =
			min_u64(max_u64(c->least, min_u64(c->whole, line / 3)), line - 2 * INDENT);
		if (c->last)
			c->width = last_width(c, used ? used + GAP : INDENT);
		c->begins_line = used && used + GAP + c->width > line;
		used = (c->begins_line ? 2 * INDENT : used ? used + GAP : INDENT) + c->width;
	}
}

static struct layouts lay_out(const struct table *t)
{
	struct layouts l = take_columns(t);
	size_t i, used;

	if (!give_way(&l) && !move_together(&l) && !overhang(&l))
		break_rows(&l);
	used = total_width(&l);
	for (i = 0; i < l.n; i++) {
		struct layout *c = &l.all[i];

		if (c->last && !c->begins_line && used < line)
			c->width += line - used; /* to the end of the line */
		if (left_aligned(c->column))
			shorten_column(c, l.rows, c->width);
	}
	return l;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* On as many lines as it takes, each after `indent` blanks. */
static void print_indented(const char *text, size_t indent, FILE *out)
{
	fprintf(out, "%*s", (int)indent, "");
	print_words(text, indent, indent, line, out);
}

/* The same, but what goes on is further in: below the text behind a label, if there is one with two blanks behind. */
static void print_hanging(const char *text, size_t indent, FILE *out)
{
	const char *gap = strstr(text, "  ");
	size_t label = gap ? (size_t)(gap - text) + strspn(gap, " ") : 0;
	char *visible_label = xstrndup(text, label);

	if (!gap || label > line / 4) {
		fprintf(out, "%*s", (int)indent, "");
		print_words(text, indent + INDENT, indent, line, out);
	} else {
		indent += columns_of(visible_label);
		fprintf(out, "%*s%s", (int)(indent - columns_of(visible_label)), "", visible_label);
		print_words(text + label, indent, indent, line, out);
	}
	free(visible_label);
}

/* What is left of the cells of a row, while it is printed. */
struct rest {
	const char *text;
	const char *colour;
};

/* One line of the columns from `from` to `to`; false: all of them are empty. Blanks are put before what follows, so
 * that none end a line. */
static bool print_line(const struct layouts *l, struct rest *rest, size_t from, size_t to,
		       bool first, FILE *out)
{
	size_t i, blanks = l->all[from].begins_line ? 2 * INDENT : INDENT;
	bool any = false;

	for (i = from; i < to; i++)
		any |= *rest[i].text != 0;
	for (i = from; any && i < to; i++) {
		const struct layout *c = &l->all[i];
		size_t bytes = fitting_words(rest[i].text, c->width), columns;
		char *part = xstrndup(rest[i].text, bytes);

		columns = columns_of(part);
		if (!left_aligned(c->column) && columns < c->width)
			blanks += c->width - columns;
		if (columns) {
			fprintf(out, "%*s", (int)blanks, "");
			begin_colour(rest[i].colour, out);
			fputs(part, out);
			end_colour(rest[i].colour, out);
			blanks = 0;
		}
		blanks += l->gap + (columns ? 0 : left_aligned(c->column) ? c->width : 0);
		if (left_aligned(c->column) && columns && columns < c->width)
			blanks += c->width - columns;
		rest[i].text += bytes;
		rest[i].text += strspn(rest[i].text, " ");
		free(part);
	}
	if (any || first)
		fputc('\n', out);
	return any;
}

/* A row's own lines. */
static void print_cells(const struct layouts *l, struct rest *rest, FILE *out)
{
	size_t from, to;

	for (from = 0; from < l->n; from = to) {
		bool first = true;

		for (to = from + 1; to < l->n && !l->all[to].begins_line; to++)
			;
		while (print_line(l, rest, from, to, first && !from, out))
			first = false;
	}
}

static void print_titles(const struct layouts *l, FILE *out)
{
	struct rest *rest = xcalloc(l->n, sizeof(*rest));
	bool any = false;

	for (size_t i = 0; i < l->n; i++) {
		rest[i].text = l->all[i].column->title;
		any |= *rest[i].text != 0;
	}
	if (any)
		print_cells(l, rest, out);
	free(rest);
}

static void print_row(const struct table *t, const struct layouts *l, size_t row, FILE *out)
{
	struct rest *rest = xcalloc(l->n, sizeof(*rest));

	for (size_t i = 0; i < l->n; i++)
		rest[i] = (struct rest){l->all[i].texts[row], colour_of(t, row, l->all[i].column)};
	if (longest_word(rest[0].text) > l->all[0].width && l->n > 1) {
		fprintf(out, "%*s", INDENT, "");
		begin_colour(rest[0].colour, out);
		fputs(rest[0].text, out);
		end_colour(rest[0].colour, out);
		fputc('\n', out);
		rest[0].text = "";
	}
	print_cells(l, rest, out);
	free(rest);
}

/* ---- below a row ----------------------------------------------------------------------------- */

/* The width of the label that a text has: what two blanks follow; 0: none. */
static size_t label_width(const char *text)
{
	const char *gap = strstr(text, "  ");
	char *label;
	size_t n;

	if (!gap)
		return 0;
	label = xstrndup(text, (size_t)(gap - text));
	n = columns_of(label);
	free(label);
	return n;
}

/* Texts on lines of their own, each with as much of its names as fits one. Labels, which are numbers, end in one
 * column. */
static void print_texts(const char *const *texts, size_t n, size_t indent, FILE *out)
{
	char **copies = xcalloc(n, sizeof(*copies)), **shown = xcalloc(n, sizeof(*shown));
	size_t i, widest_label = 0;

	for (i = 0; i < n; i++) {
		copies[i] = visible(texts[i]);
		widest_label = max_u64(widest_label, label_width(copies[i]));
	}
	shorten_apart((const char *const *)copies, shown, n, line - indent, true);
	for (i = 0; i < n; i++) {
		size_t label = label_width(shown[i]);

		print_hanging(shown[i], indent + (label ? widest_label - label : 0), out);
	}
	free_texts(copies, n);
	free_texts(shown, n);
}

/* A table in a cell. Rows that have nothing to say for people are passed over. */
static void print_below(const struct table *t, FILE *out)
{
	const struct column *column = &t->kind->columns[0];
	size_t row, n = 0, most = t->kind->text_rows ?: t->n_rows;
	const char **texts = xcalloc(t->n_rows, sizeof(*texts));

	if (t->intro)
		print_hanging(t->intro, 2 * INDENT, out);
	for (row = 0; row < t->n_rows && n < most; row++)
		if (table_text(t, row, column))
			texts[n++] = table_text(t, row, column);
	print_texts(texts, n, 3 * INDENT, out);
	free(texts);
}

/* What stands below a row, in a column. False: nothing does. */
static bool print_column_below(const struct table *t, size_t row, const struct column *column,
			       FILE *out)
{
	const struct table *below = NULL;
	const char *text = NULL;
	char *formatted = NULL;

	if (column->place != COLUMN_BELOW && column->place != COLUMN_BELOW_WORDS)
		return false;
	if (column->unit == UNIT_TABLE) {
		below = table_table(t, row, column);
		if (below)
			print_below(below, out);
		return below;
	}
	if (column->unit == UNIT_TEXT)
		text = table_text(t, row, column);
	else
		text = formatted = cell_text(t, row, column);
	if (text && column->place == COLUMN_BELOW)
		print_texts(&text, 1, 2 * INDENT, out);
	else if (text)
		print_indented(text, 2 * INDENT, out);
	free(formatted);
	return text;
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
		more = xasprintf("%zu that %s %s (%s has %s)", n, n == 1 ? "is" : "are", what,
				 always_brief ? "--format=json" : "--verbose",
				 n == 1 ? "it" : "them");
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

/* Rows that have lines below are parted from the next. */
static void print_table(const struct table *t, FILE *out)
{
	struct layouts l = lay_out(t);
	bool below = false;

	if (l.rows)
		print_titles(&l, out);
	for (size_t row = 0; row < l.rows; row++) {
		if (below)
			fputc('\n', out);
		print_row(t, &l, row, out);
		below = false;
		for (size_t i = 0; i < t->kind->n_columns; i++)
			below |= print_column_below(t, row, &t->kind->columns[i], out);
	}
	if (below && t->n_rows > l.rows)
		fputc('\n', out);
	layouts_release(&l);
	print_more(t, out);
}

/* ---- facts ----------------------------------------------------------------------------------- */

static void print_fact(const char *title, size_t width, const char *text, const char *colour,
		       FILE *out)
{
	size_t indent = INDENT + width + GAP;

	if (indent + FACT > line && indent + columns_of(text) > line) {
		print_indented(title, INDENT, out);
		print_indented(text, 2 * INDENT, out);
		return;
	}
	fprintf(out, "%*s%-*s  ", INDENT, "", (int)width, title);
	begin_colour(colour, out);
	print_words(text, indent, indent, line, out);
	end_colour(colour, out);
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
		const struct column *column = &t->kind->columns[i];
		char *text;

		if (column->place != COLUMN_IN_ROW)
			continue;
		text = cell_text(t, 0, column);
		if (strcmp(text, "-") != 0)
			print_fact(column->title, width, text, colour_of(t, 0, column), out);
		free(text);
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void print_title(const struct table_kind *kind, FILE *out)
{
	begin_colour(!colours ? NULL : kind->missing ? BOLD MAGENTA : BOLD, out);
	print_words(kind->title, 0, 0, line, out);
	end_colour(colours ? PLAIN : NULL, out);
}

static bool is_shown(const struct report *report, const struct table *t)
{
	return !report_hides(report, t->kind) && (t->n_rows || t->kind->when_empty);
}

static void print_section(const struct table *t, FILE *out)
{
	print_title(t->kind, out);
	if (t->n_rows && t->intro)
		print_indented(t->intro, INDENT, out);
	if (!t->n_rows)
		print_indented(t->kind->when_empty, INDENT, out);
	else if (t->kind->facts)
		print_facts(t, out);
	else
		print_table(t, out);
	if (t->n_rows && t->outro)
		print_hanging(t->outro, INDENT, out);
	if (t->n_rows && t->kind->advice)
		print_indented(t->kind->advice, INDENT, out);
}

int render_text(const struct report *report, FILE *out)
{
	const struct view *view = &report->view;
	bool any = false, left_out = false;

	line = view->width ? view->width : LINE;
	verbose = view->verbose;
	always_brief = view->always_brief;
	colours = view->colour;
	for (size_t i = 0; i < report->n_tables; i++) {
		const struct table *t = &report->tables[i];

		left_out |= t->kind->detail && !view->verbose && t->n_rows;
		if (!is_shown(report, t))
			continue;
		if (any)
			fputc('\n', out);
		print_section(t, out);
		any = true;
	}
	if (left_out) {
		fputc('\n', out);
		print_words(report->more
				    ?: "More: --verbose has locks, accounts, calls, threads and "
				       "what they were expected to cost; cudaspy why NAME "
				       "explains one finding, thread, function, lock, GPU or "
				       "line of the program.",
			    0, 0, line, out);
	}
	return finish_output(out);
}
