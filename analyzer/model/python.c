/*
 * analyzer/model/python.c: the line of Python that a call was made in. Called by idle, findings
 * and sections.
 */
#include <string.h>
#include "python.h"
#include "base/median.h"
#include "base/util.h"

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

size_t python_name_length(const struct python_code *code)
{
	static const char *const parts[] = {"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"};
	static const char within[] = ".<locals>.";
	const char *name = code->function, *last = name;

	for (const char *at = name; (at = strstr(at, within)); at += strlen(within))
		last = at;
	for (size_t i = 0; last > name && i < ARRAY_SIZE(parts); i++)
		if (!strcmp(last + strlen(within), parts[i]))
			return (size_t)(last - name);
	return strlen(name);
}

static int compare_codes(const struct python_code *a, const struct python_code *b)
{
	size_t n = a && b ? python_name_length(a) : 0, m = a && b ? python_name_length(b) : 0;

	if (!a || !b || a == b)
		return COMPARE(a != NULL, b != NULL);
	return strcmp(a->file, b->file) ?: COMPARE(n, m) ?: strncmp(a->function, b->function, n);
}

int python_compare_functions(const struct stack *a, const struct stack *b)
{
	return compare_codes(python_line(a).code, python_line(b).code)
		       ?: compare_codes(python_called(a).code, python_called(b).code);
}
