/*
 * shim/parts/parts.h: a recording may have parts, one after the other, each with a folder of its own
 * (include/cudaspy/trace_format.h, "parts"). A part ends when somebody asks for it (`cudaspy rotate`), when it is large or
 * old; the oldest finished ones are deleted where the user has set a bound. Used on the application's threads, in slow
 * paths.
 *
 * Threads are not stopped for it. The one that ends a part makes the next one's folder, exchanges the names of the two,
 * counts the number of the part up, notes how far each slot has come, and makes each thread's next call take the slow path.
 * There its owner moves on (record/stream_file.c). A thread that makes no call for hours does so when it makes one.
 */
#ifndef CUDASPY_SHIM_PARTS_H
#define CUDASPY_SHIM_PARTS_H

#include <stdbool.h>
#include <stdint.h>

struct spy_thread;

/* A session has begun: its first part. */
void spy_parts_begin(uint64_t frequency);

/* It ends: no part does any more, nor is any deleted. */
void spy_parts_end(void);

/* And no thread moves on to another part any more: counts what is in files of deleted parts for good. */
void spy_parts_count_in_deleted(void);

/* Does what is due: ends the part if it is large or old enough, deletes old ones. now: cycles. Only outside of calls. */
void spy_parts_look(struct spy_thread *thread, uint64_t now, bool between);

/* May something be due at a time? */
bool spy_parts_have_time(void);

/* Ends the part. 0 or -errno: then nothing has changed. On any stack. */
int spy_parts_rotate(void);

/* The trace says how many there are no more. Session lock not held. */
void spy_parts_record_removed(void);

/* The session's stream has moved on to another part's folder. Session lock held. */
void spy_parts_record_begin(void);

#endif
