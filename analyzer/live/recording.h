/*
 * analyzer/live/recording.h: is a running program being recorded now, since when, and what opens the next window? Called by what
 * shows running programs.
 */
#ifndef CUDASPY_LIVE_RECORDING_H
#define CUDASPY_LIVE_RECORDING_H

#include "words.h"

/* Then nothing is known of what its threads do in calls that they have begun since. */
static inline bool live_is_dormant(const struct live_process *p)
{
	return p->trace->board.head.dormant != 0;
}

/* Windows so far; 0: recording never was dormant, or is and has been from the begin. */
static inline uint64_t live_windows(const struct live_process *p)
{
	return p->trace->board.head.windows;
}

/* For how long it has been so; UNKNOWN_NS. */
uint64_t live_recording_ns(const struct live_process *p);

/* "all", "window", "dormant". */
const char *live_recording_name(const struct live_process *p);

/* "window 3, for 12 s"; "dormant for 12 s, 3 windows so far"; NULL: it never was dormant. */
const char *live_recording_text(struct arena *texts, const struct live_process *p);

/* Of one that is dormant: "cudaProfilerStart, or `cudaspy start 4711`"; NULL: it is not. */
const char *live_opens_text(struct arena *texts, const struct live_process *p);

#endif
