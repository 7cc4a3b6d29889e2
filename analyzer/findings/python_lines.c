/*
 * analyzer/findings/python_lines.c: the lines of Python that a finding's calls were made in. Called
 * by finding.c.
 */
#include <stdlib.h>
#include <string.h>
#include "python_lines.h"
#include "base/median.h"

static bool is_same(const struct python_line *a, const struct python_line *b)
{
	return a->line == b->line && !strcmp(a->code->file, b->code->file) &&
	       !strcmp(a->code->function, b->code->function);
}

static int by_weight(const void *a, const void *b)
{
	const struct costly_line *x = a, *y = b;

	return COMPARE(y->weight, x->weight) ?: strcmp(x->at.code->file, y->at.code->file) ?:
	       COMPARE(x->at.line, y->at.line);
}

size_t python_lines(const struct site_stack *stacks, size_t n, struct costly_line *lines)
{
	size_t i, j, count = 0;

	for (i = 0; i < n; i++) {
		struct costly_line line = {.at = python_line(stacks[i].stack),
					   .costliest = &stacks[i]};

		if (!line.at.code)
			continue;
		for (j = 0; j < count && !is_same(&lines[j].at, &line.at); j++)
			;
		if (j == count)
			lines[count++] = line;
		lines[j].weight += stacks[i].weight;
		if (stacks[i].cost_ns > lines[j].costliest->cost_ns)
			lines[j].costliest = &stacks[i];
	}
	if (count)
		qsort(lines, count, sizeof(*lines), by_weight);
	return count;
}

size_t python_lines_shown(const struct costly_line *lines, size_t n)
{
	uint64_t sum = 0;
	size_t i, shown = 0;

	for (i = 0; i < n; i++)
		sum += lines[i].weight;
	while (shown < n && (!shown || !site_stacks_minor(lines[shown].weight, sum)))
		shown++;
	return shown;
}
