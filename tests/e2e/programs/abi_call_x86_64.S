/*
 * tests/e2e/programs/abi_call_x86_64.S: calls a function with every argument register and a number of stack
 * words given, and keeps every result register.
 *
 *   void abi_call(void *function, struct fake_args *args, uint64_t stack_words)
 */
	.text
	.globl abi_call
	.type abi_call, @function
abi_call:
	.cfi_startproc
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rbx
	.cfi_offset %rbx, -24
	subq	$8, %rsp
	movq	%rsi, %rbx			/* args */
	movq	%rdi, %r11			/* function */
	movq	176(%rbx), %rsi			/* args->stack */
	leaq	1(%rdx), %rcx
	andq	$-2, %rcx
	shlq	$3, %rcx
	subq	%rcx, %rsp
	jmp	2f
1:	movq	(%rsi,%rdx,8), %rax
	movq	%rax, (%rsp,%rdx,8)
2:	subq	$1, %rdx
	jge	1b
	movq	0(%rbx), %rdi
	movq	8(%rbx), %rsi
	movq	16(%rbx), %rdx
	movq	24(%rbx), %rcx
	movq	32(%rbx), %r8
	movq	40(%rbx), %r9
	movups	48(%rbx), %xmm0
	movups	64(%rbx), %xmm1
	movups	80(%rbx), %xmm2
	movups	96(%rbx), %xmm3
	movups	112(%rbx), %xmm4
	movups	128(%rbx), %xmm5
	movups	144(%rbx), %xmm6
	movups	160(%rbx), %xmm7
	movl	$8, %eax
	call	*%r11
	movq	%rax, 192(%rbx)
	movq	%rdx, 200(%rbx)
	movups	%xmm0, 208(%rbx)
	movups	%xmm1, 224(%rbx)
	leaq	-8(%rbp), %rsp
	popq	%rbx
	.cfi_restore %rbx
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size abi_call, .-abi_call

	.section .note.GNU-stack, "", @progbits
