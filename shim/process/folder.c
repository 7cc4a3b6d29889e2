/*
 * shim/process/folder.c: the folder of a trace, and all files in it. Called by the slow paths that
 * make files, on any thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <linux/close_range.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/statfs.h>
#include <unistd.h>
#include "process/ranks.h"
#include "lib/clock.h"
#include "lib/disk.h"
#include "process/folder.h"
#include "process/options.h"
#include "state/session.h"

#define NAMES_NUMBERED 9 /* tried before random ones */
#define NAMES_MOST 100
#define SELECT_MOST 1024 /* FD_SETSIZE */

/* The folder of a part of the recording: the one that is being written, or the one before. Not in the session: a forked
 * child needs them to close what it inherited. */
struct folder {
	_Atomic uint32_t part; /* 0: none */
	_Atomic int
		users; /* threads between enter and leave: while there are any, it stays this part's */
	_Atomic int kept; /* a descriptor of it, -1 none */
	_Atomic int kept_apart; /* the same of the thread that has a table of its own */
	struct spy_file_id id;
};
static struct folder folders[2] = {{.kept = -1, .kept_apart = -1}, {.kept = -1, .kept_apart = -1}};
static __thread bool has_own_files;
static int group_error;

static struct folder *folder_of(uint32_t part)
{
	return &folders[part % 2];
}

int spy_folder_group_error(void)
{
	return group_error;
}

static struct spy_file_id id_of(const struct stat *status)
{
	return (struct spy_file_id){status->st_dev, status->st_ino};
}

static bool same_file(const struct spy_file_id *a, const struct spy_file_id *b)
{
	return a->inode && a->device == b->device && a->inode == b->inode;
}

/* ---- rights --------------------------------------------------------------------------------- */

/* What was just made is for its owner alone, or for a group that may read, whatever the umask is
 * and the directory around it says. */
static void set_mode(int fd, bool directory)
{
	mode_t mode = directory ? 0700 : 0600;
	gid_t group = spy_options_group();
	struct stat status;

	if (group != SPY_NO_GROUP) {
		if (fchown(fd, (uid_t)-1, group) == 0)
			mode |= directory ? 0050 : 0040;
		else
			group_error = errno;
	}
	if (fstat(fd, &status) == 0 && (status.st_mode & 01777) != mode)
		fchmod(fd, mode | (status.st_mode & S_ISGID));
}

/* Is it ours, and not something that was put in its place? Where a file system changes owners,
 * as NFS does with root's files, no other user must be able to do that. */
static bool is_ours(int parent, int fd)
{
	struct stat made, around;
	uid_t self = geteuid();

	if (fstat(fd, &made) < 0)
		return false;
	if (made.st_uid == self)
		return true;
	return fstat(parent, &around) == 0 && (around.st_uid == self || around.st_uid == 0) &&
	       !(around.st_mode & 0022);
}

/* ---- the descriptor ------------------------------------------------------------------------- */

#define FEW 64 /* descriptors: where a program may have no more, all are its own */

/* A number that is not in the way: programs take the lowest ones, and select() those below
 * 1,024. -1: there is none. */
static int high_number(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > SELECT_MOST)
		return SELECT_MOST;
	return limit.rlim_cur > FEW ? (int)limit.rlim_cur - 24 : -1;
}

static bool is_folder(const struct folder *folder, int fd)
{
	struct stat status;
	struct spy_file_id id;

	if (fd < 0 || fstat(fd, &status) < 0)
		return false;
	id = id_of(&status);
	return same_file(&id, &folder->id);
}

static _Atomic int *kept_of(struct folder *folder)
{
	return has_own_files ? &folder->kept_apart : &folder->kept;
}

/* Keeps the folder open under a high number, in the place of `before`. False: fd is all there
 * is. */
static bool keep(struct folder *folder, int fd, int before)
{
	int number = high_number(), high = number < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, number);

	if (high < 0)
		return false;
	if (atomic_compare_exchange_strong(kept_of(folder), &before, high)) {
		close(fd);
		return true;
	}
	close(high); /* another thread was faster */
	return false;
}

/* As enter, for a user of the folder. */
static int open_folder(struct folder *folder, bool *temporary)
{
	int fd = atomic_load(kept_of(folder)), before = fd;

	*temporary = false;
	if (is_folder(folder, fd))
		return fd;
	/* Of an earlier part. In the program's table another file may have that number by now. */
	if (has_own_files && before >= 0)
		close(before);
	fd = open(spy_session->directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!is_folder(folder, fd)) {
		close(fd);
		return -ESTALE;
	}
	if (keep(folder, fd, before))
		return atomic_load(kept_of(folder));
	*temporary = true;
	return fd;
}

