/*
 * analyzer/account/legacy.h: turns that the legacy default stream and the streams that wait for it
 * took (struct legacy_use).
 */
#ifndef CUDASPY_LEGACY_H
#define CUDASPY_LEGACY_H

#include "work.h"

/*
 * Work is about to be counted as handed to the stream. A call that waits for it, in the legacy
 * stream, is meant to come behind what its thread did before (own), but not behind other streams.
 */
void legacy_take_turn(struct gpu_work *w, const struct record *record, struct gpu_stream *stream,
		      const struct gpu_stream *own, bool waits);

#endif
