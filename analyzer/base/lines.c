/*
 * analyzer/base/lines.c: text on a screen: made harmless, measured, shortened, broken into lines.
 * Called by whatever writes for people.
 */
#include <limits.h>
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

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_of_name(char c)
{
	return c == '_' || c == '$' || c == '~' || (c >= '0' && c <= '9') ||
	       (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80);
}

/* Past the bracket that closes the one at `text`; NULL: none does. */
static const char *past_bracket(const char *text)
{
	char open = *text, close = open == '<' ? '>' : ')';
	size_t depth = 0;

	for (; *text; text++) {
		if (open == '<' && text[0] == '-' && text[1] == '>') {
			text++;
			continue;
		}
		depth += *text == open;
		depth -= *text == close;
		if (!depth)
			return text + 1;
	}
	return NULL;
}

/* Folders of the paths in a text: "/usr/lib/libcuda.so" is ".../libcuda.so". A name with one slash is none. */
static void drop_folders(char *text)
{
	char *word = text, *to = text, *at;

	while (*word) {
		size_t n = strcspn(word, " ");
		char *last = memrchr(word, '/', n), *first = memchr(word, '/', n);
		size_t lead = strspn(word, "('\"");
		bool path = last && last[1] && last[1] != ' ' && last > word + lead + 3 &&
			    (first == word + lead || first != last);

		at = path ? last : word;
		if (path) {
			memmove(to, word, lead);
			to += lead;
			to = mempcpy(to, "...", 3);
		}
		n -= (size_t)(at - word);
		memmove(to, at, n + (at[n] == ' '));
		to += n + (at[n] == ' ');
		word = at + n + (at[n] == ' ');
	}
	*to = '\0';
}

/* What is between brackets right behind a name, if it is longer than what stands for it. */
static void drop_brackets(char *text, char open)
{
	char *to = text;
	const char *at = text, *past;

	while (*at) {
		past = *at == open && to > text && (is_of_name(to[-1]) || to[-1] == '>')
			       ? past_bracket(at)
			       : NULL;
		if (past && past - at > 4 && !(to - text >= 8 && !memcmp(to - 8, "operator", 8))) {
			*to++ = open;
			to = mempcpy(to, "..", 2);
			*to++ = past[-1];
			at = past;
		} else {
			*to++ = *at++;
		}
	}
	*to = '\0';
}

/* "(anonymous namespace)::fill" is "..::fill". */
static void drop_anonymous(char *text)
{
	static const char word[] = "(anonymous namespace)";
	size_t n = sizeof(word) - 1;

	for (char *at = text; (at = strstr(at, word)); at += 2) {
		memcpy(at, "..", 2);
		memmove(at + 2, at + n, strlen(at + n) + 1);
	}
}

/* Is there one more "::" in the chain of names? */
static bool goes_on(const char *at)
{
	while (is_of_name(*at))
		at++;
	return at[0] == ':' && at[1] == ':';
}

/* "at::native::fill" is "..::fill"; "queue::clear" stays, as "clear" alone says little. */
static void drop_namespaces(char *text)
{
	char *to = text, *name = text; /* where the chain began that is looked at */
	const char *at = text;

	while (*at) {
		if (at[0] == ':' && at[1] == ':' && to - name > 2 &&
		    (goes_on(at + 2) || memmem(name, (size_t)(to - name), "::", 2))) {
			to = mempcpy(name, "..::", 4);
			at += 2;
			continue;
		}
		*to++ = *at++;
		if (!is_of_name(to[-1]) && to[-1] != ':' && to[-1] != '.')
			name = to;
	}
	*to = '\0';
}

char *shorten_names(const char *text, unsigned int level)
{
	char *copy = xstrdup(text);

	if (level >= 1)
		drop_folders(copy);
	if (level >= 2)
		drop_brackets(copy, '<');
	if (level >= 3)
		drop_brackets(copy, '(');
	if (level >= 4) {
		drop_anonymous(copy);
		drop_namespaces(copy);
	}
	return copy;
}

char *shorten_to(const char *text, size_t width)
{
	char *copy;

	for (unsigned int level = 0; level < SHORTEST; level++) {
		copy = shorten_names(text, level);
		if (columns_of(copy) <= width)
			return copy;
		free(copy);
	}
	return shorten_names(text, SHORTEST);
}

