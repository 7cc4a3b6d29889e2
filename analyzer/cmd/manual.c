/*
 * analyzer/cmd/manual.c: manual pages, in roff with the macros of man(7). Called by `cudaspy help`.
 */
#include <ctype.h>
#include <string.h>
#include "manual.h"
#include "base/lines.h"

struct variable_row {
	const char *name;
	const char *value; /* NULL: none is shown */
	const char *option; /* of `cudaspy run`, which sets it; NULL: none */
	const char *text;
};

/* clang-format off */
static const struct variable_row recorder_variables[] = {
#define OPTION(name, flag, variable, argument, text) {variable, argument, #flag, text},
#include "cudaspy/options.def"
};

/* Those that the analyzer reads with getenv; test_man.sh compares. */
static const struct variable_row analyzer_variables[] = {
	{"CUDASPY_LIB",     NULL, NULL, "the recorder that `run` and `calibrate` preload (default: the one installed with cudaspy)"},
	{"CUDASPY_PROFILE", NULL, NULL, "the profile of `calibrate` that a report uses, unless --profile names one"},
	{"CUDASPY_JOBS",    "N",  NULL, "how many threads read traces at a time, unless --jobs says so; by default as many as there are CPUs to use"},
	{"CUDASPY_JOBS_TRACE", NULL, NULL, "if set, a line on standard error says into which parts a set was divided"},
	{"PAGER",           NULL, NULL, "what shows long text on a terminal (default: `less`, with $LESS, or -FRX without it); empty or `cat`: nothing"},
	{"COLUMNS",         NULL, NULL, "the width of text that does not go to a terminal, 40 to 160 (default: 80)"},
	{"NO_COLOR",        NULL, NULL, "if set and not empty: no colours and no bold text on terminals, unless --color=always"},
	{"TERM",            NULL, NULL, "the terminal; of `dumb` or no terminal, text is plain"},
	{"TMPDIR",          NULL, NULL, "where `calibrate` keeps its traces while it runs (default: /tmp)"},
	{"XDG_CONFIG_HOME", NULL, NULL, "where profiles are kept, in its folder cudaspy (default: $HOME/.config)"},
	{"HOME",            NULL, NULL, "see XDG_CONFIG_HOME and USER"},
	{"USER",            NULL, NULL, "with LOGNAME, SUDO_USER and the last part of HOME: names that --redact leaves out"},
	{"LOGNAME",         NULL, NULL, "see USER"},
	{"SUDO_USER",       NULL, NULL, "see USER"},
	{"PATH",            NULL, NULL, "where `run` looks for the program"},
	{"LD_PRELOAD",      NULL, NULL, "libraries to preload behind the recorder"},
};

static const struct variable_row files[] = {
	{"PROGRAM-PID.cudaspy", NULL, NULL, "the trace of one process: a directory in CTF 1.8, in $CUDASPY_OUT or the current directory"},
	{"~/.config/cudaspy/profile-DRIVER-GPU.json", NULL, NULL, "a profile of `cudaspy calibrate`"},
};
/* clang-format on */

/* ---- roff ----------------------------------------------------------------------------------- */

/* What roff would take for something else than the character. */
static const char *roff_escape(char c)
{
	switch (c) {
	case '\\':
		return "\\e";
	case '-':
		return "\\-";
	case '\'':
		return "\\(aq";
	case '^':
		return "\\(ha";
	case '~':
		return "\\(ti";
	default:
		return NULL;
	}
}

/* n bytes in roman type; words between backquotes are bold. */
static void put_text(const char *text, size_t n, FILE *out)
{
	const char *end = text + n, *escape;
	bool bold = false;
	uint32_t code;
	size_t bytes;

	if (n && *text == '.')
		fputs("\\&", out);
	for (; text < end; text += bytes) {
		bytes = utf8_character(text, &code) ?: 1;
		escape = roff_escape(*text);
		if (*text == '`')
			fputs((bold = !bold) ? "\\fB" : "\\fR", out);
		else if (bytes > 1)
			fprintf(out, "\\[u%04X]", (unsigned int)code);
		else if (escape)
			fputs(escape, out);
		else
			putc(*text, out);
	}
}

static void put_font(char font, const char *text, size_t n, FILE *out)
{
	fprintf(out, "\\f%c", font);
	put_text(text, n, out);
	fputs("\\fR", out);
}

/* Words in capitals, which stand for what the user writes, are italic. */
static void put_arguments(const char *text, FILE *out)
{
	size_t n;

	for (; *text; text += n) {
		n = 1;
		if (isupper((unsigned char)*text))
			while (isupper((unsigned char)text[n]) || isdigit((unsigned char)text[n]))
				n++;
		if (isupper((unsigned char)*text))
			put_font('I', text, n, out);
		else
			put_text(text, n, out);
	}
}

/* A line of an explanation that begins with blanks: a label, two blanks or more, a text. */
static void put_label(const char *line, size_t n, FILE *out)
{
	size_t indent = strspn(line, " "), label, gap;

	line += indent;
	n -= indent;
	for (label = 0; label < n && strncmp(line + label, "  ", 2); label++)
		;
	fputs(".TP\n", out);
	put_font('B', line, label, out);
	putc('\n', out);
	gap = label < n ? strspn(line + label, " ") : 0;
	put_text(line + label + gap, n - label - gap, out);
	putc('\n', out);
}

