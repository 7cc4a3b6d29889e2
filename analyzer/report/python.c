/*
 * analyzer/report/python.c: lines of Python that calls were made in. Called by the sections of a report.
 */
#include <stdlib.h>
#include <string.h>
#include "python.h"
#include "report_words.h"
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

static int by_weight(const void *a, const void *b)
{
	const struct python_line *x = a, *y = b;
	int order;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
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
		line.costliest = &stacks[i];
		for (j = 0; j < count && !is_same(&lines[j], &line); j++)
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

size_t python_lines_told(const struct python_line *lines, size_t n)
{
	uint64_t sum = 0;
	size_t i, told = 0;

	for (i = 0; i < n; i++)
		sum += lines[i].weight;
	while (told < n && (!told || !site_stacks_minor(lines[told].weight, sum)))
		told++;
	return told;
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

const char *python_words_all(struct report *report, const struct python_line *lines, size_t n,
			     size_t more)
{
	const char *words = n ? python_words(report, &lines[0]) : NULL;
	size_t i;

	for (i = 1; i < n && i < SHOWN_MOST; i++)
		words = report_text(report, "%s%s %s", words, i > 1 ? "," : "; also",
				    python_words(report, &lines[i]));
	more += n - least(n, i);
	return words && more ? report_text(report, "%s, and %s", words,
					   word_count(report, more, "more line"))
			     : words;
}
