/*
 * shim/nvtx/inject.h: the program's NVTX finds the recorder, and through it the tool that the user
 * named.
 */
#ifndef CUDASPY_SHIM_NVTX_INJECT_H
#define CUDASPY_SHIM_NVTX_INJECT_H

#include <stdbool.h>

/*
 * When the library is loaded, before any other thread exists: sets the variable by which NVTX finds
 * a tool to this library, or, where nothing is to be recorded, back to what it was before a parent process set it.
 */
void spy_nvtx_arrange(void);

/* Was this library loaded before the C library, so that the environment is nobody else's yet? */
bool spy_nvtx_is_early(void);

/* In a forked child: a thread of the parent's may have been in here. */
void spy_nvtx_forked(void);

#endif
