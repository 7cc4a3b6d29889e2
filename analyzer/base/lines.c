/*
 * analyzer/base/lines.c: text on a screen: made harmless, measured, shortened, broken into lines.
 * Called by whatever writes for people.
 */
#include <stdlib.h>
#include <string.h>
#include "lines.h"

size_t utf8_character(const char *text, uint32_t *code)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t n = bytes[0] < 0x80 ? 1 : bytes[0] >> 5 == 6 ? 2 : bytes[0] >> 4 == 14 ? 3 : 4, i;

	*code = n == 1 ? bytes[0] : bytes[0] & (0x7fu >> n);
	if (n == 4 && bytes[0] >> 3 != 30)
		return 0;
	for (i = 1; i < n; i++) {
		if (bytes[i] >> 6 != 2)
			return 0;
		*code = *code << 6 | (bytes[i] & 0x3f);
	}
	/* Longer than need be, halves of UTF-16, too large. */
	if ((n > 1 && *code < (n == 2   ? 0x80u
			       : n == 3 ? 0x800u
					: 0x10000u)) ||
	    *code >> 11 == 0x1b || *code > 0x10ffff)
		return 0;
	return n;
}

size_t harmless_character(const char *text)
{
	uint32_t code;
	size_t n = utf8_character(text, &code);

	/* Controls; other ends of lines; what turns the direction of writing. */
	if (code < ' ' || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
	    (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069))
		return 0;
	return n;
}

char *visible(const char *text)
{
	char *copy = xcalloc(4 * strlen(text) + 1, 1), *end = copy;

	while (*text) {
		size_t n = harmless_character(text);

		if (n)
			memcpy(end, text, n);
		else
			snprintf(end, 5, "\\x%02x", (unsigned char)*text);
		end += n ?: 4;
		text += n ?: 1;
	}
	return copy;
}

char *valid_utf8(const char *text)
{
	char *copy = xstrdup(text), *at = copy;
	uint32_t code;
	size_t n;

	while (*at && (n = utf8_character(at, &code)))
		at += n;
	for (at = *at ? copy : at; *at; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	return copy;
}

/* No byte that goes on a character. */
static bool begins_character(char byte)
{
	return ((unsigned char)byte & 0xc0) != 0x80;
}

size_t columns_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += begins_character(*text);
	return n;
}

/* Bytes of the first `n` characters. */
static size_t bytes_of(const char *text, size_t n)
{
	size_t i;

	for (i = 0; text[i]; i++)
		if (begins_character(text[i]) && !n--)
			break;
	return i;
}

void shorten(char *text, size_t width)
{
	size_t columns = columns_of(text), head, tail;

	if (columns <= width || width < 5)
		return;
	head = bytes_of(text, (width - 2) / 2);
	tail = bytes_of(text, columns - (width - 2 - (width - 2) / 2));
	memmove(text + head + 2, text + tail, strlen(text + tail) + 1);
	memcpy(text + head, "..", 2);
}

static size_t break_line(size_t indent, FILE *out)
{
	fprintf(out, "\n%*s", (int)indent, "");
	return indent;
}

/* The next word, `n` columns long. Returns how many columns are used then. */
static size_t print_word(const char *word, size_t n, size_t indent, size_t used, size_t width,
			 FILE *out)
{
	if (used > indent && used + 1 + n > width)
		used = break_line(indent, out);
	if (used > indent) {
		fputc(' ', out);
		used++;
	}
	for (; n && used + n > width && width > indent; used = break_line(indent, out)) {
		size_t room = width > used ? width - used : 0, bytes = bytes_of(word, room);

		fwrite(word, 1, bytes, out);
		word += bytes;
		n -= room;
	}
	fwrite(word, 1, bytes_of(word, n), out);
	return used + n;
}

/* What is behind a number and belongs to it. */
static bool is_unit(const char *word, size_t n)
{
	static const char *const units[] = {"ns", "us",  "ms",  "s",   "%",
					    "B",  "KiB", "MiB", "GiB", "TiB"};
	size_t i;

	while (n && strchr(",;:.)", word[n - 1]))
		n--;
	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (n == strlen(units[i]) && !memcmp(word, units[i], n))
			return true;
	return false;
}

/* Bytes of the first word; of a number with its unit, which are not parted. */
static size_t text_length(const char *text)
{
	size_t n = strcspn(text, " "), unit;

	if (text[n] && n && text[n - 1] >= '0' && text[n - 1] <= '9') {
		unit = strcspn(text + n + 1, " ");
		if (is_unit(text + n + 1, unit))
			n += 1 + unit;
	}
	return n;
}

void print_words(const char *text, size_t indent, size_t used, size_t width, FILE *out)
{
	char *copy = visible(text), *word;

	for (word = copy + strspn(copy, " "); *word; word += strspn(word, " ")) {
		char *end = word + text_length(word), behind = *end;

		*end = '\0';
		used = print_word(word, columns_of(word), indent, used, width, out);
		*end = behind;
		word = end;
	}
	fputc('\n', out);
	free(copy);
}

#define LABELLED 20 /* words beside a label have so many columns, or are below it */

/* Where the text begins that is labelled; or the words, if nothing is. */
static size_t find_text(const char *line, size_t n)
{
	size_t blanks = strspn(line, " "), i;

	for (i = blanks; blanks && i + 2 < n; i++)
		if (line[i] == ' ' && line[i + 1] == ' ')
			return i + strspn(line + i, " ");
	return blanks;
}

static void print_paragraph(const char *line, size_t n, size_t width, FILE *out)
{
	size_t begin = find_text(line, n), blanks = strspn(line, " "), below = blanks + 4;
	char *words = xstrndup(line + begin, n - begin);

	if (begin + LABELLED > width && begin > below) {
		while (line[begin - 1] == ' ')
			begin--;
		fprintf(out, "%.*s\n%*s", (int)begin, line, (int)below, "");
		print_words(words, below, below, width, out);
	} else {
		fwrite(line, 1, begin, out);
		print_words(words, begin, begin, width, out);
	}
	free(words);
}

void print_paragraphs(const char *text, size_t width, FILE *out)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		print_paragraph(text, n, width, out);
		text += n + (text[n] == '\n');
	}
}
