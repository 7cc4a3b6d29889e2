/*
 * shim/record/truncation.h: files of the trace that are truncated while they are mapped.
 *
 * What lies behind the end of a file raises SIGBUS when it is touched, and a cleaner, or
 * logrotate's copytruncate, may truncate a file at any moment. No memory that survives a SIGKILL is
 * safe from that, so there is a handler: a fault in what the shim has mapped maps memory there, is
 * counted, and the program goes on. Any other SIGBUS is the program's, and is handled as without
 * the shim: the program's settings for SIGBUS (sigaction, signal and their kin) are kept here.
 * signal_mask.h: threads that block it.
 */
#ifndef CUDASPY_SHIM_TRUNCATION_H
#define CUDASPY_SHIM_TRUNCATION_H

#include <stdbool.h>
#include <stdint.h>

struct spy_thread;

/* The session begins, or goes on: the handler is there, also where a program has put another one
 * there by system calls of its own. */
void spy_truncation_watch(void);

/* In a forked child: its board is another one. */
void spy_truncation_forked(void);

/* Puts truncated pages of the board back into its file, if it is still there: the thread's
 * own, or all of them (NULL) at the end. */
void spy_truncation_repair(const struct spy_thread *thread);

#endif
