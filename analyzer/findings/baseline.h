/*
 * analyzer/findings/baseline.h: findings that were there before, from an earlier report in JSON.
 *
 * A finding is the same as one of the baseline if detector, CUDA function, module and calling
 * function are, first those of the same line of the same file, then, as lines move when a file is
 * edited, the rest one by one; of those with several places that one is told may be another.
 * Offsets in modules play no part: each build has others. Called by the gate.
 */
#ifndef CUDASPY_BASELINE_H
#define CUDASPY_BASELINE_H

#include <jansson.h>
#include "base/util.h"

struct finding;

/* Worse is what costs more than this above what it did: below that is the noise of two runs. */
#define BASELINE_WORSE_PART 5 /* a fifth */
#define BASELINE_WORSE_NS 1000000

struct known_finding {
	const char *id, *function, *module, *caller, *library_caller,
		*file; /* but the id: NULL unknown */
	uint64_t line, cost_ns; /* UNKNOWN_NS: unknown */
	bool elsewhere; /* one of several places was told */
	bool taken;
};

struct baseline {
	const char *path; /* as given; NULL: there is none */
	struct known_finding *all;
	size_t n;
	json_t *root; /* owns the texts */
	uint64_t fresh, worse, same, gone; /* after baseline_compare */
};

/* Reads the report in the file; or takes over `root`, a report that was read from `path`. 0, or
 * -errno after a message. */
int baseline_read(struct baseline *b, const char *path);
int baseline_take(struct baseline *b, const char *path, json_t *root);
void baseline_release(struct baseline *b);

/* Sets `compared` and before_ns of each finding. */
void baseline_compare(struct baseline *b, struct finding *findings, size_t n);

#endif
