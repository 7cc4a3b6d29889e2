/*
 * analyzer/model/python.h: the line of Python that a call was made in. Called by findings and
 * sections.
 */
#ifndef CUDASPY_PYTHON_H
#define CUDASPY_PYTHON_H

#include "model.h"

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

/* The frame of that line, in the stack; NULL: none. */
const struct python_frame *python_frame(const struct stack *stack);

/* The line of the stack's frame i of Python, 0 being the innermost. */
struct python_line python_line_at(const struct stack *stack, uint8_t i);

/* Is it none of a package, nor of Python's own? */
bool python_is_program(const struct python_line *line);

/* What that line of a program called of a package, by a name that its users know if there is one; code is NULL if
 * it made the call itself. */
struct python_line python_called(const struct stack *stack);

/* How many characters of its name are that of the function itself: a comprehension is a part of the one that it stands in. */
size_t python_name_length(const struct python_code *code);

/* Less than 0, 0, more: which function of the program the stacks' lines stand in, and what it called of a package. */
int python_compare_functions(const struct stack *a, const struct stack *b);

#endif
