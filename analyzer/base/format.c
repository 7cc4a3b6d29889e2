/*
 * analyzer/base/format.c: numbers as text shows them. Called by tables, and where sentences are
 * written.
 */
#include <inttypes.h>
#include <stdio.h>
#include "format.h"
#include "util.h"

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
