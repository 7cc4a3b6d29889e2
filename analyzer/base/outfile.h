/*
 * analyzer/base/outfile.h: a file that is there as a whole or not at all.
 */
#ifndef CUDASPY_OUTFILE_H
#define CUDASPY_OUTFILE_H

#include <stdio.h>
#include "util.h"

struct outfile {
	FILE *file; /* to write to */
	char *path; /* owned; of a link: where it leads */
	char *temporary; /* what is written until it is whole; NULL: `path` itself, a device or a pipe */
};

/* -EACCES after a message if another user's file, link or pipe lies at path, in a folder where everybody may make some (/tmp). */
int outfile_refuse_planted(const char *path);

/* Nothing of that name is touched before outfile_close. 0, or -errno after a message. */
int outfile_open(struct outfile *out, const char *path);

/* Could path be written as it is now? Leaves nothing behind, and opens no pipe: its reader would take that for the end. 0,
 * or -errno after a message. */
int outfile_check(const char *path);

/* Puts the new file in the place of the old one; with keep false, or if it could not be written, the old one
 * stays. 0, or -errno after a message; also if keep is false. */
int outfile_close(struct outfile *out, bool keep);

/* For who makes such files otherwise: a signal that ends the process removes that one, until another is named, or NULL. The
 * name must live as long. */
void outfile_unfinished(const char *temporary);

#endif
