/*
 * analyzer/base/pool.h: independent pieces of work, done by several threads at a time.
 */
#ifndef CUDASPY_POOL_H
#define CUDASPY_POOL_H

#include <stddef.h>

/*
 * Does n pieces of work by so many threads, the first ones first; returns when all are done. `work` is called for each of
 * them, on any thread; `done` behind it, for one piece at a time and in their order. With one job all is done by the
 * caller, piece after piece.
 */
void pool_run(unsigned int jobs, size_t n, void (*work)(void *data, size_t i),
	      void (*done)(void *data, size_t i), void *data);

#endif
