/*
 * analyzer/tables/sqlite_report.c: the report's tables, each as one of the database: report_KEY, with columns of the keys that
 * JSON has. Called once, by the SQLite export.
 *
 * A table within a row is a table of its own, report_KEY_COLUMN: its column `row` is the rowid of the row it belongs to.
 */
#include <stdlib.h>
#include "sqlite.h"
#include "base/lines.h"
#include "base/redact.h"

/* ---- one table ------------------------------------------------------------------------------- */

static bool is_column(const struct column *column)
{
	return column->key && column->unit != UNIT_TABLE;
}

/* `"a" TEXT, "b" INTEGER`, or with !types `?, ?`; the caller frees. */
static char *column_list(const struct table_kind *kind, bool inner, bool types)
{
	char *all = xstrdup(!inner ? "" : types ? "\"row\" INTEGER" : "?"), *longer;
	const char *type;
	size_t i;

	for (i = 0; i < kind->n_columns; i++) {
		const struct column *column = &kind->columns[i];

		if (!is_column(column))
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

/* A statement with two names; the caller frees. */
static sqlite3_stmt *prepare(struct database *db, const char *name, const struct table_kind *kind,
			     bool inner)
{
	char *types = column_list(kind, inner, true), *values = column_list(kind, inner, false);
	char *create = xasprintf("CREATE TABLE IF NOT EXISTS \"%s\" (%s)", name, types);
	char *insert = xasprintf("INSERT INTO \"%s\" VALUES (%s)", name, values);
	sqlite3_stmt *prepared = NULL;

	if (*types) {
		database_run(db, create);
		if (!db->error && sqlite3_prepare_v2(db->sql, insert, -1, &prepared, NULL))
			database_fail(db);
	}
	free(insert);
	free(create);
	free(values);
	free(types);
	return prepared;
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

static void add_row(struct database *db, sqlite3_stmt *insert, const struct table *t, size_t row,
		    int64_t outer_row)
{
	int at = 0;
	size_t i;

	if (!insert || db->error)
		return;
	if (outer_row)
		sqlite3_bind_int64(insert, ++at, outer_row);
	for (i = 0; i < t->kind->n_columns; i++)
		if (is_column(&t->kind->columns[i]))
			bind(insert, ++at, t, row, &t->kind->columns[i]);
	if (sqlite3_step(insert) != SQLITE_DONE)
		database_fail(db);
	sqlite3_reset(insert);
}

/* ---- tables in rows -------------------------------------------------------------------------- */

static void add_table(struct database *db, const char *name, const struct table *t,
		      int64_t outer_row);

/* `rows` are the numbers that the rows have got. */
static void add_inner(struct database *db, const char *name, const struct table *t,
		      const struct column *column, int64_t first_row)
{
	char *inner_name = xasprintf("%s_%s", name, column->key);
	size_t row;

	sqlite3_finalize(prepare(db, inner_name, column->table, true));
	for (row = 0; row < t->n_rows; row++) {
		const struct table *inner = table_table(t, row, column);

		if (inner)
			add_table(db, inner_name, inner, first_row + (int64_t)row);
	}
	free(inner_name);
}

static void add_table(struct database *db, const char *name, const struct table *t,
		      int64_t outer_row)
{
	sqlite3_stmt *insert = prepare(db, name, t->kind, outer_row != 0);
	int64_t first_row = 0;
	size_t row, i;

	for (row = 0; row < t->n_rows; row++) {
		add_row(db, insert, t, row, outer_row);
		if (!row)
			first_row = sqlite3_last_insert_rowid(db->sql);
	}
	sqlite3_finalize(insert);
	for (i = 0; i < t->kind->n_columns; i++)
		if (t->kind->columns[i].key && t->kind->columns[i].unit == UNIT_TABLE)
			add_inner(db, name, t, &t->kind->columns[i], first_row);
}

void sqlite_report(struct sqlite_export *e)
{
	const struct report *report = e->job->report;
	size_t i;

	for (i = 0; i < report->n_tables && !e->db.error; i++) {
		const struct table *t = &report->tables[i];
		char *name = xasprintf("report_%s", t->kind->key);

		if (!t->kind->unlisted)
			add_table(&e->db, name, t, 0);
		free(name);
	}
}
