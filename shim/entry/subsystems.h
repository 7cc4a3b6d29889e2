/*
 * shim/entry/subsystems.h: the list of the shim's subsystems, for lifecycle.c, which hands it to whoever walks it
 * (state/subsystem.h).
 */
#ifndef CUDASPY_SHIM_SUBSYSTEMS_H
#define CUDASPY_SHIM_SUBSYSTEMS_H

#include "state/subsystem.h"

extern const struct spy_subsystem spy_all_subsystems[];

#endif
