/*
 * testapps/common.c: options, one table, a clock and a check: see common.h. Called from main,
 * except die, the clock and cuda_check, which any thread may call.
 */
#include "common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *program = "testapp";

void die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s: ", program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void output_end(void)
{
	if (fflush(stdout) || ferror(stdout))
		die("cannot write to standard output: %s", strerror(errno));
}

/* ---- options -------------------------------------------------------------------------------- */

void usage_error(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "; see %s --help\n", program);
	exit(2);
}

static const struct option_row *option_rows;
static unsigned long rows_given; /* bit i: option_rows[i] */

static void help_row(const char *name, const char *value, const char *text)
{
	char left[64];

	snprintf(left, sizeof(left), "--%s%s%s", name, value ? " " : "", value ? value : "");
	printf("  %-22s %s\n", left, text);
}

static void help(const char *summary)
{
	const struct option_row *row;

	printf("Usage: %s [options]\n\n%s\n\nOptions:\n", program, summary);
	for (row = option_rows; row->name; row++)
		help_row(row->name, row->value, row->help);
	help_row("quick", NULL, "a short run, on the simulator always; unless given:");
	printf("%24s", "");
	for (row = option_rows; row->name; row++)
		if (row->quick)
			printf(" --%s %s", row->name, row->quick);
	putchar('\n');
	help_row("csv", NULL, "print the table as CSV");
	help_row("json", NULL, "print the table as JSON");
	help_row("help", NULL, "print this and exit");
}

static void option_set(const struct option_row *row, const char *value)
{
	char *end;
	long number;

	switch (row->kind) {
	case OPTION_FLAG:
		if (value)
			usage_error("--%s takes no value", row->name);
		*(bool *)row->target = true;
		return;
	case OPTION_TEXT:
		*(const char **)row->target = value;
		return;
	case OPTION_NUMBER:
		number = strtol(value, &end, 10);
		if (end == value || *end)
			usage_error("--%s %s: not a whole number", row->name, value);
		if (number < row->min || number > row->max)
			usage_error("--%s %s: must be %ld to %ld", row->name, value, row->min,
				    row->max);
		*(long *)row->target = number;
	}
}

static const struct option_row *option_find(const char *name, size_t length)
{
	const struct option_row *row;

	for (row = option_rows; row->name; row++) {
		if (strlen(row->name) == length && !memcmp(row->name, name, length))
			return row;
	}
	return NULL;
}

static bool row_given(const struct option_row *row)
{
	return rows_given >> (row - option_rows) & 1;
}

bool option_given(const char *name)
{
	return row_given(option_find(name, strlen(name)));
}

/* What is left to us becomes what --quick makes of it; returns whether anything was. */
static bool options_hurry(void)
{
	const struct option_row *row;
	bool any = false;

	for (row = option_rows; row->name; row++) {
		if (!row->quick || row_given(row))
			continue;
		option_set(row, row->quick);
		any = true;
	}
	return any;
}

enum output options_read(int argc, char **argv, const char *summary, const struct option_row *rows)
{
	enum output output = OUTPUT_TEXT;
	const char *slash = strrchr(argv[0], '/');
	bool quick = false;
	int i;

	program = slash ? slash + 1 : argv[0];
	option_rows = rows;
	for (i = 1; i < argc; i++) {
		const struct option_row *row;
		const char *name, *value;

		if (strncmp(argv[i], "--", 2))
			usage_error("%s: not an option", argv[i]);
		name = argv[i] + 2;
		if (!strcmp(name, "help")) {
			help(summary);
			output_end();
			exit(0);
		}
		if (!strcmp(name, "csv") || !strcmp(name, "json")) {
			output = name[0] == 'c' ? OUTPUT_CSV : OUTPUT_JSON;
			continue;
		}
		if (!strcmp(name, "quick")) {
			quick = true;
			continue;
		}
		value = strchr(name, '=');
		row = option_find(name, value ? (size_t)(value - name) : strlen(name));
		if (!row)
			usage_error("%s: no such option", argv[i]);
		if (value)
			value++;
		else if (row->kind != OPTION_FLAG && ++i == argc)
			usage_error("--%s needs a value", row->name);
		else if (row->kind != OPTION_FLAG)
			value = argv[i];
		option_set(row, value);
		rows_given |= 1ul << (row - rows);
	}
	/* Where the host computes what kernels should, what takes a GPU seconds takes hours. */
	if (quick)
		options_hurry();
	else if (getenv("SPYSIM") && options_hurry())
		fprintf(stderr, "%s: on the simulator: a short run, as with --quick\n", program);
	return output;
}

/* ---- one table ------------------------------------------------------------------------------ */

struct table_cell {
	enum { CELL_EMPTY, CELL_TEXT, CELL_NUMBER } kind;
	double number;
	char *text;
};

void table_init(struct table *table, const struct table_column *columns, size_t column_cnt)
{
	*table = (struct table){.columns = columns, .column_cnt = column_cnt};
}

void table_release(struct table *table)
{
	size_t i;

	for (i = 0; i < table->cell_cnt; i++)
		free(table->cells[i].text);
	free(table->cells);
	table->cells = NULL;
	table->cell_cnt = 0;
}

