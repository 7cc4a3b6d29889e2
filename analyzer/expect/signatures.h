/*
 * analyzer/expect/signatures.h: signatures of calls. A program makes calls of few signatures, and
 * each again and again: what is the same in all calls of a signature is worked out for the first
 * one, and only looked up for the others. For both readings.
 *
 * Calls of a process have one signature if they have the same function, result, device and depth,
 * and besides: of launches the kernel; of copies the direction, the form, both GPUs, both kinds of
 * memory and the class's size; of calls about memory what they do to what kind and how much of it,
 * in such classes.
 */
#ifndef CUDASPY_SIGNATURES_H
#define CUDASPY_SIGNATURES_H

#include "expect.h"

struct call_signature {
	uint64_t head, detail; /* the key: signature_head, signature_detail */
	const struct gpu_waits *waits;
	struct call_class *class; /* of those that are not cold; NULL: the next one may be cold */
	/* Of the main reading, if class is known: so much of a call's time is certainly its own
	 * work, and so much should be (UNKNOWN_NS: unknown). */
	uint64_t own_most_ns, expected_ns;
	uint32_t fn; /* number in the set's functions */
	uint8_t contract; /* enum spy_contract */
	uint8_t does; /* enum function_does, of SPY_EV_OP */
	uint8_t stream_left,
		stream_right; /* for signature_stream: handles of 48 bits lie beside 16 others */
	bool failed : 1;
	/* a thread that makes such calls goes on working: not one that tidies up */
	bool progress_calls : 1;
	bool copy : 1; /* it is of a copy */
	bool to_host : 1; /* which may be one to the host, */
	bool blocks_on_pageable : 1; /* to pageable memory, or within the host: then it blocks */
	bool has_stream : 1; /* it has something to do with one */
	/* Of those that did not fail: */
	bool submits : 1; /* something is handed over to the GPU */
	bool is_work : 1; /* and that is work, */
	bool host_visible : 1; /* of which the host may see something when it is done */
	bool waited : 1; /* what the call waits for is certainly done */
	bool only_submits : 1; /* and no more than that, to a stream */
	bool peers : 1; /* it may change which GPUs reach which memory, whatever its result */
	/* Of the main reading: */
	bool first_seen : 1; /* there has been a call of it */
	bool asked : 1; /* detectors want to see all of them, */
	bool asked_in_run : 1; /* or those that continue a run */
	/* class is known, and no detector asks for those that took no longer than own_most_ns */
	bool plain : 1;
};

_Static_assert(sizeof(struct call_signature) == 64, "a line of the cache");

/* An open table. When it has grown as far as it may, all are forgotten: what is needed is found out
 * again. */
struct signature_cache {
	struct call_signature *all;
	size_t n, n_places; /* the latter a power of two, or 0 */
	unsigned int shift; /* 64 less its bits */
};

/* There are none any more; others may be found. */
void signatures_release(struct signature_cache *cache);

/* For signature_find. */
struct call_signature *signature_add(struct signature_cache *cache, struct expect *e,
				     struct trace *trace, const struct record *record);

/* part of the detail of each signature, not of an empty place */
#define SIGNATURE_IN_USE ((uint64_t)1 << 63)

/* Event, function, result, device and depth. */
static inline uint64_t signature_head(const struct record *record)
{
	return record->head;
}

/* Of copies and calls about memory: the class's size, and what lies in the upper 16 bits of a
 * word. */
static inline uint64_t signature_of_bytes(uint64_t bytes, uint64_t word)
{
	return SIGNATURE_IN_USE | (uint64_t)class_bucket(bytes) << 16 | word >> 48;
}

static inline uint64_t signature_detail(const struct record *record)
{
	const union spy_any *raw = record->raw;

	switch (record->event) {
	case SPY_EV_LAUNCH:
		return SIGNATURE_IN_USE | record_kernel(record);
	case SPY_EV_COPY:
		return signature_of_bytes(raw->copy.bytes,
					  raw_word(raw, sizeof(struct spy_rec_head) + 8)) |
		       raw_word(raw, sizeof(struct spy_rec_head)) >> 48 << 24;
	case SPY_EV_MEMORY:
		return signature_of_bytes(raw->memory.bytes,
					  raw_word(raw, sizeof(struct spy_rec_head))) |
		       (uint64_t)memory_is_nothing(record_memory(record)) << 24;
	default:
		return SIGNATURE_IN_USE;
	}
}

/* Where it is looked for first: the top bits. */
static inline uint64_t signature_hash(uint64_t head, uint64_t detail)
{
	return hash_mix(head ^ hash_mix(detail));
}

static inline struct call_signature *signature_at(const struct signature_cache *cache,
						  uint64_t head, uint64_t detail, uint64_t hash)
{
	size_t i = (size_t)(hash >> cache->shift);

	while (cache->all[i].detail &&
	       (cache->all[i].head != head || cache->all[i].detail != detail))
		i = (i + 1) & (cache->n_places - 1);
	return &cache->all[i];
}

static inline struct call_signature *signature_place(const struct signature_cache *cache,
						     uint64_t head, uint64_t detail)
{
	return signature_at(cache, head, detail, signature_hash(head, detail));
}

/* As record_stream. */
static inline uint64_t signature_stream(const struct call_signature *signature,
					const struct record *record)
{
	if (unlikely(!signature->has_stream))
		return 0;
	return raw_word(record->raw, sizeof(struct spy_rec_head) + 8) << signature->stream_left >>
	       signature->stream_right;
}

/* The signature of a call of that trace, valid until the next call of this function. */
static inline struct call_signature *signature_find(struct signature_cache *cache, struct expect *e,
						    struct trace *trace,
						    const struct record *record)
{
	struct call_signature *signature;

	if (likely(cache->n_places)) {
		signature =
			signature_place(cache, signature_head(record), signature_detail(record));
		if (likely(signature->detail))
			return signature;
	}
	return signature_add(cache, e, trace, record);
}

#endif
