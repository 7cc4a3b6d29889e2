/*
 * shim/inspect/host_function.h: functions on the host that a program puts into streams
 * (cudaLaunchHostFunc, cudaStreamAddCallback): when CUDA runs one becomes a record. Handed over on the
 * application's threads, within those calls; run on a thread of CUDA's.
 */
#ifndef CUDASPY_SHIM_HOST_FUNCTION_H
#define CUDASPY_SHIM_HOST_FUNCTION_H

/* Writes the counter to the board. */
void spy_host_functions_count(void);

void spy_host_functions_forked(void);

#endif
