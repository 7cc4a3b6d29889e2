/*
 * shim/lib/thread_name.h: the name that the system has for a thread of the process. Used on any thread.
 */
#ifndef CUDASPY_SHIM_THREAD_NAME_H
#define CUDASPY_SHIM_THREAD_NAME_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include "arch/processor.h"

/* As /proc/self/task/TID/comm has it. False: it is a thread of another process, or gone. errno may change. */
static inline bool spy_thread_name(uint32_t tid, char name[16])
{
	char path[64];
	long length = -1, fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
	fd = spy_syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = spy_syscall(SYS_read, fd, name, 15);
		spy_syscall(SYS_close, fd);
	}
	if (length <= 0)
		return false;
	name[length] = '\0';
	name[strcspn(name, "\n")] = '\0';
	return true;
}

#endif
