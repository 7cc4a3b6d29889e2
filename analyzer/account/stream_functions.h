/*
 * analyzer/account/stream_functions.h: functions on the host that a stream has been given, and what it has been given behind
 * each of them. Filled in by what accounts for the work (work.c); asked when one of them has run (idle/functions.c).
 */
#ifndef CUDASPY_STREAM_FUNCTIONS_H
#define CUDASPY_STREAM_FUNCTIONS_H

#include "work.h"

#define STREAM_FUNCTIONS_MOST 2048 /* a stream has no room for more */

struct stream_function {
	uint64_t begin_ns; /* of the call that handed it over */
	uint64_t submitted, work; /* of the stream, with it */
};

/* Times of two records are rounded. */
#define ROUNDED_NS 16

/* In order; those before `first` have run, or never will. */
struct stream_functions {
	struct stream_function *all;
	size_t first, n, size;
};

/* The stream is given one by a call that began then, and has it already in its counts. */
void stream_function_handed(struct gpu_stream *stream, uint64_t begin_ns);

/* The one that was handed over right after that time has run. False: the call that did it is not known, or has not returned. */
bool stream_function_ran(struct gpu_stream *stream, uint64_t handed_ns,
			 struct stream_function *function);

void stream_functions_free(struct stream_functions *functions);

#endif
