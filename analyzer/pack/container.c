/*
 * analyzer/pack/container.c: what is in a container of traces. Called when traces are looked for, and by `cudaspy unpack`.
 * Everything here may be damaged, cut off, foreign or hostile.
 *
 * The index at the end is believed if all of it makes sense; a member that it describes wrongly is refused. Without an index, as
 * in a copy that was cut off, members are found by their own headers, from the first one on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "container.h"
#include "zip.h"
#include "base/median.h"

#define SUFFIX ".cudaspy"
#define COMMENT_MAX 0xffff
#define INDEX_MAX_BYTES ((uint64_t)256 << 20) /* two million members */

/* While one is opened. */
struct opening {
	struct container *c;
	int fd;
	uint64_t file_bytes;
	bool quiet;
};

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Always false. */
static bool wrong(const struct opening *o, uint64_t off, const char *why)
{
	if (!o->quiet)
		warn("%s: offset %llu: %s", o->c->path, (unsigned long long)off, why);
	return false;
}

/* As pread, in spite of signals; fewer bytes only at the end of the file. */
static ssize_t read_at(int fd, void *bytes, size_t size, uint64_t off)
{
	size_t got = 0;
	ssize_t n = 1;

	while (got < size && n) {
		n = pread(fd, (char *)bytes + got, size - got, (off_t)(off + got));
		if (n < 0 && errno != EINTR)
			return n;
		got += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)got;
}

static bool get(const struct opening *o, void *bytes, size_t size, uint64_t off)
{
	return off <= o->file_bytes && size <= o->file_bytes - off &&
	       read_at(o->fd, bytes, size, off) == (ssize_t)size;
}

