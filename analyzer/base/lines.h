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

/* Bytes of the character at `text` if a terminal only shows it; 0: it would handle_key it, or not know
 * it. */
size_t harmless_character(const char *text);

/* A copy in which bytes of all other characters are \x1b and the like. The caller frees. */
char *visible(const char *text);

/* A copy as data formats want it: UTF-8. If there is anything else in it, all that is not ASCII becomes '?'. The caller
 * frees. */
char *valid_utf8(const char *text);

/* How many columns a visible text takes: one for each character. */
size_t columns_of(const char *text);

/*
 * What names are made of can be left out, in this order: the folders of paths, the arguments of templates, those of
 * functions, namespaces. ".." stands for it. A function's own name stays whole. A copy of the text in which so many of
 * these are left out, 0 to SHORTEST; the caller frees.
 */
#define SHORTEST 4
char *shorten_names(const char *text, unsigned int level);

/* As much of it as makes the text fit, no more; the caller frees. It may be too long even then. */
char *shorten_to(const char *text, size_t width);

/* The same for texts that stand together: of two that are different, so are the copies. `one_line`: a text that fits
 * without being broken is better than one with more of its names; else only words must fit. Fills `shown`, whose
 * texts the caller frees. */
void shorten_apart(const char *const *texts, char **shown, size_t n, size_t width, bool one_line);

/* How many columns the longest word takes: a number goes with its unit. */
size_t longest_word(const char *text);

/* So many bytes of the text fit into `width` columns, broken between words, or inside of one that is longer. */
size_t fitting_words(const char *text, size_t width);

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
