/*
 * analyzer/blame/company.h: who else was in the kernel module. Its locks cannot be watched, but it is one for all
 * threads of a machine, also for those of other processes: a call that is in it longer than such calls are may have
 * waited for whoever had requests of his own in it meanwhile. That is concluded from overlap: it is never measured, and
 * apart from what is.
 */
#ifndef CUDASPY_COMPANY_H
#define CUDASPY_COMPANY_H

#include "edges.h"

struct accounting;
struct caller;
struct finished;
struct model;
struct request;
struct stretch;
struct waited;

struct company {
	/* Holders are those who were in it, too; waited_ns, by how much longer a waiter's calls were. All are inferred. */
	struct blame_edges edges;
	struct request *
		ring; /* the last ones of all threads, in the order of their ends; NULL: none yet */
	size_t ring_size; /* a power of two */
	uint64_t requests; /* so far */
	struct stretch *own; /* of the call in hand */
	size_t n_own, own_size;
};

void company_release(struct company *c);

/* A thread was in the kernel module, for the call in progress. */
void company_meet(struct company *c, struct caller *caller, uint32_t fn, const struct waited *w);

/* Of a divided call: was it so long in the kernel module that it matters who else was? */
bool company_matters(const struct finished *f);

/* Says so, when other threads' requests of the same time have been met, too. */
void company_find(struct accounting *a, const struct finished *f);

#endif
