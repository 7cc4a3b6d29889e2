/*
 * analyzer/base/output.h: a file that a verb writes: it has its name once it is complete, so that nobody takes half of one for
 * all of it, and an older one stays until then.
 */
#ifndef CUDASPY_OUTPUT_H
#define CUDASPY_OUTPUT_H

#include "util.h"

struct output {
	char *path; /* as it will be called; "-": standard output */
	char *temporary; /* what is written; NULL: path itself, which is a pipe or a device */
	FILE *file; /* NULL: whoever writes opens temporary himself */
	int err; /* -errno of the first write that failed; the others are left out then */
};

/* For those who write much: the cause of an error is known when it occurs, and there is no use in going on. */
void output_write(struct output *o, const void *bytes, size_t n);

/* Opens what is to become `path`; "-" is standard output, pipes and devices are written as they are. 0, or -errno after a
 * warning. output_commit or output_discard in all cases. */
int output_open(struct output *o, const char *path);

/* The same for those who make files by name (databases, folders): temporary is free, and nothing is there yet. A pipe, a
 * device or standard output is an error, -EINVAL. */
int output_reserve(struct output *o, const char *path);

/* All is written: gives it its name. 0, or -errno after a warning; then nothing is left. */
int output_commit(struct output *o);

/* Takes it away again; what had the name before is as it was. */
void output_discard(struct output *o);

#endif
