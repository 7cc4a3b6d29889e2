/*
 * analyzer/idle/replay.h: what GPUs did that several parts of a set use, and how those of different parts compare: from what
 * the parts wrote down (blame/journal.h), in the order of positions, while they are read. By one thread at a time.
 */
#ifndef CUDASPY_IDLE_REPLAY_H
#define CUDASPY_IDLE_REPLAY_H

#include "idle.h"
#include "blame/journal.h"
#include "model/join.h"

struct idle_replay {
	/* All GPUs so far: those of one part as far as they are compared with others, those of several with all that is
	 * known of them. */
	struct idle idle;
	size_t *part_of; /* of each: part + 1; 0: several */
	struct idle_replay_part {
		uint32_t *gpus; /* the number here of each of its GPUs */
		size_t n_gpus;
		struct idle_ranges ranges; /* of GPUs that other parts use, too */
	} * parts;
	size_t n;
};

void idle_replay_init(struct idle_replay *r, struct accounting *accounts, size_t n_parts);
void idle_replay_release(struct idle_replay *r);

/* The next entry of a part's journal. */
void idle_replay(struct idle_replay *r, size_t part, const struct journal *journal,
		 const struct journal_entry *entry);

/* Behind the accounting's join: the parts become one; what was replayed is the whole's from here on. */
bool idle_join(struct idle *whole, struct idle *const *parts, struct join *join,
	       struct idle_replay *r);

#endif