static void table_add(struct table *table, struct table_cell cell)
{
	struct table_cell *cells;

	cells = realloc(table->cells, (table->cell_cnt + 1) * sizeof(cell));
	if (!cells)
		die("out of memory");
	cells[table->cell_cnt++] = cell;
	table->cells = cells;
}

void table_text(struct table *table, const char *text)
{
	struct table_cell cell = {.kind = CELL_TEXT, .text = strdup(text)};

	if (!cell.text)
		die("out of memory");
	table_add(table, cell);
}

void table_number(struct table *table, double number)
{
	table_add(table, (struct table_cell){.kind = CELL_NUMBER, .number = number});
}

void table_empty(struct table *table)
{
	table_add(table, (struct table_cell){.kind = CELL_EMPTY});
}

/* What a cell shows, in a buffer of the caller's. Text that a test app writes needs no quoting. */
static const char *cell_show(const struct table *table, size_t i, char *buffer, size_t size)
{
	const struct table_cell *cell = &table->cells[i];

	if (cell->kind == CELL_TEXT)
		return cell->text;
	buffer[0] = '\0';
	if (cell->kind == CELL_NUMBER)
		snprintf(buffer, size, "%.*f", table->columns[i % table->column_cnt].decimals,
			 cell->number);
	return buffer;
}

static void print_csv(const struct table *table)
{
	char buffer[64];
	size_t i;

	for (i = 0; i < table->column_cnt; i++)
		printf("%s%s", i ? "," : "", table->columns[i].key);
	for (i = 0; i < table->cell_cnt; i++)
		printf("%s%s", i % table->column_cnt ? "," : "\n",
		       cell_show(table, i, buffer, sizeof(buffer)));
	putchar('\n');
}

static void print_json(const struct table *table)
{
	char buffer[64];
	size_t i;

	putchar('[');
	for (i = 0; i < table->cell_cnt; i++) {
		const char *quote = table->cells[i].kind == CELL_TEXT ? "\"" : "";
		const char *shown = cell_show(table, i, buffer, sizeof(buffer));
		size_t column = i % table->column_cnt;

		printf("%s\"%s\": %s%s%s",
		       column ? ", "
		       : i    ? "},\n {"
			      : "\n {",
		       table->columns[column].key, quote,
		       table->cells[i].kind == CELL_EMPTY ? "null" : shown, quote);
	}
	puts(table->cell_cnt ? "}\n]" : "]");
}

static void print_text(const struct table *table)
{
	size_t column, i;
	char buffer[64];
	int *widths = allocate(table->column_cnt, sizeof(*widths));

	for (column = 0; column < table->column_cnt; column++) {
		widths[column] = (int)strlen(table->columns[column].title);
		for (i = column; i < table->cell_cnt; i += table->column_cnt) {
			int width = (int)strlen(cell_show(table, i, buffer, sizeof(buffer)));

			if (width > widths[column])
				widths[column] = width;
		}
	}
	for (column = 0; column < table->column_cnt; column++)
		printf("%*s%s", column ? widths[column] + 2 : -widths[0],
		       table->columns[column].title, column + 1 == table->column_cnt ? "\n" : "");
	for (i = 0; i < table->cell_cnt; i++) {
		column = i % table->column_cnt;
		printf("%*s%s", column ? widths[column] + 2 : -widths[0],
		       cell_show(table, i, buffer, sizeof(buffer)),
		       column + 1 == table->column_cnt ? "\n" : "");
	}
	free(widths);
}

void table_print(const struct table *table, enum output output)
{
	if (output == OUTPUT_CSV)
		print_csv(table);
	else if (output == OUTPUT_JSON)
		print_json(table);
	else
		print_text(table);
	output_end();
}

/* ---- small things --------------------------------------------------------------------------- */

void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		die("out of memory");
	return memory;
}

double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

void sleep_ms(double ms)
{
	struct timespec left = {.tv_sec = (time_t)(ms / 1e3)};

	left.tv_nsec = (long)((ms - (double)left.tv_sec * 1e3) * 1e6);
	while (nanosleep(&left, &left))
		;
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

double median(double *values, size_t count)
{
	if (!count)
		return 0;
	qsort(values, count, sizeof(*values), compare_doubles);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

double percentile(const double *sorted, size_t count, double percent)
{
	size_t rank = (size_t)((double)count * percent / 100);

	if (!count)
		return 0;
	return sorted[rank < count ? rank : count - 1];
}

void progress(const char *format, ...)
{
	static double last_ms;
	double now = now_ms();
	va_list args;

	if (!last_ms)
		last_ms = now;
	if (now - last_ms < 3000)
		return;
	last_ms = now;
	fprintf(stderr, "%s: ", program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

void cuda_check(cudaError_t result, const char *call, const char *file, int line)
{
	int length = (int)strcspn(call, "(");

	if (result == cudaErrorNoDevice || result == cudaErrorInsufficientDriver)
		die("%.*s failed: %s; without a GPU: tests/sim/with-sim runs it on the simulator",
		    length, call, cudaGetErrorString(result));
	if (result != cudaSuccess)
		die("%.*s failed: %s (%s, error %d) at %s:%d", length, call,
		    cudaGetErrorString(result), cudaGetErrorName(result), (int)result, file, line);
}
