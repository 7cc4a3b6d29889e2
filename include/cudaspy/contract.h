/*
 * include/cudaspy/contract.h: what a call may wait for.
 *
 * Each entry point has one contract (the fourth column of entrypoints.def). A wait inside the
 * contract is what the caller asked for; a wait outside it is a surprise, and a surprise is what
 * cudaspy exists to report. Sources: the page "API synchronization behavior" of the CUDA driver API
 * reference, the comments of cuda_runtime_api.h and cuda.h of CUDA 13.0, and, where the documents
 * say less than the driver does, measurements on H200 with driver 580 (docs/CUDA_FACTS.md).
 *
 *   CONTRACT(name, async, text)
 *
 * async says whether the entry point promises to return before the GPU work it starts is done.
 */
#ifndef CUDASPY_CONTRACT_H
#define CUDASPY_CONTRACT_H

/* clang-format off */
#define SPY_CONTRACTS(CONTRACT) \
	CONTRACT(HOST,        0, "host work only: waits for nothing") \
	CONTRACT(SUBMIT,      1, "hands work to a stream and returns; waits only if the launch queue is full") \
	CONTRACT(LAUNCH,      1, "as SUBMIT; the first launch of a kernel may load its module") \
	CONTRACT(COPY_SYNC,   0, "waits for the default stream's earlier work and for the copy; device to device and, for the DMA itself, host to device from pageable memory do not wait") \
	CONTRACT(COPY_ASYNC,  1, "returns at once between pinned and device memory; from pageable memory it stages (and waits once about 2 MB are outstanding), to pageable memory and host to host it waits for its stream") \
	CONTRACT(COPY_BATCH,  1, "as COPY_ASYNC for each copy; pageable operands wait for the stream from a few KB on") \
	CONTRACT(PEER,        1, "does not wait on the host, but orders itself with all work of both devices") \
	CONTRACT(MEMSET_SYNC, 0, "does not wait for device memory; waits for the default stream for pinned host and managed memory") \
	CONTRACT(STREAM,      0, "waits for one stream") \
	CONTRACT(EVENT,       0, "waits for one event") \
	CONTRACT(DEVICE,      0, "waits for all work of the device or context") \
	CONTRACT(ALLOC,       0, "host and kernel-module work; does not wait for running kernels") \
	CONTRACT(ALLOC_POOL,  1, "stream ordered; costs more when the pool has to grow") \
	CONTRACT(PIN,         0, "host work in proportion to the bytes pinned") \
	CONTRACT(FREE,        0, "may wait for every stream of the device (documented for cudaFree, measured for the others)") \
	CONTRACT(LIMIT,       0, "a changed stack limit waits for every stream of the device") \
	CONTRACT(MODULE,      0, "loads or unloads code; waits for every stream of the device") \
	CONTRACT(LIBRARY,     0, "loads code that no device needs yet: waits for nothing (measured), unless CUDA_MODULE_LOADING is EAGER") \
	CONTRACT(LAZY_LOAD,   0, "may load the kernel or variable it names") \
	CONTRACT(GRAPH_BUILD, 0, "host work in proportion to the number of nodes") \
	CONTRACT(INIT,        0, "starts or destroys a device's state; tens of milliseconds the first time")
/* clang-format on */

enum spy_contract {
#define CONTRACT(name, async, text) SPY_CONTRACT_##name,
	SPY_CONTRACTS(CONTRACT)
#undef CONTRACT
		SPY_CONTRACT_COUNT
};

/* Does a call of the contract hand work to a stream, if it does not fail? */
static inline int spy_contract_submits(unsigned int contract)
{
	switch (contract) {
	case SPY_CONTRACT_SUBMIT:
	case SPY_CONTRACT_LAUNCH:
	case SPY_CONTRACT_COPY_ASYNC:
	case SPY_CONTRACT_COPY_BATCH:
	case SPY_CONTRACT_COPY_SYNC:
	case SPY_CONTRACT_PEER:
	case SPY_CONTRACT_MEMSET_SYNC:
		return 1;
	default:
		return 0;
	}
}

#endif
