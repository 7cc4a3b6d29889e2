/*
 * analyzer/tables/database.c: a database file, its tables, rows and texts. Called by the files of the SQLite export, for each
 * row.
 *
 * Nothing is read back while rows are written, and a file that is not finished is thrown away: so there is no journal, all
 * is one transaction, and SQLite hands pages to the file as its cache fills.
 */
#include <stdlib.h>
#include "database.h"
#include "base/lines.h"
#include "base/redact.h"

static const struct {
	const char *name, *columns;
} tables[TABLE_COUNT] = {
#define DATABASE_TABLE(number, name, columns) [TABLE_##number] = {name, columns},
	DATABASE_TABLES(DATABASE_TABLE)
#undef DATABASE_TABLE
};

void database_fail(struct database *db)
{
	if (!db->error)
		db->error = xstrdup(db->sql ? sqlite3_errmsg(db->sql) : "no memory");
}

void database_run(struct database *db, const char *statements)
{
	if (!db->error && sqlite3_exec(db->sql, statements, NULL, NULL, NULL))
		database_fail(db);
}

/* There are no commas but those between columns. */
static uint32_t count_columns(const char *columns)
{
	uint32_t n = 1;

	while ((columns = strchr(columns, ','))) {
		columns++;
		n++;
	}
	return n;
}

static void make_table(struct database *db, enum database_table table)
{
	char *create = xasprintf("CREATE TABLE %s (%s)", tables[table].name, tables[table].columns);

	db->tables[table].n_columns = count_columns(tables[table].columns);
	database_run(db, create);
	free(create);
}

void database_open(struct database *db, const char *path)
{
	*db = (struct database){0};
	if (sqlite3_open_v2(path, &db->sql,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			    NULL) ||
	    rows_register(db))
		database_fail(db);
	database_run(
		db,
		"PRAGMA page_size = 32768; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
		"PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -32768; BEGIN");
	for (unsigned int table = 0; table < TABLE_COUNT; table++)
		make_table(db, table);
	database_run(db, DATABASE_VIEWS);
	database_string(db, "");
}

void database_finish(struct database *db)
{
	for (unsigned int table = 0; table < TABLE_COUNT; table++)
		rows_write(db, table);
	database_run(db, "CREATE INDEX index_kernels ON CUPTI_ACTIVITY_KIND_KERNEL(correlationId);"
			 "CREATE INDEX index_copies ON CUPTI_ACTIVITY_KIND_MEMCPY(correlationId);"
			 "CREATE INDEX index_memsets ON CUPTI_ACTIVITY_KIND_MEMSET(correlationId);"
			 "COMMIT");
}

static void free_texts(struct database_rows *rows)
{
	struct database_cell *cell = rows->cells, *end = cell + (size_t)rows->n * rows->n_columns;

	for (; cell < end; cell++)
		if (cell->type == CELL_TEXT)
			free(cell->text);
	rows->n = 0;
}

void database_close(struct database *db)
{
	struct database_string *string, *rest;

	for (unsigned int table = 0; table < TABLE_COUNT; table++) {
		sqlite3_finalize(db->tables[table].insert);
		free_texts(&db->tables[table]);
		free(db->tables[table].cells);
	}
	sqlite3_close(db->sql);
	HASH_EMPTY (db->strings, string, rest)
		free(string);
	free(db->error);
	*db = (struct database){0};
}

void row_first(struct database *db, enum database_table table)
{
	struct database_rows *rows = &db->tables[table];

	if (!rows->cells)
		rows->cells = xcalloc((size_t)ROWS_KEPT * rows->n_columns, sizeof(*rows->cells));
	rows->next = rows->cells;
}

/* INSERT INTO name SELECT c0, c1 FROM waiting */
static void prepare(struct database *db, enum database_table table)
{
	struct database_rows *rows = &db->tables[table];
	char *statement = xasprintf("INSERT INTO %s SELECT c0", tables[table].name), *longer;

	for (uint32_t i = 1; i < rows->n_columns; i++) {
		longer = xasprintf("%s, c%u", statement, i);
		free(statement);
		statement = longer;
	}
	longer = xasprintf("%s FROM " ROWS_NAME, statement);
	free(statement);
	if (sqlite3_prepare_v3(db->sql, longer, -1, SQLITE_PREPARE_PERSISTENT, &rows->insert, NULL))
		database_fail(db);
	free(longer);
}

void rows_write(struct database *db, enum database_table table)
{
	struct database_rows *rows = &db->tables[table];

	if (rows->n && !db->error && !rows->insert)
		prepare(db, table);
	if (rows->n && !db->error) {
		db->writing = rows;
		if (sqlite3_step(rows->insert) != SQLITE_DONE)
			database_fail(db);
		sqlite3_reset(rows->insert);
	}
	free_texts(rows);
	rows->next = rows->cells;
}

static char *as_data(const char *text)
{
	char *left = redacted(text), *valid = valid_utf8(left);

	free(left);
	return valid;
}

void put_text(struct database *db, enum database_table table, const char *text)
{
	struct database_cell *cell = row_next(db, table);

	cell->type = text ? CELL_TEXT : CELL_NULL;
	cell->text = text ? as_data(text) : NULL;
}

uint32_t database_string(struct database *db, const char *text)
{
	size_t length = text ? strlen(text) : 0;
	struct database_string *string;

	if (!length && db->n_strings)
		return 0;
	HASH_FIND(hh, db->strings, text, (unsigned int)length, string);
	if (string)
		return string->id;
	if (db->n_strings == STRINGS_MOST)
		return 0;
	string = xcalloc(1, sizeof(*string) + length + 1);
	memcpy(string->text, text, length);
	string->id = db->n_strings++;
	HASH_ADD_KEYPTR(hh, db->strings, string->text, (unsigned int)length, string);
	put_number(db, TABLE_STRINGS, string->id);
	put_text(db, TABLE_STRINGS, text);
	row_end(db, TABLE_STRINGS);
	return string->id;
}
