/*
 * shim/sample/nvml.h: what NVML says of the process's GPUs while it runs.
 *
 * Questions are asked by a thread of its own, for one that does not return must hold up nobody. Only those are asked that
 * disturb no call of the program's (docs/CUDA_FACTS.md): utilisation, clocks, throttle reasons, power, temperature, memory and the
 * processes on it. Of other processes their number and memory are recorded, no name and no user.
 */
#ifndef CUDASPY_SHIM_NVML_H
#define CUDASPY_SHIM_NVML_H

#include <stdbool.h>
#include <stdint.h>
#include "cudaspy/trace_format.h"

#define SPY_NVML_GPUS 64

/* The driver knows a GPU by that address on the PCI bus. On the thread that describes GPUs, before the sampler begins. */
void spy_nvml_add(unsigned int ordinal, const char *pci);

/* Begins to ask, on a thread of its own, until *asked_to_stop is not 0. On the sampler's thread. */
void spy_nvml_begin(const _Atomic uint32_t *asked_to_stop);

/* The next GPU of which there is something new since it was taken last. False: none. On the sampler's thread. */
bool spy_nvml_take(struct spy_rec_gpu_look *look);

/* It has been asked to stop: waits for its thread to end, until then at most (CLOCK_REALTIME). The thread's number; 0: there was none. */
struct timespec;
int spy_nvml_leave(const struct timespec *until);

/* In a forked child. */
void spy_nvml_forked(void);

#endif
