/*
 * analyzer/base/table.h: rows of a report, described by their columns.
 *
 * A row is a struct of uint64_t and const char *; a column says where in it a value is and what it
 * means. The renderers walk the columns, so a new column is one line here, in text and in JSON.
 */
#ifndef CUDASPY_TABLE_H
#define CUDASPY_TABLE_H

#include "util.h"

/* What a value is: how text shows it. JSON has the bare number or string. */
enum unit {
	UNIT_TEXT, /* const char *; NULL: not known */
	UNIT_PLAIN, /* uint64_t: a number that is a name, as a thread's */
	UNIT_PLAIN_IF_KNOWN, /* the same, but UNKNOWN_NS is "?", and null in JSON */
	UNIT_COUNT, /* uint64_t */
	UNIT_NS,
	UNIT_NS_IF_KNOWN, /* of UNIT_NS the same */
	UNIT_NS_CHANGE, /* int64_t, of which text says what it is in words; JSON only */
	UNIT_PPM, /* int64_t: parts per million, INT64_MIN unknown; JSON only */
	UNIT_BYTES,
	UNIT_DEVICE, /* uint64_t: a GPU's number, SPY_DEVICE_NONE unknown */
	UNIT_TABLE, /* const struct table *; NULL: none. JSON has an array; text, below the row, its
		     * intro and of each of its rows the first column that is not NULL */
};

enum column_place {
	COLUMN_IN_ROW,
	COLUMN_BELOW, /* text: on a line of its own below the row */
	COLUMN_BELOW_WORDS, /* the same, on as many lines as it takes */
	COLUMN_JSON_ONLY,
};

/* What a value means for its reader, where text has colours. */
enum tone {
	TONE_PLAIN,
	TONE_LOSS, /* time that was lost, data that is missing */
	TONE_SEVERITY, /* as the row's "severity" has it: a problem, a note, or less */
	TONE_FOUND, /* as the row's "problems" and "notes" have it: is there any? */
};

struct table_kind;

struct column {
	const char *key; /* in JSON, with the unit: total_ns; NULL: not in JSON */
	const char *title; /* in text */
	enum unit unit;
	enum column_place place;
	size_t offset; /* in the row */
	enum tone tone;
	const struct table_kind *table; /* of a UNIT_TABLE: what the tables there are like */
};

/* clang-format off */
#define COLUMN(type, member, title_, unit_) \
	{.key = #member, .title = (title_), .unit = (unit_), .offset = offsetof(type, member)}
#define COLUMN_TONE(type, member, title_, unit_, tone_) \
	{.key = #member, .title = (title_), .unit = (unit_), .offset = offsetof(type, member), .tone = (tone_)}
#define COLUMN_TEXT_TONE(type, member, title_, tone_) \
	{.title = (title_), .unit = UNIT_TEXT, .offset = offsetof(type, member), .tone = (tone_)}
#define COLUMN_TEXT(type, member, title_) \
	{.title = (title_), .unit = UNIT_TEXT, .offset = offsetof(type, member)}
#define COLUMN_LINE(type, member, unit_) \
	{.key = #member, .title = "", .unit = (unit_), .place = COLUMN_BELOW, \
	 .offset = offsetof(type, member)}
#define COLUMN_TEXT_LINE(type, member) \
	{.title = "", .unit = UNIT_TEXT, .place = COLUMN_BELOW, .offset = offsetof(type, member)}
#define COLUMN_TEXT_WORDS(type, member) \
	{.title = "", .unit = UNIT_TEXT, .place = COLUMN_BELOW_WORDS, .offset = offsetof(type, member)}
#define COLUMN_TABLE(type, member, kind) \
	{.key = #member, .title = "", .unit = UNIT_TABLE, .place = COLUMN_BELOW, \
	 .offset = offsetof(type, member), .table = (kind)}
#define COLUMN_JSON(type, member, unit_) \
	{.key = #member, .title = "", .unit = (unit_), .place = COLUMN_JSON_ONLY, \
	 .offset = offsetof(type, member)}
/* clang-format on */

/* What all tables of a kind have in common. */
struct table_kind {
	const char *key; /* in JSON */
	const char *title; /* in text */
	const struct column *columns;
	size_t n_columns;
	size_t row_bytes;
	bool facts; /* one row, shown as one line per column; in JSON an object */
	size_t text_rows; /* shown in text at most; 0: all */
	bool json_only;
	bool detail; /* in text only with --verbose */
	bool missing; /* it is about what the report does not have: text warns */
	bool unlisted; /* neither in text nor in JSON: for renderers that look for it */
	const char *when_empty; /* what text says without rows; NULL: nothing at all */
	const char *advice; /* shown in text below the rows; NULL: nothing */
};

/* What all kinds need, for an initializer: the array `columns_` describes rows of the type. */
#define TABLE(key_, title_, type, columns_) \
	.key = (key_), .title = (title_), .columns = (columns_), \
	.n_columns = ARRAY_SIZE(columns_), .row_bytes = sizeof(type)

struct table {
	const struct table_kind *kind;
	const void *rows;
	size_t n_rows;
	const char *intro; /* shown in text above the rows; NULL: nothing */
	const char *outro; /* the same below the rows */
	size_t minor_rows; /* the last so many are not worth a line in text */
	const char *minor_name; /* what they are; NULL: "minor" */
};

/* A cell's value. */
const char *table_text(const struct table *t, size_t row, const struct column *column);
uint64_t table_number(const struct table *t, size_t row, const struct column *column);
const struct table *table_table(const struct table *t, size_t row, const struct column *column);

/* A cell as data has it, in JSON, in CSV and in a database: none at all if it is not known; a number (of all units but
 * UNIT_TEXT and UNIT_TABLE), which all readers take. */
bool table_is_null(const struct table *t, size_t row, const struct column *column);
int64_t table_integer(const struct table *t, size_t row, const struct column *column);

/* The same for renderers that look for certain values: of the column with that key; NULL or 0 if
 * the table has none, or is NULL. */
const char *table_text_at(const struct table *t, size_t row, const char *key);
uint64_t table_number_at(const struct table *t, size_t row, const char *key);

/* A cell as text shows it, into `text`: "1.234 ms", "12,345", "4.0 MiB". Cuts what is too long. */
void table_format(const struct table *t, size_t row, const struct column *column, char *text,
		  size_t size);

#endif
