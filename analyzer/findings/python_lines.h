/*
 * analyzer/findings/python_lines.h: the lines of Python that a finding's calls were made in, by
 * what of its cost their stacks stand for (site_stacks.h). Called when sites become findings.
 */
#ifndef CUDASPY_PYTHON_LINES_H
#define CUDASPY_PYTHON_LINES_H

#include "site_stacks.h"
#include "model/python.h"

struct costly_line {
	struct python_line at;
	uint64_t weight; /* of all stacks that have it */
	const struct site_stack *costliest; /* among those stacks */
};

/* The lines of several stacks, each once, the costliest first, into `lines`, which has room for
 * all; returns how many. */
size_t python_lines(const struct site_stack *stacks, size_t n, struct costly_line *lines);

/* How many of these make more than next to nothing of the cost: the first is one. */
size_t python_lines_shown(const struct costly_line *lines, size_t n);

#endif
