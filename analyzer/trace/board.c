/*
 * analyzer/trace/board.c: reads the board of a trace. Called once for each trace, when it is
 * opened.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "board.h"

static int board_fault(const char *path, const struct spy_board *head)
{
	if (head->magic != SPY_BOARD_MAGIC) {
		warn("%s: offset 0: not a board (bad magic number)", path);
		return -ENOMSG;
	}
	if (!head->version) {
		warn("%s: board of version 0: there is none", path);
		return -ENOMSG;
	}
	if (head->version > SPY_TRACE_VERSION) {
		warn("%s: board of version %u, this cudaspy reads up to %d", path, head->version,
		     SPY_TRACE_VERSION);
		return -EPROTO;
	}
	return 0;
}

bool board_slot_is_sound(const struct spy_slot_page *page)
{
	return page->tid <= INT32_MAX && page->wait_kind <= UINT8_MAX;
}

/* After an error nothing in it is to be believed. */
static int read_file(struct board *board, const char *path, FILE *file)
{
	uint8_t page[SPY_BOARD_PAGE];
	struct spy_slot_page *slot;
	size_t unsound = 0;
	int err;

	*board = (struct board){0};
	if (fread(page, sizeof(page), 1, file) != 1) {
		warn("%s: offset 0: board is cut off", path);
		return -ENODATA;
	}
	memcpy(&board->head, page, sizeof(board->head));
	err = board_fault(path, &board->head);
	if (err) {
		*board = (struct board){0};
		return err;
	}
	while (board->n_slots < SPY_BOARD_SLOTS && fread(page, sizeof(page), 1, file) == 1) {
		board->slots = grow(board->slots, board->n_slots, sizeof(*board->slots));
		slot = &board->slots[board->n_slots++];
		memcpy(slot, page, sizeof(page));
		if (!board_slot_is_sound(slot)) {
			memset(slot, 0, sizeof(*slot));
			unsound++;
		}
	}
	if (unsound)
		warn("%s: damaged: %zu slot%s no thread wrote %s left out", path, unsound,
		     unsound == 1 ? " that" : "s that", unsound == 1 ? "is" : "are");
	board->present = true;
	return 0;
}

int board_read(struct board *board, const char *path)
{
	FILE *file = open_regular(path);
	int err;

	*board = (struct board){0};
	if (!file)
		return -errno;
	err = read_file(board, path, file);
	fclose(file);
	return err;
}

int board_parse(struct board *board, const char *path, const void *bytes, size_t size)
{
	FILE *file = fmemopen((void *)bytes, size ? size : 1, "r");
	int err;

	*board = (struct board){0};
	if (!file)
		return -errno;
	err = read_file(board, path, file);
	fclose(file);
	return err;
}

bool board_asks_gpu(const struct spy_slot_page *page)
{
	return page->outside_kind == SPY_WAIT_QUERY + 1 && !(page->depth && page->since) &&
	       page->outside_calls == (uint16_t)page->calls;
}

/* Left behind by longjmp or a cancellation? Then the thread has made a call since. */
bool board_waits_outside(const struct spy_slot_page *page)
{
	if (board_asks_gpu(page))
		return true;
	return !page->depth && page->outside_kind && page->outside_kind <= SPY_WAIT_KINDS &&
	       page->outside_calls == (uint16_t)page->calls && page->since <= page->outside_since;
}

bool board_wait_of(const struct spy_slot_page *page, struct board_wait *wait)
{
	bool asks = board_asks_gpu(page);

	if (page->depth && !asks && page->wait_kind && page->wait_kind <= SPY_WAIT_KINDS)
		*wait = (struct board_wait){.kind = (uint8_t)(page->wait_kind - 1),
					    .holder = page->wait_holder,
					    .object = page->wait_object,
					    .caller = page->caller,
					    .since = page->wait_since ?: page->since};
	else if (board_waits_outside(page))
		*wait = (struct board_wait){.outside = true,
					    .kind = (uint8_t)(page->outside_kind - 1),
					    .holder = page->outside_holder,
					    .object = page->outside_object,
					    .caller = page->outside_caller,
					    .since = page->outside_since};
	else
		return false;
	return true;
}

void board_release(struct board *board)
{
	free(board->slots);
	*board = (struct board){0};
}
