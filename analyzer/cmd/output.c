/*
 * analyzer/cmd/output.c: the options --output, --color and --no-pager. Called by the verbs.
 */
#include <string.h>
#include "output.h"
#include "pager.h"
#include "base/suggest.h"
#include "render/render.h"

static const char *const colours[] = {
	[COLOUR_AUTO] = "auto", [COLOUR_ALWAYS] = "always", [COLOUR_NEVER] = "never"};

static bool choose_colour(const char *verb, const char *wanted)
{
	struct suggest suggest = {.word = wanted};
	char text[SUGGEST_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(colours); i++) {
		if (!wanted || !strcmp(wanted, colours[i])) {
			view_choose_colour(i);
			return true;
		}
		suggest_try(&suggest, colours[i]);
	}
	warn("%s: --color=%s is none of auto, always and never%s", verb, wanted,
	     suggest_text(&suggest, text));
	return false;
}

static bool is_file(const struct output_options *options)
{
	return options->path && strcmp(options->path, "-") != 0;
}

int output_check(const char *verb, const struct output_options *options)
{
	if (!choose_colour(verb, options->colour))
		return STATUS_USAGE;
	return is_file(options) && outfile_check(options->path) ? STATUS_NOTHING : 0;
}

int output_begin(struct output *out, const char *verb, const struct output_options *options,
		 bool page)
{
	*out = (struct output){.file = stdout};
	if (!choose_colour(verb, options->colour))
		return STATUS_USAGE;
	if (is_file(options)) {
		if (outfile_open(&out->to, options->path))
			return STATUS_NOTHING;
		out->file = out->to.file;
		name_output(out->file, options->path);
		return 0;
	}
	if (page && !options->no_pager) {
		out->file = pager_open();
		out->paged = out->file != NULL;
		out->file = out->file ?: stdout;
	}
	if (out->paged)
		view_of_terminal(out->file);
	return 0;
}

int output_end(struct output *out, bool written)
{
	int err = 0;

	if (out->to.file) {
		name_output(NULL, NULL);
		err = outfile_close(&out->to, written);
	} else if (out->paged) {
		view_of_terminal(NULL);
		fclose(out->file);
	}
	out->file = NULL;
	return err;
}
