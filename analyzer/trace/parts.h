/*
 * analyzer/trace/parts.h: parts of one recording (cudaspy/trace_format.h), which lie in directories of their own and are
 * one trace.
 */
#ifndef CUDASPY_TRACE_PARTS_H
#define CUDASPY_TRACE_PARTS_H

#include "base/util.h"

struct trace;
struct trace_set;

/* When all traces are open, and copies are dropped: each recording is one trace, that of its last part, with the streams of
 * all. The others are marked (trace->joined). */
void trace_parts_join(struct trace_set *set);

/* Are parts missing between those that are here, or before them? */
bool trace_parts_have_gaps(const struct trace *trace);

/* Parts that are not here: of the first ones, and between those that are. A recording of which one part was named has none
 * of these. */
struct parts_missing {
	uint32_t first, between;
};
struct parts_missing trace_parts_missing(const struct trace *trace);

/* Has the recorder deleted all that are missing, and does the board say what they had? */
bool trace_parts_are_documented(const struct trace *trace);

void trace_parts_release(struct trace *trace);

#endif
