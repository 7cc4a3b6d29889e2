/*
 * shim/probe/caller.h: for records inside calls (wait.c, handoff.c): whose call, and is there room?
 */
#ifndef CUDASPY_SHIM_CALLER_H
#define CUDASPY_SHIM_CALLER_H

#include <stddef.h>
#include <stdint.h>

struct spy_thread;

/* The thread, if what happens now belongs to a CUDA call of its own: not inside the recorder,
 * not in a forked child, not after the call was left; or NULL. here: a frame's address. */
struct spy_thread *spy_caller(const void *here);

/* Room for a record inside the call in progress; NULL: none, and it is counted as lost. */
void *spy_caller_room(struct spy_thread *thread, size_t bytes);

/* Calls in progress without a start time began no later than this. */
void spy_caller_set_begin(struct spy_thread *thread, uint64_t now);

#endif
