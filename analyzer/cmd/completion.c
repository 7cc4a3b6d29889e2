/*
 * analyzer/cmd/completion.c: completion scripts for bash and zsh. Called by `cudaspy help`.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "completion.h"
#include "export/export.h"
#include "findings/detector.h"
#include "render/render.h"
#include "model/dump.h"

/* clang-format off */
/* What the arguments of options stand for, and how shells complete it: compgen's flag, zsh's
 * action. */
static const struct kind {
	const char *argument, *bash, *zsh;
} kinds[] = {
	{"FILE",         "-f", "_files"},
	{OPTION_SEVERAL, "-f", "_files"},
	{"OLD",          "-f", "_files"},
	{"DIR",          "-d", "_files -/"},
	{"GROUP",        "-g", "_groups"},
};

/* The same for what follows a verb: the first of these words in its usage. */
static const struct kind places[] = {
	{"PROGRAM", "-c", "_command_names -e"},
	{"A B",     "-f", "_files"},
	{"DIR",     "-d", "_files -/"},
};
/* clang-format on */

/* ---- words ---------------------------------------------------------------------------------- */

/* Words of an option's value, apart from renderers, formats of exports, detectors and the columns of dump. An option
 * takes those that its help names. */
#define OTHER_WORDS "man,bash,zsh,tsv,monotonic,any,problem,all,auto,always,never"

static void add_word(char **list, const char *word)
{
	char *longer = xasprintf("%s%s%s", *list, **list ? " " : "", word);

	free(*list);
	*list = longer;
}

static bool names_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || !isalnum((unsigned char)at[-1])) &&
		    !isalnum((unsigned char)at[n]))
			return true;
	return false;
}

static void add_named(char **list, const char *help, const char *known)
{
	char *copy = xstrdup(known), *rest = copy, *word;

	while ((word = strsep(&rest, ",")))
		if (names_word(help, word))
			add_word(list, word);
	free(copy);
}

static void add_detectors(char **list)
{
	const struct detector *d;

	for (size_t i = 0; (d = detectors_row(i)); i++)
		add_word(list, d->id);
}

/* The words that a value can be; the caller frees. Empty: it can be anything. */
static char *words_of(const struct option_row *o)
{
	const char *argument = option_argument(o) ?: "";
	char *list = xstrdup("");

	if (strcmp(argument, "FORMAT") && strcmp(argument, "LIST") && strcmp(argument, "CLOCK") &&
	    strcmp(argument, "WHEN"))
		return list;
	for (size_t i = 0; i < n_renderers; i++)
		if (names_word(o->help, renderers[i].name))
			add_word(&list, renderers[i].name);
	for (size_t i = 0; i < n_export_formats; i++)
		if (names_word(o->help, export_formats[i].name))
			add_word(&list, export_formats[i].name);
	add_named(&list, o->help, OTHER_WORDS);
	add_named(&list, o->help, DUMP_FIELDS);
	if (names_word(o->help, "DETECTOR"))
		add_detectors(&list);
	return list;
}

/* The same for what follows a verb. */
static char *words_after(const struct command *command, const struct command_set *set)
{
	char *list = xstrdup("");

	if (names_word(command->arguments, "DETECTOR"))
		add_detectors(&list);
	if (names_word(command->arguments, "VERB"))
		for (size_t i = 0; i < set->n; i++)
			add_word(&list, set->commands[i]->name);
	return list;
}

static const struct kind *kind_of(const struct option_row *o)
{
	const char *argument = option_argument(o);

	for (size_t i = 0; argument && i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].argument, argument))
			return &kinds[i];
	return NULL;
}

static const struct kind *kind_after(const struct command *command)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (names_word(command->arguments, places[i].argument))
			return &places[i];
	return NULL;
}

/* ---- bash ----------------------------------------------------------------------------------- */

