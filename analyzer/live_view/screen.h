/*
 * analyzer/live_view/screen.h: the picture of running programs on a terminal, refreshed in place (ncurses). Used by `top`, on
 * its one thread.
 */
#ifndef CUDASPY_LIVE_SCREEN_H
#define CUDASPY_LIVE_SCREEN_H

#include "tables.h"

enum screen_order { SCREEN_BY_WAIT, SCREEN_BY_NUMBER, SCREEN_BY_CALLS, SCREEN_ORDERS };

/* What the user has chosen. */
struct screen {
	enum screen_order order;
	bool stopped; /* the picture stays what it is */
	bool detail; /* one thread is shown, all that is known of it */
	bool help;
	size_t chosen; /* row of the threads */
	size_t top; /* first row that is shown; of the detail, too */
	uint32_t chosen_tid, chosen_process; /* the thread that is chosen, as long as it is there */
};

enum screen_key { SCREEN_NOTHING, SCREEN_CHANGED, SCREEN_QUIT };

/* A picture to draw. */
struct screen_picture {
	const struct live_words *words;
	const struct verdicts *verdicts;
	struct report *report; /* whose texts are used */
	uint64_t taken_ns; /* since the epoch */
};

/* False after a message: there is no terminal. */
bool screen_begin(void);

/* The terminal is as it was. */
void screen_end(void);

/* Waits for a key for so long at most, and does what it says. */
enum screen_key screen_wait(struct screen *screen, uint64_t ns);

/* picture NULL: nothing is running. */
void screen_draw(struct screen *screen, const struct screen_picture *picture);

#endif
