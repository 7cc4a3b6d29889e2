/*
 * shim/state/subsystem.c: where the list of subsystems is to be found. Set once, when the library is loaded; so nothing that
 * walks the list needs at link time what is in it.
 */
#include "state/subsystem.h"

static const struct spy_subsystem none[1];

const struct spy_subsystem *spy_subsystems = none;

int (*spy_begin_recording)(void);
