/*
 * shim/entry/x86_64/trampoline.S: the exported stubs and the trampoline that they jump to. Another
 * architecture is another such file; docs/ADDING.md lists what else depends on the processor.
 *
 * A stub pushes the number of its slot and jumps to spy_trampoline. That saves every argument
 * register, calls spy_enter, copies a window of the caller's stack arguments, calls the real
 * function, keeps every result register and calls spy_leave. It needs no signature, so it forwards
 * functions that changed theirs. Calls and returns stay paired, so shadow stacks, unwinders and
 * debuggers work; the CFI below describes each instruction.
 *
 * Runs on the application's thread. Source of the calling convention: System V ABI, AMD64
 * supplement, section 3.2.
 */
#include "arch/x86_64/frame_layout.h"
#include "offsets.h" /* made of shim/entry/offsets.c */
#ifdef __CET__
#include <cet.h>
#endif

	.text

/* ---- the trampoline ------------------------------------------------------------------------- */

	.p2align 6
	.type spy_trampoline, @function
spy_trampoline:
	.cfi_startproc
	.cfi_def_cfa_offset 16			/* slot number, return address */
	cmpb	$RECORDED_FROM_DORMANT, spy_recorded_from(%rip)
	je	spy_dormant_path
.Lwhole:
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq	$SPY_FRAME_BYTES, %rsp

	movq	%rdi, FRAME_REGS+0(%rsp)
	movq	%rsi, FRAME_REGS+8(%rsp)
	movq	%rdx, FRAME_REGS+16(%rsp)
	movq	%rcx, FRAME_REGS+24(%rsp)
	movq	%r8,  FRAME_REGS+32(%rsp)
	movq	%r9,  FRAME_REGS+40(%rsp)
	movq	%rax, FRAME_RAX_IN(%rsp)
	movups	%xmm0, FRAME_XMM+0(%rsp)
	movups	%xmm1, FRAME_XMM+16(%rsp)
	movups	%xmm2, FRAME_XMM+32(%rsp)
	movups	%xmm3, FRAME_XMM+48(%rsp)
	movups	%xmm4, FRAME_XMM+64(%rsp)
	movups	%xmm5, FRAME_XMM+80(%rsp)
	movups	%xmm6, FRAME_XMM+96(%rsp)
	movups	%xmm7, FRAME_XMM+112(%rsp)
	movq	8(%rbp), %rax
	movq	%rax, FRAME_SLOT_INDEX(%rsp)
	movq	16(%rbp), %rax
	movq	%rax, FRAME_CALLER(%rsp)
	leaq	SPY_FRAME_ABOVE(%rbp), %rax
	movq	%rax, FRAME_STACK(%rsp)
	movq	%rsp, %rdi
	call	spy_enter
	movq	%rax, %r11

	/* The caller's stack arguments again, where the real function will look for them. */
	movq	FRAME_WINDOW(%rsp), %rcx
	cmpq	$SPY_WINDOW, %rcx
	jne	4f
	subq	%rcx, %rsp
	movups	SPY_FRAME_ABOVE+0(%rbp), %xmm0
	movups	SPY_FRAME_ABOVE+16(%rbp), %xmm1
	movups	SPY_FRAME_ABOVE+32(%rbp), %xmm2
	movups	SPY_FRAME_ABOVE+48(%rbp), %xmm3
	movups	SPY_FRAME_ABOVE+64(%rbp), %xmm4
	movups	SPY_FRAME_ABOVE+80(%rbp), %xmm5
	movups	%xmm0, (%rsp)
	movups	%xmm1, 16(%rsp)
	movups	%xmm2, 32(%rsp)
	movups	%xmm3, 48(%rsp)
	movups	%xmm4, 64(%rsp)
	movups	%xmm5, 80(%rsp)
	jmp	3f
4:	btrq	$0, %rcx			/* WINDOW_UNSURE */
	jc	5f
	subq	%rcx, %rsp
	jmp	2f
1:	movups	SPY_FRAME_ABOVE(%rbp,%rcx), %xmm0
	movups	%xmm0, (%rsp,%rcx)
2:	subq	$16, %rcx
	jge	1b
	jmp	3f
5:	subq	%rcx, %rsp
	movq	%rsp, %rdi
	leaq	SPY_FRAME_ABOVE(%rbp), %rsi
	movq	%rcx, %rdx
	pushq	%r11
	pushq	%r11				/* and the stack stays aligned */
	call	spy_copy_window
	popq	%r11
	popq	%r11
