/*
 * shim/nvtx/callbacks.h: the recorder's functions for NVTX's slots. Used when an object's NVTX asks
 * for a tool (inject.c).
 */
#ifndef CUDASPY_SHIM_NVTX_CALLBACKS_H
#define CUDASPY_SHIM_NVTX_CALLBACKS_H

#include "nvtx/nvtx_layout.h"

#define SPY_NVTX_MODULES 6
#define SPY_NVTX_FUNCTIONS 16

/*
 * How a function of ours answers. ALONE: there is no other tool. CHAINED: it calls the other tool's
 * function, and returns what that returns. MUTE: there is another tool, which has no such function:
 * it returns what the program gets then without us, for our handles would mean nothing to the other
 * tool's functions.
 */
enum spy_nvtx_mode { SPY_NVTX_ALONE, SPY_NVTX_CHAINED, SPY_NVTX_MUTE };

/* Ours for a slot; NULL: it is not recorded. */
nvtx_function *spy_nvtx_callback(int module, unsigned int function, enum spy_nvtx_mode mode);

/* The other tool's, for CHAINED. One for each function: a second one cannot be told from the
 * first. */
extern nvtx_function *spy_nvtx_next[SPY_NVTX_MODULES][SPY_NVTX_FUNCTIONS];

#endif
