/*
 * analyzer/sections/findings.h: what is wrong, what it costs, and what to do: the section a
 * report begins with.
 */
#ifndef CUDASPY_SECTIONS_FINDINGS_H
#define CUDASPY_SECTIONS_FINDINGS_H

#include "base/report.h"
#include "findings/gate.h"

struct findings;
struct ranks;
struct summary_row;

/* What the gate says, then the findings, those first that count for it and then the costliest; in
 * text those that are worth it. Judges the gate, and tells the summary. */
void report_findings(struct report *report, struct findings *f, const struct ranks *ranks,
		     struct symbolizer *symbols, struct gate *gate, struct summary_row *summary);

/* Those about the analysis' subject, a function, a thread or a GPU, numbered as they are in the
 * report: in calls of that function, by that thread, with that GPU current. Of an unknown lock: no
 * section. */
void report_findings_about(struct report *report, struct findings *f, const struct ranks *ranks,
			   struct symbolizer *symbols);

#endif
