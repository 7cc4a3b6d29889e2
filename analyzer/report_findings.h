/*
 * analyzer/report_findings.h: what is wrong, what it costs, and what to do: the section a report begins
 * with.
 */
#ifndef CUDASPY_REPORT_FINDINGS_H
#define CUDASPY_REPORT_FINDINGS_H

#include "gate.h"

/* What the gate says, then the findings, those first that count for it and then the costliest; in text
 * those that are worth it. Judges the gate. */
void report_findings(struct report *report, struct analysis *a, struct symbolizer *symbols,
		     struct gate *gate);

#endif