/* An explanation, as print_paragraphs has it: each line is a paragraph. */
static void put_paragraphs(const char *text, FILE *out)
{
	size_t n;

	for (; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		if (*text == ' ') {
			put_label(text, n, out);
		} else if (n) {
			fputs(".PP\n", out);
			put_text(text, n, out);
			putc('\n', out);
		}
	}
}

static void put_line(const char *text, FILE *out)
{
	put_text(text, strlen(text), out);
	putc('\n', out);
}

/* ---- sections ------------------------------------------------------------------------------- */

/* The beginning of a page, without hyphens in names that a reader may want to copy; verb: NULL for
 * the tool's own. */
static void put_name(const char *verb, bool apart, const char *summary,
		     const struct command_set *set, FILE *out)
{
	const char *dash = verb ? "\\-" : "";

	fputs(".\\\" Written by cudaspy help --format=man.\n.TH CUDASPY", out);
	fputs(dash, out);
	for (const char *c = verb ?: ""; *c; c++)
		putc(toupper((unsigned char)*c), out);
	fprintf(out, " 1 \"\" \"cudaspy %s\" \"cudaspy manual\"\n", set->version);
	fputs(".nh\n.ad l\n", out);
	fprintf(out, ".SH NAME\ncudaspy%s%s \\- ", dash, verb ?: "");
	put_line(summary, out);
	fprintf(out, ".SH SYNOPSIS\n\\fBcudaspy%s%s\\fR ",
		!verb   ? ""
		: apart ? "\\-"
			: " ",
		verb ?: "");
}

static void put_option(const struct option_row *o, FILE *out)
{
	const char *argument = option_argument(o);

	fputs(".TP\n", out);
	if (o->letter)
		fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
	fputs("\\fB\\-\\-", out);
	put_text(o->name, strlen(o->name), out);
	fputs("\\fR", out);
	if (argument) {
		putc('=', out);
		put_arguments(argument, out);
	}
	putc('\n', out);
	put_line(o->help, out);
}

static void put_options(const struct command *command, FILE *out)
{
	fputs(".SH OPTIONS\n", out);
	for (size_t i = 0; i < command->n_options; i++)
		put_option(&command->options[i], out);
	fputs(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nShow the usage and the options.\n", out);
}

static void put_rows(const struct variable_row *rows, size_t n, FILE *out)
{
	for (size_t i = 0; i < n; i++) {
		fputs(".TP\n", out);
		put_font('B', rows[i].name, strlen(rows[i].name), out);
		if (rows[i].value) {
			putc('=', out);
			put_arguments(rows[i].value, out);
		}
		putc('\n', out);
		put_line(rows[i].text, out);
		if (rows[i].option)
			fprintf(out, "(\\fB\\-\\-%s\\fR of \\fBcudaspy run\\fR)\n", rows[i].option);
	}
}

static void put_verbs(const struct command_set *set, FILE *out)
{
	fputs(".SH COMMANDS\n", out);
	for (size_t i = 0; i < set->n; i++) {
		fprintf(out, ".TP\n\\fBcudaspy\\-%s\\fR(1)\n", set->commands[i]->name);
		put_line(set->commands[i]->summary, out);
	}
}

static bool has_option(const struct command *command, const char *name)
{
	for (size_t i = 0; i < command->n_options; i++)
		if (!strcmp(command->options[i].name, name))
			return true;
	return false;
}

/* ---- pages ---------------------------------------------------------------------------------- */

void manual_verb(const struct command *command, const struct command_set *set, FILE *out)
{
	put_name(command->name, command->apart, command->summary, set, out);
	put_arguments(command->arguments, out);
	fputs("\n.SH DESCRIPTION\n", out);
	put_text(command->summary, strlen(command->summary), out);
	fputs(".\n", out);
	if (command->text)
		put_paragraphs(command->text, out);
	put_options(command, out);
	fputs(".SH SEE ALSO\n\\fBcudaspy\\fR(1)", out);
	if (has_option(command, "suppress"))
		fputs(",\n\\fBcudaspy\\-suppressions\\fR(5)", out);
	putc('\n', out);
}

void manual_overview(const struct command_set *set, FILE *out)
{
	put_name(NULL, false, set->summary, set, out);
	put_arguments("VERB [options] [arguments]", out);
	fputs("\n.SH DESCRIPTION\n", out);
	put_text(set->summary, strlen(set->summary), out);
	fputs(".\n", out);
	put_line(set->about, out);
	put_verbs(set, out);
	fputs(".SH OPTIONS\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nList the verbs.\n", out);
	fputs(".TP\n\\fB\\-V\\fR, \\fB\\-\\-version\\fR\nShow the version.\n", out);
	fputs(".SH EXIT STATUS\n", out);
	put_line(set->statuses, out);
	fputs(".SH ENVIRONMENT\nThe recorder reads:\n", out);
	put_rows(recorder_variables, ARRAY_SIZE(recorder_variables), out);
	fputs(".PP\nThe analyzer reads:\n", out);
	put_rows(analyzer_variables, ARRAY_SIZE(analyzer_variables), out);
	fputs(".SH FILES\n", out);
	put_rows(files, ARRAY_SIZE(files), out);
	fputs(".SH SEE ALSO\n\\fBcudaspy\\-suppressions\\fR(5), \\fBld.so\\fR(8)\n", out);
}
