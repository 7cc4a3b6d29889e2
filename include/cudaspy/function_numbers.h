/*
 * include/cudaspy/function_numbers.h: the numbers of the CUDA functions, from entrypoints.def. A trace carries the names with them.
 * Only what names a function or needs their number includes this: a change of the list rebuilds it.
 */
#ifndef CUDASPY_FUNCTION_NUMBERS_H
#define CUDASPY_FUNCTION_NUMBERS_H

#include "cudaspy/trace_format.h"

enum spy_fn {
#define ENTRY(name, layer, record, contract, inspector) SPY_FN_##name,
#include "cudaspy/entrypoints.def"
	SPY_FN_COUNT
};

_Static_assert(SPY_FN_COUNT <= SPY_FN_MOST, "SPY_FN_MOST is too small");

#endif
