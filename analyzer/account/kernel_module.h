/*
 * analyzer/account/kernel_module.h: which time in the kernel module is lost to all processes of the
 * machine, and which to this process alone. Called by the accounting for each call that was in it.
 */
#ifndef CUDASPY_KERNEL_MODULE_H
#define CUDASPY_KERNEL_MODULE_H

#include <stddef.h>
#include <stdint.h>

struct wait;

/*
 * Fills in what of each request (waits of the kind ioctl) a process for each GPU would spare: the
 * call itself, and others that wait for it to be done. host_memory: the call pins or unpins memory
 * of the host, or managed memory; gpus: that the process has used.
 */
void kernel_module_share(struct wait *waits, size_t n, bool host_memory, unsigned int gpus);

#endif
