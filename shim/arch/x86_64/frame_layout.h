/*
 * shim/arch/x86_64/frame_layout.h: where the assembly finds the fields of struct spy_frame, and the
 * few of a slot, a thread and its page that a call needs which is only counted. call.c asserts each
 * of them.
 */
#ifndef CUDASPY_SHIM_FRAME_LAYOUT_H
#define CUDASPY_SHIM_FRAME_LAYOUT_H

#define FRAME_REGS 0
#define FRAME_RAX_IN 48
#define FRAME_SLOT_INDEX 56
#define FRAME_XMM 64
#define FRAME_RESULT 192
#define FRAME_RESULT2 200
#define FRAME_RESULT_XMM 208
#define FRAME_STACK 240
#define FRAME_CALLER 248
#define FRAME_WINDOW 256

/* Room for struct spy_frame on the stack: 8 modulo 16, so that calls find it aligned. */
#define SPY_FRAME_BYTES 376
/* Above it, before the stack arguments: frame pointer, slot number, return address. */
#define SPY_FRAME_ABOVE 24

/* Bytes of the caller's stack arguments handed on: with CUDA 13.0 and driver 580 no function takes
 * more than 80, except the EGL ones that take a frame by value (280). */
#define SPY_WINDOW 96
#define SPY_WINDOW_EGL 288
/* Bit of a frame's window: its end may not be there (window.c). */
#define WINDOW_UNSURE 1

/* struct spy_slot */
#define SLOT_BYTES 24
#define SLOT_REAL 0
#define SLOT_FN 8 /* and the counter behind it */
#define SLOT_COUNTER 10
#define SLOT_RECORD 12
#define SLOT_INSPECTOR 16
#define SLOT_ELIDE_FROM 19
#define COUNTER_NONE 0xffff

/* enum spy_record */
#define RECORD_TRANSPARENT 0
#define RECORD_INSTANT 3

/* struct spy_thread and struct spy_slot_page */
#define THREAD_PAGE 24
#define THREAD_DETAIL_LEVEL 33
#define THREAD_CALLS 128
#define PAGE_FN 4
#define PAGE_COUNTS 128

/* Stubs without a name: see trampoline.S. */
#define SPY_SPARE_STUBS 512

#endif
