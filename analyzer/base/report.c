/*
 * analyzer/base/report.c: a finished report. Filled by the sections, shown by the renderers.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "report.h"

void report_init(struct report *report, const char *schema)
{
	*report = (struct report){.schema = schema};
}

void report_release(struct report *report)
{
	arena_release(&report->arena);
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
	size_t i;

	for (i = 0; i < report->n_tables; i++)
		if (!strcmp(report->tables[i].kind->key, key))
			return &report->tables[i];
	return NULL;
}
