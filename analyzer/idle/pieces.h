/*
 * analyzer/idle/pieces.h: what a thread did in a time, kept, so that only the end of that time can be charged: a process
 * knows when its own work on a GPU was done, not when that of the others was who use it, too.
 */
#ifndef CUDASPY_IDLE_PIECES_H
#define CUDASPY_IDLE_PIECES_H

#include "host.h"

/* A part of a thread's time. */
struct idle_piece {
	struct idle_part part;
	uint64_t ns;
	struct idle_span span;
	uint32_t
		n_holder; /* it is a wait: so many pieces behind it are what the holder did meanwhile */
};

/* As host_divide shows them, the last first; behind one that is a wait for a thread what that one did (n_holder). */
struct idle_pieces {
	struct idle_piece *all;
	size_t n, room;
};

/* Of the thread's time [begin_ns, end_ns), in place of what was there. */
void idle_pieces_collect(struct idle_pieces *pieces, const struct accounting *a,
			 const struct host_threads *threads, const struct thread_account *c,
			 uint64_t begin_ns, uint64_t end_ns);

typedef void idle_cut_visit(void *data, const struct idle_piece *piece, uint64_t ns);

/* Of pieces that end at end_ns what lies in [begin_ns, end_ns), as host_divide would have shown it but for rounding. */
void idle_pieces_cut(const struct idle_piece *all, size_t n, uint64_t begin_ns, uint64_t end_ns,
		     idle_cut_visit *visit, void *data);

/* The last ns of the piece are a part of the sum: its holder, and what that one did. */
void idle_pieces_follow(const struct idle_sums *sums, struct idle_sum *sum,
			const struct idle_piece *piece, uint64_t ns);

/* Their stacks are needed so many times more (idle_part_hold). Returns whether there are any. */
bool idle_pieces_hold(const struct idle_piece *all, size_t n, int by);

#endif
