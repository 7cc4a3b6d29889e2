/*
 * shim/record/retire.c: the oldest finished parts of the recording are deleted, where the user has set a bound (--keep) or an
 * age (--keep-for). Runs on the application's threads: where a packet is stored, and where it is looked whether a part is
 * due.
 *
 * What is deleted is known by the folder's device and inode, which this process made, and in it by the recorder's names for
 * files. First the folder gets a hidden name: a process that is killed in the middle leaves no half of a part to read.
 * Files are deleted a few at a time, for the time that it takes is the application's.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "process/options.h"
#include "record/board.h"
#include "record/part.h"
#include "state/session.h"

#define FILES_AT_A_TIME 16
#define SLACK 16 /* so many parts of the bound are left free for what is written meanwhile */

static struct spy_parts *parts(void)
{
	return &spy_session->parts;
}

/* ---- which ----------------------------------------------------------------------------------- */

static bool is_too_much(void)
{
	uint64_t keep = spy_options_keep_bytes();

	return keep && atomic_load(&spy_session->used) > keep - keep / SLACK;
}

static bool is_too_old(const struct spy_part *part, uint64_t now)
{
	struct spy_part_options wanted;
	double ns;

	if (!now || !spy_options_parts(&wanted) || !wanted.keep_ns || now < part->end)
		return false;
	ns = (double)(now - part->end) * 1e9 / (double)atomic_load(&spy_session->frequency);
	return ns > (double)wanted.keep_ns;
}

/* More than are known cannot be kept, where some are to be deleted at all. */
static bool is_too_many(void)
{
	return atomic_load(&parts()->next) - atomic_load(&parts()->oldest) >= SPY_PARTS_MOST - 1;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_number(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] < '0' || text[i] > '9')
			return false;
	return length;
}

/* Is it the name of a file that the recorder makes? */
static bool is_ours(const char *name)
{
	static const char stream[] = "stream_";
	size_t length;

	if (!strcmp(name, "metadata") || !strcmp(name, ".metadata.new") ||
	    !strcmp(name, ".board") || !strcmp(name, SPY_STREAM_PREPARED))
		return true;
	if (strncmp(name, stream, sizeof(stream) - 1))
		return false;
	name += sizeof(stream) - 1;
	length = strcspn(name, "_");
	if (!is_number(name, length))
		return false;
	return !name[length] || !strcmp(name + length, "_tail") ||
	       is_number(name + length + 1, strlen(name + length + 1));
}

static uint64_t pages_of(const struct stat *status)
{
	return ((uint64_t)status->st_size + 4095) & ~(uint64_t)4095;
}

static void count_off(uint64_t bytes)
{
	struct spy_parts *p = parts();

	if (bytes > p->going_bytes)
		bytes = p->going_bytes;
	p->going_bytes -= bytes;
	atomic_fetch_sub(&p->finished_bytes, bytes);
	atomic_fetch_sub(&spy_session->used, bytes);
}

struct entry { /* getdents64(2) */
	uint64_t inode, next;
	unsigned short bytes;
	unsigned char type;
	char name[];
};

