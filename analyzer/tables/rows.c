/*
 * analyzer/tables/rows.c: rows that wait in memory, as a table that SQLite can select from. Called by SQLite, while
 * rows_write inserts them.
 *
 * One statement for hundreds of rows takes half of the time that one for each row does: the tree's last page is looked up
 * once, not for each of them.
 */
#include <stdlib.h>
#include "database.h"

struct rows_table {
	sqlite3_vtab base;
	const struct database *db;
};

struct rows_cursor {
	sqlite3_vtab_cursor base;
	uint32_t row;
};

static const struct database_rows *rows_of(sqlite3_vtab_cursor *cursor)
{
	return ((struct rows_table *)cursor->pVtab)->db->writing;
}

static int rows_connect(sqlite3 *sql, void *db, int argc, const char *const *argv,
			sqlite3_vtab **table, char **error)
{
	struct rows_table *new = xcalloc(1, sizeof(*new));
	char *columns = xstrdup("CREATE TABLE x(c0"), *longer;
	int err;

	(void)argc;
	(void)argv;
	(void)error;
	for (unsigned int i = 1; i < COLUMNS_MOST; i++) {
		longer = xasprintf("%s, c%u", columns, i);
		free(columns);
		columns = longer;
	}
	longer = xasprintf("%s)", columns);
	err = sqlite3_declare_vtab(sql, longer);
	free(columns);
	free(longer);
	new->db = db;
	*table = &new->base;
	return err;
}

static int rows_disconnect(sqlite3_vtab *table)
{
	free(table);
	return SQLITE_OK;
}

/* All of them, in their order: there is no other way. */
static int rows_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	(void)table;
	info->estimatedCost = ROWS_KEPT;
	return SQLITE_OK;
}

static int rows_open(sqlite3_vtab *table, sqlite3_vtab_cursor **cursor)
{
	struct rows_cursor *new = xcalloc(1, sizeof(*new));

	(void)table;
	*cursor = &new->base;
	return SQLITE_OK;
}

static int rows_close(sqlite3_vtab_cursor *cursor)
{
	free(cursor);
	return SQLITE_OK;
}

static int rows_filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc,
		       sqlite3_value **argv)
{
	(void)number;
	(void)text;
	(void)argc;
	(void)argv;
	((struct rows_cursor *)cursor)->row = 0;
	return SQLITE_OK;
}

static int rows_next(sqlite3_vtab_cursor *cursor)
{
	((struct rows_cursor *)cursor)->row++;
	return SQLITE_OK;
}

static int rows_eof(sqlite3_vtab_cursor *cursor)
{
	return ((struct rows_cursor *)cursor)->row >= rows_of(cursor)->n;
}

static int rows_column(sqlite3_vtab_cursor *cursor, sqlite3_context *result, int column)
{
	const struct database_rows *rows = rows_of(cursor);
	const struct database_cell *cell =
		&rows->cells[(size_t)((struct rows_cursor *)cursor)->row * rows->n_columns +
			     (unsigned int)column];

	if (cell->type == CELL_NUMBER)
		sqlite3_result_int64(result, cell->number);
	else if (cell->type == CELL_TEXT)
		sqlite3_result_text(result, cell->text, -1, SQLITE_STATIC);
	else
		sqlite3_result_null(result);
	return SQLITE_OK;
}

static int rows_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id)
{
	*id = ((struct rows_cursor *)cursor)->row;
	return SQLITE_OK;
}

int rows_register(struct database *db)
{
	static const sqlite3_module module = {
		.xConnect = rows_connect,
		.xBestIndex = rows_best_index,
		.xDisconnect = rows_disconnect,
		.xOpen = rows_open,
		.xClose = rows_close,
		.xFilter = rows_filter,
		.xNext = rows_next,
		.xEof = rows_eof,
		.xColumn = rows_column,
		.xRowid = rows_rowid,
	};

	return sqlite3_create_module(db->sql, ROWS_NAME, &module, db);
}