static int open_regular_fd(const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;

	if (fd < 0)
		return -1;
	if (fstat(fd, st))
		err = errno;
	else if (S_ISREG(st->st_mode))
		return fd;
	else
		err = S_ISDIR(st->st_mode) ? EISDIR : EINVAL;
	close(fd);
	errno = err;
	return -1;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Parts between single slashes, none of which is empty, "." or "..". */
static bool is_safe(const char *name, size_t n)
{
	size_t i, begin = 0;

	if (memchr(name, '\0', n))
		return false;
	for (i = 0; i <= n; i++) {
		if (i < n && name[i] != '/')
			continue;
		if (i == begin || (i == begin + 1 && name[begin] == '.') ||
		    (i == begin + 2 && name[begin] == '.' && name[begin + 1] == '.'))
			return false;
		begin = i + 1;
	}
	return true;
}

static void set_name(struct container *c, struct container_member *m, const char *name, size_t n)
{
	char *copy = arena_take(&c->texts, xstrndup(name, n));
	char *slash = strrchr(copy, '/');

	m->folder = slash ? copy : "";
	m->name = slash ? slash + 1 : copy;
	if (slash)
		*slash = '\0';
}

/* ---- extra fields ---------------------------------------------------------------------------- */

/* What follows the head of the field of that number; NULL: there is none. */
static const uint8_t *find_extra(const uint8_t *extra, size_t size, uint16_t number, size_t *bytes)
{
	struct zip_extra head;

	while (size >= sizeof(head)) {
		memcpy(&head, extra, sizeof(head));
		extra += sizeof(head);
		size -= sizeof(head);
		if (head.bytes > size)
			return NULL;
		if (head.number == number) {
			*bytes = head.bytes;
			return extra;
		}
		extra += head.bytes;
		size -= head.bytes;
	}
	return NULL;
}

/* The numbers that did not fit, in their order. False: one is missing. */
static bool take_wide(const uint8_t *extra, size_t size, uint64_t **fields, size_t n)
{
	size_t bytes = 0, i;
	const uint8_t *wide = find_extra(extra, size, ZIP_EXTRA_64, &bytes);

	for (i = 0; i < n; i++) {
		if (*fields[i] != ZIP_MAX_32)
			continue;
		if (!wide || bytes < sizeof(uint64_t))
			return false;
		memcpy(fields[i], wide, sizeof(uint64_t));
		wide += sizeof(uint64_t);
		bytes -= sizeof(uint64_t);
	}
	return true;
}

static uint64_t take_time(const uint8_t *extra, size_t size)
{
	size_t bytes = 0;
	const uint8_t *field = find_extra(extra, size, ZIP_EXTRA_NTFS, &bytes);
	struct zip_ntfs ntfs;
	int32_t seconds;

	if (field && bytes == sizeof(ntfs) - sizeof(ntfs.head)) {
		memcpy((char *)&ntfs + sizeof(ntfs.head), field, bytes);
		if (ntfs.attribute == 1 && ntfs.modified / 10000000 > ZIP_NTFS_EPOCH_S &&
		    ntfs.modified / 10000000 - ZIP_NTFS_EPOCH_S < UINT64_MAX / 2000000000)
			return (ntfs.modified - ZIP_NTFS_EPOCH_S * 10000000) * 100;
	}
	field = find_extra(extra, size, ZIP_EXTRA_UNIX_TIME, &bytes);
	if (!field || bytes < 5 || !(field[0] & 1))
		return 0;
	memcpy(&seconds, field + 1, sizeof(seconds));
	return seconds > 0 ? (uint64_t)seconds * 1000000000 : 0;
}

/* ---- members --------------------------------------------------------------------------------- */

/* False after a message: it is not taken. Folders have members of their own, which say nothing. */
static bool add_member(struct opening *o, const struct container_member *m, const char *name,
		       size_t name_bytes)
{
	struct container *c = o->c;

	if (!is_safe(name, name_bytes)) {
		c->refused++;
		return wrong(o, m->header_off, "a member's name leads out of its folder: left out");
	}
	c->members = grow(c->members, c->n_members, sizeof(*c->members));
	c->members[c->n_members] = *m;
	set_name(c, &c->members[c->n_members++], name, name_bytes);
	return true;
}

static bool refuse(struct opening *o, uint64_t off, const char *why)
{
	o->c->refused++;
	return wrong(o, off, why);
}

static const char *method_fault(uint16_t flags, uint16_t method, uint64_t bytes, uint64_t stored)
{
	if (flags & ZIP_ENCRYPTED)
		return "an encrypted member: left out";
	if (method != ZIP_STORED)
		return "a compressed member, which cannot be read in place (zip -0 stores): left "
		       "out";
	if (bytes != stored)
		return "a member's sizes contradict each other: left out";
	return NULL;
}

/* ---- the index ------------------------------------------------------------------------------- */

struct index {
	uint64_t off, bytes, entries;
};

/* Where the end's struct lies; UINT64_MAX: nowhere. */
static uint64_t find_end(struct opening *o, struct zip_end *end)
{
	uint64_t from = o->file_bytes > sizeof(*end) + COMMENT_MAX
				? o->file_bytes - sizeof(*end) - COMMENT_MAX
				: 0;
	size_t size = (size_t)(o->file_bytes - from), at;
	uint8_t *bytes = xcalloc(1, size + 1);
	uint64_t found = UINT64_MAX;

	if (get(o, bytes, size, from))
		for (at = size < sizeof(*end) ? 0 : size - sizeof(*end) + 1; at--;) {
			memcpy(end, bytes + at, sizeof(*end));
			if (end->signature == ZIP_END &&
			    end->comment_bytes == size - at - sizeof(*end)) {
				found = from + at;
				break;
			}
		}
	free(bytes);
	return found;
}

static bool find_index(struct opening *o, struct index *index)
{
	struct zip64_locator locator;
	struct zip64_end wide;
	struct zip_end end;
	uint64_t off = find_end(o, &end);

	if (off == UINT64_MAX)
		return wrong(o, o->file_bytes, "the index is missing, the file may be cut off");
	*index = (struct index){end.index_off, end.index_bytes, end.entries};
	if ((end.entries == ZIP_MAX_16 || end.index_bytes == ZIP_MAX_32 ||
	     end.index_off == ZIP_MAX_32) &&
	    off >= sizeof(locator) && get(o, &locator, sizeof(locator), off - sizeof(locator)) &&
	    locator.signature == ZIP64_LOCATOR) {
		if (!get(o, &wide, sizeof(wide), locator.end_off) || wide.signature != ZIP64_END)
			return wrong(o, off - sizeof(locator),
				     "the index's end lies nowhere in the file");
		*index = (struct index){wide.index_off, wide.index_bytes, wide.entries};
		off = locator.end_off;
	}
	if (index->off > off || index->bytes > off - index->off)
		return wrong(o, off, "the index lies nowhere in the file");
	if (index->bytes > INDEX_MAX_BYTES ||
	    index->entries > index->bytes / sizeof(struct zip_central))
		return wrong(o, off, "the index cannot be as large as it claims to be");
	return true;
}

/* Where a member's bytes begin, as its own header has it. False after a message. */
static bool check_local(struct opening *o, struct container_member *m, const char *name,
			size_t name_bytes)
{
	struct zip_local local;
	char *own;
	bool same;

	if (!get(o, &local, sizeof(local), m->header_off) || local.signature != ZIP_LOCAL)
		return refuse(o, m->header_off, "no member begins where the index says: left out");
	own = xcalloc(1, (size_t)local.name_bytes + 1);
	same = local.name_bytes == name_bytes &&
	       get(o, own, name_bytes, m->header_off + sizeof(local)) &&
	       !memcmp(own, name, name_bytes);
	free(own);
	if (!same)
		return refuse(o, m->header_off, "a member has another name in the index: left out");
	m->off = m->header_off + sizeof(local) + local.name_bytes + local.extra_bytes;
	return true;
}

/* An entry of the index: its bytes. */
static void take_entry(struct opening *o, const struct index *index, uint64_t entry_off,
		       const uint8_t *entry)
{
	struct container_member m = {0};
	struct zip_central central;
	uint64_t stored;
	uint64_t *wide[] = {&m.bytes, &stored, &m.header_off};
	const char *name = (const char *)entry + sizeof(central), *fault;
	const uint8_t *extra;

	memcpy(&central, entry, sizeof(central));
	extra = entry + sizeof(central) + central.name_bytes;
	if (central.name_bytes && name[central.name_bytes - 1] == '/')
		return; /* a folder */
	m.bytes = central.bytes;
	stored = central.stored_bytes;
	m.header_off = central.local_off;
	m.crc = central.crc;
	m.mtime_ns = take_time(extra, central.extra_bytes);
	fault = take_wide(extra, central.extra_bytes, wide, ARRAY_SIZE(wide))
			? method_fault(central.flags, central.method, m.bytes, stored)
			: "a member of the index has no size: left out";
	if (fault) {
		refuse(o, entry_off, fault);
		return;
	}
	if (!check_local(o, &m, name, central.name_bytes))
		return;
	if (m.off > index->off || m.bytes > index->off - m.off)
		refuse(o, entry_off,
		       "a member ends behind the place where the index begins: left out");
	else
		add_member(o, &m, name, central.name_bytes);
}

/* False after a message: the index is damaged. */
static bool take_entries(struct opening *o, const struct index *index, const uint8_t *bytes)
{
	uint64_t at = 0, i;

	for (i = 0; i < index->entries; i++) {
		struct zip_central central;
		uint64_t size;

		if (index->bytes - at < sizeof(central))
			return wrong(o, index->off + at, "the index ends inside an entry");
		memcpy(&central, bytes + at, sizeof(central));
		size = sizeof(central) + central.name_bytes + central.extra_bytes +
		       central.comment_bytes;
		if (central.signature != ZIP_CENTRAL)
			return wrong(o, index->off + at, "no entry of the index begins here");
		if (size > index->bytes - at)
			return wrong(o, index->off + at, "the index ends inside an entry");
		take_entry(o, index, index->off + at, bytes + at);
		at += size;
	}
	return true;
}

static void forget_members(struct container *c)
{
	free(c->members);
	c->members = NULL;
	c->n_members = 0;
	c->refused = 0;
}

static bool read_index(struct opening *o)
{
	struct index index = {0};
	uint8_t *bytes;
	bool fine;

	if (!find_index(o, &index))
		return false;
	bytes = xcalloc(1, (size_t)index.bytes + 1);
	fine = get(o, bytes, (size_t)index.bytes, index.off)
		       ? take_entries(o, &index, bytes)
		       : wrong(o, index.off, "the index cannot be read");
	free(bytes);
	if (!fine)
		forget_members(o->c);
	return fine;
}

/* ---- without an index ------------------------------------------------------------------------ */

/* The member at *off, and then the offset behind it. False: no other one follows. */
static bool scan_member(struct opening *o, uint64_t *off)
{
	struct container_member m = {.header_off = *off};
	struct zip_local local;
	uint64_t stored;
	uint64_t *wide[] = {&m.bytes, &stored};
	const char *fault = NULL;
	size_t size;
	char *names;
	bool goes_on = true;

	if (!get(o, &local, sizeof(local), *off))
		return *off < o->file_bytes
			       ? refuse(o, *off, "the file ends inside a member's header")
			       : false;
	if (local.signature != ZIP_LOCAL)
		return local.signature == ZIP_CENTRAL || local.signature == ZIP_END ||
				       local.signature == ZIP64_END
			       ? false
			       : refuse(o, *off, "no member begins here: what follows is left out");
	size = (size_t)local.name_bytes + local.extra_bytes;
	names = xcalloc(1, size + 1);
	m.off = *off + sizeof(local) + size;
	m.bytes = local.bytes;
	stored = local.stored_bytes;
	m.crc = local.crc;
	if (!get(o, names, size, *off + sizeof(local))) {
		fault = "the file ends inside a member's header";
		goes_on = false;
	} else if (local.flags & ZIP_SIZES_BEHIND ||
		   !take_wide((const uint8_t *)names + local.name_bytes, local.extra_bytes, wide,
			      ARRAY_SIZE(wide))) {
		fault = "a member that does not say its size: it and what follows are left out";
		goes_on = false;
	} else {
		fault = method_fault(local.flags, local.method, m.bytes, stored);
	}
	m.cut = goes_on && stored > o->file_bytes - m.off;
	*off = m.cut ? o->file_bytes : m.off + stored;
	if (fault) {
		refuse(o, m.header_off, fault);
	} else if (!local.name_bytes || names[local.name_bytes - 1] != '/') {
		if (m.cut)
			wrong(o, o->file_bytes, "the file ends inside a member");
		m.bytes = min_u64(m.bytes, o->file_bytes - m.off);
		m.mtime_ns =
			take_time((const uint8_t *)names + local.name_bytes, local.extra_bytes);
		add_member(o, &m, names, local.name_bytes);
	}
	free(names);
	return goes_on;
}

static void scan(struct opening *o)
{
	uint64_t off = 0;

	o->c->torn = true;
	while (off < o->file_bytes && scan_member(o, &off))
		;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int by_offset(const void *a, const void *b)
{
	const struct container_member *x = a, *y = b;

	return COMPARE(x->header_off, y->header_off);
}

static int by_name(const void *a, const void *b)
{
	const struct container_member *x = a, *y = b;

	return strcmp(x->folder, y->folder) ?: strcmp(x->name, y->name) ?: by_offset(a, b);
}

static int by_folder(const void *a, const void *b)
{
	const struct container_member *x = a, *y = b;

	return strcmp(x->folder, y->folder) ?: by_offset(a, b);
}

/* Bytes that belong to two members make more of a file than there is of it: the second one is left out. */
static void drop_overlaps(struct opening *o)
{
	struct container *c = o->c;
	uint64_t end_off = 0;
	size_t i, n = 0;

	if (c->n_members)
		qsort(c->members, c->n_members, sizeof(*c->members), by_offset);
	for (i = 0; i < c->n_members; i++) {
		if (c->members[i].header_off < end_off) {
			refuse(o, c->members[i].header_off,
			       "a member begins inside the one before: left out");
			continue;
		}
		end_off = c->members[i].off + c->members[i].bytes;
		c->members[n++] = c->members[i];
	}
	c->n_members = n;
}

static void drop_doubles(struct opening *o)
{
	struct container *c = o->c;
	size_t i, n = 0;

	if (c->n_members)
		qsort(c->members, c->n_members, sizeof(*c->members), by_name);
	for (i = 0; i < c->n_members; i++) {
		if (n && !strcmp(c->members[n - 1].folder, c->members[i].folder) &&
		    !strcmp(c->members[n - 1].name, c->members[i].name)) {
			refuse(o, c->members[i].header_off,
			       "a second member of the same name: left out");
			continue;
		}
		c->members[n++] = c->members[i];
	}
	c->n_members = n;
	if (n)
		qsort(c->members, n, sizeof(*c->members), by_folder);
}

static int take_members(struct opening *o)
{
	uint32_t signature = 0;

	if (!get(o, &signature, sizeof(signature), 0) ||
	    (signature != ZIP_LOCAL && signature != ZIP_END)) {
		wrong(o, 0, "neither a trace directory nor a container of traces");
		return -ENOMSG;
	}
	if (!read_index(o))
		scan(o);
	drop_overlaps(o);
	drop_doubles(o);
	if (o->c->n_members)
		return 0;
	wrong(o, 0, "nothing in this container can be read");
	return -ENOMSG;
}

int container_open(struct container *c, const char *path, bool quiet)
{
	struct opening o = {.c = c, .quiet = quiet};
	struct stat st;
	int err;

	*c = (struct container){.path = xstrdup(path)};
	o.fd = open_regular_fd(path, &st);
	if (o.fd < 0) {
		err = -errno;
		if (!quiet)
			warn("%s: %s", path,
			     errno == EINVAL ? "not a regular file" : strerror(errno));
		return err;
	}
	c->device = st.st_dev;
	c->inode = st.st_ino;
	o.file_bytes = (uint64_t)st.st_size;
	err = take_members(&o);
	close(o.fd);
	return err;
}

void container_release(struct container *c)
{
	arena_release(&c->texts);
	free(c->members);
	free(c->path);
	*c = (struct container){0};
}

bool container_is_named(const char *path)
{
	const char *name = path_basename(path);
	size_t n = strlen(name);
	struct stat st;

	return n > sizeof(SUFFIX) - 1 && !strcmp(name + n - (sizeof(SUFFIX) - 1), SUFFIX) &&
	       !stat(path, &st) && S_ISREG(st.st_mode);
}

bool container_begins(const char *path)
{
	uint32_t signature = 0;
	struct stat st;
	int fd = open_regular_fd(path, &st);
	bool is = fd >= 0 && read_at(fd, &signature, sizeof(signature), 0) == sizeof(signature) &&
		  (signature == ZIP_LOCAL || signature == ZIP_END);

	if (fd >= 0)
		close(fd);
	return is;
}

size_t container_next_folder(const struct container *c, size_t member)
{
	const char *folder = member < c->n_members ? c->members[member].folder : "";

	while (member < c->n_members && !strcmp(c->members[member].folder, folder))
		member++;
	return member;
}

const struct container_member *container_find(const struct container *c, size_t first,
					      const char *name)
{
	size_t i, end = container_next_folder(c, first);

	for (i = first; i < end; i++)
		if (!strcmp(c->members[i].name, name))
			return &c->members[i];
	return NULL;
}

int container_open_extent(const char *path, const struct container_extent *extent, uint64_t *bytes)
{
	bool own = !extent || !extent->file;
	struct stat st;
	int fd = open(own ? path : extent->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	*bytes = 0;
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	*bytes = (uint64_t)st.st_size;
	if (!own)
		*bytes = *bytes > extent->off ? min_u64(extent->bytes, *bytes - extent->off) : 0;
	return fd;
}

int container_read_extent(const char *path, const struct container_extent *extent, uint64_t most,
			  char **bytes, size_t *size)
{
	uint64_t there;
	int fd = container_open_extent(path, extent, &there), err = 0;
	ssize_t got;

	*bytes = NULL;
	*size = 0;
	if (fd < 0) {
		err = -errno;
		warn("%s: %s", path, errno == EINVAL ? "not a regular file" : strerror(errno));
		return err;
	}
	*bytes = xcalloc(1, (size_t)min_u64(there, most) + 1);
	got = read_at(fd, *bytes, (size_t)min_u64(there, most),
		      extent && extent->file ? extent->off : 0);
	if (got < 0) {
		err = -errno;
		warn("%s: %s", path, strerror(errno));
	}
	*size = got > 0 ? (size_t)got : 0;
	close(fd);
	return err;
}
