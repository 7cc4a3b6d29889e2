/*
 * analyzer/sections/stack.c: how the application came to a call. Called by the sections of a
 * report.
 */
#include <string.h>
#include "sections.h"
#include "text/text.h"

#define NATIVE_MOST 2 /* lines below an interpreter's functions */

struct frame_row {
	const char *shown; /* for people; NULL: not for them */
	const char *function, *file, *module, *inlined;
	const char *interpreted; /* yes: in the interpreter's language */
	bool cudas; /* CUDA's code … */
	const char *kernel; /* … to launch that; NULL: none, or unknown */
	bool library; /* in one of NVIDIA's libraries */
	uint64_t line, offset;
};

static const struct column frame_columns[] = {
	COLUMN_TEXT(struct frame_row, shown, ""),
	COLUMN_JSON(struct frame_row, function, UNIT_TEXT),
	COLUMN_JSON(struct frame_row, file, UNIT_TEXT),
	COLUMN_JSON(struct frame_row, line, UNIT_COUNT),
	COLUMN_JSON(struct frame_row, module, UNIT_TEXT),
	COLUMN_JSON(struct frame_row, offset, UNIT_COUNT),
	COLUMN_JSON(struct frame_row, inlined, UNIT_TEXT),
	COLUMN_JSON(struct frame_row, interpreted, UNIT_TEXT),
};

const struct table_kind stack_table_kind = {
	TABLE("stack", "", struct frame_row, frame_columns),
	.text_rows = 8,
};

static bool begins(const char *text, const char *const *beginnings)
{
	for (; *beginnings; beginnings++)
		if (!strncmp(text, *beginnings, strlen(*beginnings)))
			return true;
	return false;
}

static bool of_cuda(const struct frame_row *row)
{
	static const char *const names[] = {"libcudaspy.so", NULL};

	return row->cudas || (row->module && begins(row->module, names));
}

/* Of NVIDIA's libraries people see the functions that have names, and at least where the next one
 * out calls them. */
static bool names_library(const struct frame_row *row, const struct frame_row *end)
{
	return row->library && (row->function || row + 1 == end || !row[1].library);
}

/* What comes before main, and before a thread's function; of sanitizers, too. */
static bool of_libc(const struct frame_row *row)
{
	static const char *const names[] = {"libc.so",    "libc-",      "libpthread", "ld-linux",
					    "libasan.so", "libtsan.so", NULL};

	return (row->module && begins(row->module, names)) ||
	       (row->function && !strcmp(row->function, "_start"));
}

/* What std::thread and std::async make of a thread's function. */
static bool of_libstdcxx(const struct frame_row *row)
{
	static const char *const names[] = {"libstdc++.so", NULL};
	static const char *const functions[] = {"std::", "void std::", NULL};

	return (row->module && begins(row->module, names)) ||
	       (row->function && begins(row->function, functions)) ||
	       (row->file && strstr(row->file, "/include/c++/"));
}

static bool is_interpreted(const struct frame_row *row)
{
	return !strcmp(row->interpreted, "yes");
}

static const char *words(struct arena *texts, const struct frame_row *row)
{
	const char *function = row->function ?: "?";
	const char *inlined = !strcmp(row->inlined, "yes") ? ", inlined" : "";

	if (row->file && row->line)
		return arena_printf(texts, "%s%s, %s:%llu", function, inlined,
				    path_basename(row->file), (unsigned long long)row->line);
	if (row->file)
		return arena_printf(texts, "%s, %s", function, path_basename(row->file));
	if (!row->module)
		return row->function || is_interpreted(row)
			       ? function
			       : arena_printf(texts, "0x%llx, in no known module",
					      (unsigned long long)row->offset);
	if (!row->function)
		return arena_printf(texts, "%s+0x%llx", row->module,
				    (unsigned long long)row->offset);
	return arena_printf(texts, "%s, %s+0x%llx", function, row->module,
			    (unsigned long long)row->offset);
}

static struct frame_row row_of(struct arena *texts, const struct place *place)
{
	/* a stub goes by its kernel's name, not by what nvcc made of that */
	const char *function = place->kernel ?: place->function;

	return (struct frame_row){
		.function = function ? arena_printf(texts, "%s", function) : NULL,
		.file = place->file ? arena_printf(texts, "%s", place->file) : NULL,
		.module =
			place->path ? arena_printf(texts, "%s", path_basename(place->path)) : NULL,
		.inlined = place->inlined ? "yes" : "no",
		.line = (uint64_t)place->line,
		.offset = place->offset,
		.interpreted = place->interpreted ? "yes" : "no",
		.cudas = place->cudas,
		.library = place->library,
		.kernel = place->kernel ? arena_printf(texts, "%s", place->kernel) : NULL,
	};
}

