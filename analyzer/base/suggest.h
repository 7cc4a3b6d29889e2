/*
 * analyzer/base/suggest.h: of words that could have been meant, the one that is most like what was written.
 */
#ifndef CUDASPY_SUGGEST_H
#define CUDASPY_SUGGEST_H

#include "util.h"

/* Starts with the word and zeros. */
struct suggest {
	const char *word; /* as it was written */
	const char *best; /* NULL: none is like it */
	size_t distance; /* between the two: letters that differ */
};

/* A word that could have been meant; it must live as long as `suggest`. */
void suggest_try(struct suggest *suggest, const char *candidate);

/* The same for a list with commas between; `known` is cut into words, and lives as long. */
void suggest_try_list(struct suggest *suggest, char *known);

/* "; did you mean 'report'?", or nothing; into `text`. */
#define SUGGEST_TEXT 160
const char *suggest_text(const struct suggest *suggest, char text[SUGGEST_TEXT]);

#endif
