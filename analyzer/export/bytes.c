/*
 * analyzer/export/bytes.c: texts of a traced process, which may be anything, as JSON has them. Called once for each name.
 */
#include "bytes.h"
#include "base/lines.h"

/* What stands for a character that may not be in a text of JSON's as it is; NULL: it may. */
static const char *escape_of(uint32_t code, char text[8])
{
	static const char named[] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

	if (code >= ' ' && code != '"' && code != '\\' && code != 0x7f)
		return NULL;
	if (code == '"' || code == '\\')
		snprintf(text, 8, "\\%c", (char)code);
	else if (code < sizeof(named) && named[code])
		snprintf(text, 8, "\\%c", named[code]);
	else
		snprintf(text, 8, "\\u%04x", (unsigned int)code & 0xff);
	return text;
}

char *bytes_utf8(const char *text)
{
	char *copy = xcalloc(3 * strlen(text) + 1, 1), *end = copy;

	while (*text) {
		uint32_t code;
		size_t n = utf8_character(text, &code);

		end = mempcpy(end, n ? text : "\xef\xbf\xbd", n ?: 3);
		text += n ?: 1;
	}
	return copy;
}

char *bytes_json(const char *text)
{
	char *copy = xcalloc(6 * strlen(text) + 3, 1), *end = copy, room[8];

	*end++ = '"';
	while (*text) {
		uint32_t code;
		size_t n = utf8_character(text, &code);
		const char *as = n ? escape_of(code, room) : "\\ufffd";

		if (as)
			end = stpcpy(end, as);
		else
			end = mempcpy(end, text, n);
		text += n ?: 1;
	}
	*end++ = '"';
	return copy;
}
