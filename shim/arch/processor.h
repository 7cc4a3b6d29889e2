/*
 * shim/arch/processor.h: of the processor that this is compiled for: the counter, the thread pointer, a pause, a system call.
 */
#if defined(__x86_64__)
#include "arch/x86_64/processor.h"
#else
#error "no folder in shim/arch/ for this processor"
#endif
