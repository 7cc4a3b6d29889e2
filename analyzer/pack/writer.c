/*
 * analyzer/pack/writer.c: writes a container of traces. Called by `cudaspy pack` and `cudaspy run --pack`.
 *
 * A member's header is written after its bytes, when their checksum is known: so a header in a file is always right.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include "writer.h"
#include "zip.h"
#include "base/outfile.h"

#define BUFFER_BYTES ((size_t)1 << 20)
/* With the extra fields and the zeros for alignment less than 64 KiB */
#define NAME_MAX_BYTES 0x7fff

struct writer_member {
	char *name;
	uint64_t header_off, bytes, mtime_ns;
	uint32_t crc;
};

static int fail(const char *path, int err)
{
	warn("%s: %s", path, strerror(err));
	return -err;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int put_at(struct writer *w, const void *bytes, size_t size, uint64_t off)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n =
			pwrite(w->fd, (const char *)bytes + done, size - done, (off_t)(off + done));

		if (n < 0 && errno != EINTR)
			return fail(w->path, errno);
		if (!n)
			return fail(w->path, ENOSPC);
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static ssize_t read_some(int fd, void *bytes, size_t size, uint64_t off)
{
	ssize_t n;

	do {
		n = pread(fd, bytes, size, (off_t)off);
	} while (n < 0 && errno == EINTR);
	return n;
}

/* The patch, as far as it lies in these bytes, which begin at `at` of the member. */
static void apply_patch(const struct writer_source *source, uint8_t *bytes, size_t size,
			uint64_t at)
{
	const uint8_t *patch = (const uint8_t *)&source->patch;

	for (size_t i = 0; source->patch_off != UINT64_MAX && i < sizeof(source->patch); i++)
		if (source->patch_off + i >= at && source->patch_off + i - at < size)
			bytes[source->patch_off + i - at] = patch[i];
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, size - 1);
}

static int copy(struct writer *w, const struct writer_source *source, uint64_t to, uint32_t *crc)
{
	uint8_t *buffer = xcalloc(1, BUFFER_BYTES);
	uint64_t at = 0;
	int err = 0;

	*crc = 0;
	while (!err && at < source->bytes) {
		ssize_t n = read_some(source->fd, buffer,
				      (size_t)min_u64(BUFFER_BYTES, source->bytes - at),
				      source->off + at);

		if (n <= 0) {
			warn("%s/%s: %s", source->folder, source->name,
			     n ? strerror(errno) : "became shorter while it was read");
			err = n ? -errno : -ENODATA;
			break;
		}
		apply_patch(source, buffer, (size_t)n, at);
		*crc = (uint32_t)crc32(*crc, buffer, (uInt)n);
		/* Holes stay holes: something follows in any case. */
		if (!is_zero(buffer, (size_t)n))
			err = put_at(w, buffer, (size_t)n, to + at);
		at += (size_t)n;
	}
	free(buffer);
	return err;
}

/* ---- headers --------------------------------------------------------------------------------- */

/* A text of bytes that grows. */
struct bytes {
	uint8_t *at;
	size_t n;
};

static void append(struct bytes *b, const void *bytes, size_t size)
{
	b->at = xrealloc(b->at, b->n + size, 1);
	memcpy(b->at + b->n, bytes, size);
	b->n += size;
}

static uint32_t narrow(uint64_t value)
{
	return value < ZIP_MAX_32 ? (uint32_t)value : ZIP_MAX_32;
}

/* The date in the upper half, the time in the lower one, in the machine's zone, as ZIP has it; before 1980: then. */
static uint32_t dos_time(uint64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;

	if (!localtime_r(&seconds, &tm) || tm.tm_year < 80 || tm.tm_year > 207)
		return (1 << 5 | 1) << 16;
	return (uint32_t)((tm.tm_year - 80) << 9 | (tm.tm_mon + 1) << 5 | tm.tm_mday) << 16 |
	       (uint32_t)(tm.tm_hour << 11 | tm.tm_min << 5 | tm.tm_sec / 2);
}

static void append_times(struct bytes *b, uint64_t ns)
{
	uint64_t units = ns / 100 + ZIP_NTFS_EPOCH_S * 10000000;
	const struct zip_ntfs ntfs = {
		.head = {ZIP_EXTRA_NTFS, sizeof(ntfs) - sizeof(ntfs.head)},
		.attribute = 1,
		.attribute_bytes = 24,
		.modified = units,
		.accessed = units,
		.created = units,
	};
	const struct zip_unix_time unix_time = {
		.head = {ZIP_EXTRA_UNIX_TIME, sizeof(unix_time) - sizeof(unix_time.head)},
		.which = 1,
		.modified = (int32_t)min_u64(ns / 1000000000, INT32_MAX),
	};

	append(b, &ntfs, sizeof(ntfs));
	append(b, &unix_time, sizeof(unix_time));
}

