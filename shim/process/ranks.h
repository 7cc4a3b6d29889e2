/*
 * shim/process/ranks.h: which rank of a job the process is, as its launcher says in the environment. Used when a
 * session begins: a program may set the variables itself, as launchers in Python do.
 */
#ifndef CUDASPY_SHIM_RANKS_H
#define CUDASPY_SHIM_RANKS_H

#include "cudaspy/launchers.h"

void spy_rank_read(struct spy_rank *rank);

#endif
