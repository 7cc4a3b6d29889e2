/*
 * tests/sim/kernel_module.h: what the simulated driver and its simulated kernel module
 * (kernel_module.c, preloaded) agree on. No real file has this number, so without the module the call
 * fails and does nothing.
 */
#ifndef SIM_KERNEL_MODULE_H
#define SIM_KERNEL_MODULE_H

enum { SIM_KERNEL_FD = -1717, SIM_KERNEL_WORK = 0x53504d57 };

#endif
