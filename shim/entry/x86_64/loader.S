/*
 * shim/entry/x86_64/loader.S: the exported look-ups and openers of the dynamic linker's. Runs on the
 * application's thread, which calls them.
 */
#ifdef __CET__
#include <cet.h>
#endif

	.text

/*
 * dlsym and dlvsym of everything that is not CUDA's are jumped to, not called: they find their
 * caller by the return address (RTLD_NEXT, RTLD_DEFAULT). A name that begins like CUDA's or
 * NCCL's goes through spy_lookup(handle, name, version, &answer, caller), which may still decline.
 */
	.macro lookup name, real, version
	.globl \name
	.p2align 4
	.type \name, @function
\name:
	.cfi_startproc
	endbr64
	cmpq	$0, \real(%rip)
	je	4f
5:	testq	%rsi, %rsi
	jz	3f
	movq	%rsi, %rax			/* byte by byte: names are short */
	cmpb	$'_', (%rax)
	jne	6f
	cmpb	$'_', 1(%rax)
	jne	3f
	addq	$2, %rax
6:	cmpb	$'c', (%rax)
	jne	7f
	cmpb	$'u', 1(%rax)
	je	1f
	jmp	3f
7:	cmpb	$'n', (%rax)			/* "nccl" */
	jne	3f
	cmpb	$'c', 1(%rax)
	jne	3f
	cmpb	$'c', 2(%rax)
	jne	3f
	cmpb	$'l', 3(%rax)
	je	1f
3:	movq	\real(%rip), %rax
	jmp	*%rax
4:	pushq	%rdi				/* before anything of ours ran */
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	call	spy_loader_find
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	5b
1:	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	subq	$16, %rsp
	.cfi_adjust_cfa_offset 16
	.if \version == 0
	xorl	%edx, %edx
	.endif
	movq	%rsp, %rcx
	movq	40(%rsp), %r8			/* the caller */
	call	spy_lookup
	movl	%eax, %ecx
	popq	%rax				/* the answer */
	.cfi_adjust_cfa_offset -8
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testl	%ecx, %ecx
	jz	3b
	ret
	.cfi_endproc
	.size \name, .-\name
	.endm

	lookup dlsym, spy_real_dlsym, 0
	lookup dlvsym, spy_real_dlvsym, 1

/*
 * dlopen and dlmopen are only looked at. A library opened with RTLD_DEEPBIND or in a namespace of
 * its own makes calls that are not recorded, and the report has to say so. The real function finds
 * its caller by the return address, hence the jump.
 */
	.macro opener name, real, peek
	.globl \name
	.p2align 4
	.type \name, @function
\name:
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	call	\peek
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	movq	\real(%rip), %rax
	jmp	*%rax
	.cfi_endproc
	.size \name, .-\name
	.endm

	opener dlopen, spy_real_dlopen, spy_peek_dlopen
	opener dlmopen, spy_real_dlmopen, spy_peek_dlmopen

	.section .note.GNU-stack, "", @progbits
