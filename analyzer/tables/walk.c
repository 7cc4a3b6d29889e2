/*
 * analyzer/tables/walk.c: the tables of a report as flat ones. Called once by each export of tables.
 */
#include <stdlib.h>
#include "walk.h"

/* Rows of a flat table that are together: those in one row of another. */
struct part {
	const struct table *t;
	uint64_t outer_row; /* 0: they are in none */
};

static void walk(const struct table_visitor *v, const char *name, const struct table_kind *kind,
		 const struct part *parts, size_t n, bool inner);

/* What is in that column of all these rows. */
static void walk_column(const struct table_visitor *v, const char *name,
			const struct column *column, const struct part *parts, size_t n)
{
	char *inner_name = xasprintf("%s_%s", name, column->key);
	struct part *inner = NULL;
	uint64_t number = 0;
	size_t i, row, n_inner = 0;

	for (i = 0; i < n; i++)
		for (row = 0; row < parts[i].t->n_rows; row++) {
			const struct table *t = table_table(parts[i].t, row, column);

			number++;
			if (!t)
				continue;
			inner = grow(inner, n_inner, sizeof(*inner));
			inner[n_inner++] = (struct part){t, number};
		}
	walk(v, inner_name, column->table, inner, n_inner, true);
	free(inner);
	free(inner_name);
}

static void walk(const struct table_visitor *v, const char *name, const struct table_kind *kind,
		 const struct part *parts, size_t n, bool inner)
{
	v->begin(v->data, name, kind, inner);
	for (size_t i = 0; i < n; i++)
		for (size_t row = 0; row < parts[i].t->n_rows; row++)
			v->row(v->data, parts[i].t, row, parts[i].outer_row);
	v->end(v->data);
	for (size_t i = 0; i < kind->n_columns; i++)
		if (kind->columns[i].key && kind->columns[i].unit == UNIT_TABLE)
			walk_column(v, name, &kind->columns[i], parts, n);
}

void tables_walk(const struct report *report, const struct table_visitor *visitor)
{
	for (size_t i = 0; i < report->n_tables; i++) {
		const struct part part = {&report->tables[i], 0};
		const struct table_kind *kind = part.t->kind;

		if (!kind->unlisted)
			walk(visitor, kind->key, kind, &part, 1, false);
	}
}
