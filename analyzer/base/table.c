/*
 * analyzer/base/table.c: rows of a report, described by their columns. Called by the renderers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "format.h"
#include "table.h"
#include "cudaspy/trace_format.h"

static const void *cell(const struct table *t, size_t row, const struct column *column)
{
	return (const char *)t->rows + row * t->kind->row_bytes + column->offset;
}

const char *table_text(const struct table *t, size_t row, const struct column *column)
{
	return *(const char *const *)cell(t, row, column);
}

uint64_t table_number(const struct table *t, size_t row, const struct column *column)
{
	return *(const uint64_t *)cell(t, row, column);
}

bool table_is_null(const struct table *t, size_t row, const struct column *column)
{
	switch (column->unit) {
	case UNIT_TEXT:
		return !table_text(t, row, column);
	case UNIT_TABLE:
		return !table_table(t, row, column);
	case UNIT_NS_IF_KNOWN:
	case UNIT_PLAIN_IF_KNOWN:
		return table_number(t, row, column) == UNKNOWN_NS;
	case UNIT_PPM:
		return (int64_t)table_number(t, row, column) == INT64_MIN;
	default:
		return false;
	}
}

int64_t table_integer(const struct table *t, size_t row, const struct column *column)
{
	uint64_t value = table_number(t, row, column);

	if (column->unit == UNIT_NS_CHANGE || column->unit == UNIT_PPM)
		return (int64_t)value;
	return (int64_t)min_u64(value, NUMBER_MOST);
}

static const struct column *find_column(const struct table *t, const char *key, bool text)
{
	for (size_t i = 0; t && i < t->kind->n_columns; i++) {
		const struct column *column = &t->kind->columns[i];

		if (column->key && !strcmp(column->key, key) && (column->unit == UNIT_TEXT) == text)
			return column;
	}
	return NULL;
}

const char *table_text_at(const struct table *t, size_t row, const char *key)
{
	const struct column *column = find_column(t, key, true);

	return column ? table_text(t, row, column) : NULL;
}

uint64_t table_number_at(const struct table *t, size_t row, const char *key)
{
	const struct column *column = find_column(t, key, false);

	return column ? table_number(t, row, column) : 0;
}

const struct table *table_table(const struct table *t, size_t row, const struct column *column)
{
	return *(const struct table *const *)cell(t, row, column);
}

void table_format(const struct table *t, size_t row, const struct column *column, char *text,
		  size_t size)
{
	switch (column->unit) {
	case UNIT_TEXT:
		snprintf(text, size, "%s", table_text(t, row, column) ?: "-");
		break;
	case UNIT_PLAIN:
		snprintf(text, size, "%" PRIu64, table_number(t, row, column));
		break;
	case UNIT_PLAIN_IF_KNOWN:
		if (table_number(t, row, column) == UNKNOWN_NS)
			snprintf(text, size, "?");
		else
			snprintf(text, size, "%" PRIu64, table_number(t, row, column));
		break;
	case UNIT_DEVICE:
		if (table_number(t, row, column) == SPY_DEVICE_NONE)
			snprintf(text, size, "-");
		else
			snprintf(text, size, "%" PRIu64, table_number(t, row, column));
		break;
	case UNIT_COUNT:
		format_count(text, size, table_number(t, row, column));
		break;
	case UNIT_NS:
		format_ns(text, size, table_number(t, row, column));
		break;
	case UNIT_NS_IF_KNOWN:
		if (table_number(t, row, column) == UNKNOWN_NS)
			snprintf(text, size, "?");
		else
			format_ns(text, size, table_number(t, row, column));
		break;
	case UNIT_BYTES:
		format_bytes(text, size, table_number(t, row, column));
		break;
	case UNIT_NS_CHANGE:
	case UNIT_PPM:
	case UNIT_TABLE:
		snprintf(text, size, "-");
		break;
	}
}
