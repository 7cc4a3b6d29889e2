/*
 * shim/entry/lifecycle.h: a session begins and ends. Called on the application's threads, in slow
 * paths.
 */
#ifndef CUDASPY_SHIM_LIFECYCLE_H
#define CUDASPY_SHIM_LIFECYCLE_H

#include "state/session.h"

/* Ends the recording in order: final metadata and the closing line. Later calls are still
 * recorded. Idempotent. from_signal: only what a signal handler may do. */
void spy_lifecycle_end(bool from_signal);

/* Initialises what must exist before the first look-up or call; idempotent, any thread. */
void spy_lifecycle_init(void);

#endif
