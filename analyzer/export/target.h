/*
 * analyzer/export/target.h: the file that is written: it has its name once it is complete, so that nobody takes half of one for
 * all of it, and an older one stays until then.
 */
#ifndef CUDASPY_EXPORT_TARGET_H
#define CUDASPY_EXPORT_TARGET_H

#include "base/util.h"

struct export_target {
	char *path; /* as it will be called; "-": standard output */
	char *temporary; /* what is written; NULL: path itself, which is a pipe or a device */
	FILE *file; /* NULL: whoever writes opens temporary himself */
	int err; /* -errno of the first write that failed; the others are left out then */
};

/* For those who write much: the cause of an error is known when it occurs, and there is no use in going on. */
void target_write(struct export_target *o, const void *bytes, size_t n);

/* Opens what is to become `path`; "-" is standard output, pipes and devices are written as they are. 0, or -errno after a
 * warning. target_commit or target_discard in all cases. */
int target_open(struct export_target *o, const char *path);

/* The same for those who make files by name (databases, folders): temporary is free, and nothing is there yet. A pipe, a
 * device or standard output is an error, -EINVAL. Of a folder whose name is there already, the files take the places of those
 * that are called the same; others stay. */
int target_reserve(struct export_target *o, const char *path);

/* All is written: gives it its name. 0, or -errno after a warning; then nothing is left. */
int target_commit(struct export_target *o);

/* Takes it away again; what had the name before is as it was. */
void target_discard(struct export_target *o);

#endif
