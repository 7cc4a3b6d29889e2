/*
 * analyzer/render/html.c: a finished report and its timeline as one file that a browser opens from disk
 * (docs/HTML_REPORT.md). Called by the commands.
 */
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>
#include "json.h"
#include "render.h"
#include "page/page.h"

/* ---- base64 (RFC 4648) ------------------------------------------------------------------------- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void write_base64(const uint8_t *bytes, size_t n, FILE *out)
{
	char text[4];

	for (size_t i = 0; i < n; i += 3) {
		uint32_t three = (uint32_t)bytes[i] << 16;

		three |= i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0;
		three |= i + 2 < n ? bytes[i + 2] : 0;
		text[0] = digits[three >> 18];
		text[1] = digits[three >> 12 & 63];
		text[2] = i + 1 < n ? digits[three >> 6 & 63] : '=';
		text[3] = i + 2 < n ? digits[three & 63] : '=';
		fwrite(text, 1, sizeof(text), out);
	}
}

static size_t base64_bytes(size_t n)
{
	return (n + 2) / 3 * 4;
}

/* ---- the report --------------------------------------------------------------------------------- */

#define FILE_MOST 9950000 /* bytes: 10 MB, and a bit to spare */
#define REPORT_MOST 2250000 /* of the packed report: a third of the file */
#define ROWS_MOST 20000 /* of a table */
#define ROWS_LEAST 100

/* As JSON, each table with so many rows at most; "rows_left_out" says how many those have that were cut. */
static json_t *json_of(const struct report *report, size_t rows_most)
{
	struct report cut = *report;
	json_t *left_out = json_object(), *root;

	for (size_t i = 0; i < cut.n_tables; i++) {
		struct table *table = &cut.tables[i];

		if (table->n_rows <= rows_most)
			continue;
		json_object_set_new(left_out, table->kind->key,
				    json_integer((json_int_t)(table->n_rows - rows_most)));
		table->n_rows = rows_most;
	}
	root = render_json_report(&cut);
	json_object_set_new(root, "rows_left_out", left_out);
	return root;
}

static int pack(struct report *report, size_t rows_most)
{
	struct report_timeline *t = &report->timeline;
	json_t *root = json_of(report, rows_most);
	char *text = json_dumps(root, JSON_COMPACT);
	size_t n = text ? strlen(text) : 0;
	uLongf size = compressBound((uLong)n);

	json_decref(root);
	free(t->report);
	t->report = xcalloc(1, size);
	t->report_bytes = 0;
	if (text && compress2(t->report, &size, (const Bytef *)text, (uLong)n, 6) == Z_OK)
		t->report_bytes = size;
	else
		warn("the report does not fit into memory");
	free(text);
	return t->report_bytes ? 0 : -ENOMEM;
}

int render_html_pack(struct report *report, size_t *room)
{
	size_t rows = ROWS_MOST, used;
	int err;

	report_redact(report);
	while (!(err = pack(report, rows)) && report->timeline.report_bytes > REPORT_MOST &&
	       rows > ROWS_LEAST)
		rows /= 2;
	used = (size_t)(page_text_end - page_text) + base64_bytes(report->timeline.report_bytes);
	*room = used < FILE_MOST ? (FILE_MOST - used) / 4 * 3 : 0;
	return err;
}

/* ---- the file ----------------------------------------------------------------------------------- */

/* Copies the page up to a mark; returns what is behind it. */
static const char *write_until(const char *page, const char *mark, FILE *out)
{
	size_t bytes = strlen(mark);
	const char *at = memmem(page, (size_t)(page_text_end - page), mark, bytes);

	fwrite(page, 1, (size_t)(at - page), out);
	return at + bytes;
}

int render_html(const struct report *report, FILE *out)
{
	const struct report_timeline *timeline = &report->timeline;
	const char *rest = write_until(page_text, "@REPORT@", out);

	write_base64(timeline->report, timeline->report_bytes, out);
	rest = write_until(rest, "@TIMELINE@", out);
	write_base64(timeline->json, timeline->json_bytes, out);
	rest = write_until(rest, "@ITEMS@", out);
	write_base64(timeline->items, timeline->items_bytes, out);
	fwrite(rest, 1, (size_t)(page_text_end - rest), out);
	return finish_output(out) ? -EIO : 0;
}
