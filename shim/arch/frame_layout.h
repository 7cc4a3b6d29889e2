/*
 * shim/arch/frame_layout.h: of the processor that this is compiled for: the offsets of struct spy_frame, for C and assembly.
 */
#if defined(__x86_64__)
#include "arch/x86_64/frame_layout.h"
#else
#error "no folder in shim/arch/ for this processor"
#endif
