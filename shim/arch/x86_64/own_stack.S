/*
 * shim/arch/x86_64/own_stack.S: a call on another stack. Runs on the application's thread, in slow
 * paths.
 */
#ifdef __CET__
#include <cet.h>
#endif

	.text

/* spy_call_on(work, data, top): calls work(data) on another stack (own_stack.c). */
	.hidden spy_call_on
	.globl spy_call_on
	.p2align 4
	.type spy_call_on, @function
spy_call_on:
	.cfi_startproc
	endbr64
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsp
	call	*%rax
	movq	%rbp, %rsp
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size spy_call_on, .-spy_call_on

	.section .note.GNU-stack, "", @progbits
