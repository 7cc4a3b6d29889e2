/*
 * shim/arch/frame_layout.h: of the processor that this is compiled for: what a call takes of the stack, for C and assembly.
 */
#if defined(__x86_64__)
#include "arch/x86_64/frame_layout.h"
#else
#error "no folder in shim/arch/ for this processor"
#endif
