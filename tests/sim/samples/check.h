/*
 * tests/sim/samples/check.h: what the sample programs share: stop at the first error, say what was wrong.
 */
#ifndef CHECK_H
#define CHECK_H

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                                       \
	do {                                                                              \
		cudaError_t rc = (call);                                                  \
		if (rc != cudaSuccess) {                                                  \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call,              \
			       cudaGetErrorString(rc));                                   \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

#define EXPECT(what)                                                                      \
	do {                                                                              \
		if (!(what)) {                                                            \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what);         \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

#endif
