/*
 * shim/probe/real.h: the functions that probes stand before. A file with probes lists what it calls
 * in FUNCTIONS(F), a row each: type, name, parameters, arguments; and has REAL_FUNCTIONS once, which
 * makes real.NAME of each. Until they are found, the pointers lead to functions that find them: a
 * probe may be called before any constructor.
 */
#ifndef CUDASPY_SHIM_REAL_H
#define CUDASPY_SHIM_REAL_H

#include "lib/elf_object.h"

#define SPY_EXPORT __attribute__((visibility("default")))

#define SPY_FIRST_DECLARED(type, name, params, args) static type first_##name params;
#define SPY_FIRST(type, name, params, args) \
	static type first_##name params \
	{ \
		find_all(); \
		return real.name args; \
	}
#define SPY_POINTER(type, name, params, args) type(*name) params;
#define SPY_POINTER_FIRST(type, name, params, args) .name = first_##name,
#define SPY_FIND(type, name, params, args) \
	found = spy_next_symbol(#name); \
	if (found) \
		__atomic_store_n((void **)&real.name, found, __ATOMIC_RELAXED);

/* clang-format off */
#define REAL_FUNCTIONS \
	FUNCTIONS(SPY_FIRST_DECLARED) \
	static struct { \
		FUNCTIONS(SPY_POINTER) \
	} real = { \
		FUNCTIONS(SPY_POINTER_FIRST) \
	}; \
	static void find_all(void) \
	{ \
		void *found; \
\
		FUNCTIONS(SPY_FIND) \
	} \
	FUNCTIONS(SPY_FIRST)
/* clang-format on */

#endif
