/*
 * analyzer/blame/unattributed.h: long calls in which no probe saw why: of a process recorded
 * without probes, or that waited for a lock which is not the C library's; and calls that were
 * longer in the kernel module than such calls are. Which call was in the way is concluded from
 * overlap (blame.h, kernel_overlap.h), as soon as the calls of other threads that overlap have
 * returned.
 */
#ifndef CUDASPY_UNATTRIBUTED_H
#define CUDASPY_UNATTRIBUTED_H

#include "base/util.h"

struct accounting;
struct wait_chain_link;
struct completed_call;

/* Of a process. */
struct unattributed_waits {
	struct completed_call *all; /* until it is time to look for overlap */
	size_t n;
	uint64_t due_ns; /* when it is, of the first of them */
	/* with probes that have seen no lock so far */
	struct wait_chain_link *guesses;
	size_t n_guesses;
	bool locks_seen; /* probes have seen a lock of the process */
};

/* An unattributed wait is kept for so long, and longer if its call was long: the call that was in
 * the way returns about then. */
#define UNATTRIBUTED_DELAY_NS 100000

/* None is looked at before that time, whatever is met from now on. */
static inline uint64_t unattributed_due(const struct unattributed_waits *r, uint64_t now_ns)
{
	uint64_t ns = now_ns + UNATTRIBUTED_DELAY_NS;

	return r->n && r->due_ns < ns ? r->due_ns : ns;
}

void unattributed_release(struct unattributed_waits *r);

/* A call has returned: is it one? */
void unattributed_remember(struct accounting *a, const struct completed_call *f);

/* Looks at those of the process that are due. */
void unattributed_resolve(struct accounting *a, size_t process, uint64_t now_ns);

/* After the last record: at all of them. */
void unattributed_finish(struct accounting *a);

#endif
