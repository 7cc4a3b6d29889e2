/*
 * shim/lib/peek.h: the process's own memory, where it is unknown whether it is mapped: the kernel
 * copies it, and refuses where a load would kill. For pointers of the application's (unwind.c,
 * python_frames.c). Takes no lock, allocates nothing; errno may change.
 */
#ifndef CUDASPY_SHIM_PEEK_H
#define CUDASPY_SHIM_PEEK_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "arch/processor.h"

/* pid: the calling process. How many bytes were copied, from the beginning on; 0: none, or
 * refused. */
static inline size_t spy_peek_some(int pid, void *to, uintptr_t from, size_t bytes)
{
	struct iovec local = {.iov_base = to, .iov_len = bytes};
	struct iovec remote = {.iov_base = (void *)from, .iov_len = bytes};
	long copied = spy_syscall(SYS_process_vm_readv, pid, &local, 1, &remote, 1, 0);

	return copied > 0 ? (size_t)copied : 0;
}

/* Several pieces at once: a call of the kernel's costs more than what it copies. False: not all
 * of them; which ones is not known. */
static inline bool spy_peek_all(int pid, const struct iovec *to, const struct iovec *from, size_t n)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += from[i].iov_len;
	return spy_syscall(SYS_process_vm_readv, pid, to, n, from, n, 0) == (long)bytes;
}

static inline bool spy_peek(int pid, void *to, uintptr_t from, size_t bytes)
{
	return spy_peek_some(pid, to, from, bytes) == bytes;
}

/* Can a word be read, for now? With a `how` that does not exist the kernel still copies the set
 * of signals in first: EFAULT if it cannot, EINVAL if it can, and nothing else happens. */
static inline bool spy_is_readable(uintptr_t address)
{
	return !(spy_syscall(SYS_rt_sigprocmask, ~0, address, NULL, 8) < 0 && errno == EFAULT);
}

#endif
