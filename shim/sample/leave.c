/*
 * shim/sample/leave.c: unshare and setns refuse a process that has other threads, for some kinds of namespaces. A program whose own
 * other threads have ended would see them fail because of the sampler: so it ends before them, for good. On the program's
 * threads.
 */
#include "lib/elf_object.h"
#include "sample/sampler.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int unshare(int flags);
EXPORT int unshare(int flags)
{
	int (*real)(int) = spy_next_symbol("unshare");

	spy_sampler_leave();
	return real(flags);
}

EXPORT int setns(int fd, int kind);
EXPORT int setns(int fd, int kind)
{
	int (*real)(int, int) = spy_next_symbol("setns");

	spy_sampler_leave();
	return real(fd, kind);
}
