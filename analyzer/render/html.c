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
	size_t i;

	for (i = 0; i < n; i += 3) {
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

/* ---- parts ------------------------------------------------------------------------------------- */

static int write_report(const struct report *report, FILE *out)
{
	json_t *root = render_json_report(report);
	char *text = json_dumps(root, JSON_COMPACT);
	size_t n = text ? strlen(text) : 0;
	uLongf size = compressBound((uLong)n);
	Bytef *packed = xcalloc(1, size);
	int err = text && compress2(packed, &size, (const Bytef *)text, (uLong)n, 6) == Z_OK
			  ? 0
			  : -ENOMEM;

	if (!err)
		write_base64(packed, size, out);
	else
		warn("the report does not fit into memory");
	free(packed);
	free(text);
	json_decref(root);
	return err;
}

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
	int err = write_report(report, out);

	rest = write_until(rest, "@TIMELINE@", out);
	write_base64(timeline->json, timeline->json_bytes, out);
	rest = write_until(rest, "@ITEMS@", out);
	write_base64(timeline->items, timeline->items_bytes, out);
	fwrite(rest, 1, (size_t)(page_text_end - rest), out);
	return finish_output(out) || err ? -EIO : 0;
}