3:
	movq	FRAME_REGS+0-SPY_FRAME_BYTES(%rbp), %rdi
	movq	FRAME_REGS+8-SPY_FRAME_BYTES(%rbp), %rsi
	movq	FRAME_REGS+16-SPY_FRAME_BYTES(%rbp), %rdx
	movq	FRAME_REGS+24-SPY_FRAME_BYTES(%rbp), %rcx
	movq	FRAME_REGS+32-SPY_FRAME_BYTES(%rbp), %r8
	movq	FRAME_REGS+40-SPY_FRAME_BYTES(%rbp), %r9
	movq	FRAME_RAX_IN-SPY_FRAME_BYTES(%rbp), %rax
	movups	FRAME_XMM+0-SPY_FRAME_BYTES(%rbp), %xmm0
	movups	FRAME_XMM+16-SPY_FRAME_BYTES(%rbp), %xmm1
	movups	FRAME_XMM+32-SPY_FRAME_BYTES(%rbp), %xmm2
	movups	FRAME_XMM+48-SPY_FRAME_BYTES(%rbp), %xmm3
	movups	FRAME_XMM+64-SPY_FRAME_BYTES(%rbp), %xmm4
	movups	FRAME_XMM+80-SPY_FRAME_BYTES(%rbp), %xmm5
	movups	FRAME_XMM+96-SPY_FRAME_BYTES(%rbp), %xmm6
	movups	FRAME_XMM+112-SPY_FRAME_BYTES(%rbp), %xmm7
	call	*%r11

	leaq	-SPY_FRAME_BYTES(%rbp), %rsp
	movq	%rax, FRAME_RESULT(%rsp)
	movq	%rdx, FRAME_RESULT2(%rsp)
	movups	%xmm0, FRAME_RESULT_XMM+0(%rsp)
	movups	%xmm1, FRAME_RESULT_XMM+16(%rsp)
	movq	%rsp, %rdi
	call	spy_leave
	movq	FRAME_RESULT(%rsp), %rax
	movq	FRAME_RESULT2(%rsp), %rdx
	movups	FRAME_RESULT_XMM+0(%rsp), %xmm0
	movups	FRAME_RESULT_XMM+16(%rsp), %xmm1
	leave
	.cfi_def_cfa %rsp, 16
	.cfi_restore %rbp
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size spy_trampoline, .-spy_trampoline

/*
 * While recording is dormant (shim/window): a call that changes no table. The thread counts down to
 * its next look at what is due, and shows that it is inside a call, should a window open meanwhile.
 * The real function is called with the caller's stack arguments, no register is saved. Whatever
 * else there may be to do is the trampoline's: a request from outside, the look itself, a thread
 * that counts its calls (window/cost.h), is not asleep or has no slot (until_look is 0, also in a child of fork, whose memory reads as
 * zeros), a table to keep. Takes r10, r11 and xmm8 to xmm13; rbp is the call's place on the stack,
 * as call.c's place_of has it.
 */
	.p2align 6
	.type spy_dormant_path, @function
spy_dormant_path:
	.cfi_startproc
	.cfi_def_cfa_offset 16			/* slot number, return address */
	movq	spy_window_board(%rip), %r11
	movl	BOARD_REQUEST(%r11), %r10d
	cmpl	BOARD_ANSWERED(%r11), %r10d
	jne	.Lwhole
	imulq	$SLOT_BYTES, (%rsp), %r10
	leaq	spy_slots(%rip), %r11
	addq	%r11, %r10
	cmpb	$0, SLOT_KEEPS(%r10)
	jne	.Lwhole
	cmpw	$SPY_WINDOW, SLOT_WINDOW(%r10)
	jne	.Lwhole
	movq	SLOT_REAL(%r10), %r10
	testq	%r10, %r10
	je	.Lwhole
	movq	spy_self@gottpoff(%rip), %r11
	movq	%fs:(%r11), %r11
	cmpl	$1, THREAD_UNTIL_LOOK(%r11)
	jbe	.Lwhole
	cmpl	$0, THREAD_COUNTS_TURN(%r11)
	jne	.Lwhole
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	/* From the return address on, do SPY_WINDOW bytes of arguments lie in one page? (window_of) */
	leaq	16(%rsp), %rbp
	andl	$4095, %ebp
	cmpl	$(4096 - 8 - SPY_WINDOW), %ebp
	ja	6f
5:	decl	THREAD_UNTIL_LOOK(%r11)
	movq	%rsp, %rbp
	.cfi_remember_state
	.cfi_def_cfa_register %rbp
	subq	$(SPY_WINDOW + 8), %rsp
	movq	%r11, -8(%rbp)
	movups	SPY_FRAME_ABOVE+0(%rbp), %xmm8
	movups	SPY_FRAME_ABOVE+16(%rbp), %xmm9
	movups	SPY_FRAME_ABOVE+32(%rbp), %xmm10
	movups	SPY_FRAME_ABOVE+48(%rbp), %xmm11
	movups	SPY_FRAME_ABOVE+64(%rbp), %xmm12
	movups	SPY_FRAME_ABOVE+80(%rbp), %xmm13
	movups	%xmm8, (%rsp)
	movups	%xmm9, 16(%rsp)
	movups	%xmm10, 32(%rsp)
	movups	%xmm11, 48(%rsp)
	movups	%xmm12, 64(%rsp)
	movups	%xmm13, 80(%rsp)
	cmpq	%rbp, THREAD_DORMANT_FRAME(%r11)
	ja	1f				/* inside a call of the thread's own */
	movq	%rbp, THREAD_DORMANT_FRAME(%r11)
	movq	%rbp, THREAD_CALLS(%r11)
	movb	$DETAIL_ARGUMENTS, THREAD_DETAIL_LEVEL(%r11)
