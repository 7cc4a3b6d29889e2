/*
 * analyzer/pack/crc32.c: the checksum of ZIP's members, eight bytes at a time. Called where containers are written and unpacked.
 */
#include <stdbool.h>
#include <string.h>
#include "crc32.h"

#define POLYNOMIAL 0xedb88320u /* CRC-32 of IEEE 802.3, its bits in reverse order */

/* table[k][b]: of the byte b with k zeros behind it. */
static uint32_t table[8][256];
static bool made;

static void make_table(void)
{
	uint32_t b, k, bit;

	for (b = 0; b < 256; b++) {
		uint32_t crc = b;

		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		table[0][b] = crc;
	}
	for (k = 1; k < 8; k++)
		for (b = 0; b < 256; b++)
			table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 0xff];
	made = true;
}

static uint32_t add_eight(uint32_t crc, const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	word ^= crc;
	return table[7][word & 0xff] ^ table[6][word >> 8 & 0xff] ^ table[5][word >> 16 & 0xff] ^
	       table[4][word >> 24 & 0xff] ^ table[3][word >> 32 & 0xff] ^
	       table[2][word >> 40 & 0xff] ^ table[1][word >> 48 & 0xff] ^ table[0][word >> 56];
}

uint32_t crc32_add(uint32_t crc, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	if (!made)
		make_table();
	crc = ~crc;
	for (; size >= 8; size -= 8, at += 8)
		crc = add_eight(crc, at);
	for (; size; size--, at++)
		crc = crc >> 8 ^ table[0][(crc ^ *at) & 0xff];
	return ~crc;
}
