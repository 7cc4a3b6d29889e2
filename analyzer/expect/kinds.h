/*
 * analyzer/expect/kinds.h: kinds of calls. A program makes few kinds of calls, and each again and again: what is the
 * same in all calls of a kind is worked out for the first one, and only looked up for the others. For both readings.
 *
 * Calls of a process are of one kind if they have the same function, result, device and depth, and besides: of
 * launches the kernel; of copies the direction, the form, both GPUs, both kinds of memory and the class's size; of
 * calls about memory what they do to what kind and how much of it, in such classes.
 */
#ifndef CUDASPY_KINDS_H
#define CUDASPY_KINDS_H

#include "expect.h"

struct call_kind {
	uint64_t head, detail; /* what calls are known by: kind_head, kind_detail */
	const struct gpu_waits *waits;
	struct call_class *class; /* of those that are not cold; NULL: the next one may be cold */
	/* Of the main reading, if class is known: so much of a call's time is its own work for sure, and so much
	 * should be (UNKNOWN_NS: nobody knows). */
	uint64_t own_most_ns, expected_ns;
	uint32_t fn; /* number in the set's functions */
	uint8_t contract; /* enum spy_contract */
	uint8_t does; /* enum function_does, of SPY_EV_OP */
	uint8_t stream_left,
		stream_right; /* for kind_stream: handles of 48 bits lie beside 16 others */
	bool failed : 1;
	bool tries : 1; /* who makes such calls goes on working: not if he tidies up */
	bool copy : 1; /* it is of a copy */
	bool to_host : 1; /* which may be one to the host, */
	bool leans : 1; /* to pageable memory, or within the host */
	bool has_stream : 1; /* it has something to do with one */
	/* Of those that did not fail: */
	bool submits : 1; /* something is handed over to the GPU */
	bool is_work : 1; /* and that is work, */
	bool brings : 1; /* of which the host may see something when it is done */
	bool waited : 1; /* what the call waits for is done, for sure */
	bool only_submits : 1; /* and no more than that, to a stream */
	bool peers : 1; /* it may change which GPUs reach which memory, whatever its result */
	/* Of the main reading: */
	bool met : 1; /* there has been one */
	bool asked : 1; /* detectors want to see all of them, */
	bool asked_in_row : 1; /* or those that go on with a row */
	bool plain : 1; /* class is known, and nobody wants to see those that took no longer than own_most_ns */
};

_Static_assert(sizeof(struct call_kind) == 64, "a line of the cache");

/* An open table. When it has grown as far as it may, all are forgotten: what is needed is found out again. */
struct kinds {
	struct call_kind *all;
	size_t n, n_places; /* the latter a power of two, or 0 */
	unsigned int shift; /* 64 less its bits */
};

/* There are none any more; others may be found. */
void kinds_release(struct kinds *kinds);

/* For kinds_find. */
struct call_kind *kinds_add(struct kinds *kinds, struct expect *e, struct trace *trace,
			    const union spy_any *raw);

#define KIND_IN_USE ((uint64_t)1 << 63) /* part of the detail of each kind, not of an empty place */

/* Event, function, result, device and depth. */
static inline uint64_t kind_head(const union spy_any *raw)
{
	return record_word(raw, offsetof(struct spy_rec_head, event));
}

/* Of copies and calls about memory: the class's size, and what lies in the upper 16 bits of a word. */
static inline uint64_t kind_of_bytes(uint64_t bytes, uint64_t word)
{
	return KIND_IN_USE | (uint64_t)class_bucket(bytes) << 16 | word >> 48;
}

static inline uint64_t kind_detail(const union spy_any *raw)
{
	switch (raw->other.event) {
	case SPY_EV_LAUNCH:
		return KIND_IN_USE | record_kernel(&raw->launch);
	case SPY_EV_COPY:
		return kind_of_bytes(raw->copy.bytes,
				     record_word(raw, sizeof(struct spy_rec_head) + 8)) |
		       record_word(raw, sizeof(struct spy_rec_head)) >> 48 << 24;
	case SPY_EV_MEMORY:
		return kind_of_bytes(raw->memory.bytes,
				     record_word(raw, sizeof(struct spy_rec_head))) |
		       (uint64_t)memory_is_nothing(&raw->memory) << 24;
	default:
		return KIND_IN_USE;
	}
}

static inline struct call_kind *kinds_place(const struct kinds *kinds, uint64_t head,
					    uint64_t detail)
{
	size_t i = (size_t)((head ^ detail * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull >>
			    kinds->shift);

	while (kinds->all[i].detail &&
	       (kinds->all[i].head != head || kinds->all[i].detail != detail))
		i = (i + 1) & (kinds->n_places - 1);
	return &kinds->all[i];
}

/* As record_stream. */
static inline uint64_t kind_stream(const struct call_kind *kind, const union spy_any *raw)
{
	if (unlikely(!kind->has_stream))
		return 0;
	return record_word(raw, sizeof(struct spy_rec_head) + 8) << kind->stream_left >>
	       kind->stream_right;
}

/* The kind of a call of that trace, valid until the next call of this function. */
static inline struct call_kind *kinds_find(struct kinds *kinds, struct expect *e,
					   struct trace *trace, const union spy_any *raw)
{
	struct call_kind *kind;

	if (likely(kinds->n_places)) {
		kind = kinds_place(kinds, kind_head(raw), kind_detail(raw));
		if (likely(kind->detail))
			return kind;
	}
	return kinds_add(kinds, e, trace, raw);
}

#endif
