/*
 * shim/entry/selection.h: the options that choose functions, and warnings about all of them.
 */
#ifndef CUDASPY_SHIM_SELECTION_H
#define CUDASPY_SHIM_SELECTION_H

/* Applies `trace` and `count` to the slots; when the library is loaded. */
void spy_options_select(void);

/* Says what is wrong with the options, on standard error and in the recording that has begun. */
void spy_options_warn(void);

#endif
