/*
 * analyzer/report_findings.h: what is wrong, what it costs, and what to do: the section a report begins
 * with.
 */
#ifndef CUDASPY_REPORT_FINDINGS_H
#define CUDASPY_REPORT_FINDINGS_H

#include "finding.h"

/* The findings, the costliest first; in text those that are worth it. */
void report_findings(struct report *report, struct analysis *a, struct symbolizer *symbols);

#endif
