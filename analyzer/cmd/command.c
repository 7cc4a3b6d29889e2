/*
 * analyzer/cmd/command.c: options of the verbs, parsed and explained from the same rows. Called by
 * each verb, and by `cudaspy help`.
 */
#include <stdlib.h>
#include <string.h>
#include "command.h"
#include "base/lines.h"
#include "base/suggest.h"
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
	char *text = xasprintf("usage: cudaspy%c%s %s\n\n%s.\n%s%s\nOptions:\n",
			       self->apart ? '-' : ' ', self->name, self->arguments, self->summary,
			       self->text ? "\n" : "", self->text ? self->text : "");

	command_print(text, out);
	free(text);
	for (size_t i = 0; i < self->n_options; i++) {
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

/* ---- parsing --------------------------------------------------------------------------------- */

/* What a command line is read into. */
struct parsing {
	const struct command *self;
	void *options;
	int argc, i; /* i: the word that is looked at */
	char **argv;
	int *status;
};

/* Always false: with an exit status. */
static bool wrong(struct parsing *p, const char *what, const char *word, const char *more)
{
	warn("%s: %s '%s'%s (cudaspy%s%s%s lists the options)", p->self->name, what, word, more,
	     p->self->apart ? "-" : " help ", p->self->name, p->self->apart ? " --help" : "");
	*p->status = STATUS_USAGE;
	return false;
}

/* "; --from or --format?": those that begin so. */
static const char *several(const struct command *self, const char *name, size_t n, char *text,
			   size_t size)
{
	size_t i, used = 0;

	text[0] = '\0';
	for (i = 0; i < self->n_options && used < size; i++)
		if (!strncmp(self->options[i].name, name, n))
			used += (size_t)snprintf(text + used, size - used, "%s--%s",
						 used ? " or " : "; ", self->options[i].name);
	return text;
}

/* Of a name or as much of it as no other begins with. NULL after a message. */
static const struct option_row *find_long(struct parsing *p, const char *word)
{
	const struct command *self = p->self;
	size_t n = strcspn(word + 2, "="), i, found = 0;
	char *name = xstrndup(word + 2, n), *given = xasprintf("--%s", name), text[SUGGEST_TEXT];
	const struct option_row *option = NULL;
	struct suggest suggest = {.word = name};

	for (i = 0; i < self->n_options; i++) {
		const struct option_row *o = &self->options[i];

		if (!strcmp(o->name, name)) {
			option = o;
			found = 1;
			break;
		}
		if (n && !strncmp(o->name, name, n)) {
			option = o;
			found++;
		}
		suggest_try(&suggest, o->name);
	}
	suggest_try(&suggest, "help");
	if (!found) {
		if (suggest.best)
			snprintf(text, sizeof(text), "; did you mean --%s?", suggest.best);
		wrong(p, "no such option", given, suggest.best ? text : "");
	} else if (found > 1) {
		wrong(p, "there are several options", given,
		      several(self, name, n, text, sizeof(text)));
	}
	free(name);
	free(given);
	return found == 1 ? option : NULL;
}

static const struct option_row *find_letter(struct parsing *p, char letter)
{
	const char word[] = {'-', letter, '\0'};

	for (size_t i = 0; i < p->self->n_options; i++)
		if (letter && letter == p->self->options[i].letter)
			return &p->self->options[i];
	wrong(p, "no such option", word, "");
	return NULL;
}

static bool add_value(struct parsing *p, struct option_values *values, const char *word,
		      const char *value)
{
	if (values->n == OPTION_VALUES)
		return wrong(p, "given too often:", word, "");
	values->values[values->n++] = value;
	return true;
}

/* The option as it was written, and what follows it there; NULL: nothing. Takes the next word if it needs one. */
static bool take(struct parsing *p, const struct option_row *o, const char *word, const char *value)
{
	void *at = (char *)p->options + o->offset;

	if (!o->argument) {
		if (value)
			return wrong(p, "this option takes no argument", word, "");
		*(bool *)at = true;
		return true;
	}
	if (!value && is_switch(o))
		value = o->argument;
	if (!value && p->i + 1 >= p->argc)
		return wrong(p, "argument missing after", word, "");
	value = value ?: p->argv[++p->i];
	if (!*value)
		return wrong(p, "empty argument of", word, "");
	if (is_several(o))
		return add_value(p, at, word, value);
	*(const char **)at = value; /* of several the last one */
	return true;
}

/* -v, -nv, -fjson, -f json: letters that take no argument may stand in one word. */
static bool parse_letters(struct parsing *p)
{
	const char *word = p->argv[p->i], *letter;
	const struct option_row *o;

	for (letter = word + 1; *letter; letter++) {
		o = find_letter(p, *letter);
		if (!o)
			return false;
		if (option_argument(o))
			return take(p, o, word, letter[1] ? letter + 1 : NULL);
		if (!take(p, o, word, NULL))
			return false;
	}
	return true;
}

/* The option at argv[i]; leaves i at its last word. */
static bool parse_option(struct parsing *p)
{
	const char *word = p->argv[p->i], *equals = strchr(word, '=');
	const struct option_row *o;

	if (word[1] != '-')
		return parse_letters(p);
	o = find_long(p, word);
	return o && take(p, o, word, equals ? equals + 1 : NULL);
}

/* -h, --help, and --he where no option begins so. */
static bool asks_for_help(const struct command *self, const char *word)
{
	size_t n = strlen(word), i;

	if (!strcmp(word, "-h"))
		return true;
	if (n < 3 || strncmp("--help", word, n) != 0)
		return false;
	for (i = 0; i < self->n_options; i++)
		if (!strncmp(self->options[i].name, word + 2, n - 2))
			return false;
	return true;
}

bool command_parse(const struct command *self, void *options, int *argc, char **argv, int *status)
{
	struct parsing p = {self, options, *argc, 1, argv, status};
	bool ended = false;
	int n = 1;

	for (; p.i < *argc; p.i++) {
		const char *word = argv[p.i];

		if (ended || word[0] != '-' || !word[1]) {
			argv[n++] = argv[p.i];
			ended |= self->first_ends;
		} else if (!strcmp(word, "--")) {
			ended = true;
		} else if (asks_for_help(self, word)) {
			command_help(self, stdout);
			*status = command_said();
			return false;
		} else if (!parse_option(&p)) {
			return false;
		}
	}
	argv[n] = NULL; /* as execvp wants it */
	*argc = n;
	return true;
}
