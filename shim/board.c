/*
 * shim/board.c: the board's file: one page for the process, one for each slot. Called by session.c
 * and thread.c when a session begins and when a new slot is made.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "board.h"
#include "disk.h"

#define BOARD_BYTES ((size_t)(1 + SPY_BOARD_SLOTS) * SPY_BOARD_PAGE)

struct spy_board *spy_board_create(const char *directory)
{
	char path[SPY_PATH_MAX];
	void *map = MAP_FAILED;
	int fd, error;

	snprintf(path, sizeof(path), "%s/.board", directory);
	fd = spy_disk_open(path, O_RDWR | O_CREAT | O_EXCL);
	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	/* Mapped whole, backed page by page: only pages that have their disk space are touched. */
	error = spy_disk_reserve(fd, 0, SPY_BOARD_PAGE);
	if (!error) {
		map = mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			error = -errno;
	}
	close(fd);
	if (error) {
		errno = -error;
		return NULL;
	}
	madvise(map, BOARD_BYTES, MADV_DONTFORK);
	return map;
}

struct spy_slot_page *spy_board_page(struct spy_board *board, const char *directory, uint32_t slot)
{
	size_t offset = (size_t)(1 + slot) * SPY_BOARD_PAGE;
	char path[SPY_PATH_MAX];
	void *page;
	int fd, error;

	snprintf(path, sizeof(path), "%s/.board", directory);
	fd = spy_disk_open(path, O_RDWR);
	if (fd >= 0) {
		error = spy_disk_reserve(fd, (off_t)offset, SPY_BOARD_PAGE);
		close(fd);
		if (!error)
			return (struct spy_slot_page *)((char *)board + offset);
	}
	page = mmap(NULL, SPY_BOARD_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	return page == MAP_FAILED ? NULL : page;
}

bool spy_board_backs(const struct spy_board *board, const struct spy_slot_page *page)
{
	return (uintptr_t)page - (uintptr_t)board < BOARD_BYTES;
}
