/*
 * analyzer/pack/container.h: one file that holds finished traces: a ZIP file whose members are stored as they are, each at a
 * multiple of 4096 bytes, and are read in place (docs/TRACE_FORMAT.md). The names of members are FOLDER/FILE: a folder is what
 * was a trace directory.
 *
 * Nothing in such a file is trusted. What comes out of container_open lies inside the file, overlaps with nothing else, is stored
 * as it is, and has a name that leads to no other folder.
 */
#ifndef CUDASPY_CONTAINER_H
#define CUDASPY_CONTAINER_H

#include "base/util.h"

/* Bytes of a file. */
struct container_extent {
	const char *file; /* NULL: the whole of some other file */
	uint64_t off, bytes;
};

struct container_member {
	const char *folder; /* "": none. Owned by the container, as all texts here */
	const char *name; /* without slashes */
	uint64_t header_off, off, bytes; /* of its header; of its bytes in the file, and how many */
	uint64_t mtime_ns; /* since 1970; 0 unknown */
	uint32_t crc;
	bool cut; /* the file ends before the member does */
};

struct container {
	char *path;
	uint64_t device, inode; /* what tells it from others, whatever it is called */
	struct container_member
		*members; /* in the order of folders, then as they lie in the file */
	size_t n_members;
	bool torn; /* the index is missing or wrong: members were looked for */
	unsigned int refused; /* members that are damaged, or are not what they have to be */
	struct arena texts;
};

/* Is it a regular file whose name or first bytes say that it is a container? */
bool container_is_named(const char *path);
bool container_begins(const char *path);

/*
 * 0, or -errno after a message: it cannot be read, is no ZIP file, or nothing in it is of use. A member that is damaged is
 * left out after a message; quiet: without any. container_release in all cases.
 */
int container_open(struct container *c, const char *path, bool quiet);
void container_release(struct container *c);

/* The number of the first member of the next folder; from 0 on, at the end n_members. */
size_t container_next_folder(const struct container *c, size_t member);

/* The member of that name in the folder whose first member that is. NULL: there is none. */
const struct container_member *container_find(const struct container *c, size_t first,
					      const char *name);

static inline struct container_extent container_extent(const struct container *c,
						       const struct container_member *m)
{
	return (struct container_extent){c->path, m->off, m->bytes};
}

/*
 * Opens a regular file, or the one that an extent lies in (extent->file), and sets *bytes to how many there are of it. Returns the
 * descriptor, or -1 with errno. extent may be NULL: all of `path`.
 */
int container_open_extent(const char *path, const struct container_extent *extent, uint64_t *bytes);

/* Reads an extent, at most `most` bytes of it; the caller frees. 0, or -errno after a message that calls it `path`. */
int container_read_extent(const char *path, const struct container_extent *extent, uint64_t most,
			  char **bytes, size_t *size);

#endif
