/*
 * analyzer/trace/board.h: the board of a trace: which threads were in which calls when the process
 * ended, and what was counted but not yet written.
 */
#ifndef CUDASPY_BOARD_H
#define CUDASPY_BOARD_H

#include "base/util.h"
#include "cudaspy/trace_format.h"

struct board {
	bool present; /* there is one, and it can be read */
	struct spy_board head;
	struct spy_slot_page *slots; /* as many as the file has; owned */
	size_t n_slots;
};

/* Reads the file. 0, or -errno after a warning (none for a file that is not there); the board is
 * then not present. */
int board_read(struct board *board, const char *path);

/* The same for a board that is in memory; path is for complaints. */
int board_parse(struct board *board, const char *path, const void *bytes, size_t size);

/* May a thread have written it? Of random bytes next to none are taken for a thread's. */
bool board_slot_is_sound(const struct spy_slot_page *page);

/* The thread asks a GPU over and over whether it is done. At this moment it may be in such a question, which is only
 * counted: when it began is not known. */
bool board_asks_gpu(const struct spy_slot_page *page);

/* Is the wait between calls that the board shows one that goes on? */
bool board_waits_outside(const struct spy_slot_page *page);

/* What a thread waits for. */
struct board_wait {
	bool outside; /* between two calls */
	uint8_t kind; /* enum spy_wait_kind */
	uint32_t holder; /* thread that had it when the wait began, or that is to end; 0 unknown */
	uint64_t object, caller; /* 0 unknown */
	uint64_t since; /* cycles; 0 unknown */
};

/* False: it waits for nothing that the board shows. */
bool board_wait_of(const struct spy_slot_page *page, struct board_wait *wait);

void board_release(struct board *board);

#endif
