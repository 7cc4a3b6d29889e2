/*
 * shim/arch/registers.h: of the processor that this is compiled for: DWARF's numbers of the registers, and how they are captured.
 */
#if defined(__x86_64__)
#include "arch/x86_64/registers.h"
#else
#error "no folder in shim/arch/ for this processor"
#endif
