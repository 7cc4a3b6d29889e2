/*
 * analyzer/account/ranges.h: the program's own ranges (NVTX): which are open in a thread, and what
 * its calls did meanwhile. Called by the main reading for each record of a range.
 *
 * Nothing is done for a call: when a range begins or ends, the thread's sums of calls then are
 * compared with those at the range's begin. A range that any thread may end belongs to the thread
 * that began it.
 */
#ifndef CUDASPY_RANGES_H
#define CUDASPY_RANGES_H

#include "trace/listener.h"
#include "model/model.h"

/* What a thread's calls of the application have done so far. */
struct range_seen {
	uint64_t ns; /* until when */
	uint64_t calls, calls_ns;
	uint64_t lost_ns; /* of calls_ns; of that, for the GPU (hidden) and for locks: */
	uint64_t gpu_ns; /* of calls_ns: all waits for the GPU */
	uint64_t lock_ns;
	uint64_t outside_ns; /* waits between calls, in the C library */
};

/* All ranges of a name: from begin to end, without those inside another one of the same name; and
 * what of that was in no range inside of them. A range that a library announces about itself is inside of none and around
 * none but its own kind: it is no place of the program's. */
struct range_sum {
	uint64_t count, marks, longest_ns;
	uint64_t unended; /* of count: open when the trace ended */
	uint64_t left_open; /* a library's, not of count: it did not end them */
	struct range_seen all, own; /* `ns` is a duration */
};

struct open_range {
	struct range_name *name;
	uint64_t since_ns;
	uint64_t id; /* of one that any thread may end; 0: pushed */
	uint32_t number; /* of the name, in the process */
	const struct range_number *named; /* NULL: the process has not told the name */
	bool again; /* inside another one of the same name */
	struct range_seen at; /* the thread's sums when it began */
	struct range_seen own; /* of a library's, so far: nothing of it counts unless it ends */
};

#define RANGES_OPEN_MOST 64 /* of a thread */
#define RANGES_STARTED_MOST (1u << 16) /* of all, that any thread may end */

struct range_thread {
	const struct thread *thread;
	struct open_range *open; /* the innermost last */
	size_t n;
	uint64_t beyond; /* pushes that were one too many */
	size_t wanted; /* of the open ones, those that --range asks for */
	struct range_seen last; /* when the innermost one changed last */
	uint64_t outside_ns; /* waits between calls so far */
};

/* One that any thread may end. */
struct started_range {
	struct started_key {
		uint64_t id;
		uint64_t process;
	} key;
	struct thread *thread;
	size_t stream; /* index of that thread's */
	UT_hash_handle hh;
};

struct ranges {
	struct model *model;
	struct range_sum *sums; /* by index of the name */
	size_t n_sums;
	struct range_thread **threads; /* by thread index; NULL: none so far */
	size_t n_threads;
	struct started_range *started;
	size_t most_started; /* there ever were */
	const struct listener *listener; /* sees those that end; NULL: none */
	uint64_t lost; /* ranges that were not followed, and ends of none */
	/* --range: a pattern for names; NULL: all calls count. */
	const char *only;
};

void ranges_init(struct ranges *r, struct model *model);
void ranges_release(struct ranges *r);
/* Whose sums a record of a range is about: the writer's, or of a range that ends, of the thread that
 * began it. stream: the index of that thread's. NULL: of no range that is known. */
struct thread *ranges_owner(const struct ranges *r, const struct record *record, size_t *stream);

/* A record of a range; seen: the owner's sums, as of now. */
void ranges_see(struct ranges *r, const struct record *record, struct thread *owner,
		const struct range_seen *seen);

/* For those who ask only what is open: a record of a range. */
void ranges_follow(struct ranges *r, const struct record *record);

/* After the last record: what is open, ends. */
void ranges_finish(struct ranges *r, const struct thread *thread, const struct range_seen *seen);

/* A wait between two calls of a thread. */
void ranges_see_outside(struct ranges *r, const struct record *record);

static inline const struct range_thread *ranges_thread(const struct ranges *r,
						       const struct thread *thread)
{
	return thread->index < r->n_threads ? r->threads[thread->index] : NULL;
}

/* Is it the library's own business? Who asks for ranges by name (--range) means these, too. */
static inline bool range_is_librarys(const struct ranges *r, const struct range_name *name)
{
	return name->library && !r->only;
}

/* The innermost open one of a library's, or of all others; NULL: none. */
static inline struct open_range *ranges_last(const struct ranges *r, const struct range_thread *t,
					     bool librarys)
{
	for (size_t i = t->n; i; i--)
		if (range_is_librarys(r, t->open[i - 1].name) == librarys)
			return &t->open[i - 1];
	return NULL;
}

/* The innermost range of the program that is open in a thread; NULL: none. */
static inline struct range_name *ranges_innermost(const struct ranges *r,
						  const struct thread *thread)
{
	const struct range_thread *t = ranges_thread(r, thread);
	const struct open_range *range = t ? ranges_last(r, t, false) : NULL;

	return range ? range->name : NULL;
}

/* The same, or its family, as the process has named ranges so far. */
static inline struct range_name *ranges_innermost_shown(const struct ranges *r,
							const struct thread *thread)
{
	const struct range_thread *t = ranges_thread(r, thread);
	const struct open_range *range = t ? ranges_last(r, t, false) : NULL;

	if (!range)
		return NULL;
	return range->named ? range_number_shown(range->named) : range->name;
}

/* Are the thread's calls of now left out? */
static inline bool ranges_leave_out(const struct ranges *r, const struct thread *thread)
{
	const struct range_thread *t;

	if (likely(!r->only))
		return false;
	t = ranges_thread(r, thread);
	return !t || !t->wanted;
}

/* ---- shares of ranges, in what one place of the program did ------------------------------------ */

#define RANGE_SHARES 16

struct range_share {
	struct range_name *name; /* NULL: no range */
	uint64_t count, ns;
};

struct range_shares {
	struct range_share all[RANGE_SHARES];
	size_t n;
	uint64_t other_count, other_ns; /* of names that are more than that */
};

/* name: what it is shown as. */
void range_shares_add(struct range_shares *shares, struct range_name *name, uint64_t count,
		      uint64_t ns);
void range_shares_join(struct range_shares *shares, const struct range_shares *more);

#endif
