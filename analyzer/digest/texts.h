/*
 * analyzer/digest/texts.h: the texts of a digest, each once, by number. 0 is the empty one.
 */
#ifndef CUDASPY_DIGEST_TEXTS_H
#define CUDASPY_DIGEST_TEXTS_H

#include "base/util.h"

#define DIGEST_TEXT_BYTES 400 /* what is longer is cut */

struct digest_text;

struct digest_texts {
	struct digest_text *by_text;
	struct digest_text **all; /* by number */
	uint32_t n;
	size_t bytes; /* of all of them */
};

void digest_texts_init(struct digest_texts *texts);
void digest_texts_release(struct digest_texts *texts);

/* The number of a text; NULL is the empty one. */
uint32_t digest_texts_add(struct digest_texts *texts, const char *text);
uint32_t digest_texts_add_n(struct digest_texts *texts, const char *text, size_t bytes);

/* The text of a number; a number that there is not is the empty one. */
const char *digest_texts_at(const struct digest_texts *texts, uint64_t number);

#endif
