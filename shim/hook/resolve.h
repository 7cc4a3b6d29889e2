/*
 * shim/hook/resolve.h: from a slot to the real function.
 */
#ifndef CUDASPY_SHIM_RESOLVE_H
#define CUDASPY_SHIM_RESOLVE_H

#include "hook/slots.h"

/* Finds and keeps the real function of a slot. Never NULL: where the process has none, a function
 * that reports "no device". Takes no lock of the dynamic linker's. */
void *spy_resolve(struct spy_slot *slot, uint64_t index);

/* The function that a call of `fn` in this version would reach without us, and its layer. NULL: the process has
 * none, and the layer stays. */
void *spy_resolve_find(int fn, const char *version, int *layer);

/* Does a call that the loader bound to our stub go somewhere else than to `real`? It does when
 * another interposer was loaded with the program. */
bool spy_resolve_bound_elsewhere(int fn, const char *version, const void *real);

#endif
