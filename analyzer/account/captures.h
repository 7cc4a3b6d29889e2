/*
 * analyzer/account/captures.h: captures of streams. As long as one lasts, what is handed to its
 * streams goes into a graph, and is no work yet. A stream takes part from the begin of its capture,
 * or from the moment it waits for an event that was recorded in a stream that takes part. The
 * recorder follows them likewise (shim/inspect/inspect_stream.c), but says so of copies only.
 */
#ifndef CUDASPY_CAPTURES_H
#define CUDASPY_CAPTURES_H

#include "work.h"

/* The stream takes part in none any more; of a capture that began in it, no stream does. */
void capture_forget(struct gpu_work *w, struct gpu_stream *stream);

/* A call of that function (enum function_does) has begun or ended a capture. */
void capture_see(struct gpu_work *w, struct gpu_stream **last, const struct record *record,
		 uint8_t what);

/* Does what is handed to the stream go into a graph? what: as above. */
bool capture_takes(struct gpu_work *w, const struct record *record, struct gpu_stream *stream,
		   uint8_t what);

#endif
