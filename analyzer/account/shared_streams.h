/*
 * analyzer/account/shared_streams.h: streams that several threads hand work to and wait for at the same time: each waits for
 * the others' work, too. Filled in by what accounts for the work (work.c), where a stream changes hands.
 *
 * How long an operation takes the calls do not tell: of a wait, the others' part is that of their operations among those
 * that were handed over since the stream was last waited for. A copy that waits is different: what others waited for in the same
 * stream, and what was done meanwhile, came before it. Not copies in its own direction: these take turns in any case, for the GPU
 * has one engine for each.
 */
#ifndef CUDASPY_SHARED_STREAMS_H
#define CUDASPY_SHARED_STREAMS_H

#include "work.h"

#define STREAM_TURNS 64
#define STREAM_WAITS 8
#define STREAM_SHARERS 16 /* threads of a stream that are told apart */

/* A thread that waits for the stream while others do. */
struct stream_sharer {
	const struct thread *thread; /* NULL: free */
	uint64_t waits, waited_ns, others_ns; /* of waited_ns: for the others' work */
	uint64_t copies; /* of waits */
	uint64_t longest_ns; /* the longest wait, and where it was: */
	uint32_t fn;
	uint64_t return_address, ns;
	const struct stack *stack; /* of a wait there; NULL: none */
};

struct stream_sharing {
	struct stream_sharing *next; /* of the process and device */
	uint64_t handle;
	/* Rings of n each. A turn: from that operation on one thread handed work over. */
	struct stream_turn {
		const struct thread *by;
		uint64_t from;
		uint64_t before_ns; /* when the last one before it was handed over */
	} turns[STREAM_TURNS];
	struct stream_wait {
		const struct thread *by;
		uint64_t end_ns;
		uint64_t upto; /* for so many of the stream's operations */
		uint8_t direction; /* of a copy: enum spy_direction; SPY_DIR_UNKNOWN: it is none, or not known */
	} waits[STREAM_WAITS];
	uint64_t n_turns, n_waits;
	struct stream_sharer sharers[STREAM_SHARERS];
};

/* Another thread than the last one hands over what is the stream's operation number `submitted`. */
void stream_changes_hands(struct gpu_stream *stream, const struct thread *by);

/* The record's call has waited for so many of the stream's operations. */
void stream_is_awaited(const struct gpu_stream *stream, const struct record *record, uint64_t upto);

/* The record's call, a copy, has waited for them, and for itself. */
void stream_is_copied_in(const struct gpu_stream *stream, const struct record *record,
			 uint64_t upto);

void stream_sharing_free(struct stream_sharing *all);

#endif
