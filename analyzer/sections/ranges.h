/*
 * analyzer/sections/ranges.h: the program's own ranges (NVTX) in a report.
 */
#ifndef CUDASPY_SECTIONS_RANGES_H
#define CUDASPY_SECTIONS_RANGES_H

#include "base/report.h"
#include "findings/finding.h"
#include "idle/idle.h"

/* "layers: backward": a range as reports name it. */
const char *report_range_name(struct arena *texts, struct range_name *name);

/* The ranges, by name. */
void report_ranges(struct report *report, const struct idle *idle);

/* In which ranges the calls of a finding were made: a cell of its row. own_ns: what they all cost. */
extern const struct table_kind range_shares_kind;
const struct table *report_range_shares(struct arena *texts, const struct range_shares *shares,
					uint64_t own_ns);

#endif
