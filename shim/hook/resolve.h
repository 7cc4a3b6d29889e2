/*
 * shim/hook/resolve.h: from a slot to the real function. Called on the application's threads, in
 * slow paths.
 */
#ifndef CUDASPY_SHIM_RESOLVE_H
#define CUDASPY_SHIM_RESOLVE_H

#include "hook/slots.h"

/* first_call.c: finds and keeps the real function of a slot. Never NULL: where the process has
 * none, a function that reports "no device". Takes no lock of the dynamic linker's. */
void *spy_first_call(struct spy_slot *slot, uint64_t index);

/* Keeps what was found for a slot, if anything was, and returns what the slot goes by. */
void *spy_resolve_keep(struct spy_slot *slot, void *real, int layer);

/* The function that a call of `fn` in this version would reach without us, and its layer. NULL:
 * the process has none, and the layer stays. */
void *spy_resolve_find(int fn, const char *version, int *layer);

/* The real function of a driver row (enum spy_fn), for our own questions; NULL if this process has
 * none. Calls through it are not recorded. */
void *spy_resolve_driver(int fn);

/* Does a call that the loader bound to our stub go somewhere else than to `real`? It does when
 * another interposer was loaded with the program. */
bool spy_resolve_bound_elsewhere(int fn, const char *version, const void *real);

#endif
