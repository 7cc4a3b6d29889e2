/*
 * shim/sample/in_c.h: what a line of Python called in C, of a thread that runs. On the sampler's thread.
 *
 * The kernel interrupted the thread some milliseconds before its frames of Python were read (running.h): it may have been in
 * another line then. The interpreter's function says in which: it has the address of the next instruction in a register that it
 * keeps over calls, or on its stack. Nothing is believed of an interruption in another line.
 */
#ifndef CUDASPY_SHIM_IN_C_H
#define CUDASPY_SHIM_IN_C_H

#include "sample/places.h"
#include "stack/unwind.h"

/* Adds to a place that has frames in Python, of which that is the innermost one, what ran when the thread was interrupted, as
 * in spy_rec_place; nothing, where it was in another line then. While libraries are held (state/libraries.h). */
void spy_place_add_c(struct spy_places *p, const struct spy_python *python,
		     const struct spy_python_frame *innermost, const struct spy_interrupted *at,
		     struct spy_frames *place);

#endif
