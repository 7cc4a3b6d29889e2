/*
 * analyzer/digest/data.c: rows of one rank. Called where a digest is made, read, merged and written.
 */
#include <errno.h>
#include <stdlib.h>
#include "data.h"
#include "base/hash.h"

void digest_data_init(struct digest_data *data, const struct digest_schema *schema)
{
	*data = (struct digest_data){0};
	digest_data_clear(data, schema);
}

void digest_data_clear(struct digest_data *data, const struct digest_schema *schema)
{
	data->n_tables = schema->n_tables;
	for (uint32_t i = 0; i < schema->n_tables; i++) {
		struct digest_rows *rows = &data->tables[i];

		if (rows->columns != schema->tables[i].n_columns)
			rows->n_room = 0;
		rows->columns = schema->tables[i].n_columns;
		rows->n = 0;
		rows->folded = 0;
	}
}

void digest_data_release(struct digest_data *data)
{
	for (uint32_t i = 0; i < DIGEST_TABLES_MOST; i++)
		free(data->tables[i].cells);
	*data = (struct digest_data){0};
}

static uint64_t *row_at(const struct digest_rows *rows, uint32_t row)
{
	return &rows->cells[(size_t)row * rows->columns];
}

static void make_room(struct digest_rows *rows, uint32_t n)
{
	if (n <= rows->n_room)
		return;
	rows->n_room = n < 8 ? 8 : n + n / 2;
	rows->cells =
		xrealloc(rows->cells, (size_t)rows->n_room * rows->columns, sizeof(*rows->cells));
}

uint64_t *digest_data_add(struct digest_data *data, uint32_t table)
{
	struct digest_rows *rows = &data->tables[table];
	uint64_t *row;

	make_room(rows, rows->n + 1);
	row = row_at(rows, rows->n++);
	memset(row, 0, rows->columns * sizeof(*row));
	return row;
}

/* ---- fewer rows ------------------------------------------------------------------------------ */

struct ranked {
	uint64_t value;
	uint32_t row;
};

/* Of equal ones the first comes first. */
static int most_first(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return x->row < y->row ? -1 : 1;
}

static int least_first(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->row < y->row ? -1 : 1;
}

static void fold(const struct digest_table_info *table, uint64_t *rest, const uint64_t *row)
{
	for (uint32_t i = 0; i < table->n_columns; i++) {
		if (table->columns[i].fold == DIGEST_SUM)
			rest[i] = add_capped(rest[i], row[i]);
		else if (table->columns[i].fold == DIGEST_MAX)
			rest[i] = max_u64(rest[i], row[i]);
	}
}

/* Which of the first n rows stay. */
static bool *choose(const struct digest_rows *rows, const struct digest_table_info *table,
		    uint32_t n, uint32_t keep)
{
	struct ranked *ranked = xcalloc(n + 1, sizeof(*ranked));
	bool *stays = xcalloc(n + 1, sizeof(*stays));

	for (uint32_t i = 0; i < n; i++)
		ranked[i] = (struct ranked){
			table->rule == DIGEST_ALL ? 0 : row_at(rows, i)[table->by], i};
	qsort(ranked, n, sizeof(*ranked), table->rule == DIGEST_LEAST ? least_first : most_first);
	for (uint32_t i = 0; i < keep; i++)
		stays[ranked[i].row] = true;
	free(ranked);
	return stays;
}

static void reduce_rows(struct digest_rows *rows, const struct digest_table_info *table,
			uint32_t keep)
{
	uint32_t own = rows->folded ? rows->n - 1 : rows->n, i, at = 0;
	uint64_t *rest;
	bool *stays;

	if (own <= keep)
		return;
	rest = xcalloc(rows->columns, sizeof(*rest));
	if (rows->folded)
		memcpy(rest, row_at(rows, own), rows->columns * sizeof(*rest));
	stays = choose(rows, table, own, keep);
	for (i = 0; i < own; i++) {
		if (!stays[i])
			fold(table, rest, row_at(rows, i));
		else if (at++ != i)
			memcpy(row_at(rows, at - 1), row_at(rows, i),
			       rows->columns * sizeof(*rest));
	}
	rows->n = at;
	if (table->rule == DIGEST_TOP) {
		memcpy(row_at(rows, rows->n++), rest, rows->columns * sizeof(*rest));
		rows->folded = add_capped(rows->folded, own - keep);
	}
	free(stays);
	free(rest);
}

void digest_data_reduce(struct digest_data *data, const struct digest_schema *schema,
			unsigned int level)
{
	for (uint32_t i = 0; i < data->n_tables; i++)
		reduce_rows(&data->tables[i], &schema->tables[i],
			    digest_rows_at(&schema->tables[i], level));
}

/* ---- what tells them apart ------------------------------------------------------------------- */

static void mix(struct digest_hash *hash, uint64_t value)
{
	hash->a = hash_mix(hash->a ^ value);
	hash->a ^= hash->a >> 29;
	hash->b = (hash->b ^ value) * 0xff51afd7ed558ccdull + 0x165667b19e3779f9ull;
	hash->b ^= hash->b >> 32;
}

static void mix_text(struct digest_hash *hash, const char *text)
{
	size_t n = strlen(text);
	uint64_t word;

	mix(hash, n);
	for (; n; text += n < 8 ? n : 8, n -= n < 8 ? n : 8) {
		word = 0;
		memcpy(&word, text, n < 8 ? n : 8);
		mix(hash, word);
	}
}

