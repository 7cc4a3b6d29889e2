/*
 * analyzer/report/python.c: lines of Python that calls were made in. Called by the sections of a report.
 */
#include <stdlib.h>
#include <string.h>
#include "python.h"
#include "findings/finding.h"

#define SHOWN_MOST 3

bool python_is_file(const char *file)
{
	return file && *file && *file != '<';
}

/* Installed packages, and the interpreter's own library. */
static bool is_library(const char *file)
{
	static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib/python3",
					    "/lib64/python3"};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		if (strstr(file, parts[i]))
			return true;
	return !python_is_file(file);
}

struct python_line python_line(const struct stack *stack)
{
	struct python_line innermost = {0};
	uint8_t i;

	for (i = 0; stack && i < stack->n_python; i++) {
		struct python_line line = {.code = model_python(stack, &stack->python[i]),
					   .line = stack->python[i].line};

		if (!line.code)
			continue;
		if (!is_library(line.code->file))
			return line;
		if (!innermost.code)
			innermost = line;
	}
	return innermost;
}

static bool is_same(const struct python_line *a, const struct python_line *b)
{
	return a->line == b->line && !strcmp(a->code->file, b->code->file) &&
	       !strcmp(a->code->function, b->code->function);
}

static int by_cost(const void *a, const void *b)
{
	const struct python_line *x = a, *y = b;
	int order;

	if (x->cost_ns != y->cost_ns)
		return x->cost_ns < y->cost_ns ? 1 : -1;
	order = strcmp(x->code->file, y->code->file);
	return order ? order : (x->line > y->line) - (x->line < y->line);
}

size_t python_lines(const struct site_stack *stacks, size_t n, struct python_line *lines)
{
	size_t i, j, count = 0;

	for (i = 0; i < n; i++) {
		struct python_line line = python_line(stacks[i].stack);

		if (!line.code)
			continue;
		for (j = 0; j < count && !is_same(&lines[j], &line); j++)
			;
		if (j == count)
			lines[count++] = line;
		lines[j].cost_ns += stacks[i].cost_ns;
	}
	if (count)
		qsort(lines, count, sizeof(*lines), by_cost);
	return count;
}

const char *python_words(struct report *report, const struct python_line *line)
{
	const char *file = line->code ? last_part(line->code->file) : NULL;

	if (!line->code)
		return NULL;
	if (!line->line)
		return report_text(report, "%s in %s", file, line->code->function);
	return report_text(report, "%s:%u in %s", file, line->line, line->code->function);
}

const char *python_words_all(struct report *report, const struct python_line *lines, size_t n)
{
	const char *words = n ? python_words(report, &lines[0]) : NULL;
	size_t i;

	for (i = 1; i < n && i < SHOWN_MOST; i++)
		words = report_text(report, "%s%s %s", words, i > 1 ? "," : "; also",
				    python_words(report, &lines[i]));
	return n > SHOWN_MOST ? report_text(report, "%s, and %zu more lines", words, n - SHOWN_MOST)
			      : words;
}
