/*
 * analyzer/report/table.c: rows of a report, described by their columns. Called by the renderers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
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

static const struct column *find_column(const struct table *t, const char *key, bool text)
{
	size_t i;

	for (i = 0; t && i < t->kind->n_columns; i++) {
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

/* A number of four digits with the unit. */
static void format_scaled(char *text, size_t size, double value, const char *unit)
{
	int digits = value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0;

	snprintf(text, size, "%.*f %s", digits, value, unit);
}

void format_ns(char *text, size_t size, uint64_t ns)
{
	if (ns < 1000)
		snprintf(text, size, "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		format_scaled(text, size, (double)ns / 1e3, "us");
	else if (ns < 1000000000)
		format_scaled(text, size, (double)ns / 1e6, "ms");
	else
		format_scaled(text, size, (double)ns / 1e9, "s");
}

void format_percent(char *text, size_t size, double part, double whole)
{
	double percent = whole > 0 ? 100 * part / whole : 0;

	if (percent <= 0)
		snprintf(text, size, "0 %%");
	else if (percent < 0.05)
		snprintf(text, size, "under 0.1 %%");
	else if (percent >= 99.95 && percent < 100)
		snprintf(text, size, "over 99.9 %%");
	else
		snprintf(text, size,
			 percent < 9.95 || (percent >= 99.5 && percent < 100) ? "%.1f %%"
									      : "%.0f %%",
			 percent);
}

void format_bytes(char *text, size_t size, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes / 1024;
	size_t i;

	if (bytes < 1024) {
		snprintf(text, size, "%" PRIu64 " B", bytes);
		return;
	}
	for (i = 0; i + 1 < ARRAY_SIZE(units) && value >= 1024; i++)
		value /= 1024;
	snprintf(text, size, value < 10 ? "%.2f %s" : "%.1f %s", value, units[i]);
}

void format_count(char *text, size_t size, uint64_t count)
{
	char digits[32];
	size_t n = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count), i, used = 0;

	for (i = 0; i < n && used + 2 < size; i++) {
		if (i && !((n - i) % 3))
			text[used++] = ',';
		text[used++] = digits[i];
	}
	text[used] = '\0';
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
	case UNIT_TABLE:
		snprintf(text, size, "-");
		break;
	}
}
