/*
 * analyzer/cmd/output.h: where what a verb has to say goes: standard output, a terminal by way of a pager, or a file.
 */
#ifndef CUDASPY_OUTPUT_H
#define CUDASPY_OUTPUT_H

#include "command.h"
#include "base/outfile.h"

struct output_options {
	const char *path; /* NULL, "-": standard output */
	const char *colour; /* --color: NULL as auto */
	bool no_pager;
};

/* Rows of a verb's table of options; type: of its options; member: a struct output_options in it. */
/* clang-format off */
#define OUTPUT_OPTIONS(type, member) \
	{"output",   'o', "FILE", "write to FILE, as a whole or not at all, instead of to standard output", offsetof(type, member.path)}, \
	{"color",    0,   "WHEN", "colours of text: auto (default: on a terminal), always, never", offsetof(type, member.colour)}, \
	{"no-pager", 0,   NULL,   "on a terminal, show all of it at once and not by $PAGER", offsetof(type, member.no_pager)}
/* clang-format on */

struct output {
	FILE *file; /* to write to */
	struct outfile to; /* if it is a file */
	bool paged;
};

/*
 * Before anything is read: what cannot be written is worth no reading. page: long text, for which a terminal has a
 * pager. 0, or an exit status after a message; only then output_end is not called.
 */
int output_begin(struct output *out, const char *verb, const struct output_options *options,
		 bool page);

/* For who writes much later: would output_begin succeed? 0, or an exit status after a message. */
int output_check(const char *verb, const struct output_options *options);

/* Puts the file in its place, if what belongs into it was written; waits until the pager ends. 0, or -errno after a
 * message. */
int output_end(struct output *out, bool written);

#endif