struct digest_hash digest_data_hash(const struct digest_data *data,
				    const struct digest_schema *schema,
				    const struct digest_texts *texts)
{
	struct digest_hash hash = {1, 2};

	for (uint32_t i = 0; i < data->n_tables; i++) {
		const struct digest_rows *rows = &data->tables[i];

		mix(&hash, rows->n);
		mix(&hash, rows->folded);
		for (uint32_t row = 0; row < rows->n; row++)
			for (uint32_t column = 0; column < rows->columns; column++) {
				uint64_t cell = row_at(rows, row)[column];

				if (schema->tables[i].columns[column].type == DIGEST_TEXT)
					mix_text(&hash, digest_texts_at(texts, cell));
				else
					mix(&hash, cell);
			}
	}
	return hash;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

void digest_put(struct digest_bytes *bytes, const void *data, size_t n)
{
	if (bytes->n + n > bytes->room) {
		bytes->room = bytes->n + n + bytes->room / 2 + 64;
		bytes->at = xrealloc(bytes->at, bytes->room, 1);
	}
	if (n)
		memcpy(bytes->at + bytes->n, data, n);
	bytes->n += n;
}

void digest_put_number(struct digest_bytes *bytes, uint64_t number)
{
	uint8_t packed[10];
	size_t n = 0;

	do {
		packed[n++] = (uint8_t)((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
		number >>= 7;
	} while (number);
	digest_put(bytes, packed, n);
}

void digest_get_bad(struct digest_cursor *cursor, const char *why)
{
	if (cursor->bad)
		return;
	cursor->bad = why;
	cursor->bad_at = cursor->at;
	cursor->at = cursor->end;
}

uint64_t digest_get_number(struct digest_cursor *cursor)
{
	uint64_t number = 0;
	unsigned int shift = 0;

	while (cursor->at < cursor->end) {
		uint8_t byte = *cursor->at;

		if (shift == 63 && byte > 1)
			break;
		cursor->at++;
		number |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return number;
		shift += 7;
	}
	digest_get_bad(cursor, "a number does not end");
	return 0;
}

const uint8_t *digest_get(struct digest_cursor *cursor, uint64_t n)
{
	const uint8_t *at = cursor->at;

	if (n > (uint64_t)(cursor->end - cursor->at)) {
		digest_get_bad(cursor, "something is longer than what holds it");
		return NULL;
	}
	cursor->at += n;
	return at;
}

void digest_data_pack(struct digest_bytes *bytes, const struct digest_data *data,
		      const struct digest_schema *schema, const uint32_t *map)
{
	for (uint32_t i = 0; i < data->n_tables; i++) {
		const struct digest_rows *rows = &data->tables[i];
		const struct digest_column *columns = schema->tables[i].columns;

		if (!rows->n)
			continue;
		digest_put_number(bytes, i);
		digest_put_number(bytes, rows->n);
		digest_put_number(bytes, rows->folded);
		for (uint32_t row = 0; row < rows->n; row++)
			for (uint32_t column = 0; column < rows->columns; column++) {
				uint64_t cell = row_at(rows, row)[column];

				digest_put_number(bytes, map && columns[column].type == DIGEST_TEXT
								 ? map[cell]
								 : cell);
			}
	}
}

/* What a row of another version does not have stays 0. */
static void unpack_rows(struct digest_cursor *cursor, struct digest_rows *rows,
			const struct digest_table_info *from, const uint32_t *map, uint32_t n_map)
{
	uint32_t row, column;

	for (row = 0; row < rows->n; row++) {
		uint64_t *cells = row_at(rows, row);

		for (column = 0; column < from->n_columns; column++) {
			cells[column] = digest_get_number(cursor);
			if (from->columns[column].type != DIGEST_TEXT)
				continue;
			if (cells[column] >= n_map)
				digest_get_bad(cursor, "a text has a number that there is not");
			if (cursor->bad)
				return;
			if (map)
				cells[column] = map[cells[column]];
		}
		for (; column < rows->columns; column++)
			cells[column] = 0;
	}
}

int digest_data_unpack(struct digest_cursor *cursor, struct digest_data *data,
		       const struct digest_schema *to, const struct digest_schema *from,
		       const uint32_t *map, uint32_t n_map)
{
	uint64_t table, n, next = 0;

	digest_data_clear(data, to);
	while (cursor->at < cursor->end) {
		struct digest_rows *rows;

		table = digest_get_number(cursor);
		if (table < next || table >= from->n_tables) {
			digest_get_bad(cursor, "a table has a number that it cannot have here");
			break;
		}
		next = table + 1;
		n = digest_get_number(cursor);
		rows = &data->tables[table];
		rows->folded = digest_get_number(cursor);
		if (!n || n > DIGEST_ROWS_MOST ||
		    n * from->tables[table].n_columns > (uint64_t)(cursor->end - cursor->at)) {
			digest_get_bad(cursor, "a table has more rows than there is room for");
			break;
		}
		make_room(rows, (uint32_t)n);
		rows->n = (uint32_t)n;
		unpack_rows(cursor, rows, &from->tables[table], map, n_map);
	}
	return cursor->bad ? -EBADMSG : 0;
}