/* A descriptor of the part's folder. *temporary: it is to be closed. Or -errno. Pairs with vacate: either that sees the
 * user, or we see that the folder is no more this part's. */
static int enter(uint32_t part, bool *temporary)
{
	struct folder *folder = folder_of(part);
	int fd = -ESTALE;

	atomic_fetch_add(&folder->users, 1);
	if (atomic_load(&folder->part) == part)
		fd = open_folder(folder, temporary);
	if (fd < 0)
		atomic_fetch_sub(&folder->users, 1);
	return fd;
}

static void leave(uint32_t part, int fd, bool temporary)
{
	if (temporary)
		close(fd);
	atomic_fetch_sub(&folder_of(part)->users, 1);
}

#define USERS_GO 10000 /* looks, while they do: they stay for as long as a system call takes */

/* The folder is no part's, and no thread is in it any more. False: one is; then nothing has changed. */
static bool vacate(struct folder *folder)
{
	uint32_t part = atomic_exchange(&folder->part, 0);

	for (int i = 0; i < USERS_GO && atomic_load(&folder->users); i++)
		spy_pause();
	if (!atomic_load(&folder->users))
		return true;
	atomic_store(&folder->part, part);
	return false;
}

static void forget(struct folder *folder)
{
	int fd = atomic_exchange(&folder->kept, -1);

	if (is_folder(folder, fd))
		close(fd);
	folder->id.inode = 0;
}

/* Closes in the thread's own table what lies from one number to before another one. */
static void close_between(int from, int to)
{
	if (from < to)
		spy_syscall(SYS_close_range, from, to - 1, 0);
}

void spy_folder_own_files(void)
{
	int a = atomic_load(&folders[0].kept), b = atomic_load(&folders[1].kept);
	int low = a < b ? a : b, high = a < b ? b : a;

	/* Of the others none is copied that is above; those below are there for the moment of a system call. */
	if (spy_syscall(SYS_close_range, high + 1, ~0u, CLOSE_RANGE_UNSHARE))
		return;
	close_between(0, low < 0 ? high : low);
	if (low >= 0)
		close_between(low + 1, high);
	has_own_files = true;
	atomic_store(&folders[0].kept_apart, a);
	atomic_store(&folders[1].kept_apart, b);
}

void spy_folder_forget(void)
{
	for (int i = 0; i < 2; i++) {
		atomic_store(&folders[i].part, 0);
		atomic_store(&folders[i].users, 0); /* the parent's */
		atomic_store(&folders[i].kept_apart, -1);
		forget(&folders[i]);
	}
}

/* Has it open from here on, as the folder of that part. False: it is in use as another one's; then fd is closed. */
static bool take(uint32_t part, int fd)
{
	struct folder *folder = folder_of(part);
	struct stat status;

	if (!vacate(folder)) {
		close(fd);
		return false;
	}
	forget(folder);
	fstat(fd, &status);
	folder->id = id_of(&status);
	if (!keep(folder, fd, -1))
		close(fd);
	atomic_store(&folder->part, part);
	return true;
}

/* ---- making it ------------------------------------------------------------------------------ */

/* A umask may have taken the right to look into it from its owner, too. */
static int open_made(int parent, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent, name, flags);

	if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
		fd = openat(parent, name, flags);
	return fd;
}

static int make_one(int parent, const char *name)
{
	int fd;

	if (mkdirat(parent, name, 0700) < 0)
		return -errno;
	fd = open_made(parent, name);
	if (fd < 0)
		return -errno;
	if (!is_ours(parent, fd)) {
		close(fd);
		return -EPERM;
	}
	set_mode(fd, true);
	return fd;
}

/* The directory the folder is to be in, made with those above it unless it is there. A
 * descriptor or -errno. */
