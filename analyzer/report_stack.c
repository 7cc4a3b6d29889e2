/*
 * analyzer/report_stack.c: how the application came to a call. Called by the sections of a report.
 */
#include <string.h>
#include "report_stack.h"
#include "report_words.h"

#define NATIVE_MOST 2 /* lines below an interpreter's functions */
#define INLINED_MOST 16 /* functions in one another at one address */

struct frame_row {
	const char *shown; /* for people; NULL: not for them */
	const char *function, *file, *module, *inlined;
	uint64_t line, offset;
	bool interpreted;
};

/* clang-format off */
static const struct column frame_columns[] = {
	COLUMN_TEXT(struct frame_row, shown, ""),
	COLUMN_JSON(struct frame_row, function, UNIT_TEXT),
	COLUMN_JSON(struct frame_row, file, UNIT_TEXT),
	COLUMN_JSON(struct frame_row, line, UNIT_COUNT),
	COLUMN_JSON(struct frame_row, module, UNIT_TEXT),
	COLUMN_JSON(struct frame_row, offset, UNIT_COUNT),
	COLUMN_JSON(struct frame_row, inlined, UNIT_TEXT),
};
/* clang-format on */

const struct table_kind stack_table_kind = {
	.key = "stack",
	.title = "",
	.columns = frame_columns,
	.n_columns = ARRAY_SIZE(frame_columns),
	.row_bytes = sizeof(struct frame_row),
	.text_rows = 8,
};

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool begins(const char *text, const char *const *beginnings)
{
	for (; *beginnings; beginnings++)
		if (!strncmp(text, *beginnings, strlen(*beginnings)))
			return true;
	return false;
}

static bool of_cuda(const struct frame_row *row)
{
	static const char *const names[] = {"libcuda.so", "libcudart.so", "libcudaspy.so", NULL};

	static const char *const functions[] = {"libcudart_static_", NULL};

	return (row->module && begins(row->module, names)) ||
	       (row->function && begins(row->function, functions)) ||
	       (row->file && strstr(row->file, "cuda_runtime"));
}

/* What comes before main, and before a thread's function. */
static bool of_libc(const struct frame_row *row)
{
	static const char *const names[] = {"libc.so", "libc-", "libpthread", "ld-linux", NULL};

	return (row->module && begins(row->module, names)) ||
	       (row->function && !strcmp(row->function, "_start"));
}

static const char *words(struct report *report, const struct frame_row *row)
{
	const char *function = row->function ?: "?";
	const char *inlined = !strcmp(row->inlined, "yes") ? ", inlined" : "";

	if (row->file && row->line)
		return report_text(report, "%s%s, %s:%llu", function, inlined, last_part(row->file),
				   (unsigned long long)row->line);
	if (row->file)
		return report_text(report, "%s, %s", function, last_part(row->file));
	if (!row->module)
		return row->function ? function
				     : report_text(report, "0x%llx, in no known module",
						   (unsigned long long)row->offset);
	if (!row->function)
		return report_text(report, "%s+0x%llx", row->module,
				   (unsigned long long)row->offset);
	return report_text(report, "%s, %s+0x%llx", function, row->module,
			   (unsigned long long)row->offset);
}

static struct frame_row row_of(struct report *report, const struct place *place)
{
	return (struct frame_row){
		.function = place->function ? report_text(report, "%s", place->function) : NULL,
		.file = place->file ? report_text(report, "%s", place->file) : NULL,
		.module = place->path ? report_text(report, "%s", last_part(place->path)) : NULL,
		.inlined = place->inlined ? "yes" : "no",
		.line = (uint64_t)place->line,
		.offset = place->offset,
		.interpreted = place->interpreted,
	};
}

/* Chooses what people see. Where an interpreter's functions are known, they are what its user wrote: of
 * what they end up in the innermost calls are enough. */
static void choose(struct report *report, struct frame_row *rows, size_t n, bool interpreted)
{
	size_t i, inner = n, native = 0;

	while (inner && of_libc(&rows[inner - 1]))
		inner--;
	for (i = 0; i < inner; i++) {
		if (of_cuda(&rows[i]))
			continue;
		if (interpreted && !rows[i].interpreted && native++ >= NATIVE_MOST)
			continue;
		rows[i].shown = words(report, &rows[i]);
	}
}

const struct table *report_stack(struct report *report, struct symbolizer *symbols,
				 const struct stack *stack, uint64_t duration_ns)
{
	struct table *table = arena_take(&report->arena, xcalloc(1, sizeof(*table)));
	struct place places[INLINED_MOST];
	struct frame_row *rows = NULL;
	bool interpreted = false;
	size_t n = 0;
	uint8_t i;

	for (i = 0; i < stack->n; i++) {
		size_t count = symbolize_all(symbols, stack->process, stack->frames[i], stack->ns,
					     places, INLINED_MOST);

		for (size_t j = 0; j < count; j++) {
			rows = grow(rows, n, sizeof(*rows));
			rows[n++] = row_of(report, &places[j]);
			interpreted |= places[j].interpreted;
		}
	}
	choose(report, rows, n, interpreted);
	if (rows)
		arena_take(&report->arena, rows);
	*table = (struct table){.kind = &stack_table_kind, .rows = rows, .n_rows = n};
	table->intro = report_text(
		report, "stack of a call of %s, innermost first:", word_time(report, duration_ns));
	return table;
}
