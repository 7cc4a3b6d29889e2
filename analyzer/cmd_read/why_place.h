/*
 * analyzer/cmd_read/why_place.h: the calls that are made at a place of the program, for `cudaspy why`.
 */
#ifndef CUDASPY_WHY_PLACE_H
#define CUDASPY_WHY_PLACE_H

#include "analysis.h"
#include "base/hash.h"
#include "findings/finding.h"
#include "symbols/symbolize.h"

struct why_address;

struct why_place {
	struct subject_place place; /* must be the first */
	struct symbolizer *symbols;
	char *file, *module; /* owned */
	struct why_address *addresses; /* those looked at */
	uint64_t calls; /* made there, of those that lost time */
};

/* Is the word a file and a line, "main.cu:17", or a file? */
bool why_place_is(const char *word);

/* The place that a word means; a finding's. why_place_release in all cases. */
void why_place_of_word(struct why_place *p, const char *word);
void why_place_of_finding(struct why_place *p, const struct finding *f);
void why_place_release(struct why_place *p);

#endif
