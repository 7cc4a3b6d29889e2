/*
 * analyzer/digest/texts.c: the texts of a digest. Called for each text that is read or made.
 */
#include <stdlib.h>
#include "texts.h"
#include "base/hash.h"

struct digest_text {
	uint32_t number;
	UT_hash_handle hh;
	char text[];
};

void digest_texts_init(struct digest_texts *texts)
{
	*texts = (struct digest_texts){0};
	digest_texts_add_n(texts, "", 0);
}

void digest_texts_release(struct digest_texts *texts)
{
	HASH_CLEAR(hh, texts->by_text);
	for (uint32_t i = 0; i < texts->n; i++)
		free(texts->all[i]);
	free(texts->all);
	*texts = (struct digest_texts){0};
}

/* A character of UTF-8 is not cut in two. */
static size_t cut(const char *text, size_t bytes)
{
	if (bytes <= DIGEST_TEXT_BYTES)
		return bytes;
	bytes = DIGEST_TEXT_BYTES;
	while (bytes && ((unsigned char)text[bytes] & 0xc0) == 0x80)
		bytes--;
	return bytes;
}

uint32_t digest_texts_add_n(struct digest_texts *texts, const char *text, size_t bytes)
{
	struct digest_text *found;

	bytes = cut(text, bytes);
	HASH_FIND(hh, texts->by_text, text, bytes, found);
	if (found)
		return found->number;
	found = xcalloc(1, sizeof(*found) + bytes + 1);
	memcpy(found->text, text, bytes);
	found->number = texts->n;
	texts->all = grow(texts->all, texts->n, sizeof(struct digest_text *));
	texts->all[texts->n++] = found;
	texts->bytes += bytes + 1;
	HASH_ADD_KEYPTR(hh, texts->by_text, found->text, bytes, found);
	return found->number;
}

uint32_t digest_texts_add(struct digest_texts *texts, const char *text)
{
	return text ? digest_texts_add_n(texts, text, strlen(text)) : 0;
}

const char *digest_texts_at(const struct digest_texts *texts, uint64_t number)
{
	return number < texts->n ? texts->all[number]->text : "";
}
