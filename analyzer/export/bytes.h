/*
 * analyzer/export/bytes.h: what a format writes, gathered to blocks; numbers and JSON without printf, which takes longer than
 * all that is known of a call. For the formats that write something for each record.
 */
#ifndef CUDASPY_EXPORT_BYTES_H
#define CUDASPY_EXPORT_BYTES_H

#include "target.h"

#define BYTES_BLOCK 65536

struct bytes {
	struct export_target *out;
	uint64_t written; /* all that was put, also what is still here */
	size_t n;
	char block[BYTES_BLOCK];
};

static inline void bytes_flush(struct bytes *b)
{
	if (b->n)
		target_write(b->out, b->block, b->n);
	b->n = 0;
}

static inline void bytes_put(struct bytes *b, const void *from, size_t n)
{
	b->written += n;
	if (unlikely(n > BYTES_BLOCK - b->n)) {
		bytes_flush(b);
		if (n > BYTES_BLOCK) {
			target_write(b->out, from, n);
			return;
		}
	}
	memcpy(b->block + b->n, from, n);
	b->n += n;
}

static inline void bytes_text(struct bytes *b, const char *text)
{
	bytes_put(b, text, strlen(text));
}

/* In decimal. */
static inline void bytes_number(struct bytes *b, uint64_t value)
{
	char digits[20], *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	bytes_put(b, at, (size_t)(digits + sizeof(digits) - at));
}

static inline void bytes_hex(struct bytes *b, uint64_t value)
{
	char digits[16], *at = digits + sizeof(digits);

	do {
		*--at = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	bytes_put(b, at, (size_t)(digits + sizeof(digits) - at));
}

/* Nanoseconds as microseconds, with three decimals. */
static inline void bytes_us(struct bytes *b, uint64_t ns)
{
	unsigned int rest = (unsigned int)(ns % 1000);
	char decimals[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
			    (char)('0' + rest % 10)};

	bytes_number(b, ns / 1000);
	bytes_put(b, decimals, sizeof(decimals));
}

/* The text in UTF-8, what is not becomes U+FFFD. The caller frees. */
char *bytes_utf8(const char *text);

/* A text of JSON's, with its quotes. What is not UTF-8 becomes U+FFFD. The caller frees. */
char *bytes_json(const char *text);

#endif
