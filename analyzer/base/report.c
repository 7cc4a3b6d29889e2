/*
 * analyzer/base/report.c: a finished report. Filled by the sections, shown by the renderers.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "redact.h"
#include "report.h"

void report_init(struct report *report, const char *schema)
{
	*report = (struct report){.schema = schema};
}

void report_release(struct report *report)
{
	arena_release(&report->arena);
	free(report->timeline.report);
	free(report->timeline.json);
	free(report->timeline.items);
	*report = (struct report){0};
}

size_t report_rows(const struct report *report, const struct table_kind *kind, size_t n)
{
	if (!report->text_only)
		return n;
	if (report_hides(report, kind))
		return 0;
	return kind->text_rows && kind->text_rows < n ? kind->text_rows : n;
}

struct table *report_add(struct report *report, const struct table_kind *kind, void *rows,
			 size_t n_rows)
{
	struct table *table = &report->tables[report->n_tables++];

	assert(report->n_tables <= REPORT_TABLES);
	*table = (struct table){.kind = kind, .rows = rows, .n_rows = n_rows};
	if (rows)
		arena_take(&report->arena, rows);
	return table;
}

const struct table *report_find(const struct report *report, const char *key)
{
	for (size_t i = 0; i < report->n_tables; i++)
		if (!strcmp(report->tables[i].kind->key, key))
			return &report->tables[i];
	return NULL;
}

/* ---- redacted -------------------------------------------------------------------------------- */

static void redact_text(struct arena *arena, const char **text)
{
	char *left;

	if (!*text)
		return;
	left = redacted(*text);
	if (strcmp(left, *text) != 0)
		*text = arena_take(arena, left);
	else
		free(left);
}

static void redact_table(struct report *report, struct table *t, size_t n_rows)
{
	redact_text(&report->arena, &t->intro);
	redact_text(&report->arena, &t->minor_name);
	for (size_t row = 0; row < n_rows; row++)
		for (size_t i = 0; i < t->kind->n_columns; i++) {
			const struct column *column = &t->kind->columns[i];
			char *at = (char *)t->rows + row * t->kind->row_bytes + column->offset;
			struct table *inner;

			if (column->unit == UNIT_TEXT)
				redact_text(&report->arena, (const char **)at);
			if (column->unit != UNIT_TABLE)
				continue;
			inner = *(struct table **)at;
			if (inner)
				redact_table(report, inner, inner->n_rows);
		}
}

void report_redact(struct report *report)
{
	size_t i, n = redact_is_on() ? 2 * report->n_tables : 0;

	/* Twice: a path may tell a user's name that stands in a text before it. */
	for (i = 0; i < n; i++) {
		struct table *t = &report->tables[i % report->n_tables];

		redact_table(report, t, report_rows(report, t->kind, t->n_rows));
	}
}
