/*
 * analyzer/cmd/command.c: options of the verbs, parsed and explained from the same rows. Called by
 * each verb, and by `cudaspy help`.
 */
#include <stdlib.h>
#include <string.h>
#include "command.h"
#include "base/lines.h"
#include "render/render.h"

/* Set to 1 by its name alone. */
static bool is_switch(const struct option_row *o)
{
	return o->argument && !strcmp(o->argument, "1");
}

const char *option_argument(const struct option_row *o)
{
	return is_switch(o) ? NULL : o->argument;
}

static bool is_several(const struct option_row *o)
{
	return !strcmp(o->argument, OPTION_SEVERAL);
}

void command_print(const char *text, FILE *out)
{
	unsigned int width = view_for(out).width;

	print_paragraphs(text, width ? width : 80, out);
}

int command_said(void)
{
	return finish_output(stdout) ? STATUS_NOTHING : STATUS_FINE;
}

static void print_option(const char *left, const char *help, FILE *out)
{
	char *text = xasprintf("  %-26s  %s", left, help);

	command_print(text, out);
	free(text);
}

void command_help(const struct command *self, FILE *out)
{
	char *text = xasprintf("usage: cudaspy %s %s\n\n%s.\n%s%s\nOptions:\n", self->name,
			       self->arguments, self->summary, self->text ? "\n" : "",
			       self->text ? self->text : "");
	size_t i;

	command_print(text, out);
	free(text);
	for (i = 0; i < self->n_options; i++) {
		const struct option_row *o = &self->options[i];
		const char *argument = option_argument(o);
		char left[64];

		snprintf(left, sizeof(left), "%c%c%s --%s%s%s", o->letter ? '-' : ' ',
			 o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name,
			 argument ? "=" : "", argument ? argument : "");
		print_option(left, o->help, out);
	}
	print_option("-h, --help", "this text", out);
}

static const struct option_row *find_option(const struct command *self, const char *word,
					    const char **value)
{
	size_t i;

	*value = NULL;
	for (i = 0; i < self->n_options; i++) {
		const struct option_row *o = &self->options[i];
		size_t n = strlen(o->name);

		if (word[1] == '-' && !strncmp(word + 2, o->name, n) &&
		    (!word[2 + n] || word[2 + n] == '=')) {
			*value = word[2 + n] ? word + 3 + n : NULL;
			return o;
		}
		if (word[1] != '-' && word[1] == o->letter) {
			*value = word[2] ? word + 2 : NULL;
			return o;
		}
	}
	return NULL;
}

static bool wrong(const struct command *self, const char *what, const char *word, int *status)
{
	fprintf(stderr, "cudaspy %s: %s '%s' (cudaspy help %s lists the options)\n", self->name,
		what, word, self->name);
	*status = STATUS_USAGE;
	return false;
}

static bool add_value(const struct command *self, struct option_values *values, const char *word,
		      const char *value, int *status)
{
	if (values->n == OPTION_VALUES)
		return wrong(self, "given too often:", word, status);
	values->values[values->n++] = value;
	return true;
}

/* The option at argv[*i]; leaves *i at its last word. */
static bool parse_option(const struct command *self, void *options, int argc, char **argv, int *i,
			 int *status)
{
	const char *word = argv[*i], *value;
	const struct option_row *o = find_option(self, word, &value);

	if (!o)
		return wrong(self, "no such option", word, status);
	if (!o->argument) {
		if (value)
			return wrong(self, "this option takes no argument", word, status);
		*(bool *)((char *)options + o->offset) = true;
		return true;
	}
	if (!value && is_switch(o))
		value = o->argument;
	if (!value && *i + 1 >= argc)
		return wrong(self, "argument missing after", word, status);
	value = value ?: argv[++*i];
	if (!*value)
		return wrong(self, "empty argument of", word, status);
	if (is_several(o))
		return add_value(self, (struct option_values *)((char *)options + o->offset), word,
				 value, status);
	*(const char **)((char *)options + o->offset) = value;
	return true;
}

bool command_parse(const struct command *self, void *options, int *argc, char **argv, int *status)
{
	bool ended = false;
	int i, n = 1;

	for (i = 1; i < *argc; i++) {
		if (ended || argv[i][0] != '-' || !argv[i][1]) {
			argv[n++] = argv[i];
			ended |= self->first_ends;
		} else if (!strcmp(argv[i], "--")) {
			ended = true;
		} else if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
			command_help(self, stdout);
			*status = command_said();
			return false;
		} else if (!parse_option(self, options, *argc, argv, &i, status)) {
			return false;
		}
	}
	argv[n] = NULL; /* as execvp wants it */
	*argc = n;
	return true;
}
