/*
 * shim/hook/wrap.h: from a real function to the stub that is handed out for it. Called on the
 * application's threads, in slow paths.
 */
#ifndef CUDASPY_SHIM_WRAP_H
#define CUDASPY_SHIM_WRAP_H

#include <stdbool.h>

/* Does it lie among the stubs? */
bool spy_wrap_is_stub(const void *address);

/* Is a stub to be handed out for the function? */
bool spy_wrap_wants(int fn);

/* The stub for a real function of a known row. Wrap lock held. layer -1: not a library we know. */
void *spy_wrap_stub_for(int fn, int layer, void *real);

/* For cuGetProcAddress and its relatives: the stub to hand out instead of a real
 * function that was asked for as `name`; returns `real` itself if it has no row. */
void *spy_wrap(const char *name, void *real);

/* A library that was unloaded may come back elsewhere: its slots have to find it again. */
void spy_wrap_forget_unloaded(void *unused);

#endif
