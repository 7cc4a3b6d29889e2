/*
 * analyzer/expect/learned.h: what the first reading has learnt of some streams of a process (learn_streams.c), which
 * becomes a part of what is known of the whole set (expect_learn.c).
 */
#ifndef CUDASPY_LEARNED_H
#define CUDASPY_LEARNED_H

#include "expect.h"

/*
 * Of a long stream not everything has to be read to know what its calls cost: all of its beginning,
 * in which rare calls are most of all, and of what follows one packet in so many. Packets hold some
 * thousand records.
 */
#define READ_WHOLE ((uint64_t)1 << 17) /* records */
#define READ_ONE_IN 8
#define RECORD_BYTES 40 /* about */

/* The candidates of a reading that sees one stream after the other: each stream's first ones, of which the oldest of the
 * process is it. */
struct first_call {
	struct cold_key key;
	uint64_t time; /* cycles */
	uint64_t own_ns; /* what of its time it was not seen waiting */
	struct class_key class; /* without CLASS_COLD */
	UT_hash_handle hh;
};

/* So many records are worth a thread of their own. */
#define RUN_LEAST ((uint64_t)1 << 16)

struct learned {
	struct expect e; /* classes, the machine, sites of calls, records */
	struct first_call *firsts; /* owned */
	struct phase_windows windows; /* of the process */
	struct trace_use use; /* what of it these streams tell; owned */
	uint64_t last_ns; /* their last record's time */
	uint64_t passed_at; /* when packets were first passed over: cycles; UINT64_MAX: never */
};

/* The process's first stream if it is not lost: it tells of GPUs and windows. */
static inline bool is_session(const struct stream *stream)
{
	return !stream->slot;
}

/* Reads these streams of a process and rewinds them. windows: what the session's stream has told, if it is not one of
 * them. */
void learn_streams(struct learned *learned, struct trace_set *set, struct stream *const *streams,
		   size_t n, const struct phase_windows *windows);

/* Of two of a kind one is not the first: it is a call like others. The one that was there stays if they are of one time. */
void firsts_add(struct first_call **firsts, struct expect *e, const struct first_call *call);

/* If it is not there already. */
void machine_add_name(char ***names, size_t *n, const char *name);

#endif