1:	call	*%r10
	movq	-8(%rbp), %r11			/* as leave_dormant does */
	cmpq	%rbp, THREAD_DORMANT_FRAME(%r11)
	jne	2f
	movq	$0, THREAD_DORMANT_FRAME(%r11)
	movb	$DETAIL_NONE, THREAD_DETAIL_LEVEL(%r11)
2:	leave
	.cfi_def_cfa %rsp, 16
	.cfi_restore %rbp
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_restore_state
6:	leaq	16(%rsp), %rbp
	cmpq	%rbp, THREAD_STACK_BEGIN(%r11)
	jae	7f
	addq	$(8 + SPY_WINDOW - 1), %rbp
	cmpq	%rbp, THREAD_STACK_END(%r11)
	ja	5b
7:	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	jmp	.Lwhole
	.cfi_endproc
	.size spy_dormant_path, .-spy_dormant_path

/*
 * The count-only path: INSTANT rows, and TRANSPARENT ones without an inspector. It counts the call
 * and jumps; PyTorch asks for the current device a thousand times a step. The trampoline gets the
 * calls for which something has to be done first: a function that was not found yet, a thread
 * without a call before, a child of fork, whose memory reads as zeros. It also gets those that the
 * user wants recorded after all. Takes r10, r11 and rax, which no argument of these functions is
 * in.
 */
	.p2align 6
	.type spy_count_only_path, @function
spy_count_only_path:
	.cfi_startproc
	.cfi_def_cfa_offset 16			/* slot number, return address */
	imulq	$SLOT_BYTES, (%rsp), %r10
	leaq	spy_slots(%rip), %r11
	addq	%r11, %r10
	movq	SLOT_REAL(%r10), %rax
	testq	%rax, %rax
	je	spy_trampoline
	cmpb	$RECORD_INSTANT, SLOT_RECORD(%r10)
	jne	1f
	movq	spy_self@gottpoff(%rip), %r11
	movq	%fs:(%r11), %r11
	movq	THREAD_PAGE(%r11), %r11
	testq	%r11, %r11
	je	spy_trampoline
	movzwl	SLOT_COUNTER(%r10), %r10d
	incq	PAGE_COUNTS(%r11,%r10,8)
2:	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
	.cfi_adjust_cfa_offset 8
1:	cmpb	$RECORD_TRANSPARENT, SLOT_RECORD(%r10)
	jne	spy_trampoline
	cmpw	$0, SLOT_INSPECTOR(%r10)
	jne	spy_trampoline
	jmp	2b
	.cfi_endproc
	.size spy_count_only_path, .-spy_count_only_path

/*
 * The nested fast path, of the driver's functions: a call inside one whose detail level makes its
 * own record unnecessary (enum spy_detail_level, call.h) is shown on the board, counted and jumped
 * to. That costs a tenth of the trampoline. The call stays on the board until the next one, or
 * until the call around it returns. calls[0].frame lies above us, or that call was left by longjmp.
 * Takes r10 and r11.
 */
	.p2align 6
	.type spy_nested_fast_path, @function
spy_nested_fast_path:
	.cfi_startproc
	.cfi_def_cfa_offset 16			/* slot number, return address */
	movq	spy_self@gottpoff(%rip), %r11
	movq	%fs:(%r11), %r11
	cmpb	$0, THREAD_DETAIL_LEVEL(%r11)
	je	spy_trampoline
	cmpq	%rsp, THREAD_CALLS(%r11)
	jbe	spy_trampoline
	movzbl	THREAD_DETAIL_LEVEL(%r11), %r11d
	imulq	$SLOT_BYTES, (%rsp), %r10
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	leaq	spy_slots(%rip), %rax
	addq	%rax, %r10
	cmpb	%r11b, SLOT_ELIDE_FROM(%r10)
	ja	4f
	movq	SLOT_REAL(%r10), %rax
	testq	%rax, %rax
	je	4f
	movl	SLOT_FN(%r10), %r10d
	cmpl	$(COUNTER_NONE << 16), %r10d
	jae	4f
	movq	spy_self@gottpoff(%rip), %r11
	movq	%fs:(%r11), %r11
	movq	THREAD_PAGE(%r11), %r11
	movw	%r10w, PAGE_FN(%r11)
	shrl	$16, %r10d
	incq	PAGE_COUNTS(%r11,%r10,8)
	movq	%rax, %r11
	popq	%rax
	.cfi_adjust_cfa_offset -8
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	jmp	*%r11
	.cfi_adjust_cfa_offset 16
