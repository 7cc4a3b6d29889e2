/*
 * shim/state/board_fields.h: fields of the board, which others read while they are written (record/board.h makes its pages).
 * Used on the application's threads, on the hot path, too.
 */
#ifndef CUDASPY_SHIM_BOARD_FIELDS_H
#define CUDASPY_SHIM_BOARD_FIELDS_H

/*
 * The fields of a page, which other threads (wait.c) and processes read at any moment. Relaxed:
 * what belongs together is ordered by publish_depth (call.c), and a holder's call may change while
 * we look.
 */
#define spy_board_show(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)
#define spy_board_see(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

#endif
