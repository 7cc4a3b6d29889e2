/*
 * shim/probe/query.h: a thread that asks over and over whether a GPU is done waits for it (cudaEventQuery,
 * cudaStreamQuery). Runs on that thread, when such a question of its own returns.
 *
 * The time between two questions counts if the thread did nothing in it to speak of, or slept. Questions are only counted,
 * so what is known of them is kept in the thread; the wait is a record like those of probe/outside.h, to which each
 * further piece is added.
 */
#ifndef CUDASPY_SHIM_QUERY_H
#define CUDASPY_SHIM_QUERY_H

#include "probe/outside.h"

/* Has the answer been that the work has not ended, and did the thread make no recorded call since? */
static inline bool spy_query_is_open(const struct spy_thread *thread)
{
	return thread->query.object && thread->query.calls == thread->page->calls;
}

/* The GPU has answered, after the question in the frame for that event or stream. */
void spy_query_answered(struct spy_frame *frame, uint64_t object);

/* A wait between calls has ended, now: if the thread only slept until its next question, makes the wait one for the GPU. */
bool spy_query_slept(struct spy_thread *thread, struct spy_outside *wait, uint64_t now);

#endif
