/*
 * shim/record/kernel_names.h: kernels are numbered by their names. Called on the application's threads, in slow paths.
 */
#ifndef CUDASPY_SHIM_KERNEL_NAMES_H
#define CUDASPY_SHIM_KERNEL_NAMES_H

#include <stdint.h>

/* Number of a kernel name; writes the SPY_EV_KERNEL record the first time. 0 if it cannot. Slow:
 * keep the number with the handle. name is copied, may be NULL (returns 0). */
uint32_t spy_kernel_number(const char *name);

#endif
