/*
 * shim/record/board.h: which thread is inside which call, now: the shared page of each slot. The
 * hot path writes it directly (call.c); this file makes the pages. Called on the application's
 * threads, in slow paths.
 */
#ifndef CUDASPY_SHIM_BOARD_H
#define CUDASPY_SHIM_BOARD_H

#include <stdbool.h>
#include "cudaspy/trace_format.h"
#include "state/board_fields.h"

/* Maps a new board file in the trace's folder. 0 or -errno. */
int spy_board_create(struct spy_board **board);

/* Writes what the board's first page says of the session. */
void spy_board_fill(struct spy_board *board);

/* The page of a slot, backed by the file. Falls back to memory of this process alone when the disk
 * is full; NULL if there is no memory either. */
struct spy_slot_page *spy_board_page(struct spy_board *board, uint32_t slot);

/* Leaves a board in the folder of a part that is finished; the one that is mapped has gone on with the next. */
void spy_board_finish(uint32_t part, uint64_t lost);

/* Is it in the file's mapping? */
bool spy_board_backs(const struct spy_board *board, const void *page);

#endif
