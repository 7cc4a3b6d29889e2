/*
 * shim/record/board.c: the board's file: one page for the process, one for each slot. Called by
 * lifecycle.c and thread.c when a session begins and when a new slot is made.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "record/board.h"
#include "lib/disk.h"
#include "state/session.h"
#include "state/subsystem.h"

#define BOARD_BYTES ((size_t)(1 + SPY_BOARD_SLOTS) * SPY_BOARD_PAGE)

static const char board_name[] = ".board";

int spy_board_create(struct spy_board **board)
{
	void *map;
	int fd = spy_folder_make(spy_session->part, board_name, &spy_session->board_id), error;

	if (fd < 0)
		return fd;
	/* Mapped whole, backed page by page: only pages that have their disk space are touched. */
	error = spy_disk_reserve(fd, 0, SPY_BOARD_PAGE);
	map = error ? MAP_FAILED
		    : mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED && !error)
		error = -errno;
	close(fd);
	if (error)
		return error;
	madvise(map, BOARD_BYTES, MADV_DONTFORK);
	*board = map;
	return 0;
}

void spy_board_fill(struct spy_board *board)
{
	board->version = SPY_TRACE_VERSION;
	board->pid = (uint32_t)spy_session->pid;
	board->frequency = spy_session->frequency;
	board->slots = spy_session->slots;
	board->ended = spy_session->ended;
	SPY_EACH(fill_board, board);
	board->magic = SPY_BOARD_MAGIC;
}

struct spy_slot_page *spy_board_page(struct spy_board *board, uint32_t slot)
{
	size_t offset = (size_t)(1 + slot) * SPY_BOARD_PAGE;
	void *page;
	int fd = spy_folder_open(spy_session->part, board_name, &spy_session->board_id), error;

	if (fd >= 0) {
		error = spy_folder_has_room(SPY_BOARD_PAGE)
				? spy_disk_reserve(fd, (off_t)offset, SPY_BOARD_PAGE)
				: -ENOSPC;
		close(fd);
		if (!error)
			return (struct spy_slot_page *)((char *)board + offset);
	}
	page = mmap(NULL, SPY_BOARD_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	return page == MAP_FAILED ? NULL : page;
}

void spy_board_finish(uint32_t part, uint64_t lost)
{
	const uint32_t *words = (const uint32_t *)spy_session->board;
	union {
		struct spy_board board;
		uint32_t words[SPY_BOARD_PAGE / 4];
	} last;
	struct spy_file_id id;
	int fd = spy_folder_make(part, board_name, &id);

	if (fd < 0)
		return;
	for (size_t i = 0; i < SPY_BOARD_PAGE / 4; i++)
		last.words[i] = spy_board_see(words[i]);
	last.board.lost = lost;
	last.board.slots = 1; /* what others have had to say is in their streams */
	last.board.ended = 1;
	last.board.request = last.board.answered;
	if (pwrite(fd, &last, sizeof(last), 0) != sizeof(last))
		spy_folder_remove(part, board_name, &id);
	close(fd);
}

bool spy_board_backs(const struct spy_board *board, const void *page)
{
	return (uintptr_t)page - (uintptr_t)board < BOARD_BYTES;
}
