/*
 * shim/nccl/words.h: what NCCL calls functions, types, algorithms and protocols: by name, and in version 1 of its
 * profiler interface by number. Used on threads that submit operations; looks at the text alone.
 */
#ifndef CUDASPY_SHIM_NCCL_WORDS_H
#define CUDASPY_SHIM_NCCL_WORDS_H

#include <stdint.h>

/* enum spy_nccl_func, _algorithm, _protocol, and an element's bytes. NULL and words that are not known: 0. */
uint8_t spy_nccl_func_named(const char *name);
uint8_t spy_nccl_algorithm_named(const char *name);
uint8_t spy_nccl_protocol_named(const char *name);
uint8_t spy_nccl_bytes_named(const char *datatype);

uint8_t spy_nccl_func_numbered(unsigned int number);
uint8_t spy_nccl_algorithm_numbered(unsigned int number);
uint8_t spy_nccl_protocol_numbered(unsigned int number);
uint8_t spy_nccl_bytes_numbered(unsigned int datatype);

#endif
