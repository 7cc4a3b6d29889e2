/*
 * shim/probe/probe.h: probes on what the driver blocks in.
 *
 * probe.c exports the C library's functions under their own names: outside a CUDA call a probe is
 * one branch and a jump; inside one it tries the lock first, and only if that is not to be had does
 * wait.c read the clock, look up the holder and write a record. What the application sees, every
 * return value and every lock's semantics, is the C library's.
 */
#ifndef CUDASPY_SHIM_PROBE_H
#define CUDASPY_SHIM_PROBE_H

/* Finds what the probes stand before; when the library is loaded, or earlier. */
void spy_probe_init(void);
void spy_probe_outside_init(void);

/* Notes in the trace which other libraries interpose locks. */
void spy_probe_note(void);

#endif
