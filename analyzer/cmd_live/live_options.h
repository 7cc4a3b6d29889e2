/*
 * analyzer/cmd_live/live_options.h: what `ps`, `top` and `snapshot` have in common: whom to look at.
 */
#ifndef CUDASPY_LIVE_OPTIONS_H
#define CUDASPY_LIVE_OPTIONS_H

#include "live/live.h"

/* Traces to look at, of words on the command line: numbers of processes, and directories. Without any, all recorded
 * processes of this user, or for root of this machine. */
struct live_targets {
	struct recorded_list recorded; /* of this machine */
	const char **dirs; /* owned, not the texts */
	size_t n_dirs;
};

/* False after a message: a process is not there, or not recorded. live_targets_release in all cases. */
bool live_targets_find(struct live_targets *t, const char *verb, char **words, size_t n);

/* The same later on: what is not there any more is left out, without a word. */
void live_targets_find_again(struct live_targets *t, char **words, size_t n);
void live_targets_release(struct live_targets *t);

/* "500ms", "2s", "1.5"; a bare number is seconds. False after a message. */
bool live_read_time(const char *verb, const char *option, const char *text, uint64_t *ns);

#endif
