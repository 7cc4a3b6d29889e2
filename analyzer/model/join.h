/*
 * analyzer/model/join.h: a set has been read in parts (analyzer/parallel/), and what each stage knows of every part becomes
 * one. A stage's join lies in the file of its struct, or in ..._join.c beside it, which says what becomes of each of the
 * struct's fields; `tests/stages` holds that against the struct. The first refusal ends all joins.
 */
#ifndef CUDASPY_JOIN_H
#define CUDASPY_JOIN_H

#include "model.h"

/* A part, as joins see it. */
struct join_part {
	const struct model *model; /* its threads and names, by the part's own numbers */
	const uint32_t *processes; /* its own */
	size_t n_processes;
	/* What is added to its numbers of calls, waits and worst calls: since the accounting was joined. */
	uint64_t calls_before, waits_before, serials_before;
};

struct join {
	struct join_part *parts;
	size_t n;
	const char *refused; /* why they are worth nothing; NULL: they are not */
	bool threads_joined; /* they are the whole's */
	/* Processes that have to be in one part, as is known only now: by index of the trace. */
	uint32_t conflict[2];
	bool has_conflict;
};

static inline bool join_refuse(struct join *join, const char *why)
{
	if (!join->refused)
		join->refused = why;
	return false;
}

/* Things that came up in parts, to be put in order. */
struct birth {
	struct reading_position at;
	size_t part, number; /* the part's, and the thing's in it */
	void *what;
};

struct creation_order {
	struct birth *all;
	size_t n;
};

/* One more: the part's things are added in their order. */
void creation_order_add(struct creation_order *b, const struct reading_position *at, size_t part,
			void *what);
void creation_order_sort(struct creation_order *b);
void creation_order_release(struct creation_order *b);

/* A name of the part, in the whole; NULL: none. */
static inline struct range_name *join_name(struct range_name *name)
{
	return name && name->into ? name->into : name;
}

/* Threads and names of ranges get the whole's numbers: before all other joins. The whole's model is initialised. */
bool model_join(struct model *whole, struct model *const *parts, struct join *join);

#endif
