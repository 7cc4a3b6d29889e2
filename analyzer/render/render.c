/*
 * analyzer/render/render.c: the table of renderers. Called by the commands.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "render.h"
#include "base/suggest.h"

const struct renderer *renderer_find(const char *name)
{
	for (size_t i = 0; i < n_renderers; i++)
		if (!strcmp(renderers[i].name, name))
			return &renderers[i];
	return NULL;
}

static const struct renderer *choose(const char *verb, const char *name, bool findings)
{
	const struct renderer *found = renderer_find(name);
	struct suggest suggest = {.word = name};
	char list[128] = "", text[SUGGEST_TEXT];

	if (found && (findings || !found->findings))
		return found;
	for (size_t i = 0; i < n_renderers; i++) {
		size_t n = strlen(list);

		if (renderers[i].findings && !findings)
			continue;
		snprintf(list + n, sizeof(list) - n, "%s%s", n ? " or " : "", renderers[i].name);
		suggest_try(&suggest, renderers[i].name);
	}
	warn("%s: no format '%s' (%s)%s", verb, name, list, suggest_text(&suggest, text));
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

int renderer_show(const struct renderer *renderer, struct report *report, FILE *out)
{
	report_redact(report);
	return renderer->render(report, out);
}

#define NARROWEST_VIEW 40
#define WIDEST_VIEW 160

static unsigned int fitting(unsigned long width)
{
	return width < NARROWEST_VIEW ? NARROWEST_VIEW : width > WIDEST_VIEW ? WIDEST_VIEW : width;
}

static enum colour_choice colour_choice;
static const FILE *paged;

void view_choose_colour(enum colour_choice choice)
{
	colour_choice = choice;
}

void view_of_terminal(const FILE *out)
{
	paged = out;
}

struct view view_for(FILE *out)
{
	const char *columns = getenv("COLUMNS"), *terminal = getenv("TERM");
	unsigned long width = columns && *columns != '-' ? strtoul(columns, NULL, 10) : 0;
	const char *no_colour = getenv("NO_COLOR");
	int fd = out == paged ? STDOUT_FILENO : fileno(out);
	struct winsize size;
	struct view view = {0};

	if (fd >= 0 && isatty(fd)) {
		if (!ioctl(fd, TIOCGWINSZ, &size) && size.ws_col)
			width = size.ws_col;
		view.colour = (!no_colour || !*no_colour) && terminal && strcmp(terminal, "dumb");
	}
	if (colour_choice != COLOUR_AUTO)
		view.colour = colour_choice == COLOUR_ALWAYS;
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
