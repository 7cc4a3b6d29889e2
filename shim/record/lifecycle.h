/*
 * shim/record/lifecycle.h: a session begins and ends. Called on the application's threads, in slow
 * paths.
 */
#ifndef CUDASPY_SHIM_LIFECYCLE_H
#define CUDASPY_SHIM_LIFECYCLE_H

#include "record/session.h"

/* Begins the session unless there is one. SPY_SESSION_ACTIVE, or why this process records
 * nothing: _NONE not yet, _BEGINNING another thread is at it. */
enum spy_session_state spy_lifecycle_begin(void);

/* Until no other thread is at it any more; false: that lasts too long. The signals are as the
 * application has them. */
bool spy_lifecycle_await(void);

/* Ends the recording in order: final metadata and the closing line. Later calls are still
 * recorded. Idempotent. from_signal: only what a signal handler may do. */
void spy_lifecycle_end(bool from_signal);

/* Initialises what must exist before the first look-up or call; idempotent, any thread. */
void spy_lifecycle_init(void);

#endif
