/*
 * tests/gpu/mixed.h: what the files of the program mixed share.
 */
#ifndef MIXED_H
#define MIXED_H

#include <cuda.h>
#include <cuda_runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 65536u
#define BYTES (COUNT * sizeof(unsigned))

#define CHECK(call) \
	do { \
		int result_ = (int)(call); \
		if (result_) { \
			fprintf(stderr, "mixed: line %d: %s: error %d\n", __LINE__, #call, \
				result_); \
			exit(1); \
		} \
	} while (0)

extern int failures;

unsigned *pageable(void); /* BYTES of zeros from malloc */
unsigned *device_memory(void); /* BYTES on the current device */

/* Values that depend on nothing but seed; the kernel mix over them. */
void fill(unsigned *values, unsigned seed);
void launch(unsigned *device, unsigned seed, cudaStream_t stream);

/* Prints the checksum of what came back, and compares with fill(seed) after mix for each of mixes.
 */
void expect(const char *what, const unsigned *values, unsigned seed, const char *mixes = "");

/* mixed_copies.cu */
void copy_1d(void);
void copy_2d(void);
void copy_3d(void);
void copy_symbol(void);
void copy_array(void);
void copy_peer(void);

#endif
