/*
 * analyzer/findings/suppress.c: findings that a person looked at and accepts. Called by the gate.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "detector.h"
#include "suppress.h"

#define BLANKS " \t\r\n"
#define REASON "--"
#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* some editors begin files with it */

/* ---- the file ------------------------------------------------------------------------------- */

/* Where the last word of the first n bytes begins; blanks at their end do not count. */
static char *last_word(char *text, size_t *n)
{
	size_t begin;

	while (*n && strchr(BLANKS, text[*n - 1]))
		--*n;
	for (begin = *n; begin && !strchr(BLANKS, text[begin - 1]); begin--)
		;
	return text + begin;
}

/* Without blanks at both ends; in place. */
static char *trim(char *text)
{
	size_t n;

	text += strspn(text, BLANKS);
	n = strlen(text);
	last_word(text, &n);
	text[n] = '\0';
	return text;
}

/* A day there is: 2026-02-30 is none. */
static bool is_day(const char *text)
{
	struct tm tm = {0};
	char again[16];
	const char *end = strptime(text, "%Y-%m-%d", &tm);

	if (!end || *end || timegm(&tm) == -1)
		return false;
	return strftime(again, sizeof(again), "%Y-%m-%d", &tm) && !strcmp(again, text);
}

static int wrong(const struct suppression *e, const char *what, const char *word)
{
	warn("%s:%llu: %s%s%s%s", e->path, (unsigned long long)e->line, what, word ? " '" : "",
	     word ?: "", word ? "'" : "");
	return -EINVAL;
}

/* Cuts "until 2027-03-31" off the end of `text`, if it is there. */
static int take_until(struct suppression *e, char *text)
{
	size_t n = strlen(text);
	char *day = last_word(text, &n), *before;

	if (!strcmp(day, "until"))
		return wrong(e, "'until' without a day", NULL);
	n = (size_t)(day - text);
	before = last_word(text, &n);
	if (text + n - before != strlen("until") || strncmp(before, "until", strlen("until")))
		return 0;
	*before = '\0';
	e->until = day;
	return is_day(day) ? 0 : wrong(e, "no day YYYY-MM-DD:", day);
}

/* Where "--" stands alone; NULL: nowhere. */
static char *find_reason(char *text)
{
	for (char *at = strstr(text, REASON); at; at = strstr(at + 1, REASON))
		if (at > text && strchr(BLANKS, at[-1]) && strchr(BLANKS, at[strlen(REASON)]))
			return at;
	return NULL;
}

static int parse(struct suppression *e, char *text)
{
	char *reason = find_reason(text), *rest;
	int err;

	if (!reason)
		return wrong(e, "no reason: write DETECTOR [PLACE] [until YYYY-MM-DD] -- REASON",
			     NULL);
	*reason = '\0';
	e->reason = trim(reason + strlen(REASON));
	e->id = trim(text);
	rest = text + strcspn(text, BLANKS);
	if (*rest)
		*rest++ = '\0';
	rest = trim(rest);
	if (!detectors_find(e->id))
		return wrong(e, "cudaspy explain lists the detectors; there is none called", e->id);
	if (!*e->reason)
		return wrong(e, "the reason is empty", NULL);
	err = take_until(e, rest);
	rest = trim(rest);
	e->place = *rest ? rest : NULL;
	return err;
}

int suppress_read(struct suppressions *s, const char *path, const char *today)
{
	FILE *in = open_regular(path);
	uint64_t line = 0;
	size_t size = 0;
	char *text = NULL;
	int err = 0;

	if (!in) {
		err = -errno;
		if (err == -ENOENT)
			warn("%s: %s", path, strerror(ENOENT));
		return err;
	}
	while (!err && getline(&text, &size, in) >= 0) {
		struct suppression e = {.path = arena_printf(&s->texts, "%s", path),
					.line = ++line};
		bool marked = line == 1 && !strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK));
		char *copy = text + (marked ? strlen(BYTE_ORDER_MARK) : 0);

		copy += strspn(copy, BLANKS);
		if (!*copy || *copy == '#')
			continue;
		err = parse(&e, arena_printf(&s->texts, "%s", copy));
		e.expired = e.until && strcmp(e.until, today) < 0;
		s->all = grow(s->all, s->n, sizeof(e));
		s->all[s->n++] = e;
	}
	if (!err && ferror(in)) {
		err = -EIO;
		warn("%s: %s", path, strerror(EIO));
	}
	free(text);
	fclose(in);
	return err;
}

void suppress_release(struct suppressions *s)
{
	free(s->all);
	arena_release(&s->texts);
	*s = (struct suppressions){0};
}

/* ---- which findings -------------------------------------------------------------------------- */

static bool matches(const char *pattern, const char *text)
{
	return text && (!strcmp(pattern, text) || !fnmatch(pattern, text, 0));
}

static bool matches_path(const char *pattern, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return matches(pattern, path) || matches(pattern, slash ? slash + 1 : NULL);
}

/* As it is, and without the parameters that C++ names have. */
static bool matches_function(const char *pattern, const char *function)
{
	const char *parameters = function ? strchr(function, '(') : NULL;
	char *bare;
	bool found = matches(pattern, function);

	if (found || !parameters)
		return found;
	bare = xstrndup(function, (size_t)(parameters - function));
	found = matches(pattern, bare);
	free(bare);
	return found;
}

static bool at_line(const char *pattern, const char *file, uint64_t number)
{
	char *line = file ? xasprintf("%s:%llu", file, (unsigned long long)number) : NULL;
	bool found = matches_path(pattern, line) || matches_path(pattern, file);

	free(line);
	return found;
}

/* All the lines of Python that are known: one accepted does not speak for the others. */
static bool at_python(const char *pattern, const struct finding_stacks *stacks)
{
	for (size_t i = 0; i < stacks->n_python; i++)
		if (!at_line(pattern, stacks->python[i].at.code->file, stacks->python[i].at.line) &&
		    !matches(pattern, stacks->python[i].at.code->function))
			return false;
	return stacks->n_python;
}

static bool at_place(const char *pattern, const struct finding_place *place)
{
	return matches(pattern, place->function) || matches_function(pattern, place->caller) ||
	       matches_function(pattern, place->inner) ||
	       matches_function(pattern, place->library_caller) ||
	       at_line(pattern, place->file, place->line) || matches_path(pattern, place->module) ||
	       matches_path(pattern, place->library);
}

const char *suppress_reason(struct suppressions *s, const struct finding *finding)
{
	const char *reason = NULL;

	for (size_t i = 0; i < s->n; i++) {
		struct suppression *e = &s->all[i];

		if (strcmp(e->id, finding->detector->id) ||
		    (e->place && !at_place(e->place, &finding->place) &&
		     !at_python(e->place, &finding->stacks)))
			continue;
		e->findings++;
		e->unknown += finding->cost.unknown;
		e->cost_ns += cost_known_ns(&finding->cost);
		if (!reason && !e->expired)
			reason = e->reason;
	}
	return reason;
}
