/*
 * analyzer/reading/stack_gc.h: garbage collection of stacks, by mark and sweep. A recording has one for each
 * call that is worth a look, hours of them; what is told in the end are a few of each place.
 */
#ifndef CUDASPY_STACK_GC_H
#define CUDASPY_STACK_GC_H

#include <stddef.h>

struct analysis;

/* To be called between two records. Returns with how many stacks in the model it should be called
 * again: so many that all calls together cost no more than the stacks themselves. */
size_t stack_gc(struct analysis *a);

#define STACKS_FIRST 4096 /* before the first time */

#endif
