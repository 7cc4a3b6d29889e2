/*
 * analyzer/lanes/lanes.h: what happened, one by one, in a lane for each thread, GPU, stream and rank: what the HTML report
 * draws (docs/HTML_REPORT.md). It listens to the main reading (trace/listener.h).
 *
 * However long the trace is, lanes stay small: of too many calls those next to each other are merged, of too many other
 * items the shortest are dropped and counted. What must be seen as it was lies in windows: in these nothing is merged. They
 * are known only after a first reading, so a long trace is read twice.
 */
#ifndef CUDASPY_LANES_H
#define CUDASPY_LANES_H

#include "base/report.h"
#include "findings/analyzed.h"
#include "symbols/symbolize.h"
#include "trace/listener.h"

struct lanes;

/* For one reading of that analysis; both arguments must live as long. lanes_free. */
struct lanes *lanes_new(const struct analysis *a, struct symbolizer *symbols);
void lanes_free(struct lanes *l);

const struct listener *lanes_listener(struct lanes *l);

/*
 * After the reading: lanes for another one, which merge as much as these had to, but nothing around the worst moments of
 * the findings; NULL: these have merged nothing. report: finished. a: as in lanes_new, for the other reading.
 */
struct lanes *lanes_again(struct lanes *l, const struct report *report, const struct analysis *a);

/* After the reading: the timeline, into the report, with what its findings lead to; packed, at most so many bytes. */
void lanes_report(struct lanes *l, struct report *report, size_t most_bytes);

#endif