/* Words are split at '=' too: --format=json is three of them. */
static const char bash_begin[] =
	"# bash completion of cudaspy. Written by cudaspy help --format=bash.\n"
	"_cudaspy()\n"
	"{\n"
	"	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	"	local verb=${COMP_WORDS[1]} options='' valued='' after='' kind='' words='' "
	"action=''\n"
	"	local ends='' before='' i\n"
	"	COMPREPLY=()\n"
	"	if [[ $cur = = ]]; then\n"
	"		cur=''\n"
	"	elif [[ $prev = = ]]; then\n"
	"		prev=${COMP_WORDS[COMP_CWORD-2]}\n"
	"	fi\n";

/* A program's own arguments are completed by its own rules, if the package bash-completion is
 * there. */
static const char bash_end[] =
	"	if [[ $COMP_CWORD -eq 1 ]]; then\n"
	"		:\n"
	"	elif [[ $valued = *\" $prev \"* ]]; then\n"
	"		[[ $words$action ]] || return 0\n"
	"	else\n"
	"		words='' action=''\n"
	"		for ((i = 2; i < COMP_CWORD && ${#ends}; i++)); do\n"
	"			if [[ ${COMP_WORDS[i]} = -- ]]; then\n"
	"				((i++))\n"
	"				break\n"
	"			elif [[ $valued = *\" ${COMP_WORDS[i]} \"* ]]; then\n"
	"				[[ ${COMP_WORDS[i+1]} = = ]] && ((i++))\n"
	"				((i++))\n"
	"			elif [[ ${COMP_WORDS[i]} != -* ]]; then\n"
	"				break\n"
	"			fi\n"
	"		done\n"
	"		if [[ $ends && $i -lt $COMP_CWORD ]]; then\n"
	"			action=-f\n"
	"			declare -F _command_offset >/dev/null && _command_offset \"$i\" && "
	"return\n"
	"		elif [[ $cur = -* ]]; then\n"
	"			words=$options\n"
	"		else\n"
	"			words=$after action=$kind\n"
	"		fi\n"
	"	fi\n"
	"	if [[ $words ]]; then\n"
	"		[[ $cur = *,* ]] && before=${cur%,*},\n"
	"		mapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$words\" -- "
	"\"${cur##*,}\")\n"
	"		[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} = *= ]] && compopt -o nospace "
	"2>/dev/null\n"
	"	elif [[ $action ]]; then\n"
	"		mapfile -t COMPREPLY < <(compgen \"$action\" -- \"$cur\")\n"
	"		[[ $action = -[fd] ]] && compopt -o filenames 2>/dev/null\n"
	"	fi\n"
	"	return 0\n"
	"}\n"
	"complete -F _cudaspy cudaspy\n";

static void bash_names(const struct option_row *o, const char *between, FILE *out)
{
	if (o->letter)
		fprintf(out, "-%c%s", o->letter, between);
	fprintf(out, "--%s", o->name);
}

/* What follows an option, in the inner case. */
static void bash_value(const struct option_row *o, FILE *out)
{
	const struct kind *kind = kind_of(o);
	char *words = words_of(o);

	if (*words || kind) {
		fputs("		", out);
		bash_names(o, " | ", out);
		if (*words)
			fprintf(out, ") words='%s' ;;\n", words);
		else
			fprintf(out, ") action=%s ;;\n", kind->bash);
	}
	free(words);
}

static void bash_verb(const struct command *command, const struct command_set *set, FILE *out)
{
	const struct kind *kind = kind_after(command);
	char *after = words_after(command, set);

	fprintf(out, "	%s)\n		options='", command->name);
	for (size_t i = 0; i < command->n_options; i++) {
		bash_names(&command->options[i], " ", out);
		fputs(option_argument(&command->options[i]) ? "= " : " ", out);
	}
	fputs("-h --help'\n		valued=' ", out);
	for (size_t i = 0; i < command->n_options; i++)
		if (option_argument(&command->options[i])) {
			bash_names(&command->options[i], " ", out);
			putc(' ', out);
		}
	fprintf(out, "'\n		after='%s' kind=%s ends=%s\n		case $prev in\n",
		after, kind ? kind->bash : "", command->first_ends ? "1" : "");
	for (size_t i = 0; i < command->n_options; i++)
		bash_value(&command->options[i], out);
	fputs("		esac ;;\n", out);
	free(after);
}

