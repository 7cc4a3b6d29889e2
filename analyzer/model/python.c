/*
 * analyzer/model/python.c: the line of Python that a call was made in. Called by idle, findings
 * and sections.
 */
#include <string.h>
#include "python.h"

/* Installed packages, the interpreter's own library, and what torch.compile has written. */
static bool is_library(const char *file)
{
	static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib/python3",
					    "/lib64/python3", "/torchinductor_"};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (strstr(file, parts[i]))
			return true;
	return !names_file(file);
}

bool python_is_program(const struct python_line *line)
{
	return line->code && !is_library(line->code->file);
}

struct python_line python_line_at(const struct stack *stack, uint8_t i)
{
	return (struct python_line){.code = model_python(stack, &stack->python[i]),
				    .line = stack->python[i].line};
}

const struct python_frame *python_frame(const struct stack *stack)
{
	const struct python_frame *innermost = NULL;
	struct python_line line;

	for (uint8_t i = 0; stack && i < stack->n_python; i++) {
		line = python_line_at(stack, i);
		if (python_is_program(&line))
			return &stack->python[i];
		if (!innermost && line.code)
			innermost = &stack->python[i];
	}
	return innermost;
}

struct python_line python_line(const struct stack *stack)
{
	const struct python_frame *frame = python_frame(stack);

	return frame ? python_line_at(stack, (uint8_t)(frame - stack->python))
		     : (struct python_line){0};
}

/* Not how a package calls itself: "Module._call_impl", "Optimizer.hook.<locals>.wrapper". */
static bool has_public_name(const struct python_line *line)
{
	const char *name = line->code->function, *dot = strrchr(name, '.');

	name = dot ? dot + 1 : name;
	return !strstr(line->code->function, "<locals>") &&
	       (name[0] != '_' || (name[1] == '_' && strcmp(name, "__call__") != 0));
}

struct python_line python_called(const struct stack *stack)
{
	struct python_line called = {0}, line;
	bool public = false, has;

	for (uint8_t i = 0; stack && i < stack->n_python; i++) {
		line = python_line_at(stack, i);
		if (python_is_program(&line))
			return called;
		has = line.code && has_public_name(&line);
		if (line.code && (has || !public))
			called = line;
		public |= has;
	}
	return (struct python_line){0};
}
