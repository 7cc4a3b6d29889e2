/*
 * analyzer/tables/walk.h: the tables of a report as flat ones, for formats that have no tables in rows. A table in the rows of
 * another one is one of its own for all of these rows, called NAME_KEY by their table's name and the column's key; each of its
 * rows says in which row it was, counted from 1 on.
 */
#ifndef CUDASPY_TABLES_WALK_H
#define CUDASPY_TABLES_WALK_H

#include "base/report.h"

struct table_visitor {
	void *data;
	/* A table, also if it has no rows. inner: its rows have a number of an outer row. */
	void (*begin)(void *data, const char *name, const struct table_kind *kind, bool inner);
	void (*row)(void *data, const struct table *t, size_t row, uint64_t outer_row);
	void (*end)(void *data);
};

/* Each table of the report that JSON has, one after the other. */
void tables_walk(const struct report *report, const struct table_visitor *visitor);

/* Has the flat table that column? It is one with a key, and no table. */
static inline bool table_has(const struct column *column)
{
	return column->key && column->unit != UNIT_TABLE;
}

#endif
