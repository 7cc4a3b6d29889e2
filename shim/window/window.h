/*
 * shim/window/window.h: when windows, times in which calls are recorded (state/recorded.h), begin and end. Used on the
 * application's threads.
 */
#ifndef CUDASPY_SHIM_WINDOW_H
#define CUDASPY_SHIM_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct spy_thread;

/* ---- what happens --------------------------------------------------------------------------- */

/* When the library is loaded, behind the options; and in a forked child. */
void spy_window_init(void);

/* A session has begun: its first records. */
void spy_window_begin(void);

/* The session ends. On the recorder's own stack. */
void spy_window_end(void);

/* Opens or closes; nothing happens if it is so already, or if `holds`, asked when no other thread can change it, says no. why: a
 * few words. Slow; on any stack. */
void spy_window_open(const char *why, bool (*holds)(void));
void spy_window_close(const char *why, bool (*holds)(void));

/* Is there a time at which something is to happen, or does somebody outside wait for an answer? */
bool spy_window_has_time(void);

/* Does what is due at `now` (cycles), and what somebody outside has asked for. Slow. */
void spy_window_look(struct spy_thread *thread, uint64_t now, bool between);

#endif
