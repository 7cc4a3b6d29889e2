/*
 * analyzer/sections/filters.h: the header of a report on a part of a recording: what it is about, and what is left out.
 */
#ifndef CUDASPY_SECTIONS_FILTERS_H
#define CUDASPY_SECTIONS_FILTERS_H

#include "base/report.h"
#include "ranks/ranks.h"

/* Nothing without a filter. */
void report_only(struct report *report, const struct ranks *ranks);

#endif
