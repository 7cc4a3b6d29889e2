/*
 * analyzer/findings/rank_words.h: ranks of a job in words. Texts live as long as the arena.
 */
#ifndef CUDASPY_RANK_WORDS_H
#define CUDASPY_RANK_WORDS_H

#include "ranks/ranks.h"

/* "rank 3", "rank 3, 2nd start". */
const char *text_rank_name(struct arena *texts, const struct rank *rank);

/* The same with where it runs: "rank 3 (node7, GPU 1)". */
const char *text_rank_where(struct arena *texts, const struct rank *rank);

/* "243.9 ms for rank 1, 3 ms for rank 2": whom it waited for, the longest first; empty: nobody. */
const char *text_rank_waits(struct arena *texts, const struct ranks *ranks,
			    const struct rank *rank);

#endif
