/*
 * analyzer/pack/pack.c: finished trace directories become containers. Called by `cudaspy pack` and `cudaspy run --pack`.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "pack.h"
#include "swap.h"
#include "base/outfile.h"
#include "cudaspy/trace_format.h"

#define NO_PATCH UINT64_MAX

static int fail(const char *path)
{
	int err = errno;

	warn("%s: %s", path, strerror(err));
	return -err;
}

/* ---- what of a stream is used ----------------------------------------------------------------- */

static bool read_header(int fd, struct spy_packet *p, uint64_t off)
{
	return pread(fd, p, sizeof(*p), (off_t)off) == sizeof(*p) && p->magic == SPY_CTF_MAGIC &&
	       !(p->content_bits % 8) && !(p->packet_bits % 8) &&
	       p->content_bits / 8 >= sizeof(*p) && p->packet_bits >= p->content_bits;
}

static bool zero_from(int fd, uint64_t off, uint64_t end_off)
{
	uint8_t bytes[16384];
	ssize_t n, i;

	for (; off < end_off; off += (uint64_t)n) {
		n = pread(fd, bytes, sizeof(bytes), (off_t)off);
		if (n <= 0)
			return false;
		for (i = 0; i < n; i++)
			if (bytes[i])
				return false;
	}
	return true;
}

/*
 * Room behind the content of the last packet was made ahead, and is not stored: the packet then ends where its content does. Of
 * a stream that is not what it should be all is kept.
 */
static void find_used(struct writer_source *source)
{
	uint64_t off = 0, size = source->bytes, packet_end;
	struct spy_packet p;

	while (off < size && read_header(source->fd, &p, off)) {
		if (p.content_bits / 8 > size - off)
			return;
		packet_end = p.packet_bits / 8 > size - off ? size : off + p.packet_bits / 8;
		if (packet_end == size || zero_from(source->fd, packet_end, size)) {
			source->bytes = off + p.content_bits / 8;
			if (p.packet_bits != p.content_bits) {
				source->patch_off = off + offsetof(struct spy_packet, packet_bits);
				source->patch = p.content_bits;
			}
			return;
		}
		off = packet_end;
	}
}

/* ---- a directory ------------------------------------------------------------------------------ */

static int is_entry(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* In the order of bytes, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_file(struct writer *w, const char *dir, const char *folder, const char *name)
{
	struct writer_source source = {.folder = folder, .name = name, .patch_off = NO_PATCH};
	char *path = xasprintf("%s/%s", dir, name);
	struct stat st;
	int err = 0;

	source.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (source.fd < 0 || fstat(source.fd, &st)) {
		err = fail(path);
	} else if (!S_ISREG(st.st_mode)) {
		warn("%s: is no file, so %s is not what a recorder wrote: not packed", path, dir);
		err = -EINVAL;
	} else {
		source.bytes = (uint64_t)st.st_size;
		source.mtime_ns =
			(uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
		if (!strncmp(name, "stream_", 7))
			find_used(&source);
		err = writer_add(w, &source);
	}
	if (source.fd >= 0)
		close(source.fd);
	free(path);
	return err;
}

int pack_add_directory(struct writer *w, const char *dir, const char *folder)
{
	struct dirent **entries;
	int i, err = 0, n = scandir(dir, &entries, is_entry, by_name);

	if (n < 0)
		return fail(dir);
	for (i = 0; i < n; i++) {
		if (!err)
			err = add_file(w, dir, folder, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return err;
}

int pack_add_packed(struct writer *w, const struct container *c, size_t first, const char *folder)
{
	size_t i, end = container_next_folder(c, first);
	uint64_t bytes;
	int fd = container_open_extent(c->path, NULL, &bytes), err = fd < 0 ? fail(c->path) : 0;

	for (i = first; !err && i < end; i++)
		err = writer_add(w, &(struct writer_source){.folder = folder,
							    .name = c->members[i].name,
							    .fd = fd,
							    .off = c->members[i].off,
							    .bytes = c->members[i].bytes,
							    .mtime_ns = c->members[i].mtime_ns,
							    .patch_off = NO_PATCH});
	if (fd >= 0)
		close(fd);
	return err;
}

int pack_remove_directory(const char *dir)
{
	struct dirent **entries;
	int i, err = 0, n = scandir(dir, &entries, is_entry, by_name);

	if (n < 0)
		return fail(dir);
	/* Streams first: while metadata is there, the rest is known to be another one's copy. */
	for (i = n; i--;) {
		char *path = xasprintf("%s/%s", dir, entries[i]->d_name);

		if (!err && unlink(path))
			err = fail(path);
		free(path);
		free(entries[i]);
	}
	free(entries);
	return err ?: rmdir(dir) ? fail(dir) : 0;
}

/* ---- a container ------------------------------------------------------------------------------ */

/* The mode of the directory's files, and whose they are. */
static int finish_like(struct writer *w, const char *like)
{
	char *path = xasprintf("%s/metadata", like);
	struct stat st;
	int err = 0;

	if (stat(path, &st) && stat(like, &st))
		err = fail(like);
	free(path);
	return err ?: writer_finish(w, st.st_mode, st.st_uid, st.st_gid);
}

int pack_finish(struct writer *w, const char *like)
{
	return finish_like(w, like) ?: writer_rename(w);
}

static void remove_old(const char *old, const char *dir)
{
	struct stat st;

	/* Somebody else has packed it, too, and was a moment earlier: then it is a file. */
	if (!lstat(old, &st) && (S_ISDIR(st.st_mode) ? pack_remove_directory(old) : unlink(old)))
		warn("%s: is packed, but what it was before is left in %s", dir, old);
}

static int put_in_place(struct writer *w, const char *dir, const struct stat *was)
{
	struct stat st;
	char *old;
	int err;

	if (stat(dir, &st) || st.st_dev != was->st_dev || st.st_ino != was->st_ino) {
		warn("%s: has changed: another process packs or moves it", dir);
		return -ESTALE;
	}
	outfile_unfinished(NULL); /* from here on that name may be the directory's */
	err = swap_in(w->temporary, dir, &old);
	if (err)
		return err;
	free(w->temporary);
	w->temporary = NULL;
	remove_old(old, dir);
	free(old);
	return 0;
}

static int pack_real(const char *dir)
{
	struct writer w;
	struct stat st;
	int err = stat(dir, &st) ? fail(dir) : writer_begin(&w, dir);

	if (err)
		return err;
	err = pack_add_directory(&w, dir, path_basename(dir)) ?: finish_like(&w, dir)
							       ?: put_in_place(&w, dir, &st);
	if (err)
		writer_abandon(&w);
	writer_release(&w);
	return err;
}

int pack_in_place(const char *dir)
{
	char *real = realpath(dir, NULL); /* "." has no name that could be given to another one */
	int err = real ? pack_real(real) : fail(dir);

	free(real);
	return err;
}
