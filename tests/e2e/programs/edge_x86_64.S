/* tests/e2e/programs/edge_x86_64.S: int edge_call(void *function, void *sp); see edge.c. */
	.text
	.globl edge_call
	.type edge_call, @function
edge_call:
	pushq	%rbp
	movq	%rsp, %rbp
	movq	%rdi, %rax
	movq	%rsi, %rsp
	xorl	%edi, %edi
	xorl	%esi, %esi
	xorl	%edx, %edx
	xorl	%ecx, %ecx
	xorl	%r8d, %r8d
	xorl	%r9d, %r9d
	call	*%rax
	leave
	ret
	.size edge_call, .-edge_call

	.section .note.GNU-stack, "", @progbits
