/*
 * analyzer/trace/open.h: a trace of a set is opened. For the files of this folder.
 */
#ifndef CUDASPY_TRACE_OPEN_H
#define CUDASPY_TRACE_OPEN_H

#include "trace.h"

/* A trace that was found: in a directory, or in a container. */
struct found_trace {
	const char *dir;
	const struct container *container; /* NULL: none */
	size_t first_member;
};

/* Becomes one of the set's, if the filter takes it and it can be read; else the reason is said, and counted. */
void trace_open(struct trace_set *set, const struct found_trace *found,
		const struct trace_filter *filter);
void trace_free(struct trace *trace);

/* Is there a trace in the directory? */
bool trace_is_in(const char *dir);

/* Which one of all folders it is. False: it is none. */
bool folder_of(const char *dir, struct folder *folder);

/* ---- streams.c ------------------------------------------------------------------------------- */

/* Adds its streams to the set. Tails first: see reader.h. */
void trace_find_streams(struct trace_set *set, struct trace *trace);

/* ---- numbers.c ------------------------------------------------------------------------------- */

/* Are record types what they are in this build? Later versions may add some. */
void trace_check_events(const struct trace *trace);

/* Most traces number functions as this version does: then a thousand names need neither be looked
 * up nor kept until all traces are in order. */
void trace_map_known_functions(struct trace_set *set, struct trace *trace);

/* Those that do not: when all traces are in order. */
void trace_map_functions(struct trace_set *set, struct trace *trace);

/* ---- timeline.c ------------------------------------------------------------------------------ */

/* Times since the epoch, and since a counter was 0, are less: some 146 years. So are sums of both,
 * in 63 bits. */
#define TIME_MOST_NS ((uint64_t)1 << 62)

void trace_set_timeline(struct trace *trace);

/* Cycles that come to so many nanoseconds, rounded down. */
uint64_t timeline_cycles(const struct timeline *t, uint64_t ns);

#endif
