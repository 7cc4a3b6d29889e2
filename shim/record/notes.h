/*
 * shim/record/notes.h: notes of the trace (notes.c). spy_note itself is in inspect/inspect.h.
 * Called on the application's threads, in slow paths.
 */
#ifndef CUDASPY_SHIM_NOTES_H
#define CUDASPY_SHIM_NOTES_H

/* Writes the notes that were made before the session began. */
void spy_notes_flush_early(void);

#endif