/* Those of the numbers that need 64 bits. */
static void append_wide(struct bytes *b, const uint64_t *values, size_t n)
{
	struct zip_extra head = {ZIP_EXTRA_64, 0};

	for (size_t i = 0; i < n; i++)
		head.bytes += values[i] >= ZIP_MAX_32 ? sizeof(*values) : 0;
	if (!head.bytes)
		return;
	append(b, &head, sizeof(head));
	for (size_t i = 0; i < n; i++)
		if (values[i] >= ZIP_MAX_32)
			append(b, &values[i], sizeof(*values));
}

/* In a member's own header both sizes are there, or none. */
static void append_sizes(struct bytes *b, uint64_t size)
{
	const uint64_t sizes[] = {size, size};

	append_wide(b, sizes, ARRAY_SIZE(sizes));
}

/* Extra fields of a member's own header; `behind` is where they begin, and what follows them is aligned. */
static void append_alignment(struct bytes *b, uint64_t behind)
{
	struct zip_extra head = {.number = ZIP_EXTRA_ALIGNMENT};
	const uint16_t alignment = WRITER_ALIGNMENT;
	uint64_t end = behind + b->n + sizeof(head) + sizeof(alignment);
	uint64_t zeros = (WRITER_ALIGNMENT - end % WRITER_ALIGNMENT) % WRITER_ALIGNMENT;

	head.bytes = (uint16_t)(sizeof(alignment) + zeros);
	append(b, &head, sizeof(head));
	append(b, &alignment, sizeof(alignment));
	b->at = xrealloc(b->at, b->n + zeros, 1);
	memset(b->at + b->n, 0, zeros);
	b->n += zeros;
}

static bool is_wide(const struct writer_member *m)
{
	return m->bytes >= ZIP_MAX_32;
}

static struct bytes local_header(const struct writer_member *m)
{
	struct zip_local local = {
		.signature = ZIP_LOCAL,
		.version = is_wide(m) ? ZIP_VERSION_64 : ZIP_VERSION_PLAIN,
		.method = ZIP_STORED,
		.time = (uint16_t)dos_time(m->mtime_ns),
		.date = (uint16_t)(dos_time(m->mtime_ns) >> 16),
		.crc = m->crc,
		.stored_bytes = narrow(m->bytes),
		.bytes = narrow(m->bytes),
		.name_bytes = (uint16_t)strlen(m->name),
	};
	struct bytes header = {0}, extra = {0};

	append_sizes(&extra, m->bytes);
	append_times(&extra, m->mtime_ns);
	append_alignment(&extra, m->header_off + sizeof(local) + local.name_bytes);
	local.extra_bytes = (uint16_t)extra.n;
	append(&header, &local, sizeof(local));
	append(&header, m->name, local.name_bytes);
	append(&header, extra.at, extra.n);
	free(extra.at);
	return header;
}

static void append_entry(struct bytes *index, const struct writer_member *m)
{
	struct zip_central central = {
		.signature = ZIP_CENTRAL,
		.made_by = ZIP_MADE_BY_UNIX | ZIP_VERSION_64,
		.version = is_wide(m) || m->header_off >= ZIP_MAX_32 ? ZIP_VERSION_64
								     : ZIP_VERSION_PLAIN,
		.method = ZIP_STORED,
		.time = (uint16_t)dos_time(m->mtime_ns),
		.date = (uint16_t)(dos_time(m->mtime_ns) >> 16),
		.crc = m->crc,
		.stored_bytes = narrow(m->bytes),
		.bytes = narrow(m->bytes),
		.name_bytes = (uint16_t)strlen(m->name),
		.mode = (uint32_t)(S_IFREG | 0600) << 16,
		.local_off = narrow(m->header_off),
	};
	const uint64_t wide[] = {m->bytes, m->bytes, m->header_off};
	struct bytes extra = {0};

	append_wide(&extra, wide, ARRAY_SIZE(wide));
	append_times(&extra, m->mtime_ns);
	central.extra_bytes = (uint16_t)extra.n;
	append(index, &central, sizeof(central));
	append(index, m->name, central.name_bytes);
	append(index, extra.at, extra.n);
	free(extra.at);
}

