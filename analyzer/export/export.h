/*
 * analyzer/export/export.h: a recording in the formats of other tools. A format is one file (or a few) and one row of
 * `export_formats`; help, manual page and completions list the rows.
 *
 * `cudaspy export` reads the traces and finishes a report of them (cmd_export.c). Then `begin` is called, with the finished
 * report and what the reading has found out: names of locks, modules, findings. A format that shows what happened one by one
 * is then the listener of a second reading (trace/listener.h), and writes as it goes: it keeps nothing that grows with the
 * records. A format of tables has no listener; there is no second reading for it. `end` writes what is left.
 */
#ifndef CUDASPY_EXPORT_H
#define CUDASPY_EXPORT_H

#include "target.h"
#include "base/report.h"
#include "findings/analyzed.h"
#include "symbols/symbolize.h"
#include "trace/listener.h"

/* What was asked for beside the format. */
struct export_options {
	const char *path; /* of --output, as it was given; "-": standard output */
	const char *table; /* of --table, the only one to write; NULL: all */
	const char *by; /* of --by; NULL: not given */
	uint64_t
		window_bytes; /* of --window: a file is no larger, where a format can begin another one */
};

/* What a format works with. All of it lives until `end` has returned. */
struct export_job {
	const struct export_options *options;
	const struct report *report; /* finished */
	/* The reading that is over: accounts, findings, names of locks (by index, which both readings have in common). */
	const struct analysis *known;
	/* The reading that is shown to the listener: what its pointers belong to. Empty before it begins. */
	const struct analysis *shown;
	struct symbolizer *symbols;
	/* Where to write: out->file, or for formats that are `named` a file or folder that they make, called out->temporary. */
	struct export_target *out;
};

/* clang-format off */
/* One row a format: its name, what makes files by name instead of writing to a FILE (`named`: it cannot write to standard
 * output), the functions, and what reads it. listener: NULL: the report is enough. */
#define EXPORT_FORMATS(FORMAT) \
	FORMAT(chrome, false, chrome_begin, chrome_listener, chrome_end, "JSON for chrome://tracing, speedscope and Perfetto") \
	FORMAT(perfetto, false, perfetto_begin, perfetto_listener, perfetto_end, "a trace for Perfetto (ui.perfetto.dev), smaller than JSON; FILE.2, FILE.3 ... if it is too large for one FILE") \
	FORMAT(folded, false, folded_begin, folded_listener, folded_end, "lost time by stack, in nanoseconds, for flame graphs: flamegraph.pl, speedscope, inferno") \
	FORMAT(sqlite, true, sqlite_begin, sqlite_listener, sqlite_end, "a database with the tables of Nsight Systems and cudaspy's own") \
	FORMAT(csv, true, csv_begin, NULL, csv_end, "the report's tables: a folder with a file for each, or with --table one of them")
/* clang-format on */

struct export_format {
	const char *name; /* as in --format=NAME */
	bool named;
	/* Returns the format's state, or NULL after a warning. */
	void *(*begin)(const struct export_job *job);
	const struct listener *(*listener)(void *state);
	/* Frees the state; writes the rest first if all went well so far (!err). 0, or -errno after a warning. Errors of
	 * writing to the file need not be looked at: the caller does. */
	int (*end)(void *state, int err);
};

/* For the help of --format, and of the verb. */
#define EXPORT_NAME(name, named, begin, listener, end, help) " " #name
#define EXPORT_LINE(name, named, begin, listener, end, help) "  " #name "  " help "\n"
#define EXPORT_NAMES "one of" EXPORT_FORMATS(EXPORT_NAME)
#define EXPORT_HELP EXPORT_FORMATS(EXPORT_LINE)

extern const struct export_format export_formats[];
extern const size_t n_export_formats;

/* NULL after a message that says which there are; name: NULL: none was given. */
const struct export_format *export_find(const char *name);

/* The formats: chrome.c … */
void *chrome_begin(const struct export_job *job);
const struct listener *chrome_listener(void *state);
int chrome_end(void *state, int err);
/* … and those of tables: analyzer/tables/ */
void *sqlite_begin(const struct export_job *job);
const struct listener *sqlite_listener(void *state);
int sqlite_end(void *state, int err);

void *csv_begin(const struct export_job *job);
int csv_end(void *state, int err);

void *perfetto_begin(const struct export_job *job);
const struct listener *perfetto_listener(void *state);
int perfetto_end(void *state, int err);

void *folded_begin(const struct export_job *job);
const struct listener *folded_listener(void *state);
int folded_end(void *state, int err);

#endif
