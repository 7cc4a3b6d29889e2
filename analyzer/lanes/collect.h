/*
 * analyzer/lanes/collect.h: lanes while they are filled. For the files of this folder.
 */
#ifndef CUDASPY_LANES_COLLECT_H
#define CUDASPY_LANES_COLLECT_H

#include "labels.h"
#include "lanes.h"
#include "store.h"

struct stream_lane {
	/* Without padding: it is hashed byte by byte. */
	struct stream_lane_key {
		uint32_t gpu, process, context, stream;
	} key;
	struct lane *lane;
	UT_hash_handle hh;
};

struct lanes {
	const struct analysis *a;
	struct symbolizer *symbols;
	struct listener listener;
	struct store store;
	struct labels labels;
	/* By index; NULL: none. */
	struct lane **threads, **gpus, **ranks;
	size_t n_threads, n_gpus, n_ranks;
	struct stream_lane *streams;
};

/* A finding's worst moment. */
struct moment {
	uint64_t finding; /* its number in the report */
	const struct lane *lane;
	uint64_t begin_ns, end_ns;
	const char *text;
};

/* moments.c: of the report's findings; *n of them, the caller frees. */
struct moment *lanes_moments(struct lanes *l, const struct report *report, size_t *n);

/* encode.c: the bytes of all items, and what docs/HTML_REPORT.md says of the timeline. */
struct encoded {
	uint8_t *bytes;
	size_t n;
	char *json;
};

/* Lanes are in order, and items sorted. moments: n of them. The caller frees both parts. */
struct encoded lanes_encode(struct lanes *l, const struct moment *moments, size_t n,
			    struct arena *texts);

#endif
