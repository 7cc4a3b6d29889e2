/*
 * analyzer/tables/sqlite_report.c: the report's tables, each as one of the database: report_KEY, with columns of the keys that
 * JSON has. Called once, by the SQLite export.
 *
 * A table within rows has a column `row`: the rowid of the row it was in.
 */
#include <stdlib.h>
#include "sqlite.h"
#include "walk.h"
#include "base/lines.h"

struct report_rows {
	struct database *db;
	sqlite3_stmt *insert; /* of the table in hand; NULL: it has no columns, or an error */
};

/* `"a" TEXT, "b" INTEGER`, or with !types `?, ?`; the caller frees. */
static char *column_list(const struct table_kind *kind, bool inner, bool types)
{
	char *all = xstrdup(!inner ? "" : types ? "\"row\" INTEGER" : "?"), *longer;
	const char *type;

	for (size_t i = 0; i < kind->n_columns; i++) {
		const struct column *column = &kind->columns[i];

		if (!table_has(column))
			continue;
		type = column->unit == UNIT_TEXT ? "TEXT" : "INTEGER";
		longer =
			types ? xasprintf("%s%s\"%s\" %s", all, *all ? ", " : "", column->key, type)
			      : xasprintf("%s%s?", all, *all ? ", " : "");
		free(all);
		all = longer;
	}
	return all;
}

static void begin(void *data, const char *name, const struct table_kind *kind, bool inner)
{
	struct report_rows *r = data;
	struct database *db = r->db;
	char *types = column_list(kind, inner, true), *values = column_list(kind, inner, false);
	char *create = xasprintf("CREATE TABLE \"report_%s\" (%s)", name, types);
	char *insert = xasprintf("INSERT INTO \"report_%s\" VALUES (%s)", name, values);

	r->insert = NULL;
	if (*types) {
		database_run(db, create);
		if (!db->error && sqlite3_prepare_v2(db->sql, insert, -1, &r->insert, NULL))
			database_fail(db);
	}
	free(insert);
	free(create);
	free(values);
	free(types);
}

static void bind(sqlite3_stmt *insert, int at, const struct table *t, size_t row,
		 const struct column *column)
{
	if (table_is_null(t, row, column))
		sqlite3_bind_null(insert, at);
	else if (column->unit == UNIT_TEXT)
		sqlite3_bind_text(insert, at, valid_utf8(table_text(t, row, column)), -1, free);
	else
		sqlite3_bind_int64(insert, at, table_integer(t, row, column));
}

static void add_row(void *data, const struct table *t, size_t row, uint64_t outer_row)
{
	struct report_rows *r = data;
	int at = 0;

	if (!r->insert || r->db->error)
		return;
	if (outer_row)
		sqlite3_bind_int64(r->insert, ++at, (sqlite3_int64)outer_row);
	for (size_t i = 0; i < t->kind->n_columns; i++)
		if (table_has(&t->kind->columns[i]))
			bind(r->insert, ++at, t, row, &t->kind->columns[i]);
	if (sqlite3_step(r->insert) != SQLITE_DONE)
		database_fail(r->db);
	sqlite3_reset(r->insert);
}

static void end(void *data)
{
	struct report_rows *r = data;

	sqlite3_finalize(r->insert);
}

void sqlite_report(struct sqlite_export *e)
{
	struct report_rows rows = {.db = &e->db};

	tables_walk(e->job->report, &(struct table_visitor){&rows, begin, add_row, end});
}
