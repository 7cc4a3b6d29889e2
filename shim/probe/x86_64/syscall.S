/*
 * shim/probe/x86_64/syscall.S: the exported syscall(2). Runs on the application's thread, which
 * calls it.
 */
#include <sys/syscall.h>
#ifdef __CET__
#include <cet.h>
#endif

	.text

/* syscall(2) itself: only a futex can wait for another thread. Everything else is jumped to,
 * because vfork and clone return twice and must not find a frame of ours. */
	.globl syscall
	.p2align 4
	.type syscall, @function
syscall:
	.cfi_startproc
	endbr64
	cmpq	$SYS_futex, %rdi
	jne	1f
	jmp	spy_probe_futex
1:	movq	spy_real_syscall(%rip), %rax
	jmp	*%rax
	.cfi_endproc
	.size syscall, .-syscall

	.section .note.GNU-stack, "", @progbits
