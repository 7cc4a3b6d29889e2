/*
 * analyzer/idle/callers.h: waits by what people call them: a table of who waits, by the file in
 * Python or the library that the wait's stack goes through.
 */
#ifndef CUDASPY_IDLE_CALLERS_H
#define CUDASPY_IDLE_CALLERS_H

#include "causes.h"
#include "model/model.h"

/* What the stack of a wait says that it is; otherwise `cause`. NULL: no stack. */
enum idle_cause idle_cause_of_stack(const struct stack *stack, enum idle_cause cause);

/* The same for people: "torch's DataLoader"; NULL: nothing better than the cause's own words. */
const char *idle_name_of_stack(const struct stack *stack);

#endif
