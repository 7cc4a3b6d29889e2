/*
 * analyzer/render/findings.h: what the formats that show only findings have in common.
 */
#ifndef CUDASPY_RENDER_FINDINGS_H
#define CUDASPY_RENDER_FINDINGS_H

#include "base/report.h"

/* A row of the table "findings": what it is and cost, in a sentence; and its cure with the gain.
 * The caller frees. */
char *render_finding_message(const struct table *findings, size_t row);
char *render_finding_cure(const struct table *findings, size_t row);

/* Neither minor nor a note. */
bool render_finding_is_problem(const struct table *findings, size_t row);

/* Is it a failure? What the gate says; without one, a problem that is neither suppressed nor
 * known. */
bool render_finding_fails(const struct table *findings, size_t row);

#endif
