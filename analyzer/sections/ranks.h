/*
 * analyzer/sections/ranks.h: who waited for whom in collective operations, and why.
 */
#ifndef CUDASPY_SECTIONS_RANKS_H
#define CUDASPY_SECTIONS_RANKS_H

#include "base/report.h"
#include "ranks/ranks.h"
#include "symbols/symbolize.h"

/* All ranks, their steps and their collective operations; nothing of traces without ranks. */
void report_ranks(struct report *report, const struct ranks *ranks, struct symbolizer *symbols);

/* One rank in full: whom it waited for and why those were late, and who waited for it. */
void report_rank(struct report *report, const struct ranks *ranks, struct symbolizer *symbols,
		 const struct rank *rank);

#endif
