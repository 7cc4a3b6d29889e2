/*
 * analyzer/text/where.c: places in the program, in words. Called by findings and the sections of a
 * report.
 */
#include <string.h>
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

const char *text_place(struct arena *texts, const struct place *place)
{
	const char *module, *words;

	if (!place->path)
		return place->offset ? arena_printf(texts, " at 0x%llx, in no known module",
						    (unsigned long long)place->offset)
				     : "";
	module = arena_printf(texts, "%s+0x%llx", path_basename(place->path),
			      (unsigned long long)place->offset);
	if (place->kernel)
		return arena_printf(texts, " of %s (%s)", place->kernel, module);
	words = function_words(texts, place);
	return words ? arena_printf(texts, " in %s (%s)", words, module)
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

const char *text_place_for(struct arena *texts, const struct place *entry,
			   const struct place *place)
{
	const char *library = path_basename(entry->path), *called = library;

	if (entry->function)
		called = arena_printf(texts, "%s (%s)", entry->function, library);
	return arena_printf(texts, " in %s, for %s", called, library_caller(texts, place));
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
	if (!file->found)
		return "is not there";
	if (!*file->recorded)
		return "was recorded without a build id";
	return *file->found
		       ? arena_printf(texts, "has build id %s, and ran with %s", file->found,
				      file->recorded)
		       : arena_printf(texts, "has no build id, and ran with %s", file->recorded);
}
