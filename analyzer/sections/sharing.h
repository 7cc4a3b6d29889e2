/*
 * analyzer/sections/sharing.h: the sections of a report that say which processes shared a GPU,
 * when, and how: by time slices or through MPS.
 */
#ifndef CUDASPY_SECTIONS_SHARING_H
#define CUDASPY_SECTIONS_SHARING_H

#include "base/report.h"
#include "account/callstats.h"

/* Processes that used one GPU at the same time, and those that waited for another user's MPS
 * server; no rows when there are none. */
void report_sharing(struct report *report, const struct callstats *stats);

/* What of MPS each process found, for `info`: daemon, server, limits. */
void report_mps(struct report *report, const struct model *model);

#endif
