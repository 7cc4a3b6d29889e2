/*
 * shim/lib/utf8.h: a character as UTF-8. For texts that the program has in wide characters.
 */
#ifndef CUDASPY_UTF8_H
#define CUDASPY_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Up to 4 bytes; returns how many. The character is one (up to 0x10ffff). */
static inline size_t spy_utf8_put(char *to, uint32_t c)
{
	static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n - 1; i; i--, c >>= 6)
		to[i] = (char)(0x80 | (c & 63));
	to[0] = (char)(first[n] | c);
	return n;
}

#endif
