/*
 * analyzer/symbols/python.h: the line of Python that a call was made in. Called by findings and
 * sections.
 */
#ifndef CUDASPY_PYTHON_H
#define CUDASPY_PYTHON_H

#include "model/model.h"

struct python_line {
	const struct python_code *code; /* NULL: none */
	uint32_t line; /* 0 unknown */
};

/*
 * The line of a stack to look at: the innermost that is neither in an installed package nor in
 * Python's own library, for those only do what they were asked to; if all are, the innermost. code
 * is NULL if the stack has none.
 */
struct python_line python_line(const struct stack *stack);

#endif
