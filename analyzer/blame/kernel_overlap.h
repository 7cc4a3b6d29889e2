/*
 * analyzer/blame/kernel_overlap.h: which other threads were in the kernel module. Its locks cannot
 * be watched, but it is one for all threads of a machine, also for those of other processes: a call
 * that is in it longer than such calls are may have waited for any thread with requests in it
 * meanwhile. That is concluded from overlap: it is never measured, and kept separate from what is.
 */
#ifndef CUDASPY_KERNEL_OVERLAP_H
#define CUDASPY_KERNEL_OVERLAP_H

#include "edges.h"
#include "journal.h"

struct accounting;
struct thread_account;
struct completed_call;
struct model;
struct request;
struct stretch;
struct wait;

struct kernel_overlap {
	/* Holders are the other threads in it; waited_ns, by how much longer a waiter's calls were.
	 * All are inferred. */
	struct blame_edges edges;
	struct request *
		ring; /* the last ones of all threads, in the order of their ends; NULL: none yet */
	size_t ring_size; /* a power of two */
	uint64_t requests; /* so far */
	struct stretch *own; /* of the call in hand */
	size_t n_own, own_size;
	struct journal *journal; /* of a part: then all is written there, and the rest is empty */
	/* While journals are replayed, threads have no index yet: by their numbers (thread_account), from 1. */
	const struct thread **numbered;
	size_t n_numbered;
	bool numbers;
};

void kernel_overlap_release(struct kernel_overlap *c);

/* A thread was in the kernel module, for the call in progress. */
void kernel_overlap_add_wait(struct kernel_overlap *c, struct thread_account *account, uint32_t fn,
			     const struct wait *w);

/* Of a divided call: was it in the kernel module for so long that other threads in it are worth a
 * search? */
bool kernel_overlap_is_significant(const struct completed_call *f);

/* Says so, when other threads' requests of the same time have been met, too. account: the thread's. */
void kernel_overlap_find(struct accounting *a, struct thread_account *account,
			 const struct completed_call *f);

/* For the replay of a journal: as if it had been met, or searched for, now. */
void kernel_overlap_replay(struct accounting *a, const struct journal_entry *entry);

/* After that: threads have their indices. */
void kernel_overlap_renumber(struct kernel_overlap *c);

#endif
