/*
 * analyzer/base/suggest.c: words that are like another one. Called where a name on the command line is unknown.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "lines.h"
#include "suggest.h"

#define WORD_MOST 64 /* longer ones are compared as far as this */

static bool same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How many letters have to be put in, left out, replaced, or swapped with their neighbour to make one word of
 * the other (Damerau and Levenshtein; no letter is touched twice). */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t rows[3][WORD_MOST + 1], i, j;
	size_t *before = rows[0], *above = rows[1], *row = rows[2], *spare;

	for (j = 0; j <= n_b; j++)
		above[j] = j;
	for (i = 1; i <= n_a; i++) {
		row[0] = i;
		for (j = 1; j <= n_b; j++) {
			row[j] = least(above[j], row[j - 1]) + 1;
			row[j] = least(row[j], above[j - 1] + !same_letter(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
			    same_letter(a[i - 2], b[j - 1]))
				row[j] = least(row[j], before[j - 2] + 1);
		}
		spare = before;
		before = above;
		above = row;
		row = spare;
	}
	return above[n_b];
}

void suggest_try(struct suggest *suggest, const char *candidate)
{
	size_t n = strnlen(suggest->word, WORD_MOST), n_candidate = strnlen(candidate, WORD_MOST);
	size_t d = distance(suggest->word, n, candidate, n_candidate);

	if (!strcmp(candidate, suggest->word)) /* it is known that this is not there */
		return;
	/* What was cut short is meant before what was mistyped. */
	if (n > 1 && n_candidate > n && !strncasecmp(candidate, suggest->word, n))
		d = 1;
	if (d > (n > 2 ? (n + 1) / 3 : 1) || d >= least(n, n_candidate) + (d == 0) ||
	    (suggest->best && d >= suggest->distance))
		return;
	suggest->best = candidate;
	suggest->distance = d;
}

void suggest_try_list(struct suggest *suggest, char *known)
{
	char *word;

	while ((word = strsep(&known, ",")))
		if (*word)
			suggest_try(suggest, word);
}

const char *suggest_text(const struct suggest *suggest, char text[SUGGEST_TEXT])
{
	char *shown;

	if (!suggest->best)
		return "";
	shown = visible(suggest->best);
	snprintf(text, SUGGEST_TEXT, "; did you mean '%.100s'?", shown);
	free(shown);
	return text;
}
