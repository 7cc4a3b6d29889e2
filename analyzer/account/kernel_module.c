/*
 * analyzer/account/kernel_module.c: requests to NVIDIA's kernel modules, by what they would be with
 * a process for each GPU. Names and numbers are those of their published headers
 * (open-gpu-kernel-modules: uvm_ioctl.h, nv_escape.h). What processes do to each other was
 * measured: eight of them, each on a GPU of its own, driver 580 on H200s (docs/CUDA_FACTS.md).
 */
#include <stdbool.h>
#include "kernel_module.h"
#include "waits.h"

/*
 * Requests about a process's own address space took as long beside seven other processes as alone.
 * The others, which map and unmap memory or ask the resource manager, took two to thirty times as
 * long: what threads wait for at a lock of their process, processes wait for in the kernel.
 */
static bool own_address_space(uint64_t request)
{
	switch (request) {
	case 23: /* UVM_CREATE_RANGE_GROUP */
	case 24: /* UVM_DESTROY_RANGE_GROUP */
	case 47: /* UVM_UNSET_ACCESSED_BY */
	case 73: /* UVM_CREATE_EXTERNAL_RANGE */
		return true;
	default:
		return false;
	}
}

/* How often is the request of wait i made in the call, `most` at most? */
static unsigned int times(const struct wait *waits, size_t n, size_t i, unsigned int most)
{
	unsigned int count = 0;

	for (size_t j = 0; j < n && count < most; j++)
		if (waits[j].kind == SPY_WAIT_IOCTL && waits[j].request == waits[i].request)
			count += waits[j].count;
	return count < most ? count : most;
}

/*
 * Host memory that is pinned by one thread is mapped for all GPUs of its process, one after the
 * other: a request for each. A process with one GPU makes one.
 */
void kernel_module_share(struct wait *waits, size_t n, bool host_memory, unsigned int gpus)
{
	for (size_t i = 0; i < n; i++) {
		struct wait *w = &waits[i];
		unsigned int count;

		if (w->kind != SPY_WAIT_IOCTL)
			continue;
		count = host_memory && gpus > 1 ? times(waits, n, i, gpus) : 1;
		w->avoidable = count > 1 ? 1 - 1.0 / count : 0;
		w->avoidable_behind = own_address_space(w->request) ? 1 : w->avoidable;
	}
}
