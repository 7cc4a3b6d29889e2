/*
 * analyzer/base/lines.h: text on a screen: texts from a traced process may be anything, and screens
 * have a width.
 */
#ifndef CUDASPY_LINES_H
#define CUDASPY_LINES_H

#include <stdio.h>
#include "util.h"

/* Bytes of the UTF-8 character at `text`, and its code; 0: it is none. */
size_t utf8_character(const char *text, uint32_t *code);

/* Bytes of the character at `text` if a terminal only shows it; 0: it would obey it, or not know
 * it. */
size_t harmless_character(const char *text);

/* A copy in which bytes of all other characters are \x1b and the like. The caller frees. */
char *visible(const char *text);

/* A copy as data formats want it: UTF-8. If there is anything else in it, all that is not ASCII becomes '?'. The caller
 * frees. */
char *valid_utf8(const char *text);

/* How many columns a visible text takes: one for each character. */
size_t columns_of(const char *text);

/* Longer texts lose their middle: both ends of a path or a mangled name say something. */
void shorten(char *text, size_t width);

/*
 * Words, made visible, broken into lines of `width` columns that begin with `indent` blanks; `used`
 * columns of the first one are taken already. A word longer than a line is broken, too.
 */
void print_words(const char *text, size_t indent, size_t used, size_t width, FILE *out);

/* Lines of an explanation: each is a paragraph of words; one that begins with blanks goes on
 * below its words, or, if it is a label with two blanks or more behind it, below those of the
 * text there. */
void print_paragraphs(const char *text, size_t width, FILE *out);

#endif
