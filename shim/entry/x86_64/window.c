/*
 * shim/entry/x86_64/window.c: the stack arguments of a call made near the end of a stack that the
 * thread was not created with (a coroutine's, a signal handler's). Their number is unknown. What lies
 * above the stack may be mapped now and unmapped by another thread a moment later. So the kernel
 * copies what is behind the page's end: it refuses where a load would kill. Runs on the
 * application's thread, called by the trampoline; errno stays.
 */
#include <errno.h>
#include <string.h>
#include "state/call.h"
#include "lib/peek.h"

#define PAGE 4096ul

/* Where process_vm_readv is forbidden (a list of system calls), a test must do. Another thread
 * may unmap the page after it. */
static bool is_refused(void)
{
	return errno == EPERM || errno == ENOSYS || errno == EACCES;
}

void spy_copy_window(void *to, const void *from, uint64_t bytes)
{
	/* The return address is in front of the arguments: its page is certainly there. */
	uintptr_t next = (((uintptr_t)from - 1) | (PAGE - 1)) + 1;
	size_t sure = next - (uintptr_t)from, copied = sure;
	int error = errno;

	if (sure >= bytes) {
		memcpy(to, from, bytes);
		return;
	}
	memcpy(to, from, sure);
	errno = 0;
	copied += spy_peek_some(getpid(), (char *)to + sure, next, bytes - sure);
	if (copied == sure && is_refused() && spy_is_readable(next)) {
		memcpy((char *)to + sure, (const void *)next, bytes - sure);
		copied = bytes;
	}
	memset((char *)to + copied, 0, bytes - copied);
	errno = error;
}
