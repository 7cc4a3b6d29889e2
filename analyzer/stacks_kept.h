/*
 * analyzer/stacks_kept.h: forgets stacks that are no longer needed. A recording has one for each
 * call that is worth a look, hours of them; what is told in the end are a few of each place.
 */
#ifndef CUDASPY_STACKS_KEPT_H
#define CUDASPY_STACKS_KEPT_H

#include <stddef.h>

struct analysis;

/* To be called between two records. Returns with how many stacks in the model it should be called
 * again: so many that all calls together cost no more than the stacks themselves. */
size_t stacks_forget(struct analysis *a);

#define STACKS_FIRST 4096 /* before the first time */

#endif
