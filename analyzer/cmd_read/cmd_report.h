/*
 * analyzer/cmd_read/cmd_report.h: what `cudaspy report` does, for `cudaspy run` and for tests.
 */
#ifndef CUDASPY_CMD_REPORT_H
#define CUDASPY_CMD_REPORT_H

#include "cmd/command.h"
#include "trace/trace.h"

struct analysis;
struct filter;
struct gate;
struct renderer;
struct report;
struct symbolizer;

#define REPORT_SCHEMA "cudaspy-report-2"

struct report_options {
	const struct renderer *renderer;
	const char *profile; /* file that --profile names; NULL: none */
	const struct filter *only; /* what of the recording counts; NULL: all */
	bool nested; /* also the calls made inside other calls */
	bool cost_only; /* what recording costs, and nothing else: of text and JSON */
	bool verbose; /* also the tables that go into detail */
	struct gate *gate; /* judged by report_show; NULL: none */
	const char *again; /* options of ours that `why` needs, too; NULL: none */
	bool hints; /* findings say how to see more of them */
	uint64_t end_ns; /* when processes that did not end in order ended; 0 unknown */
};

/* Fills a report in, from an analysis that is over. */
void report_add_sections(struct report *report, struct analysis *a, struct symbolizer *symbols,
			 const struct report_options *options);

/* Reads the traces in `dirs` and writes a report. 0; -ENOENT if none can be read; -EIO if the
 * report cannot be written; another -errno if the profile that was named cannot be read, or the
 * filter fits nothing there is. Has then said why. */
int report_show(const char *const *dirs, size_t n_dirs, const struct trace_filter *filter,
		const struct report_options *options, FILE *out);

/* The same for `cudaspy info`. */
int info_show(const char *const *dirs, size_t n_dirs, const struct trace_filter *filter,
	      const struct renderer *renderer, FILE *out);

#endif
