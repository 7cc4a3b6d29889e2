/*
 * tests/e2e/programs/fake_x86_64.S: every entry point of one CUDA library, as functions that hand all they
 * received to fake_call (fake.c) and return what it says. Compiled four times, GENERATION being 0
 * for libcuda, else 11, 12 or 13 for a libcudart.
 */
	.text
	.p2align 4
	.type fake_trampoline, @function
fake_trampoline:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq	$248, %rsp			/* struct fake_args (fake.h) */
	movq	%rdi, 0(%rsp)
	movq	%rsi, 8(%rsp)
	movq	%rdx, 16(%rsp)
	movq	%rcx, 24(%rsp)
	movq	%r8,  32(%rsp)
	movq	%r9,  40(%rsp)
	movups	%xmm0, 48(%rsp)
	movups	%xmm1, 64(%rsp)
	movups	%xmm2, 80(%rsp)
	movups	%xmm3, 96(%rsp)
	movups	%xmm4, 112(%rsp)
	movups	%xmm5, 128(%rsp)
	movups	%xmm6, 144(%rsp)
	movups	%xmm7, 160(%rsp)
	leaq	24(%rbp), %rax
	movq	%rax, 176(%rsp)
	movq	8(%rbp), %rax
	movq	%rax, 184(%rsp)
	movq	%rsp, %rdi
	call	fake_call
	movq	192(%rsp), %rax
	movq	200(%rsp), %rdx
	movups	208(%rsp), %xmm0
	movups	224(%rsp), %xmm1
	leave
	.cfi_def_cfa %rsp, 16
	.cfi_restore %rbp
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size fake_trampoline, .-fake_trampoline

	.set	fake_index, 0
	.macro function name
	.globl \name
	.type \name, @function
	.p2align 4
\name:
	.cfi_startproc
	pushq	$fake_index
	.cfi_adjust_cfa_offset 8
	jmp	fake_trampoline
	.cfi_endproc
	.size \name, .-\name
	.set	fake_index, fake_index + 1
	.endm

#include "fake_layers.h"
#define ENTRY(name, layer, record, contract, inspector) FAKE_##layer(function name)
#include "cudaspy/entrypoints.def"

	.section .note.GNU-stack, "", @progbits
