/*
 * analyzer/findings/suppress.h: findings that a person looked at and accepts, from a file:
 *
 *   # a comment
 *   pageable-copy                                     -- all of them; why is mandatory
 *   pageable-copy  loader.c:120                       -- a file of the vendor's, ticket 12
 *   hidden-sync    libvendor*.so   until 2027-03-31   -- they promised a release
 *
 * A place is a function (the one that calls, or CUDA's), FILE:LINE, a file or a module, with * ?
 * []; a file or module without a slash is looked for in every folder. A place in Python covers
 * findings that come from nowhere else in Python. An entry holds to the end of its last day. Called
 * by the gate.
 */
#ifndef CUDASPY_SUPPRESS_H
#define CUDASPY_SUPPRESS_H

#include "base/util.h"

struct finding;

struct suppression {
	const char *path; /* the file it is in */
	uint64_t line;
	const char *id, *place, *until, *reason; /* place, until: may be NULL */
	bool expired;
	/* That it covers, or would if it had not expired: how many, how many of unknown cost, and
	 * what the others cost. */
	uint64_t findings, unknown, cost_ns;
};

struct suppressions {
	struct suppression *all;
	size_t n;
	struct arena texts;
};

/* Adds a file's entries; `today` is YYYY-MM-DD. 0, or -errno after a message with file and line. */
int suppress_read(struct suppressions *s, const char *path, const char *today);
void suppress_release(struct suppressions *s);

/* Counts the finding with each entry that covers it. The reason of the first that has not expired;
 * NULL: it is not suppressed. The text lives as long as s. */
const char *suppress_reason(struct suppressions *s, const struct finding *finding);

#endif
