/*
 * analyzer/pack/crc32.h: the checksum of ZIP's members.
 */
#ifndef CUDASPY_CRC32_H
#define CUDASPY_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Of the bytes so far and these; of none so far: 0. */
uint32_t crc32_add(uint32_t crc, const void *bytes, size_t size);

#endif