static int open_parent(char *path)
{
	struct stat status;
	int fd;

	for (char *slash = path + 1;; slash++) {
		char was = *slash;

		if (was && was != '/')
			continue;
		*slash = '\0';
		fd = stat(path, &status) == 0 ? -EEXIST : make_one(AT_FDCWD, path);
		*slash = was;
		if (fd >= 0)
			close(fd); /* that it could not be made shows below */
		if (!was)
			break;
	}
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static unsigned long long any_number(void)
{
	unsigned long long number;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = spy_clock() * 0x9e3779b97f4a7c15ull;
	return number;
}

/* PROGRAM-PID.cudaspy, or PROGRAM.rankN-PID.cudaspy; with a number if a process of that pid was traced there before; with a
 * random one if all of these names are taken. */
static int make_folder(int parent, char *name, size_t size, const char *program, int pid)
{
	int fd = -EEXIST;

	for (int i = 1; fd == -EEXIST && i < NAMES_MOST; i++) {
		if (i == 1)
			snprintf(name, size, "%s-%d.cudaspy", program, pid);
		else if (i <= NAMES_NUMBERED)
			snprintf(name, size, "%s-%d-%d.cudaspy", program, pid, i);
		else
			snprintf(name, size, "%s-%d-%016llx.cudaspy", program, pid, any_number());
		fd = make_one(parent, name);
	}
	return fd;
}

/* Nothing that a terminal obeys. */
static void clean(char *name)
{
	for (char *c = name; *c; c++)
		if (*c == '/' || (unsigned char)*c <= ' ' || *c == 0x7f ||
		    (c > name && c[-1] == '\xc2' && (unsigned char)*c < 0xa0))
			*c = '_';
}

#define PROGRAM_MOST 63 /* bytes of its name */
#define RANK_MOST 16 /* of what is said of its rank */

/* With its rank, if it has one. */
static void name_program(char program[PROGRAM_MOST + RANK_MOST + 1])
{
	struct spy_rank rank;

	snprintf(program, PROGRAM_MOST + 1, "%s", program_invocation_short_name);
	clean(program);
	if (!*program)
		strcpy(program, "program");
	spy_rank_read(&rank);
	if (rank.from)
		snprintf(program + strlen(program), RANK_MOST, ".rank%u", rank.rank);
}

int spy_folder_create(char *path, size_t size, const char *parent, int pid)
{
	size_t length = strlen(parent);
	char program[PROGRAM_MOST + RANK_MOST + 1];
	int above, fd;

	name_program(program);
	if (length + sizeof(program) + 64 > size)
		return -ENAMETOOLONG;
	memcpy(path, parent, length + 1);
	above = open_parent(path);
	if (above < 0)
		return above;
	if (!length || path[length - 1] != '/')
		path[length++] = '/';
	fd = make_folder(above, path + length, size - length, program, pid);
	close(above);
	if (fd < 0)
		return fd;
	return take(1, fd)
		       ? 0
		       : -EAGAIN; /* nobody is in the folder of a session that is yet to begin */
}

/* ---- parts ---------------------------------------------------------------------------------- */

static const char suffix[] = ".cudaspy";

/* The recording's name without the suffix; its length. */
static int stem(const char **name)
{
	*name = strrchr(spy_session->directory, '/') + 1;
	return (int)(strlen(*name) - (sizeof(suffix) - 1));
}

void spy_folder_part_name(char *name, uint32_t part, uint32_t number, bool hidden)
{
	const char *text;
	int length = stem(&text);

	if (number)
		snprintf(name, SPY_PART_NAME_BYTES, "%s%.*s.%04u-%u%s", hidden ? "." : "", length,
			 text, part, number, hidden ? ".removed" : suffix);
	else
		snprintf(name, SPY_PART_NAME_BYTES, "%s%.*s.%04u%s", hidden ? "." : "", length,
			 text, part, hidden ? ".removed" : suffix);
}

/* The directory around the part's folder, wherever that has been moved to; or -errno. */
int spy_folder_around(uint32_t part)
{
	bool temporary;
	int folder = enter(part, &temporary), fd;

	if (folder < 0)
		return folder;
	fd = openat(folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES)
		fd = openat(folder, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	leave(part, folder, temporary);
	return fd;
}

static bool has_name(int above, const char *name, const struct spy_file_id *wanted)
{
	struct stat status;
	struct spy_file_id id;

	if (fstatat(above, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	id = id_of(&status);
	return same_file(&id, wanted);
}

int spy_folder_begin_part(uint32_t part, uint32_t *number)
{
	int above = spy_folder_around(part - 1), fd = -EEXIST;
	char name[SPY_PART_NAME_BYTES];
	const char *live;

	if (above < 0)
		return above;
	stem(&live);
	if (!has_name(above, live, &folder_of(part - 1)->id)) {
		close(above);
		return -ENOENT; /* somebody has moved or removed it */
	}
	for (*number = 0; fd == -EEXIST && *number < NAMES_MOST; ++*number) {
		spy_folder_part_name(name, part - 1, *number > 1 ? *number : 0, false);
		if (*number != 1)
			fd = make_one(above, name);
	}
	*number = *number > 1 ? *number - 1 : 0;
	if (fd >= 0 && !take(part, fd)) {
		spy_folder_part_name(name, part - 1, *number, false);
		unlinkat(above, name, AT_REMOVEDIR);
		fd = -EAGAIN;
	}
	close(above);
	return fd < 0 ? fd : 0;
}

/* The two change their names, in one step where the file system can. */
static int exchange(int above, const char *live, const char *finished)
{
	char aside[SPY_PART_NAME_BYTES + 8];

	if (spy_syscall(SYS_renameat2, above, live, above, finished, RENAME_EXCHANGE) == 0)
		return 0;
	snprintf(aside, sizeof(aside), "%s.next", finished);
	if (renameat(above, finished, above, aside) < 0)
		return -errno;
	if (renameat(above, live, above, finished) == 0) {
		if (renameat(above, aside, above, live) == 0)
			return 0;
		renameat(above, finished, above, live);
	}
	renameat(above, aside, above, finished);
	return -EIO;
}

int spy_folder_exchange(uint32_t part, uint32_t number)
{
	int above = spy_folder_around(part - 1), error;
	char name[SPY_PART_NAME_BYTES];
	bool temporary[2];
	const char *live;
	int before, after;

	if (above < 0)
		return above;
	stem(&live);
	spy_folder_part_name(name, part - 1, number, false);
	before = enter(part - 1, &temporary[0]);
	after = enter(part, &temporary[1]);
	error = before < 0 || after < 0 ? -ESTALE : exchange(above, live, name);
	if (!error && renameat(before, ".board", after, ".board") < 0) {
		error = -errno;
		exchange(above, live, name);
	}
	if (before >= 0)
		leave(part - 1, before, temporary[0]);
	if (after >= 0)
		leave(part, after, temporary[1]);
	close(above);
	return error;
}

void spy_folder_drop_part(uint32_t part, uint32_t number)
{
	int above = spy_folder_around(part - 1);
	char name[SPY_PART_NAME_BYTES];

	spy_folder_delete(part, "metadata");
	spy_folder_part_name(name, part - 1, number, false);
	if (above >= 0) {
		unlinkat(above, name, AT_REMOVEDIR);
		close(above);
	}
	if (vacate(folder_of(part))) /* it was nobody's but the caller's */
		forget(folder_of(part));
}

struct spy_file_id spy_folder_id(uint32_t part)
{
	return folder_of(part)->id;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* openat(2), but never 0, 1 or 2: something harmless takes these meanwhile. */
static int open_above(int folder, const char *name, int flags)
{
	int filler[3], fillers = 0, fd, error;

	while ((fd = fcntl(folder, F_DUPFD_CLOEXEC, 0)) >= 0 && fd <= STDERR_FILENO)
		filler[fillers++] = fd;
	if (fd >= 0)
		close(fd);
	fd = openat(folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	error = -errno;
	while (fillers)
		close(filler[--fillers]);
	return fd < 0 ? error : fd;
}

int spy_folder_make(uint32_t part, const char *name, struct spy_file_id *id)
{
	struct stat status = {0};
	bool temporary;
	int folder = enter(part, &temporary), fd;

	if (folder < 0)
		return folder;
	fd = open_above(folder, name, O_RDWR | O_CREAT | O_EXCL);
	leave(part, folder, temporary);
	if (fd < 0)
		return fd;
	set_mode(fd, false);
	fstat(fd, &status);
	*id = id_of(&status);
	return fd;
}

static bool has_id(int fd, const struct spy_file_id *wanted)
{
	struct stat status;
	struct spy_file_id id;

	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return false;
	id = id_of(&status);
	return same_file(&id, wanted);
}

int spy_folder_open(uint32_t part, const char *name, const struct spy_file_id *id)
{
	bool temporary;
	int folder = enter(part, &temporary), fd;

	if (folder < 0)
		return folder;
	fd = open_above(folder, name, O_RDWR);
	leave(part, folder, temporary);
	if (fd == -ELOOP || fd == -ENXIO || fd == -EISDIR)
		return -ESTALE;
	if (fd >= 0 && !has_id(fd, id)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

void spy_folder_remove(uint32_t part, const char *name, const struct spy_file_id *id)
{
	bool temporary;
	int folder = enter(part, &temporary);
	struct stat status;
	struct spy_file_id found;

	if (folder < 0)
		return;
	if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
		found = id_of(&status);
		if (same_file(&found, id))
			unlinkat(folder, name, 0);
	}
	leave(part, folder, temporary);
}

bool spy_folder_has_room(size_t bytes)
{
	uint32_t part = atomic_load(&spy_session->part);
	struct statfs status = {0};
	bool temporary, known;
	int folder = enter(part, &temporary);
	uint64_t unit, free, least;

	if (folder < 0)
		return true; /* something else is wrong */
	known = fstatfs(folder, &status) == 0 && status.f_blocks;
	leave(part, folder, temporary);
	unit = status.f_frsize > 0 ? (uint64_t)status.f_frsize : (uint64_t)status.f_bsize;
	free = status.f_bavail * unit;
	least = spy_options_floor_bytes(status.f_blocks * unit);
	return !known || !least || free >= least + bytes;
}

/* The status of what has a name in the folder. 0 or -errno. */
static int look_up(uint32_t part, const char *name, struct stat *status, bool remove)
{
	bool temporary;
	int folder = enter(part, &temporary), error = 0;

	if (folder < 0)
		return folder;
	if (fstatat(folder, name, status, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (remove && unlinkat(folder, name, 0) < 0))
		error = -errno;
	leave(part, folder, temporary);
	return error;
}

int spy_folder_check(uint32_t part, const char *name, const struct spy_file_id *id, uint64_t bytes)
{
	struct stat status;
	struct spy_file_id there;
	int error = look_up(part, name, &status, false);

	if (error)
		return error;
	there = id_of(&status);
	return same_file(&there, id) && (uint64_t)status.st_size >= bytes ? 0 : -ESTALE;
}

uint64_t spy_folder_delete(uint32_t part, const char *name)
{
	struct stat status;

	return look_up(part, name, &status, true) == 0 ? (uint64_t)status.st_size : 0;
}

int spy_folder_rename(uint32_t part, const char *from, const char *to)
{
	bool temporary;
	int folder = enter(part, &temporary), error = 0;

	if (folder < 0)
		return folder;
	if (renameat(folder, from, folder, to) < 0)
		error = -errno;
	leave(part, folder, temporary);
	return error;
}

static int write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t part = write(fd, text, bytes);

		if (part < 0 && errno == EINTR)
			continue;
		if (part <= 0)
			return part ? -errno : -ENOSPC;
		text += part;
		bytes -= (size_t)part;
	}
	return 0;
}

int spy_folder_replace(uint32_t part, const char *name, const struct iovec *pieces, size_t n)
{
	char temporary_name[64];
	struct spy_file_id id;
	size_t bytes = 0, i;
	int fd, error;

	for (i = 0; i < n; i++)
		bytes += pieces[i].iov_len;
	error = spy_disk_allows(0, bytes);
	if (error)
		return error;
	/* CTF readers take what begins with no dot for a stream. */
	snprintf(temporary_name, sizeof(temporary_name), ".%s.new", name);
	fd = spy_folder_make(part, temporary_name, &id);
	if (fd < 0)
		return fd;
	for (i = 0; i < n && !error; i++)
		error = write_all(fd, pieces[i].iov_base, pieces[i].iov_len);
	close(fd);
	if (!error)
		error = spy_folder_rename(part, temporary_name, name);
	if (error)
		spy_folder_remove(part, temporary_name, &id);
	return error;
}

/* ---- another owner -------------------------------------------------------------------------- */

int spy_folder_give(uint32_t part, const char *name, const struct spy_file_id *id, uid_t owner)
{
	bool temporary;
	int folder = enter(part, &temporary), fd, error = 0;

	if (folder < 0)
		return folder;
	fd = *name ? openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC) : folder;
	if (fd < 0)
		error = -errno;
	else if (*name && !has_id(fd, id))
		error = -ESTALE;
	else if (fchownat(fd, "", owner, (gid_t)-1, AT_EMPTY_PATH) < 0)
		error = -errno;
	if (*name && fd >= 0)
		close(fd);
	leave(part, folder, temporary);
	return error;
}
