/*
 * analyzer/digest/data.h: what a digest has of one rank: rows of numbers, a table each (schema.h). How they are packed into
 * bytes, how they are made smaller, and what tells one rank's data from another's.
 *
 * Levels: a table may have so many rows as schema.h says at level 0, and half as many with each level, down to the least.
 * What is left of the rows at one level is what is left if they are first reduced to any lower one: whatever way a digest
 * has come, the rows of a rank depend on the level alone.
 */
#ifndef CUDASPY_DIGEST_DATA_H
#define CUDASPY_DIGEST_DATA_H

#include "schema.h"
#include "texts.h"

struct digest_rows {
	uint64_t *cells; /* n * columns; owned */
	uint32_t n, columns;
	uint32_t n_room; /* rows that there is room for */
	uint64_t folded; /* rows that the last one stands for; 0: there is no such row */
};

struct digest_data {
	struct digest_rows tables[DIGEST_TABLES_MOST];
	uint32_t n_tables;
};

/* Empty tables of the schema. digest_data_clear makes them so again, and keeps the memory. */
void digest_data_init(struct digest_data *data, const struct digest_schema *schema);
void digest_data_clear(struct digest_data *data, const struct digest_schema *schema);
void digest_data_release(struct digest_data *data);

/* A new row of zeros; valid until the next one of the table. */
uint64_t *digest_data_add(struct digest_data *data, uint32_t table);

static inline uint64_t digest_cell(const struct digest_data *data, uint32_t table, uint32_t row,
				   uint32_t column)
{
	const struct digest_rows *rows = &data->tables[table];

	return rows->cells[(size_t)row * rows->columns + column];
}

/* Is it the row that stands for others? */
static inline bool digest_is_rest(const struct digest_data *data, uint32_t table, uint32_t row)
{
	const struct digest_rows *rows = &data->tables[table];

	return rows->folded && row + 1 == rows->n;
}

/* Makes all tables as small as the level wants them. */
void digest_data_reduce(struct digest_data *data, const struct digest_schema *schema,
			unsigned int level);

/* 128 bits that depend on all cells, and on the texts themselves instead of their numbers. */
struct digest_hash {
	uint64_t a, b;
};

struct digest_hash digest_data_hash(const struct digest_data *data,
				    const struct digest_schema *schema,
				    const struct digest_texts *texts);

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Bytes that grow. Starts with zeros; the owner frees `at`. */
struct digest_bytes {
	uint8_t *at;
	size_t n, room;
};

void digest_put(struct digest_bytes *bytes, const void *data, size_t n);
void digest_put_number(struct digest_bytes *bytes, uint64_t number); /* 7 bits a byte */

/* Bytes that are read; what does not fit sets `bad` and reads as 0. */
struct digest_cursor {
	const uint8_t *begin, *at, *end;
	const char *bad; /* what is wrong; NULL: nothing so far */
	const uint8_t *bad_at;
};

uint64_t digest_get_number(struct digest_cursor *cursor);
/* The next n bytes; NULL: there are fewer. */
const uint8_t *digest_get(struct digest_cursor *cursor, uint64_t n);
void digest_get_bad(struct digest_cursor *cursor, const char *why);

/* Tables with rows: number of the table, number of rows, rows folded, cells. map: what the numbers of texts become;
 * NULL: they stay. */
void digest_data_pack(struct digest_bytes *bytes, const struct digest_data *data,
		      const struct digest_schema *schema, const uint32_t *map);

/* The reverse. `data` is of the schema `to`; the bytes were packed by `from`, which has no more than `to` has. n_map:
 * texts that there are. 0, or -EBADMSG with the cursor's `bad`. */
int digest_data_unpack(struct digest_cursor *cursor, struct digest_data *data,
		       const struct digest_schema *to, const struct digest_schema *from,
		       const uint32_t *map, uint32_t n_map);

#endif
