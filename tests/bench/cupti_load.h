/*
 * tests/bench/cupti_load.h: CUPTI's functions, found at run time. A preloaded library that needs
 * libcupti would keep any program from starting where it is missing; one that looks for it says so
 * and stands aside. For the benchmark's peers and for the audit in tests/gpu.
 *
 * The library is $CUPTI_LIB, or the first that the dynamic linker finds by name.
 */
#ifndef CUPTI_LOAD_H
#define CUPTI_LOAD_H

#include <cupti.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* clang-format off */
#define CUPTI_FUNCTIONS(F) \
	F(cuptiSubscribe) \
	F(cuptiEnableDomain) \
	F(cuptiGetCallbackName) \
	F(cuptiGetResultString) \
	F(cuptiGetTimestamp) \
	F(cuptiActivityEnable) \
	F(cuptiActivityRegisterCallbacks) \
	F(cuptiActivityGetNextRecord) \
	F(cuptiActivityGetNumDroppedRecords) \
	F(cuptiActivityFlushAll) \
	F(cuptiActivityFlushPeriod)
/* clang-format on */

#define F(name) __typeof__(name) *name;
static struct {
	CUPTI_FUNCTIONS(F)
} cupti;
#undef F

/* Returns 0, or -1 and says why on stderr in the name of who. */
static inline int cupti_load(const char *who)
{
	const char *names[] = {getenv("CUPTI_LIB"), "libcupti.so.13", "libcupti.so.12",
			       "libcupti.so"};
	void *library = NULL;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !library; i++) {
		if (names[i] && *names[i])
			library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	}
	if (!library) {
		fprintf(stderr, "%s: no CUPTI: %s\n", who, dlerror());
		return -1;
	}
#define F(name) \
	if (!(cupti.name = (__typeof__(name) *)dlsym(library, #name))) { \
		fprintf(stderr, "%s: CUPTI has no %s\n", who, #name); \
		return -1; \
	}
	CUPTI_FUNCTIONS(F)
#undef F
	return 0;
}

/* Says on stderr what failed; returns 0 when nothing did. */
static inline int cupti_failed(const char *who, const char *what, CUptiResult result)
{
	const char *text = NULL;

	if (result == CUPTI_SUCCESS)
		return 0;
	cupti.cuptiGetResultString(result, &text);
	fprintf(stderr, "%s: %s: %s\n", who, what, text ? text : "unknown error");
	return -1;
}

#endif
