/*
 * analyzer/findings/cost_share.h: how large a part of a thread's time something cost.
 *
 * A cost is judged by the thread it costs most, as a share of that thread's working time: of the
 * time that the thread was there while its process worked (expect/phase.h). What costs more of the
 * thread's whole time, at start-up for instance, is judged by that; and what costs many threads a
 * little each by the time of all threads that call CUDA. The largest of the three shares counts. Of
 * a thread that was there for less than a tenth of the time of its process, that tenth is taken:
 * what one short-lived thread does once is negligible.
 */
#ifndef CUDASPY_COST_SHARE_H
#define CUDASPY_COST_SHARE_H

#include "base/util.h"

struct accounting;
struct thread;

/* What something cost a thread, in all and while its process worked. */
struct thread_cost {
	const struct thread *thread; /* NULL: free */
	double ns, working_ns;
};

/* Start with zeros. */
struct thread_costs {
	struct thread_cost *all; /* an open table by thread, of n_places, a power of two */
	size_t n, n_places;
};

void thread_costs_add(struct thread_costs *costs, const struct thread *thread, double ns,
		      double working_ns);

/* Adds the other ones, times a factor. */
void thread_costs_join(struct thread_costs *sum, const struct thread_costs *more, double factor);
void thread_costs_release(struct thread_costs *costs);

enum cost_share_whole { COST_SHARE_WORKING, COST_SHARE_THREAD, COST_SHARE_ALL };

struct cost_share {
	double share; /* 0 to 1 */
	enum cost_share_whole whole;
	const struct thread *thread; /* that it costs most; NULL: of all threads, or unknown */
	uint64_t cost_ns, whole_ns; /* share is that part of that */
};

/* After the last record. all_ns: what it cost in all, the thread it cost most or not. */
struct cost_share cost_share_of(const struct accounting *a, const struct thread_costs *costs,
				uint64_t all_ns);

/* The same of what it cost while the processes worked alone. */
struct cost_share cost_share_working(const struct accounting *a, const struct thread_costs *costs);

#endif
