/*
 * shim/arch/x86_64/frame_layout.h: how much room a call takes on the application's stack, and for
 * what, for C and assembly. Where the fields lie, offsets.c tells the assembly.
 */
#ifndef CUDASPY_SHIM_FRAME_LAYOUT_H
#define CUDASPY_SHIM_FRAME_LAYOUT_H

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

/* Stubs without a name: see trampoline.S. */
#define SPY_SPARE_STUBS 512

#endif
