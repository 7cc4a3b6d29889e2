/*
 * analyzer/findings/site.h: calls that are cases, by detector and place, until findings are made of them.
 *
 * The accounting shows each call that might be a case to the detectors (detector.h); the first one
 * that wants it gets it. Calls of one detector at one place are a site. Where only what a thread does
 * next tells whether a call is a case, or what its cure would gain, the claim stays open until then.
 * What a call did to other threads is added when their waits have been followed to their roots.
 */
#ifndef CUDASPY_SITE_H
#define CUDASPY_SITE_H

#include "observed.h"
#include "recurrence.h"
#include "site_stacks.h"

#define SITE_SAMPLES 64
#define SITE_KERNELS 4

/* The longest of a site's calls, the first of several: what reports call the worst. */
struct evidence {
	uint64_t begin_ns, duration_ns;
	const struct thread *thread; /* NULL: none */
	uint8_t device;
};

/* Without padding: it is hashed byte by byte. */
struct site_key {
	uint64_t return_address; /* return address, 0 unknown */
	uint32_t process;
	uint32_t epoch; /* how often the object at that address was unloaded before */
	uint32_t fn;
	uint32_t detector; /* row of the table */
	uint32_t variant;
	uint32_t zero;
};

/* Times that work was handed to a GPU between two of a site's calls, and once more (spread.c). */
struct rounds {
	uint64_t count;
	uint64_t submissions; /* of the process, at the site's last call */
	/* all of its calls came when the process had given the GPUs all their work */
	bool at_the_end;
	/* Some, evenly apart: every stride-th, SITE_SAMPLES at most. What the process had handed to
	 * GPUs by then, and when it was. */
	struct round {
		uint64_t submissions, ns;
	} * sampled;
	uint32_t n_sampled, stride;
};

/* What its cases cost. */
struct site_cost {
	uint64_t own_ns, gain_low_ns, gain_high_ns, instead_ns; /* sums of the verdicts */
	double others_ns; /* what other threads waited for these calls, at the root */
	double others_sure_ns; /* of that, in calls that had no work of their own to wait for */
	double cross_ns; /* of others_ns, those of other GPUs */
	struct thread_costs threads; /* to which threads, its own and others */
};

/* So many places are distinguished: a program has not that many. All others are none that is
 * known. */
#define SITES_MOST (1u << 17)

struct site {
	struct site_key key;
	struct reading_position created; /* when it came up */
	uint64_t count, bytes, failed;
	uint64_t total_ns; /* duration of all calls */
	uint64_t hidden_ns; /* of that, hidden waits for the GPU */
	uint64_t tally; /* sum of the verdicts' */
	bool went_on; /* a thread went on working between two of its cases */
	uint64_t progress_calls; /* of the thread of its last call, until then: recent_ops.h */
	uint64_t first_ns, last_ns;
	struct site_cost cost;
	struct rounds rounds;
	struct occasions occasions;
	uint64_t devices; /* a bit for each, those from 63 on share one */
	const char *kernels[SITE_KERNELS]; /* some that were launched, by their mangled names */
	bool more_kernels;
	struct evidence worst;
	struct site_stacks stacks;
	struct range_shares *ranges; /* what its calls in ranges cost; NULL: none was in one */
	const struct thread *last_thread;
	struct thread_set callers; /* the threads of its calls */
	uint64_t threads; /* how many; of sites that became one no fewer */
	struct site *into; /* the one that it became a part of; NULL: none */
	uint64_t joined_total_ns,
		joined_own_ns; /* of its total and own cost, what others were that became parts of it */
	uint64_t idle_gpu_ns; /* GPUs had nothing to do because of it: idle_price.h */
	bool kept; /* a finding has it */
	UT_hash_handle hh;
};

/* The length of the longest call that a stack told of, where it is made: of launches for each kernel. */
struct longest_call {
	struct longest_call_key {
		uint64_t return_address; /* return address */
		const char *kernel; /* the model's name of it; NULL: none, or unknown */
		uint32_t process, fn;
	} key;
	uint64_t longest_ns;
	UT_hash_handle hh;
};

struct findings {
	struct observer observer; /* must be the first */
	struct accounting *accounts;
	struct site *sites, *last;
	struct longest_call *longest_call; /* of which calls stacks told */
	/* Which detectors are shown a call, a bit for each row of the table: one that failed; one
	 * that took long, and any other one, of each contract. */
	uint64_t failures, when_long[SPY_CONTRACT_COUNT], always[SPY_CONTRACT_COUNT];
};

void findings_init(struct findings *f, struct accounting *a);
void findings_release(struct findings *f);

/* The sites of the parts of a set become the whole's, whose threads have their numbers. */
struct join;
bool findings_join(struct findings *whole, struct findings *const *parts, struct join *join);

/* Of calls that are open still, nothing comes after them. Once, after the last record. */
void sites_settle(struct accounting *a);

/* What is at cost_share at a site. */
struct cost_share site_cost_share(const struct accounting *a, const struct site *site);

/* In how many tenths of its process's work the site was called: 10 is all the time. By submissions
 * (launches and copies), for a program may load its data for longer than it works. */
unsigned int site_tenths(const struct accounting *a, const struct site *site);

/* The same, or in how many tenths of the time of the thread, or the threads, that made its calls:
 * whichever are more. A phase with few submissions may be most of the run. */
unsigned int site_spread(const struct accounting *a, const struct site *site);

/* From the first work that the process handed to a GPU to its last call; `only`: of that thread,
 * NULL of all. */
struct span {
	uint64_t begin_ns, end_ns;
};

struct span work_span(const struct accounting *a, size_t process, const struct thread *only);

/* One more. */
void rounds_add(struct rounds *rounds, uint64_t submissions, uint64_t ns);

/* What the cure would give back to the site's own threads, at least. */
static inline uint64_t site_gain_low(const struct site_cost *cost)
{
	return cost->gain_low_ns - min_u64(cost->gain_low_ns, cost->instead_ns);
}

/* Adds one site's calls to another's: they have one cause. */
void site_add(struct site *sum, const struct site *more);

/* Has the thread of the site's last call gone on working after it? */
bool site_went_on(const struct accounting *a, const struct site *site);

/* Part of a sentence: that most of the site's cost would have been waited right behind its calls;
 * else empty. */
const char *site_waits_anyway(const struct site *site);

#endif
