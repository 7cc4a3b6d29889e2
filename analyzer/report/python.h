/*
 * analyzer/report/python.h: lines of Python that calls were made in. Called by the sections of a
 * report.
 */
#ifndef CUDASPY_PYTHON_H
#define CUDASPY_PYTHON_H

#include "base/report.h"
#include "trace/model.h"

struct site_stack;

/* A line, and for what of the cost the stacks stand that have it (findings/site_stacks.h). */
struct python_line {
	const struct python_code *code; /* NULL: none */
	uint32_t line; /* 0 unknown */
	uint64_t weight;
	const struct site_stack *costliest; /* of python_lines: among those stacks */
};

/*
 * The line of a stack to look at: the innermost that is neither in an installed package nor in Python's own
 * library, for those only do what they were asked to; if all are, the innermost. code is NULL if the stack
 * has none.
 */
struct python_line python_line(const struct stack *stack);

/* The lines of several stacks, each once, the costliest first, into `lines`, which has room for all; returns
 * how many. */
size_t python_lines(const struct site_stack *stacks, size_t n, struct python_line *lines);

/* How many of these make more than next to nothing of the cost: the first is one. */
size_t python_lines_told(const struct python_line *lines, size_t n);

/* Can the file be opened, or is its name something like "<string>"? */
bool python_is_file(const char *file);

/* "train.py:42 in step"; and of several "…; also data.py:7 in load, and 2 more lines": `more` of them are not in the
 * array. The report owns it; NULL for none. */
const char *python_words(struct report *report, const struct python_line *line);
const char *python_words_all(struct report *report, const struct python_line *lines, size_t n,
			     size_t more);

#endif
