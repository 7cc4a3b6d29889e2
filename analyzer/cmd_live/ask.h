/*
 * analyzer/cmd_live/ask.h: asks running programs to begin or end a window, or to put a mark into their traces. Used by
 * `start`, `stop`, `mark` and `rotate`.
 */
#ifndef CUDASPY_ASK_H
#define CUDASPY_ASK_H

#include "cudaspy/trace_format.h"
#include "base/util.h"

struct asking {
	enum spy_wanted wanted;
	uint64_t at_ns; /* since the epoch; 0: now */
	uint64_t every_ns, for_ns; /* 0: once; without end */
	const char *text; /* of a mark; NULL: none */
};

/* The programs that `words` name, processes or directories of traces; without any all of this user's. An exit status,
 * after messages. */
int ask_all(const char *verb, const struct asking *asking, char **words, size_t n);

#endif
