/*
 * analyzer/pack/unpack.c: what is in a container becomes directories again. Called by `cudaspy unpack`. A directory is made under a
 * hidden name, and gets its own when all of it is there and on the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "pack.h"
#include "swap.h"

#define BUFFER_BYTES ((size_t)1 << 20)

/* While one is unpacked. */
struct unpacking {
	const struct container *c;
	int fd; /* of the container */
	mode_t mode; /* of its files */
	const char *parent;
	bool in_place;
};

static int fail(const char *path)
{
	int err = errno;

	warn("%s: %s", path, strerror(err));
	return -err;
}

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno != EINTR)
			return -1;
		bytes += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int copy(const struct unpacking *u, const struct container_member *m, int to,
		const char *path)
{
	uint8_t *buffer = xcalloc(1, BUFFER_BYTES);
	uint64_t done = 0;
	uint32_t crc = 0;
	int err = 0;

	while (!err && done < m->bytes) {
		ssize_t n = pread(u->fd, buffer, (size_t)min_u64(BUFFER_BYTES, m->bytes - done),
				  (off_t)(m->off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			warn("%s: offset %llu: %s", u->c->path, (unsigned long long)(m->off + done),
			     n ? strerror(errno) : "the file became shorter");
			err = n ? -errno : -ENODATA;
			break;
		}
		crc = (uint32_t)crc32(crc, buffer, (uInt)n);
		if (write_all(to, buffer, (size_t)n))
			err = fail(path);
		done += (size_t)n;
	}
	free(buffer);
	if (!err && crc != m->crc && !m->cut) {
		warn("%s: offset %llu: the bytes of %s are not what they were (checksum)",
		     u->c->path, (unsigned long long)m->off, m->name);
		err = -EBADMSG;
	}
	return err;
}

static int make_file(const struct unpacking *u, const struct container_member *m, const char *dir)
{
	char *path = xasprintf("%s/%s", dir, m->name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), err;
	const struct timespec when = {(time_t)(m->mtime_ns / 1000000000),
				      (long)(m->mtime_ns % 1000000000)};

	if (fd < 0) {
		err = fail(path);
	} else {
		err = copy(u, m, fd, path);
		fchmod(fd, u->mode & 0777);
		if (m->mtime_ns)
			futimens(fd, (struct timespec[]){when, when});
		if (!err && fsync(fd))
			err = fail(path);
		if (close(fd) && !err)
			err = fail(path);
	}
	free(path);
	return err;
}

/* The folder of a file that its group may read is one that its group may enter. */
static mode_t folder_mode(mode_t mode)
{
	return (mode & 0777) | (mode & 0444) >> 2;
}

static int make_folder(const struct unpacking *u, size_t first, const char *hidden)
{
	size_t i, end = container_next_folder(u->c, first);
	int err = 0;

	for (i = first; !err && i < end; i++)
		err = make_file(u, &u->c->members[i], hidden);
	if (!err && chmod(hidden, folder_mode(u->mode)))
		err = fail(hidden);
	sync_folder(hidden);
	return err;
}

static bool is_container(const struct unpacking *u, const char *path)
{
	struct stat st;

	return !stat(path, &st) && st.st_dev == u->c->device && st.st_ino == u->c->inode;
}

/* In the place of the container, or of nothing. */
static int put_in_place(const struct unpacking *u, const char *hidden, const char *path)
{
	char *old = NULL;
	struct stat st;
	int err = 0;

	if (u->in_place && is_container(u, path)) {
		err = swap_in(hidden, path, &old);
		if (!err && unlink(old))
			warn("%s: is unpacked, but what it was before is left in %s", path, old);
		free(old);
	} else if (!lstat(path, &st)) {
		warn("%s: is there already: nothing is unpacked over it", path);
		err = -EEXIST;
	} else if (rename(hidden, path)) {
		err = fail(path);
	}
	return err;
}

static int unpack_folder(const struct unpacking *u, size_t first)
{
	const char *folder = u->c->members[first].folder;
	char *path = *folder ? xasprintf("%s/%s", u->parent, folder)
			     : xasprintf("%s/%s", u->parent, path_basename(u->c->path));
	char *in, *hidden = NULL;
	int err = make_parents(path);

	in = folder_of_path(path);
	if (!err) {
		hidden = xasprintf("%s/.cudaspy-unpack-XXXXXX", in);
		err = mkdtemp(hidden) ? 0 : fail(in);
	}
	if (!err) {
		err = make_folder(u, first, hidden) ?: put_in_place(u, hidden, path);
		if (err)
			pack_remove_directory(hidden);
		else
			sync_folder(in);
	}
	free(hidden);
	free(in);
	free(path);
	return err;
}

/* The folder that takes the container's own name comes last. */
static bool takes_its_name(const struct unpacking *u, size_t first)
{
	char *path = xasprintf("%s/%s", u->parent, u->c->members[first].folder);
	bool yes = is_container(u, path);

	free(path);
	return yes;
}

static int unpack_folders(const struct unpacking *u, bool last)
{
	int err, worst = 0;

	for (size_t i = 0; i < u->c->n_members; i = container_next_folder(u->c, i)) {
		if (takes_its_name(u, i) != last)
			continue;
		err = unpack_folder(u, i);
		worst = worst ?: err;
	}
	return worst;
}

int unpack_container(const struct container *c, const char *parent, bool in_place)
{
	struct unpacking u = {.c = c, .parent = parent, .in_place = in_place};
	struct stat st;
	uint64_t bytes;
	int err;

	if (in_place && (c->torn || c->refused)) {
		warn("%s: is damaged and stays: --output=DIR unpacks elsewhere what can be read",
		     c->path);
		return -EBADMSG;
	}
	u.fd = container_open_extent(c->path, NULL, &bytes);
	if (u.fd < 0 || fstat(u.fd, &st)) {
		err = fail(c->path);
	} else {
		u.mode = st.st_mode;
		err = unpack_folders(&u, false);
		err = err ?: unpack_folders(&u, true);
	}
	if (u.fd >= 0)
		close(u.fd);
	return err;
}
