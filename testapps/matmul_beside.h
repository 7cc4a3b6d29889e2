/*
 * testapps/matmul_beside.h: what a worker of matmul does beside its launches, as --beside says.
 */
#ifndef TESTAPPS_MATMUL_BESIDE_H
#define TESTAPPS_MATMUL_BESIDE_H

#include <stdbool.h>
#include <cuda_runtime_api.h>

/* Takes a list of names, with commas; ends the program with status 2 where it does not know one. To be
 * called before the crews, whose processes inherit it. */
void beside_read(const char *list);

bool beside_wanted(void);

/* Each of the things wanted, once, on the current device. */
void beside_once(cudaStream_t stream);

#endif
