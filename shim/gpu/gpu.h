/*
 * shim/gpu/gpu.h: times of GPUs, where they are asked for (CUDASPY_GPU). Used on the application's threads, and on
 * CUPTI's.
 */
#ifndef CUDASPY_SHIM_GPU_H
#define CUDASPY_SHIM_GPU_H

/* The driver has been initialised: begins to record them, once. Not on the recorder's own stack: CUPTI needs more. */
void spy_gpu_begin(void);

/* slot.c: the answer to a look-up of one of CUPTI's functions, or what was found. */
void *spy_gpu_look_up(const char *name, void *found);

/* Another tool begins to use CUPTI: leaves it to that one. caller: an address in it. */
void spy_gpu_give_way(const void *caller);

#endif