static void append_end(struct bytes *index, uint64_t index_off, size_t entries)
{
	uint64_t index_bytes = index->n;
	const struct zip64_end wide = {
		.signature = ZIP64_END,
		.bytes_behind = sizeof(wide) - 12,
		.made_by = ZIP_MADE_BY_UNIX | ZIP_VERSION_64,
		.version = ZIP_VERSION_64,
		.entries_here = entries,
		.entries = entries,
		.index_bytes = index_bytes,
		.index_off = index_off,
	};
	const struct zip64_locator locator = {
		.signature = ZIP64_LOCATOR, .end_off = index_off + index_bytes, .disks = 1};
	const struct zip_end end = {
		.signature = ZIP_END,
		.entries_here = (uint16_t)min_u64(entries, ZIP_MAX_16),
		.entries = (uint16_t)min_u64(entries, ZIP_MAX_16),
		.index_bytes = narrow(index_bytes),
		.index_off = narrow(index_off),
	};

	if (entries >= ZIP_MAX_16 || index_bytes >= ZIP_MAX_32 || index_off >= ZIP_MAX_32) {
		append(index, &wide, sizeof(wide));
		append(index, &locator, sizeof(locator));
	}
	append(index, &end, sizeof(end));
}

/* ---- the file -------------------------------------------------------------------------------- */

char *folder_of_path(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

void sync_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

int writer_begin(struct writer *w, const char *path)
{
	char *folder = folder_of_path(path);

	*w = (struct writer){.path = xstrdup(path),
			     .temporary = xasprintf("%s/.cudaspy-pack-XXXXXX", folder)};
	w->fd = mkostemp(w->temporary, O_CLOEXEC);
	if (w->fd < 0) {
		int err = errno;

		free(w->temporary);
		w->temporary = NULL;
		warn("%s: no file can be made here: %s", folder, strerror(err));
		free(folder);
		return -err;
	}
	free(folder);
	outfile_unfinished(w->temporary);
	return 0;
}

int writer_add(struct writer *w, const struct writer_source *source)
{
	struct writer_member m = {
		.name = *source->folder ? xasprintf("%s/%s", source->folder, source->name)
					: xstrdup(source->name),
		.header_off = w->off,
		.bytes = source->bytes,
		.mtime_ns = source->mtime_ns,
	};
	struct bytes header;
	int err = 0;

	w->members = grow(w->members, w->n_members, sizeof(*w->members));
	w->members[w->n_members++] = m;
	if (strlen(m.name) > NAME_MAX_BYTES)
		return fail(m.name, ENAMETOOLONG);
	header = local_header(&m); /* its size is known, its checksum is not */
	w->off += header.n;
	free(header.at);
	err = copy(w, source, w->off, &m.crc);
	if (err)
		return err;
	w->members[w->n_members - 1] = m;
	header = local_header(&m);
	err = put_at(w, header.at, header.n, m.header_off);
	free(header.at);
	w->off += m.bytes;
	return err;
}

int writer_finish(struct writer *w, uint32_t mode, uint32_t uid, uint32_t gid)
{
	struct bytes index = {0};
	int err;

	for (size_t i = 0; i < w->n_members; i++)
		append_entry(&index, &w->members[i]);
	append_end(&index, w->off, w->n_members);
	err = put_at(w, index.at, index.n, w->off);
	free(index.at);
	/* Who may read the directory may read this; where the group cannot be given, its owner alone. */
	if (fchown(w->fd, uid, gid) && fchown(w->fd, (uid_t)-1, gid))
		mode &= 0700;
	fchmod(w->fd, mode & 0666);
	if (!err && fsync(w->fd))
		err = fail(w->path, errno);
	if (close(w->fd) && !err)
		err = fail(w->path, errno);
	w->fd = -1;
	return err;
}

int writer_rename(struct writer *w)
{
	char *folder = folder_of_path(w->path);
	int err = rename(w->temporary, w->path) ? fail(w->path, errno) : 0;

	if (!err) {
		outfile_unfinished(NULL);
		free(w->temporary);
		w->temporary = NULL;
		sync_folder(folder);
	}
	free(folder);
	return err;
}

void writer_abandon(struct writer *w)
{
	if (w->temporary)
		unlink(w->temporary);
	outfile_unfinished(NULL);
}

void writer_release(struct writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	for (size_t i = 0; i < w->n_members; i++)
		free(w->members[i].name);
	free(w->members);
	free(w->temporary);
	free(w->path);
	*w = (struct writer){.fd = -1};
}
