/*
 * shim/state/libraries.h: libraries that must not be unloaded while something in them is read: an interpreter's data, tables for
 * exceptions of code that another thread was in. On any thread, with signals off.
 */
#ifndef CUDASPY_SHIM_LIBRARIES_H
#define CUDASPY_SHIM_LIBRARIES_H

#include <stdbool.h>

/* From here to spy_libraries_release dlclose waits (a moment at most: a use is short). False: a library is being unloaded, and
 * nothing is held. */
bool spy_libraries_hold(void);
void spy_libraries_release(void);

/* A library is about to be unloaded: no thread holds them until the end. */
void spy_libraries_unload_begin(void);
void spy_libraries_unload_end(void);

#endif