/* Deletes some of the files. True: none is left that is ours. */
static bool delete_files(int folder, int *files)
{
	_Alignas(8) char buffer[2048];
	bool again = true;
	long bytes;

	while (again) {
		again = false;
		if (lseek(folder, 0, SEEK_SET) < 0)
			return true;
		while ((bytes = spy_syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0)
			for (long at = 0; at < bytes;) {
				const struct entry *entry = (const struct entry *)(buffer + at);
				struct stat status;

				at += entry->bytes;
				if (!is_ours(entry->name) ||
				    fstatat(folder, entry->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
					continue;
				if (!*files)
					return false;
				--*files;
				if (unlinkat(folder, entry->name, 0) < 0)
					continue;
				count_off(pages_of(&status));
				again = true;
			}
	}
	return true;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* The folder of that name; -1: it is none of ours any more. */
static int open_part(int above, const struct spy_part *part, const char *name)
{
	int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0 && status.st_dev == part->folder.device &&
	    status.st_ino == part->folder.inode)
		return fd;
	close(fd);
	return -1;
}

/* The board is there whatever room there is on the disk for the session's stream. */
static void show_removed(const struct spy_part *part)
{
	struct spy_board *board = spy_session->board;

	spy_board_show(board->removed_calls, part->so_far.calls);
	spy_board_show(board->removed_lost, part->so_far.lost);
	spy_board_show(board->removed_cycles, part->end - spy_session->begun.clock);
	spy_board_show(board->parts_removed, part->number);
}

/* It is out of the recording from here on. */
static void condemn(int above, struct spy_part *part)
{
	struct spy_parts *p = parts();
	char name[SPY_PART_NAME_BYTES], hidden[SPY_PART_NAME_BYTES];
	int fd;

	spy_folder_part_name(name, part->number, part->suffix, false);
	spy_folder_part_name(hidden, part->number, part->suffix, true);
	fd = open_part(above, part, name);
	if (fd >= 0) {
		renameat(above, name, above, hidden);
		close(fd);
	}
	p->going = part->number;
	p->going_bytes = atomic_exchange(&part->bytes, 0);
	atomic_store(&p->removed, part->number);
	atomic_store(&p->oldest, part->number + 1);
	show_removed(part);
}

bool spy_parts_are_deleted(uint32_t part)
{
	return part <= atomic_load(&parts()->removed);
}

/* Goes on with the part that is being deleted. True: that is done. */
static bool delete_part(int above, int *files)
{
	struct spy_parts *p = parts();
	const struct spy_part *part = &spy_finished_parts[p->going % SPY_PARTS_MOST];
	char hidden[SPY_PART_NAME_BYTES];
	bool done = true;
	int fd;

	spy_folder_part_name(hidden, part->number, part->suffix, true);
	fd = open_part(above, part, hidden);
	if (fd >= 0) {
		done = delete_files(fd, files);
		close(fd);
		if (done) /* what else somebody has put there stays */
			unlinkat(above, hidden, AT_REMOVEDIR);
	}
	if (!done)
		return false;
	count_off(p->going_bytes);
	p->going = 0;
	return true;
}

static struct spy_part *oldest(void)
{
	uint32_t number = atomic_load(&parts()->oldest);

	return number < atomic_load(&parts()->next) ? &spy_finished_parts[number % SPY_PARTS_MOST]
						    : NULL;
}

/* Is a thread at work in its folder, that came there before the part ended? There is none when the part behind it ends. */
static bool is_in_use(const struct spy_part *part)
{
	return part->number + 1 == atomic_load(&spy_session->part) &&
	       atomic_load(&parts()->inside[part->number % 2]);
}

static bool is_next(uint64_t now)
{
	const struct spy_part *part = oldest();

	return part && !is_in_use(part) &&
	       (is_too_much() || is_too_old(part, now) || is_too_many());
}

static bool is_asked_for(void)
{
	struct spy_part_options wanted;

	return spy_options_keep_bytes() || (spy_options_parts(&wanted) && wanted.keep_ns);
}

bool spy_parts_are_kept_too_long(uint64_t now)
{
	return atomic_load(&parts()->next) > 1 && (parts()->going || is_next(now)) &&
	       is_asked_for();
}

static void retire(uint64_t now)
{
	uint32_t part = atomic_load(&spy_session->part);
	int files = FILES_AT_A_TIME, above;

	if ((!parts()->going && !is_next(now)) || atomic_exchange(&parts()->removing, true))
		return;
	above = spy_folder_around(part);
	while (above >= 0 && files) {
		if (parts()->going && !delete_part(above, &files))
			break;
		if (!is_next(now))
			break;
		condemn(above, oldest());
	}
	if (above >= 0)
		close(above);
	atomic_store(&parts()->removing, false);
}

void spy_parts_bound(void)
{
	if (atomic_load(&spy_session->state) == SPY_SESSION_ACTIVE &&
	    atomic_load(&parts()->next) > 1 && is_asked_for())
		retire(0);
}

void spy_parts_expire(uint64_t now)
{
	if (spy_parts_are_kept_too_long(now))
		retire(now);
}
