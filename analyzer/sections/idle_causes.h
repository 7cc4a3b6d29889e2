/*
 * analyzer/sections/idle_causes.h: what time was charged to, as a table in a row of another one: cause, place and
 * length, the largest first.
 */
#ifndef CUDASPY_SECTIONS_IDLE_CAUSES_H
#define CUDASPY_SECTIONS_IDLE_CAUSES_H

#include "base/table.h"
#include "idle/idle.h"
#include "symbols/symbolize.h"

/* Of a GPU's idle time; of a thread's time outside CUDA; of what others waited for a rank. */
extern const struct table_kind idle_causes_kind, feeder_causes_kind, rank_causes_kind;

struct idle_writer {
	struct arena *texts;
	const struct idle *idle;
	struct symbolizer *symbols;
	const struct idle_sum **sums; /* all, by owner, cause and place */
	size_t n_sums;
};

void idle_writer_init(struct idle_writer *w, struct arena *texts, const struct idle *idle,
		      struct symbolizer *symbols);
void idle_writer_release(struct idle_writer *w);

/*
 * The causes of an owner (idle.h). Their sum is whole_ns exactly: what rounding leaves goes to the largest. gpu: whose
 * certain part is meant; NULL: all. Waits at a place of which only some have a stack are taken for those in proportion.
 */
const struct table *idle_causes(const struct idle_writer *w, const struct table_kind *kind,
				uint64_t owner, const struct idle_gpu *gpu, uint64_t whole_ns);

/* Such a table in a sentence: the largest causes, with the place of the largest part of each that has one, as parts of
 * whole_ns: "running Python (between a.py:1 and a.py:9) 41 %, asleep 2 %". Empty: no causes. */
const char *idle_causes_words(const struct idle_writer *w, const struct table *causes,
			      uint64_t whole_ns);

/* The largest cause with its place, and its part of whole_ns where that is not all: "waiting inside CUDA for a GPU:
 * train.py:22 in step (93 %)". NULL: no causes. */
const char *idle_causes_largest(const struct idle_writer *w, const struct table *causes,
				uint64_t whole_ns);

/* The place of a part; NULL: unknown. */
const char *idle_part_place(const struct idle_writer *w, const struct process *process,
			    const struct idle_part *part);

#endif
