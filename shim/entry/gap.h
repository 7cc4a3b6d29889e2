/*
 * shim/entry/gap.h: a call begins after a long time without one. Runs on the application's
 * threads, when such a call of theirs begins.
 */
#ifndef CUDASPY_SHIM_GAP_H
#define CUDASPY_SHIM_GAP_H

#include "state/thread.h"

/* A call of depth 0 begins at `start`, spy_look_again or more after the last look at the scheduler's
 * account: writes that account. Where the time without a call was long, the call gets a stack, and
 * so does the one behind which the next such time is expected. */
void spy_gap_look(struct spy_thread *thread, uint64_t start);

#endif