/* As little as makes it fit; if nothing does, as little as makes it fit two lines, or all. Where lines may be more, its words. */
static unsigned int fitting_level(const char *text, size_t width, bool one_line)
{
	unsigned int level, two = SHORTEST;

	for (level = 0; level <= SHORTEST; level++) {
		char *copy = shorten_names(text, level);
		size_t columns = columns_of(copy);
		bool words_fit = longest_word(copy) <= width;

		free(copy);
		if (columns <= width || (words_fit && !one_line))
			return level;
		if (words_fit && columns <= 2 * width && two == SHORTEST)
			two = level;
	}
	return two;
}

struct shortened {
	const char *text;
	char *shown;
	size_t index;
	unsigned int level;
};

static int by_shown(const void *a, const void *b)
{
	const struct shortened *x = a, *y = b;
	int order = strcmp(x->shown, y->shown);

	return order ? order : strcmp(x->text, y->text);
}

/* Those that became alike get a part back. Nonzero: some did. */
static size_t part(struct shortened *all, size_t n)
{
	size_t i, j, k, parted = 0;

	qsort(all, n, sizeof(*all), by_shown);
	for (i = 0; i < n; i = j) {
		for (j = i + 1; j < n && !strcmp(all[i].shown, all[j].shown); j++)
			;
		if (!strcmp(all[i].text, all[j - 1].text))
			continue;
		for (k = i; k < j; k++)
			parted += all[k].level > 0;
		for (k = i; k < j; k++) {
			if (!all[k].level)
				continue;
			all[k].level--;
		}
	}
	for (i = 0; parted && i < n; i++) {
		free(all[i].shown);
		all[i].shown = shorten_names(all[i].text, all[i].level);
	}
	return parted;
}

void shorten_apart(const char *const *texts, char **shown, size_t n, size_t width, bool one_line)
{
	struct shortened *all = xcalloc(n, sizeof(*all));

	for (size_t i = 0; i < n; i++) {
		unsigned int level = fitting_level(texts[i], width, one_line);

		all[i] = (struct shortened){texts[i], shorten_names(texts[i], level), i, level};
	}
	while (part(all, n))
		;
	for (size_t i = 0; i < n; i++)
		shown[all[i].index] = all[i].shown;
	free(all);
}

/* ---- words ----------------------------------------------------------------------------------- */

/* Where a line goes on that is being written. */
struct at_line {
	size_t indent; /* of those that follow */
	size_t begin, used; /* columns of this one */
	size_t width;
	FILE *out;
};

static void break_line(struct at_line *at)
{
	fprintf(at->out, "\n%*s", (int)at->indent, "");
	at->begin = at->used = at->indent;
}

/* The next word, `n` columns long. */
static void print_word(struct at_line *at, const char *word, size_t n)
{
	if (at->used > at->begin && at->used + 1 + n > at->width)
		break_line(at);
	if (at->used > at->begin) {
		fputc(' ', at->out);
		at->used++;
	}
	while (n && at->used + n > at->width && at->width > at->indent) {
		size_t room = at->width > at->used ? at->width - at->used : 0,
		       bytes = bytes_of(word, room);

		fwrite(word, 1, bytes, at->out);
		word += bytes;
		n -= room;
		break_line(at);
	}
	fwrite(word, 1, bytes_of(word, n), at->out);
	at->used += n;
}

/* What is behind a number and belongs to it. */
static bool is_unit(const char *word, size_t n)
{
	static const char *const units[] = {"ns", "us",  "ms",  "s",   "%",
					    "B",  "KiB", "MiB", "GiB", "TiB"};

	while (n && strchr(",;:.)", word[n - 1]))
		n--;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
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

size_t longest_word(const char *text)
{
	size_t longest = 0, n, columns;

	for (text += strspn(text, " "); *text; text += n, text += strspn(text, " ")) {
		char *word;

		n = text_length(text);
		word = xstrndup(text, n);
		columns = columns_of(word);
		free(word);
		longest = columns > longest ? columns : longest;
	}
	return longest;
}

size_t fitting_words(const char *text, size_t width)
{
	size_t fitting = 0, end = 0, all = bytes_of(text, width);

	if (!text[all])
		return all;
	for (;;) {
		end += strspn(text + end, " ");
		end += text_length(text + end);
		if (end > all)
			break;
		fitting = end;
	}
	return fitting ?: all;
}

void print_words(const char *text, size_t indent, size_t used, size_t width, FILE *out)
{
	struct at_line at = {indent, used, used, width, out};
	char *copy = visible(text), *word;

	for (word = copy + strspn(copy, " "); *word; word += strspn(word, " ")) {
		char *end = word + text_length(word), behind = *end;

		*end = '\0';
		print_word(&at, word, columns_of(word));
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
