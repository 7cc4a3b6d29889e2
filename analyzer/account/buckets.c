/*
 * analyzer/account/buckets.c: names and keys of buckets and causes. Used by the sections of a
 * report.
 */
#include "buckets.h"

const char *const bucket_names[BUCKET_COUNT] = {
#define BUCKET(name, key, text) text,
	BUCKETS(BUCKET)
#undef BUCKET
};

const char *const cause_keys[CAUSE_COUNT] = {
#define CAUSE(name, key, text) key,
	CAUSES(CAUSE)
#undef CAUSE
};

const char *const cause_names[CAUSE_COUNT] = {
#define CAUSE(name, key, text) text,
	CAUSES(CAUSE)
#undef CAUSE
};
