/*
 * analyzer/sections/trace.h: the sections of a report that say what the trace is and what it
 * is not: losses, headline, calls in flight at the end, processes, environment, coverage, GPUs.
 */
#ifndef CUDASPY_SECTIONS_TRACE_H
#define CUDASPY_SECTIONS_TRACE_H

#include "base/report.h"
#include "cost/cost.h"
#include "findings/gate.h"

/* The executable of a process: its path, or as much of its name as is known; the trace's directory
 * if nothing is. NULL: of the process that began the others. */
const char *report_program(struct arena *texts, const struct trace_set *set,
			   const struct trace *trace);

/* What the trace does not have; no row when nothing is missing: returns true. */
bool report_losses(struct report *report, const struct model *model);

/* The headline; and, when they are known, how many findings there are that matter. */
struct summary_row;
struct summary_row *report_summary(struct report *report, const struct accounting *a,
				   const struct cost_study *cost);
void report_found(struct arena *texts, struct summary_row *row, uint64_t problems, uint64_t notes,
		  const char *first);

/* So many files of the program are not those that ran (files.h). */
void report_unread(struct arena *texts, struct summary_row *row, size_t n);

/* Calls that had not returned when the trace ends. end_ns: when the processes ended, since the
 * epoch, if the caller knows it better than the traces do; else 0. summary: of the report, to be
 * told of them; or NULL. */
void report_in_flight(struct report *report, const struct model *model, uint64_t end_ns,
		      struct summary_row *summary);

/* After report_in_flight: does the gate fail, or has it nothing to judge by, for calls that failed or never returned? */
void report_judge_calls(struct gate *gate, const struct summary_row *summary);

/* Everything else `info` shows. */
void report_about(struct report *report, const struct callstats *stats);

#endif
