/*
 * analyzer/sections/stack.h: how the application came to a call, as a table in a row of
 * another one.
 */
#ifndef CUDASPY_SECTIONS_STACK_H
#define CUDASPY_SECTIONS_STACK_H

#include "base/table.h"
#include "symbols/symbolize.h"
#include "model/model.h"

extern const struct table_kind stack_table_kind;

/*
 * One row a function, innermost first, those that were compiled into others and those in Python
 * included. For people the application's own come to 8 lines at most: without CUDA's libraries,
 * what the C and C++ libraries run before main or a thread's function, and, where an interpreter's
 * functions are known, all but the innermost two of the functions that are not its own.
 * duration_ns: of the call. `texts` owns everything.
 */
const struct table *report_stack(struct arena *texts, struct symbolizer *symbols,
				 const struct stack *stack, uint64_t duration_ns);

#endif
