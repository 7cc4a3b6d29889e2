/*
 * analyzer/live/verdict.h: does it hang, and on what? One sentence for each reason, for somebody who has never seen
 * cudaspy.
 */
#ifndef CUDASPY_LIVE_VERDICT_H
#define CUDASPY_LIVE_VERDICT_H

#include "words.h"

enum verdict_kind {
	VERDICT_DEADLOCK, /* a cycle of locks */
	VERDICT_COLLECTIVE, /* a collective operation that some rank has not entered, or that does not end */
	VERDICT_GPU, /* threads wait for work of a GPU that does not end */
	VERDICT_WAIT, /* they wait for a thread or for the kernel module */
	VERDICT_DORMANT, /* unknown: recording is dormant */
	VERDICT_FINE, /* nothing of the kind */
};

struct live_verdict {
	enum verdict_kind kind;
	const char *text; /* a sentence, beginning with the name of what it is */
	uint64_t ns; /* for so long; UNKNOWN_NS */
};

struct verdicts {
	struct live_verdict *all; /* the worst first; at least one. Owned */
	size_t n;
};

/* What lasts for less than after_ns does not hang yet. */
void verdicts_find(struct verdicts *v, const struct live_words *w, uint64_t after_ns);
void verdicts_release(struct verdicts *v);

const char *verdict_name(enum verdict_kind kind);

static inline bool verdicts_hang(const struct verdicts *v)
{
	return v->all[0].kind < VERDICT_DORMANT;
}

/* Nothing that is seen hangs, but not all is seen. */
static inline bool verdicts_unknown(const struct verdicts *v)
{
	return v->all[0].kind == VERDICT_DORMANT;
}

/* Where a rank is, seen from the operation that others are in. */
enum rank_at {
	RANK_AT, /* it is the first of its own that has not ended */
	RANK_ELSEWHERE, /* another one is */
	RANK_PAST, /* it has ended it */
	RANK_MISSING, /* it has not submitted it, and nothing else of the communicator is open */
	RANK_UNKNOWN, /* the same as far as is known: not all its calls were recorded */
};

/* A rank's place in a communicator. */
struct live_rank {
	const struct recent_comm *comm;
	const struct live_process *process;
	const struct recent_operation *op; /* the last one it has submitted; NULL: none */
	const char *operation; /* "ncclAllReduce #17"; NULL: none */
	uint64_t ns; /* since it submitted it */
	const struct recent_operation *open; /* the first one that has not ended; NULL: none */
	const struct recent_piece *front; /* work in front of that; NULL: none is known */
	bool whole; /* all that it has submitted since is known */
	bool involved; /* in a hang, as: */
	enum rank_at at;
	const char *state; /* NULL: it goes on */
};

/* All ranks of all communicators, one communicator after the other. The caller frees. after_ns as above. Adds what
 * there is to say to the verdicts, which may be NULL. */
struct live_rank *ranks_compare(const struct live_words *w, uint64_t after_ns, size_t *n,
				struct verdicts *v);

/* The thread of the process that says why it does not go on. submitter: the thread that called NCCL last, 0 unknown. NULL:
 * it has none. */
const struct live_thread *live_decisive_thread(const struct live_process *process,
					       uint32_t submitter);

/* For ranks_compare. */
void verdict_add(struct verdicts *v, enum verdict_kind kind, uint64_t ns, const char *text);

#endif
