/*
 * analyzer/symbols/python.c: the line of Python that a call was made in. Called by findings and
 * sections.
 */
#include <string.h>
#include "python.h"

/* Installed packages, and the interpreter's own library. */
static bool is_library(const char *file)
{
	static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib/python3",
					    "/lib64/python3"};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		if (strstr(file, parts[i]))
			return true;
	return !names_file(file);
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
