/*
 * analyzer/render/html_tables.c: a finished report that has no timeline as one HTML file: its tables, without a script.
 * Called by the commands, for the reports of jobs.
 */
#include <errno.h>
#include <stdlib.h>
#include "render.h"
#include "base/lines.h"

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
	"'unsafe-inline'\">\n"
	"<title>cudaspy report</title>\n<style>\n"
	":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:2em "
	"auto;max-width:80em;padding:0 1em}\n"
	"h2{margin:2em 0 .4em;font-size:1.15em}table{border-collapse:collapse;width:100%}\n"
	"th,td{text-align:left;vertical-align:top;padding:.25em .8em .25em 0}\n"
	"th{border-bottom:1px solid;font-weight:600}tr.first td{border-top:1px solid #8884}\n"
	".number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
	".below{padding-left:2em;opacity:.85}\n"
	".wide{overflow-x:auto}.facts th{border:0;white-space:nowrap}"
	"td,p{overflow-wrap:anywhere}\n"
	"@media (max-width:600px){.rows td:not(.number):not(.below){min-width:5em}}\n"
	".problem{color:#b3261e}.note{color:#8a6100}.missing h2{color:#9c27b0}\n"
	"@media (prefers-color-scheme:dark){.problem{color:#ff8a80}.note{color:#ffd54f}}\n"
	"@media print{body{max-width:none;margin:0}}\n</style></head><body>\n<h1>cudaspy "
	"report</h1>\n";

/* Text is never markup, whatever a trace calls something. */
static void put_text(const char *text, FILE *out)
{
	char *valid = valid_utf8(text);

	for (const char *at = valid; *at; at++)
		switch (*at) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		case '\'':
			fputs("&#39;", out);
			break;
		default:
			fputc((unsigned char)*at < ' ' && *at != '\n' && *at != '\t' ? '?' : *at,
			      out);
		}
	free(valid);
}

static void put_cell(const struct table *t, size_t row, const struct column *column, FILE *out)
{
	char text[64];

	if (column->unit == UNIT_TEXT) {
		put_text(table_text(t, row, column) ?: "", out);
		return;
	}
	table_format(t, row, column, text, sizeof(text));
	put_text(text, out);
}

static bool is_shown(const struct table *t, size_t row, const struct column *column)
{
	return column->unit != UNIT_TABLE && column->place != COLUMN_JSON_ONLY &&
	       (column->unit != UNIT_TEXT || table_text(t, row, column));
}

static bool is_in_row(const struct column *column)
{
	return column->place == COLUMN_IN_ROW && column->unit != UNIT_TABLE;
}

static void put_facts(const struct table *t, FILE *out)
{
	for (size_t i = 0; t->n_rows && i < t->kind->n_columns; i++) {
		const struct column *column = &t->kind->columns[i];

		if (!is_shown(t, 0, column))
			continue;
		fputs("<tr><th>", out);
		put_text(column->title, out);
		fputs("</th><td>", out);
		put_cell(t, 0, column, out);
		fputs("</td></tr>\n", out);
	}
}

static void put_head(const struct table *t, FILE *out)
{
	fputs("<tr>", out);
	for (size_t i = 0; i < t->kind->n_columns; i++) {
		const struct column *column = &t->kind->columns[i];

		if (!is_in_row(column))
			continue;
		fputs(column->unit == UNIT_TEXT ? "<th>" : "<th class=\"number\">", out);
		put_text(column->title, out);
		fputs("</th>", out);
	}
	fputs("</tr>\n", out);
}

static void put_row(const struct table *t, size_t row, FILE *out)
{
	const char *severity = table_text_at(t, row, "severity");
	size_t i, n = 0;

	fprintf(out, "<tr class=\"first%s\">",
		!severity                      ? ""
		: !strcmp(severity, "problem") ? " problem"
		: !strcmp(severity, "note")    ? " note"
					       : "");
	for (i = 0; i < t->kind->n_columns; i++) {
		const struct column *column = &t->kind->columns[i];

		if (!is_in_row(column))
			continue;
		n++;
		fputs(column->unit == UNIT_TEXT ? "<td>" : "<td class=\"number\">", out);
		put_cell(t, row, column, out);
		fputs("</td>", out);
	}
	fputs("</tr>\n", out);
	for (i = 0; i < t->kind->n_columns; i++) {
		const struct column *column = &t->kind->columns[i];

		if (is_in_row(column) || !is_shown(t, row, column))
			continue;
		fprintf(out, "<tr><td class=\"below\" colspan=\"%zu\">", n);
		put_cell(t, row, column, out);
		fputs("</td></tr>\n", out);
	}
}

#define ROWS_MOST 5000 /* of a table: a browser has to lay all of them out */

static void put_table(const struct table *t, FILE *out)
{
	fprintf(out, "<section%s><h2>", t->kind->missing ? " class=\"missing\"" : "");
	put_text(t->kind->title, out);
	fputs("</h2>\n", out);
	if (t->intro || (!t->n_rows && t->kind->when_empty)) {
		fputs("<p>", out);
		put_text(t->n_rows ? t->intro : t->kind->when_empty, out);
		fputs("</p>\n", out);
	}
	fprintf(out, "<div class=\"wide\"><table class=\"%s\">\n",
		t->kind->facts ? "facts" : "rows");
	if (t->kind->facts) {
		put_facts(t, out);
	} else if (t->n_rows) {
		put_head(t, out);
		for (size_t i = 0; i < t->n_rows && i < ROWS_MOST; i++)
			put_row(t, i, out);
	}
	fputs("</table></div>\n", out);
	if (!t->kind->facts && t->n_rows > ROWS_MOST)
		fprintf(out, "<p>%zu more rows: cudaspy report --format=json has them.</p>\n",
			t->n_rows - ROWS_MOST);
	fputs("</section>\n", out);
}

int render_html_tables(const struct report *report, FILE *out)
{
	fputs(head, out);
	for (size_t i = 0; i < report->n_tables; i++) {
		const struct table *t = &report->tables[i];

		if (!t->kind->unlisted && !t->kind->json_only && (t->n_rows || t->kind->when_empty))
			put_table(t, out);
	}
	fputs("</body></html>\n", out);
	return finish_output(out) ? -EIO : 0;
}
