/*
 * shim/record/notes.h: notes of the trace (notes.c).
 * Called on the application's threads, in slow paths.
 */
#ifndef CUDASPY_SHIM_NOTES_H
#define CUDASPY_SHIM_NOTES_H

#include "cudaspy/trace_format.h"

/* Writes a note into the session's stream. Slow. */
void spy_note(enum spy_note note, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes the notes that were made before the session began. */
void spy_notes_flush_early(void);

#endif
