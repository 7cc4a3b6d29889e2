/*
 * analyzer/idle/samples.h: times between calls, divided by the samples of their place. How long a thread was between two calls
 * is measured, where it was meanwhile is sampled: the sum of all times between calls at one place is divided as the samples
 * are that fell into them. Long gaps are divided by their own samples (host.c), and neither their time nor their samples count
 * here.
 */
#ifndef CUDASPY_IDLE_SAMPLES_H
#define CUDASPY_IDLE_SAMPLES_H

#include "host.h"

/* Where threads were in the gaps of a place. */
struct sample_pool {
	struct idle_sum_key key;
	struct sample_share {
		const struct stack *place; /* a sample at it; NULL: unknown */
		uint32_t code,
			line; /* of Python, by which places are told apart; else by the address */
		uint64_t address;
		uint32_t holder; /* of the GIL */
		uint16_t state; /* SPY_SAMPLE_GC, SPY_SAMPLE_GIL or neither */
		enum idle_cause work; /* by its library; IDLE_CAUSE_COUNT: unknown */
		uint64_t weight_us, lead_us; /* of all; of `place` before others of the line */
	} * shares; /* owned */
	size_t n_shares;
	uint64_t weight_us;
	UT_hash_handle hh;
};

static inline uint64_t idle_owner_thread(const struct thread *thread)
{
	return thread->index;
}

struct sample_pools {
	struct sample_pool *all;
};

#define SAMPLE_POOLS_MOST 65536
#define SAMPLES_SPEAK_FOR 10 /* times the time that they stand for */
#define SAMPLE_SHARES_MOST 1024 /* of a pool; the places of further samples are unknown */

/* A call of the thread has been accounted for, and is the last in its account's ring: of the samples before it is known now
 * in which gap they were. */
void samples_pool(struct sample_pools *pools, const struct accounting *a, struct host_thread *h,
		  const struct thread_account *c);

/* After the last record: gives what sums have of each place to where the samples were. */
void samples_divide(const struct sample_pools *pools, struct idle_sums *sums);

/* After the last record: a time between calls that no sample has placed yet gets the place where the thread was most often in
 * all such times. */
void samples_place(const struct sample_pools *pools, struct idle_part *part);

/* Before and behind the working phase of a process no time between calls is divided. Samples there are of the thread as such. */
enum samples_around { SAMPLES_BEFORE, SAMPLES_BEHIND, SAMPLES_AROUND_COUNT };

void samples_pool_around(struct sample_pools *pools, const struct thread *thread,
			 enum samples_around where, const struct host_sample *sample);

/* Where the thread was most often there while it ran, or while it was blocked: a function of the program. */
struct samples_place {
	uint64_t all_us, us; /* what its samples there stand for, and those in that function */
	const struct stack *place; /* a line of it; NULL: unknown */
	uint16_t state; /* of that */
};

struct samples_place samples_place_around(const struct sample_pools *pools,
					  const struct thread *thread, enum samples_around where,
					  bool ran);

/* Parts of a set have other processes, and numbers of their own for threads. */
void samples_join(struct sample_pools *whole, struct sample_pools *part,
		  const struct model *of_part);

void samples_release(struct sample_pools *pools);

#endif
