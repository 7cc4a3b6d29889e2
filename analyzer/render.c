/*
 * analyzer/render.c: the table of renderers. Called by the commands.
 */
#include <string.h>
#include "render.h"

const struct renderer *renderer_find(const char *name)
{
	size_t i;

	for (i = 0; i < n_renderers; i++)
		if (!strcmp(renderers[i].name, name))
			return &renderers[i];
	return NULL;
}

const struct renderer *renderer_choose(const char *verb, const char *name)
{
	const struct renderer *found = renderer_find(name);
	size_t i;

	if (!found) {
		fprintf(stderr, "cudaspy %s: no format '%s' (", verb, name);
		for (i = 0; i < n_renderers; i++)
			fprintf(stderr, "%s%s", i ? " or " : "", renderers[i].name);
		fputs(")\n", stderr);
	}
	return found;
}

/* clang-format off */
const struct renderer renderers[] = {
	{"text", render_text},
	{"json", render_json},
};
/* clang-format on */
const size_t n_renderers = ARRAY_SIZE(renderers);
