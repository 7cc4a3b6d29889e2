/*
 * shim/nccl/profiler.h: the library as NCCL's profiler.
 */
#ifndef CUDASPY_SHIM_NCCL_PROFILER_H
#define CUDASPY_SHIM_NCCL_PROFILER_H

#include <stdbool.h>

/*
 * arrange.c: when the library is loaded, before any other thread exists: has NCCL look for its profiler in the program
 * itself, where it is to be recorded, unless the user has one.
 */
void spy_nccl_arrange(void);

/* profiler.c: are NCCL's operations to be recorded? From the start no. */
extern bool spy_nccl_serving;

/* Does another object of the program serve the interface, in any version? */
bool spy_nccl_has_other(void);

/* A stream is captured from now on. Any thread. */
void spy_nccl_capture_began(void);

/* NCCL looks a table up, and found that one: which one it is to get. It takes the newest that there is, so where another
 * profiler is to serve, ours are not there. */
void *spy_nccl_look_up(const char *name, void *found);

#endif
