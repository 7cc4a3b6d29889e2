/*
 * analyzer/pack/writer.h: writes a container of traces (container.h). Called by `cudaspy pack` and `cudaspy run --pack`.
 *
 * It is written under a hidden name in the folder where it is to lie, and is complete, and on the disk, before it gets its own.
 */
#ifndef CUDASPY_WRITER_H
#define CUDASPY_WRITER_H

#include "base/util.h"
#include "container.h"

#define WRITER_ALIGNMENT 4096 /* of members' bytes: a page, so that they can be mapped */

struct writer {
	int fd;
	char *temporary, *path; /* what it is called now; what it will be called */
	uint64_t off; /* where the next member may begin */
	struct writer_member *members;
	size_t n_members;
};

/* A member to write: `bytes` of fd from `off` on. */
struct writer_source {
	const char *folder, *name;
	int fd;
	uint64_t off, bytes, mtime_ns;
	/* A number of 8 bytes that is another one in the container; patch_off UINT64_MAX: none. */
	uint64_t patch_off, patch;
};

/* path: what it will be called. All of them: 0, or -errno after a message, and then writer_abandon. */
int writer_begin(struct writer *w, const char *path);
int writer_add(struct writer *w, const struct writer_source *source);
/* Writes the index; all is on the disk. mode, uid and gid: as of what it holds. */
int writer_finish(struct writer *w, uint32_t mode, uint32_t uid, uint32_t gid);

/* After writer_finish: gives it its name, in place of a file of that name. */
int writer_rename(struct writer *w);

/* Removes what was written, if it still has its hidden name. */
void writer_abandon(struct writer *w);

/* After writer_rename or writer_abandon, or where `temporary` was renamed otherwise. */
void writer_release(struct writer *w);

/* The folder that a path lies in; the caller frees. */
char *folder_of_path(const char *path);

/* What was renamed in that folder is on the disk. A file system that cannot do that is no error. */
void sync_folder(const char *folder);

#endif
