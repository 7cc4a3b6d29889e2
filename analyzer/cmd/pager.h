/*
 * analyzer/cmd/pager.h: text on a terminal, shown by the user's pager.
 */
#ifndef CUDASPY_PAGER_H
#define CUDASPY_PAGER_H

#include <stdio.h>

/* A file whose first byte starts the pager; fclose waits for its end. NULL: standard output is no terminal, or there
 * is no pager. One at a time. */
FILE *pager_open(void);

#endif
