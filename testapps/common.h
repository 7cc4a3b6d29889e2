/*
 * testapps/common.h: what every test application needs and none should have to explain: options,
 * one table as text, CSV or JSON, a clock, and a check for CUDA's result codes.
 *
 * A test application is a program with one CUDA habit, good or bad, that a person can run, read in
 * a few minutes, and put under a tracer. Its table goes to stdout, everything else to stderr, and
 * its exit status is 0 only if its results were right.
 */
#ifndef TESTAPPS_COMMON_H
#define TESTAPPS_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <cuda_runtime_api.h>

/* ---- options -------------------------------------------------------------------------------- */

enum option_kind { OPTION_FLAG, OPTION_NUMBER, OPTION_TEXT };

/* One option: --name, or --name VALUE, or --name=VALUE. A table of them ends with an empty row. */
struct option_row {
	const char *name;
	const char *value; /* what the help calls the value; NULL for a flag */
	const char *help;
	enum option_kind kind;
	void *target; /* bool *, long * or const char ** */
	long min, max; /* of a number, both included */
	const char *quick; /* what it is in a short run, unless given; NULL: as in any other */
};

enum output { OUTPUT_TEXT, OUTPUT_CSV, OUTPUT_JSON };

/*
 * Reads argv into the targets. --help, --csv, --json and --quick are understood besides the rows given.
 * With --quick, and on the simulator without it, this is to be a short run. A wrong option is named on
 * stderr and ends the program with status 2. Returns how to print.
 */
enum output options_read(int argc, char **argv, const char *summary, const struct option_row *rows);

/* Whether argv had it. */
bool option_given(const char *name);

/* ---- one table ------------------------------------------------------------------------------ */

struct table_column {
	const char *key; /* CSV and JSON */
	const char *title; /* text */
	int decimals; /* of a number */
};

struct table {
	const struct table_column *columns;
	size_t column_cnt;
	struct table_cell *cells; /* row after row */
	size_t cell_cnt;
};

void table_init(struct table *table, const struct table_column *columns, size_t column_cnt);
void table_release(struct table *table);

/* Cells are filled from left to right, row after row. text is copied. */
void table_text(struct table *table, const char *text);
void table_number(struct table *table, double number);
void table_empty(struct table *table);
void table_print(const struct table *table, enum output output); /* dies if it cannot be written */

/* ---- small things --------------------------------------------------------------------------- */

extern const char *program; /* name for messages, set by options_read */

__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);
/* What is wrong with an option, on stderr; ends the program with status 2. */
__attribute__((noreturn, format(printf, 1, 2))) void usage_error(const char *format, ...);

void output_end(void); /* dies if not all that was printed could be written */

void *allocate(size_t count, size_t size); /* zeroed; dies when there is none */
double now_ms(void);
void sleep_ms(double ms);
double median(double *values, size_t count); /* sorts them; 0 of none */
double percentile(const double *sorted, size_t count, double percent); /* nearest rank; 0 of none */

/* A line on stderr, but none in the first three seconds of the program and at most one in three. From
 * one thread alone. */
__attribute__((format(printf, 1, 2))) void progress(const char *format, ...);

void cuda_check(cudaError_t result, const char *call, const char *file, int line);
#define CUDA_CHECK(call) cuda_check((call), #call, __FILE__, __LINE__)

#endif
