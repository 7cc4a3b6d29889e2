/*
 * analyzer/sections/cost.h: what recording cost the program, in a report (docs/COST.md).
 */
#ifndef CUDASPY_SECTIONS_COST_H
#define CUDASPY_SECTIONS_COST_H

#include "base/report.h"
#include "cost/cost.h"

/* "recording cost this program 0.8 % (0.3 to 1.3 %)", or why that is not known; and the function that it changes most, if
 * that is much more. */
const char *report_cost_text(struct arena *texts, const struct cost_study *cost);

/* The table: in all, by thread, by function; and what of it are probes and stacks. */
void report_cost(struct report *report, const struct cost_study *cost);

#endif
