/*
 * shim/inspect/per_thread.c: which functions take the default stream for the one of the calling
 * thread, by their names. Data, made when the shim is compiled.
 */
#include "cudaspy/function_numbers.h"

/* "..._ptsz" or "..._ptds" */
#define PER_THREAD(text) \
	(sizeof(text) > 6 && (text)[sizeof(text) - 6] == '_' && (text)[sizeof(text) - 5] == 'p' && \
	 (text)[sizeof(text) - 4] == 't' && \
	 ((text)[sizeof(text) - 3] == 's' || (text)[sizeof(text) - 3] == 'd'))

const uint8_t spy_fn_per_thread[SPY_FN_COUNT] = {
#define ENTRY(name, layer, record, contract, inspector) [SPY_FN_##name] = PER_THREAD(#name),
#include "cudaspy/entrypoints.def"
};