void completion_bash(const struct command_set *set, FILE *out)
{
	fputs(bash_begin, out);
	fputs("	if [[ $COMP_CWORD -eq 1 ]]; then\n		words='", out);
	for (size_t i = 0; i < set->n; i++)
		fprintf(out, "%s ", set->commands[i]->name);
	fputs("--help --version -V'\n	fi\n	[[ $COMP_CWORD -gt 1 ]] && case $verb in\n", out);
	for (size_t i = 0; i < set->n; i++)
		bash_verb(set->commands[i], set, out);
	fputs("	*) return 0 ;;\n	esac\n", out);
	fputs(bash_end, out);
}

/* ---- zsh ------------------------------------------------------------------------------------ */

/* A description, within quotes: what _arguments and _describe would take for a separator is
 * escaped. */
static void zsh_text(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else if (strchr("[]:\\", *text))
			fprintf(out, "\\%c", *text);
		else
			putc(*text, out);
	}
}

/* ":LIST:action" */
static void zsh_value(const struct option_row *o, FILE *out)
{
	const char *argument = option_argument(o);
	const struct kind *kind = kind_of(o);
	char *words = words_of(o);

	if (argument)
		fprintf(out, ":%s:", argument);
	if (kind)
		fputs(kind->zsh, out);
	else if (*words && !strcmp(argument, "LIST"))
		fprintf(out, " _values -s , LIST %s", words);
	else if (*words)
		fprintf(out, "(%s)", words);
	free(words);
}

static void zsh_option(const struct option_row *o, FILE *out)
{
	const char *argument = option_argument(o);
	const char *equals = argument ? "=" : "";

	fputs(" \\\n			", out);
	if (o->letter)
		fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter,
			argument ? "+" : "", o->name, equals);
	else
		fprintf(out, "'%s--%s%s[", argument && !strcmp(argument, OPTION_SEVERAL) ? "*" : "",
			o->name, equals);
	zsh_text(o->help, out);
	putc(']', out);
	zsh_value(o, out);
	putc('\'', out);
}

static void zsh_verb(const struct command *command, const struct command_set *set, FILE *out)
{
	const struct kind *kind = kind_after(command);
	char *after = words_after(command, set);

	fprintf(out, "	%s)\n		_arguments -s -S", command->name);
	for (size_t i = 0; i < command->n_options; i++)
		zsh_option(&command->options[i], out);
	fputs(" \\\n			'(- *)'{-h,--help}'[show the usage and the options]'", out);
	if (command->first_ends && kind)
		fprintf(out, " \\\n			'(-):program:%s' '*::arguments:_normal'",
			kind->zsh);
	else if (*after)
		fprintf(out, " \\\n			'1:argument:(%s)'", after);
	else if (kind)
		fprintf(out, " \\\n			'*:argument:%s'", kind->zsh);
	fputs(" ;;\n", out);
	free(after);
}

void completion_zsh(const struct command_set *set, FILE *out)
{
	fputs("#compdef cudaspy\n# Written by cudaspy help --format=zsh.\n_cudaspy()\n{\n"
	      "	local -a verbs=(\n",
	      out);
	for (size_t i = 0; i < set->n; i++) {
		fprintf(out, "		'%s:", set->commands[i]->name);
		zsh_text(set->commands[i]->summary, out);
		fputs("'\n", out);
	}
	fputs("	)\n	if ((CURRENT == 2)); then\n"
	      "		_describe -t verbs verb verbs\n"
	      "		[[ $PREFIX = -* ]] && compadd -- --help --version -V\n"
	      "		return\n	fi\n	shift words\n	((CURRENT--))\n"
	      "	case $words[1] in\n",
	      out);
	for (size_t i = 0; i < set->n; i++)
		zsh_verb(set->commands[i], set, out);
	fputs("	esac\n}\n_cudaspy \"$@\"\n", out);
}
