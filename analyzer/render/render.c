/*
 * analyzer/render/render.c: the table of renderers. Called by the commands.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "render.h"

const struct renderer *renderer_find(const char *name)
{
	size_t i;

	for (i = 0; i < n_renderers; i++)
		if (!strcmp(renderers[i].name, name))
			return &renderers[i];
	return NULL;
}

static const struct renderer *choose(const char *verb, const char *name, bool findings)
{
	const struct renderer *found = renderer_find(name);
	const char *separator = "";
	size_t i;

	if (found && (findings || !found->findings))
		return found;
	fprintf(stderr, "cudaspy %s: no format '%s' (", verb, name);
	for (i = 0; i < n_renderers; i++) {
		if (renderers[i].findings && !findings)
			continue;
		fprintf(stderr, "%s%s", separator, renderers[i].name);
		separator = " or ";
	}
	fputs(")\n", stderr);
	return NULL;
}

const struct renderer *renderer_choose(const char *verb, const char *name)
{
	return choose(verb, name, false);
}

const struct renderer *renderer_choose_findings(const char *verb, const char *name)
{
	return choose(verb, name, true);
}

#define NARROWEST_VIEW 40
#define WIDEST_VIEW 160

static unsigned int fitting(unsigned long width)
{
	return width < NARROWEST_VIEW ? NARROWEST_VIEW : width > WIDEST_VIEW ? WIDEST_VIEW : width;
}

struct view view_for(FILE *out)
{
	const char *columns = getenv("COLUMNS"), *terminal = getenv("TERM");
	unsigned long width = columns && *columns != '-' ? strtoul(columns, NULL, 10) : 0;
	struct winsize size;
	struct view view = {0};

	if (isatty(fileno(out))) {
		if (!ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col)
			width = size.ws_col;
		view.colour = !getenv("NO_COLOR") && terminal && strcmp(terminal, "dumb");
	}
	if (width)
		view.width = fitting(width);
	return view;
}

/* clang-format off */
const struct renderer renderers[] = {
	{"text",  render_text,  false, false},
	{"json",  render_json,  false, false},
	{"html",  render_html,  true,  true},
	{"junit", render_junit, true,  false},
	{"sarif", render_sarif, true,  false},
};
/* clang-format on */
const size_t n_renderers = ARRAY_SIZE(renderers);
