/*
 * analyzer/sections/files.c: files of the program that are not there any more, or not those
 * that ran. Called by `report`, `why` and `info`.
 */
#include <string.h>
#include "sections.h"
#include "text/where.h"

struct file_row {
	const char *file, *state, *recorded, *found, *text;
};

static const struct column file_columns[] = {
	COLUMN(struct file_row, file, "file", UNIT_TEXT),
	COLUMN_JSON(struct file_row, state, UNIT_TEXT),
	COLUMN_JSON(struct file_row, recorded, UNIT_TEXT),
	COLUMN_JSON(struct file_row, found, UNIT_TEXT),
	COLUMN_TEXT_WORDS(struct file_row, text),
};

static const struct table_kind file_kind = {
	TABLE("files",
	      "FILES that differ from those that ran, or cannot be read: places in them have "
	      "no lines or no functions",
	      struct file_row, file_columns),
	.text_rows = 10,
};

static const char *state_of(const struct unread_file *file)
{
	if (file->zstd)
		return "compressed";
	if (!file->found)
		return "missing";
	return *file->recorded ? "other" : "unknown";
}

size_t report_files(struct report *report, struct symbolizer *symbols)
{
	const struct unread_file *files;
	struct file_row *rows;
	size_t i, n;

	files = symbolizer_unread(symbols, &n);
	rows = xcalloc(n, sizeof(*rows));
	for (i = 0; i < n; i++)
		rows[i] = (struct file_row){
			.file = report_text(report, "%s", files[i].path),
			.state = state_of(&files[i]),
			.recorded = *files[i].recorded
					    ? report_text(report, "%s", files[i].recorded)
					    : NULL,
			.found = files[i].found ? report_text(report, "%s", files[i].found) : NULL,
			.text = text_unread(&report->arena, &files[i]),
		};
	report_add(report, &file_kind, rows, n);
	return n;
}
