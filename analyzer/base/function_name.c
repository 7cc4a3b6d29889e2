/*
 * analyzer/base/function_name.c: names of functions, with what may be left out of them. Called by `why`.
 */
#include <string.h>
#include "function_name.h"
#include "util.h"

/* Behind the group in brackets that begins there; the same place: none does, or it does not end. */
static const char *behind_group(const char *at)
{
	const char *end = at;
	unsigned int depth = 0;

	if (!*at || !strchr("<({", *at))
		return at;
	for (; *end; end++) {
		depth += strchr("<({", *end) != NULL;
		depth -= strchr(">)}", *end) != NULL;
		if (!depth)
			return end + 1;
	}
	return at;
}

/* A scope without a name, "(anonymous namespace)::" and "<locals>.": people leave it out. */
static const char *behind_nameless(const char *at)
{
	static const char *const scopes[] = {"(anonymous namespace)::", "<locals>."};

	for (size_t i = 0; i < ARRAY_SIZE(scopes); i++)
		if (!strncmp(at, scopes[i], strlen(scopes[i])))
			return at + strlen(scopes[i]);
	return at;
}

/* What a compiler appends to a name: " const", " [clone .cold]", ".part.0". */
static bool is_suffix(const char *at)
{
	static const char *const suffixes[] = {
		" const", " [clone ", "[abi:", ".part.", ".constprop.", ".isra.", ".cold",
	};

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (!strncmp(at, suffixes[i], strlen(suffixes[i])))
			return true;
	return !*at;
}

/* From here to its end, but for what may be left out? */
static bool fits_from(const char *at, const char *asked)
{
	const char *behind;

	for (;;) {
		if (*asked && *at == *asked) {
			at++;
			asked++;
			continue;
		}
		behind = behind_nameless(at);
		behind = behind > at ? behind : behind_group(at);
		if (behind == at)
			return !*asked && is_suffix(at);
		at = behind;
	}
}

/* Where the next part of the name begins: behind "::", a dot, or what the function returns; NULL: this was the last. */
static const char *next_part(const char *at)
{
	const char *behind;

	while (*at) {
		behind = behind_group(at);
		if (behind > at) {
			at = behind;
			continue;
		}
		if (is_suffix(at))
			return NULL;
		if (at[0] == ':' && at[1] == ':')
			return at + 2;
		if (*at == '.' || *at == ' ')
			return at + 1;
		at++;
	}
	return NULL;
}

bool function_name_fits(const char *function, const char *asked)
{
	if (!*asked)
		return false;
	for (const char *at = function; at; at = next_part(at))
		if (fits_from(at, asked))
			return true;
	return false;
}

char *function_name_short(const char *function)
{
	const char *last = function, *end;

	for (const char *at = function; at; at = next_part(at))
		last = *at ? at : last;
	for (end = last; *end && behind_group(end) == end && !is_suffix(end); end++)
		;
	return end > last ? xstrndup(last, (size_t)(end - last)) : xstrdup(last);
}
