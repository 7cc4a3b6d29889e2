/*
 * analyzer/cmd_run/loadable.h: whether a program can be recorded at all: whether the dynamic loader
 * will put the shim into it.
 */
#ifndef CUDASPY_LOADABLE_H
#define CUDASPY_LOADABLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Why PROGRAM, as execvp would find it, cannot be recorded, into a text: a phrase that its path is
 * the subject of. Empty: it can, or that is not known. False: it would not even start with the shim
 * in LD_PRELOAD.
 */
bool loadable_look(const char *program, char *text, size_t size);

#endif
