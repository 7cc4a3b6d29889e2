/*
 * analyzer/base/hash.h: uthash, with a hash made for short keys that are numbers: those of locks,
 * edges and sites, which are looked up for each wait and each finding.
 */
#ifndef CUDASPY_HASH_H
#define CUDASPY_HASH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "util.h"

/* Spreads the bits of a key over those above them: the top ones depend on all. */
static inline uint64_t hash_mix(uint64_t key)
{
	return key * 0x9e3779b97f4a7c15ull;
}

static inline unsigned int hash_key(const void *key, size_t bytes)
{
	const char *at = key;
	uint64_t hash = bytes, word;

	for (; bytes; at += 8, bytes -= bytes < 8 ? bytes : 8) {
		word = 0;
		if (bytes >= 8)
			memcpy(&word, at, 8);
		else
			memcpy(&word, at, bytes);
		hash = hash_mix(hash ^ word);
		hash ^= hash >> 32;
	}
	return (unsigned int)hash;
}

#define HASH_FUNCTION(key, bytes, hash) ((hash) = hash_key(key, bytes))
#include <uthash.h>

/* A new item of a table, all zeros but for its key, which is the member and what follows it. */
#define HASH_NEW(head, item, member, ...) \
	do { \
		(item) = xcalloc(1, sizeof(*(item))); \
		(item)->member = __VA_ARGS__; \
		HASH_ADD(hh, head, member, sizeof((item)->member), item); \
	} while (0)

/* For each item of a table that is given up, to be freed: none has to be taken out of its place,
 * which would have to be fetched. */
#define HASH_EMPTY(head, item, rest) \
	for (({ \
		     (item) = (head); \
		     HASH_CLEAR(hh, head); \
	     }); \
	     (item) && ((rest) = (item)->hh.next, true); (item) = (rest))

#endif