4:	popq	%rax
	.cfi_adjust_cfa_offset -8
	jmp	spy_trampoline
	.cfi_endproc
	.size spy_nested_fast_path, .-spy_nested_fast_path

/* ---- the stubs ------------------------------------------------------------------------------ */

/* Slot numbers: 3 * row + generation (0: 11.0 or the driver, 1: 12, 2: 13). slots.c's table agrees,
 * for both count the rows of the same list. */
	.set	spy_row, 0

	/* Listed by a local label: another interposer may define the exported one before us. */
	.macro stub label, slot, record, inspector, path=spy_trampoline
	.section .data.rel.ro.spy_stubs, "aw"
	.quad	.Lstub\@
	.text
	.p2align 4
	.type \label, @function
\label:
.Lstub\@:
	.cfi_startproc
	endbr64
	pushq	$(\slot)
	.cfi_adjust_cfa_offset 8
	.ifc	\record\()_\inspector, TRANSPARENT_none
	jmp	spy_count_only_path
	.else
	.ifc	\record, INSTANT
	jmp	spy_count_only_path
	.else
	jmp	\path
	.endif
	.endif
	.cfi_endproc
	.size \label, .-\label
	.endm

	.macro none
	.section .data.rel.ro.spy_stubs, "aw"
	.quad	0
	.text
	.endm

	/* A stub for one generation of a runtime function; at is @@ for the newest it has. */
	.macro versioned name, generation, number, at, record, inspector
	.globl spy_rt_\name\()_\generation
	stub spy_rt_\name\()_\generation, spy_row*3+\number, \record, \inspector
	.symver spy_rt_\name\()_\generation, \name\at\()libcudart.so.\generation, remove
	.endm

	.macro DRIVER name, record, inspector
	.globl \name
	stub \name, spy_row*3, \record, \inspector, spy_nested_fast_path
	none
	none
	.set spy_row, spy_row + 1
	.endm
	.macro RT name, record, inspector
	versioned \name, 11.0, 0, @, \record, \inspector
	versioned \name, 12, 1, @, \record, \inspector
	versioned \name, 13, 2, @@, \record, \inspector
	.set spy_row, spy_row + 1
	.endm
	.macro RT11 name, record, inspector
	versioned \name, 11.0, 0, @@, \record, \inspector
	none
	none
	.set spy_row, spy_row + 1
	.endm
	.macro RT12 name, record, inspector
	none
	versioned \name, 12, 1, @@, \record, \inspector
	none
	.set spy_row, spy_row + 1
	.endm
	.macro RT13 name, record, inspector
	none
	none
	versioned \name, 13, 2, @@, \record, \inspector
	.set spy_row, spy_row + 1
	.endm
	.macro RT11_12 name, record, inspector
	versioned \name, 11.0, 0, @, \record, \inspector
	versioned \name, 12, 1, @@, \record, \inspector
	none
	.set spy_row, spy_row + 1
	.endm
	.macro RT12_13 name, record, inspector
	none
	versioned \name, 12, 1, @, \record, \inspector
	versioned \name, 13, 2, @@, \record, \inspector
	.set spy_row, spy_row + 1
	.endm

	.section .data.rel.ro.spy_stubs, "aw"
	.p2align 3
	.type spy_stubs, @object
spy_stubs:					/* slot number -> address of its stub, or 0 */
	.text
spy_stubs_begin:
#define ENTRY(name, layer, record, contract, inspector) layer name, record, inspector ;
#include "cudaspy/entrypoints.def"

	/* Stubs without a name, for real functions met under a second address (a second libcudart
	 * of one generation, a runtime linked into a plugin that exports it). */
	.set	spy_spare, 0
	.rept	SPY_SPARE_STUBS
	.p2align 4
	.cfi_startproc
771:	endbr64
	pushq	$(spy_row*3+spy_spare)
	.cfi_adjust_cfa_offset 8
	jmp	spy_trampoline
	.cfi_endproc
	.section .data.rel.ro.spy_stubs, "aw"
	.quad	771b
	.text
	.set	spy_spare, spy_spare + 1
	.endr
	.section .data.rel.ro.spy_stubs, "aw"
	.size spy_stubs, .-spy_stubs
	.text
spy_stubs_end:

	.section spy_stubs_at, "aw"		/* wrap.c finds it by the name that the linker gives its begin */
	.p2align 3
	.quad	spy_stubs, spy_stubs_begin, spy_stubs_end

	.section .note.GNU-stack, "", @progbits
