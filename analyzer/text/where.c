/*
 * analyzer/text/where.c: places in the program, in words. Called by findings and the sections of a
 * report.
 */
#include <string.h>
#include "base/lines.h"
#include "text.h"
#include "where.h"

/* "main", "main, app.c:12", "copy, app.c:12, inlined in main"; NULL: neither function nor line is
 * known. */
static const char *function_words(struct arena *texts, const struct place *place)
{
	const char *name = place->inner ?: place->function, *source = "", *around = "";

	if (!name && !place->file)
		return NULL;
	if (place->file)
		source = arena_printf(texts, "%s%s:%d", name ? ", " : "",
				      path_basename(place->file), place->line);
	if (place->inner && place->function)
		around = arena_printf(texts, ", inlined in %s", place->function);
	return arena_printf(texts, "%s%s%s", name ?: "", source, around);
}

/* What is launched there: " of scale(int)". */
static const char *kernel_words(struct arena *texts, const struct place *place)
{
	return place->kernel ? arena_printf(texts, " of %s", place->kernel) : "";
}

const char *text_place(struct arena *texts, const struct place *place)
{
	const char *module, *words;

	if (!place->path)
		return place->offset ? arena_printf(texts, " at 0x%llx, in no known module",
						    (unsigned long long)place->offset)
				     : "";
	module = arena_printf(texts, "%s+0x%llx", path_basename(place->path),
			      (unsigned long long)place->offset);
	words = function_words(texts, place);
	if (place->kernel && (place->cudas || !words))
		return arena_printf(texts, " of %s (%s)", place->kernel, module);
	return words ? arena_printf(texts, "%s in %s (%s)", kernel_words(texts, place), words,
				    module)
		     : arena_printf(texts, " in %s", module);
}

/* The caller of the library: by the source, or else by the address. */
static const char *library_caller(struct arena *texts, const struct place *place)
{
	const char *function = place->function ? arena_printf(texts, "%s, ", place->function) : "";

	if (!place->path)
		return place->function ?: "code in no known module";
	if (place->file)
		return function_words(texts, place);
	return arena_printf(texts, "%s%s+0x%llx", function, path_basename(place->path),
			    (unsigned long long)place->offset);
}

/* "cublasCreate_v2 (libcublas.so.13)", "libffi.so.8+0x7b16". */
static const char *library_words(struct arena *texts, const struct place *entry)
{
	const char *library = path_basename(entry->path);

	if (entry->function)
		return arena_printf(texts, "%s (%s)", entry->function, library);
	return entry->library ? library
			      : arena_printf(texts, "%s+0x%llx", library,
					     (unsigned long long)entry->offset);
}

const char *text_place_by(struct arena *texts, const struct place *entry, const struct place *place)
{
	return arena_printf(texts, "%s in %s, by %s", kernel_words(texts, place),
			    library_caller(texts, place), library_words(texts, entry));
}

const char *text_program_place(struct arena *texts, struct symbolizer *symbols,
			       const struct process *process, uint64_t address, uint64_t ns,
			       const struct stack *stack)
{
	struct place place, entry;

	symbolize_program(symbols, process, address, ns, stack, &place, &entry);
	return entry.path ? text_place_by(texts, &entry, &place) : text_place(texts, &place);
}

const char *text_in_library(struct arena *texts, struct symbolizer *symbols,
			    const struct process *process, uint64_t address, uint64_t ns,
			    bool whole)
{
	const char *library, *function;
	struct place place;

	symbolize(symbols, process, address, ns, &place);
	if (!place.path)
		return NULL;
	library = path_basename(place.path);
	/* (Names of Rust's are not to be read as they are.) */
	if (whole || !place.function || !strncmp(place.function, "_R", 2))
		return arena_printf(texts, "%s", library);
	function = arena_take(texts, shorten_names(place.function, 3));
	return arena_printf(texts, "%s (%s)", function, library);
}

const char *text_bare_place(const char *words)
{
	return !strncmp(words, " in ", 4) ? words + 4 : words + strspn(words, " ");
}

const char *text_python_place(struct arena *texts, const struct python_line *line,
			      const struct python_line *by, const struct place *entry)
{
	const char *words = arena_printf(texts, "%s in %s, %s", kernel_words(texts, entry),
					 line->code->function, path_basename(line->code->file));

	if (line->line)
		words = arena_printf(texts, "%s:%u", words, line->line);
	if (by->code)
		words = arena_printf(texts, "%s, by %s (%s:%u)", words, by->code->function,
				     path_basename(by->code->file), by->line);
	if (entry->path)
		words = arena_printf(texts, "%s%s%s", words, by->code ? ", " : ", by ",
				     library_words(texts, entry));
	return words;
}

const char *text_gil_holder(struct arena *texts, const struct model *model,
			    const struct process *process, uint32_t holder,
			    const struct stack *held_at)
{
	const struct thread *thread = model_find_thread(model, process, holder);
	struct python_line line = python_line(held_at);
	const char *at = text_python(texts, &line);

	return arena_printf(texts, "held by %s%s%s",
			    thread ? text_thread(texts, thread, SPY_DEVICE_NONE)
				   : arena_printf(texts, "thread %u", holder),
			    at ? " at " : "", at ?: "");
}

const char *text_meanwhile(struct arena *texts, const struct model *model,
			   const struct process *process, uint32_t tid, const struct stack *place)
{
	const struct thread *thread = tid ? model_find_thread(model, process, tid) : NULL;
	struct python_line line = python_line(place);
	const char *at = text_python(texts, &line);

	if (!place)
		return NULL;
	return arena_printf(texts, "%s ran%s%s",
			    thread ? text_thread(texts, thread, SPY_DEVICE_NONE) : "another thread",
			    at ? " " : "", at ?: "");
}

/* The package's name is that of its folder, or of its file, where packages lie. */
static const char *package_of(struct arena *texts, const char *file)
{
	static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
	const char *found = NULL, *at, *slash;
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(folders); i++)
		for (at = file; (at = strstr(at, folders[i])); found = at)
			at += strlen(folders[i]);
	found = found ?: path_basename(file);
	slash = strchr(found, '/');
	n = slash ? (size_t)(slash - found) : strcspn(found, ".");
	return arena_printf(texts, "%.*s", (int)n, found);
}

const char *text_python_called(struct arena *texts, const struct python_line *called)
{
	return arena_printf(texts, "%s.%s", package_of(texts, called->code->file),
			    called->code->function);
}

const char *text_python(struct arena *texts, const struct python_line *line)
{
	const char *file = line->code ? path_basename(line->code->file) : NULL;

	if (!line->code)
		return NULL;
	if (!line->line)
		return arena_printf(texts, "%s in %s", file, line->code->function);
	return arena_printf(texts, "%s:%u in %s", file, line->line, line->code->function);
}

const char *text_unread(struct arena *texts, const struct unread_file *file)
{
	if (file->zstd)
		return "has debug sections compressed with zstd, which take a libzstd.so.1 to read";
	if (!file->found)
		return "is not there";
	if (!*file->recorded)
		return "was recorded without a build id";
	return *file->found
		       ? arena_printf(texts, "has build id %s, and ran with %s", file->found,
				      file->recorded)
		       : arena_printf(texts, "has no build id, and ran with %s", file->recorded);
}
