/*
 * analyzer/blame/riddles.h: long calls in which no probe saw why: of a process recorded without probes, or that
 * waited for a lock which is not the C library's; and calls that were longer in the kernel module than such calls
 * are. Who was in the way is concluded from overlap (blame.h, company.h), as soon as the calls of other threads that
 * overlap have returned.
 */
#ifndef CUDASPY_RIDDLES_H
#define CUDASPY_RIDDLES_H

#include "base/util.h"

struct accounting;
struct blame_piece;
struct finished;

struct riddles {
	struct finished *all; /* until it is time to look for overlap */
	size_t n;
	uint64_t due_ns; /* when it is, of the first of them */
	struct blame_piece *guesses; /* of processes with probes that have seen no lock so far */
	size_t n_guesses;
};

/* A riddle is let lie so long, and longer if its call was long: who was in the way returns about then. */
#define RIDDLE_LIES_NS 100000

/* None is looked at before that time, whatever is met from now on. */
static inline uint64_t riddles_lie_until(const struct riddles *r, uint64_t now_ns)
{
	uint64_t ns = now_ns + RIDDLE_LIES_NS;

	return r->n && r->due_ns < ns ? r->due_ns : ns;
}

void riddles_release(struct riddles *r);

/* A call has returned: is it one? */
void riddles_remember(struct accounting *a, const struct finished *f);

/* Looks at those that are due. */
void riddles_solve(struct accounting *a, uint64_t now_ns);

/* After the last record: at all of them. */
void riddles_finish(struct accounting *a);

#endif