/* A function of the interpreter's that runs another language's. */
static bool of_interpreter(const struct frame_row *row)
{
	static const char *const names[] = {"libpython", "python", NULL};

	return row->module && begins(row->module, names);
}

/* What a kernel is launched by says its name, unless the function does that is called for it. */
static const char *kernel_of(const struct frame_row *row, const struct frame_row *end)
{
	const char *next = row + 1 < end ? row[1].function : NULL;

	if (!row->kernel || (row + 1 < end && row[1].kernel))
		return NULL;
	return symbolize_is_kernels(next, row->kernel) ? NULL : row->kernel;
}

/* Chooses what people see. Where an interpreter's functions are known, they are what its user
 * wrote: of what they end up in the innermost calls are enough. */
static void choose(struct arena *texts, struct frame_row *rows, size_t n, bool interpreted)
{
	size_t i, inner = n, outer, native = 0;

	while (inner && of_libc(&rows[inner - 1]))
		inner--;
	outer = inner;
	while (inner && of_libstdcxx(&rows[inner - 1]))
		inner--;
	if (!inner) /* the function itself was compiled into it */
		inner = outer;
	for (i = 0; i < inner; i++) {
		rows[i].shown = kernel_of(&rows[i], rows + inner);
		if (of_cuda(&rows[i]) && !names_library(&rows[i], rows + inner))
			continue;
		if (interpreted && !is_interpreted(&rows[i]) &&
		    (of_interpreter(&rows[i]) || native++ >= NATIVE_MOST))
			continue;
		rows[i].shown = words(texts, &rows[i]);
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct rows {
	struct frame_row *all;
	size_t n;
	bool interpreted; /* some are */
	size_t known_otherwise; /* rows of interpreted functions to leave out */
};

static void add_row(struct rows *rows, const struct frame_row *row)
{
	rows->all = grow(rows->all, rows->n, sizeof(*rows->all));
	rows->all[rows->n++] = *row;
	rows->interpreted |= is_interpreted(row);
}

/* Python's functions with their lines. A map of the process (perf_map.h) may name the same ones. */
static void add_python(struct rows *rows, struct arena *texts, const struct stack *stack)
{
	for (uint8_t i = 0; i < stack->n_python; i++) {
		const struct python_code *code = model_python(stack, &stack->python[i]);
		struct frame_row row = {
			.line = stack->python[i].line, .inlined = "no", .interpreted = "yes"};

		if (i == SPY_PYTHON_INNERMOST && stack->more_python == SPY_PYTHON_MORE_BETWEEN)
			add_row(rows, &(struct frame_row){.function = "(more of Python)",
							  .inlined = "no",
							  .interpreted = "yes"});
		if (code) {
			row.function = arena_printf(texts, "%s", code->function);
			row.file = arena_printf(texts, "%s", code->file);
		}
		add_row(rows, &row);
	}
	rows->known_otherwise =
		stack->more_python == SPY_PYTHON_MORE_OUTSIDE ? stack->n_python : SIZE_MAX;
}

/* Python's functions come where the first function of the interpreter is that runs them. */
static void add_native(struct rows *rows, struct arena *texts, const struct stack *stack,
		       const struct place *place, bool *python)
{
	struct frame_row row = row_of(texts, place);

	if (!*python && (is_interpreted(&row) || of_interpreter(&row))) {
		add_python(rows, texts, stack);
		*python = true;
	}
	if (is_interpreted(&row) && rows->known_otherwise)
		rows->known_otherwise--;
	else
		add_row(rows, &row);
}

const struct table *report_stack(struct arena *texts, struct symbolizer *symbols,
				 const struct stack *stack, uint64_t duration_ns)
{
	struct table *table = arena_take(texts, xcalloc(1, sizeof(*table)));
	struct place places[INLINED_MOST];
	bool python = !stack->n_python;
	struct rows rows = {0};

	for (uint8_t i = 0; i < stack->n; i++) {
		size_t count =
			symbolize_all(symbols, stack->process, stack->frames[i], stack->ns, places);

		for (size_t j = 0; j < count; j++)
			add_native(&rows, texts, stack, &places[j], &python);
	}
	if (!python) /* the walk did not come so far */
		add_python(&rows, texts, stack);
	choose(texts, rows.all, rows.n, rows.interpreted);
	if (rows.all)
		arena_take(texts, rows.all);
	*table = (struct table){.kind = &stack_table_kind, .rows = rows.all, .n_rows = rows.n};
	table->intro = arena_printf(
		texts, "stack of a call of %s, innermost first:", text_time(texts, duration_ns));
	return table;
}
