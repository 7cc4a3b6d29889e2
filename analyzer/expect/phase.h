/*
 * analyzer/expect/phase.h: the phase in which each process works: the stretch of time in which its
 * repeated call sites recur. What comes before is start-up, what comes after is shut-down: how long
 * they take depends on other things than how long the program works.
 *
 * The first reading shows all calls, run of streams by run of streams. Of each call site some times
 * are kept, evenly apart in its calls. A site that was called eight times or more recurs from its first call
 * to its last one, but for a few calls at either end that are far from the rest: those of a site
 * that the start-up has in common with the work. Sites vote for their stretch, the more the longer
 * and the more frequent they are. The phase reaches from the first to the last moment that has half
 * as many votes as the moment that has most. If there are no such sites, or it is next to nothing
 * of the process's time, the phase is the whole. There the longest time without calls before it does
 * not count, nor, if it lasts ten seconds or more, the longest one after it: a program may wait for hours until its work comes.
 *
 * The phase has steps: as many as the count of calls that most of its sites have, or a multiple of
 * it. A loop's body has places that are called once in each turn, and others some times.
 */
#ifndef CUDASPY_PHASE_H
#define CUDASPY_PHASE_H

#include "trace/record.h"

struct phase {
	uint64_t begin_ns, end_ns;
	/* Of its steps the mean length, and how often one hands work to a GPU; 0: unknown. */
	double step_ns, step_work;
	bool steps_sure; /* most places have as many calls in each */
	bool found; /* else they mean all of the process's time */
	bool cut; /* to the time that a report is limited to: filter.h */
};

#define PHASE_SAMPLES 16

struct phase_site {
	uint64_t key; /* return address and function; 0: free */
	uint64_t count;
	uint64_t first, last; /* times of calls, in cycles */
	uint64_t stride, next; /* calls from one sample to the next, and until the next one */
	uint32_t n_samples;
	uint8_t event; /* of its first record */
	uint64_t samples[PHASE_SAMPLES];
};

struct phases {
	struct phase *all; /* by process */
	size_t n;
	const struct trace_set *set;
	/* Of the process in hand: */
	struct phase_site *sites; /* an open table of n_places, a power of two */
	size_t n_sites, n_places;
	uint64_t first, last;
	uint64_t longest, longest_at; /* of the longest call, and when that ended; in cycles */
};

void phases_init(struct phases *p, const struct trace_set *set);
void phases_release(struct phases *p);

/* For phases_see: the site has come to its next sample; makes a new one's place. */
void phase_sample(struct phase_site *site, uint64_t time);
struct phase_site *phase_add_site(struct phases *p, uint64_t key, uint8_t event);

static inline struct phase_site *phase_place(const struct phases *p, uint64_t key)
{
	/* The product's top bits: no others know of the function, which is the top of the key. */
	size_t i = hash_mix(key) >> (64 - __builtin_ctzll(p->n_places));

	for (;; i++) {
		struct phase_site *site = &p->sites[i & (p->n_places - 1)];

		if (site->key == key || !site->key)
			return site;
	}
}

/* A call of the application, of the process in hand, that stands for so many. */
static inline void phases_see(struct phases *p, const struct record *record, uint64_t weight)
{
	uint64_t key = (record_return_address(record) | (uint64_t)record->trace_fn << 48) + 1;
	uint64_t time = record_time(record);
	struct phase_site *site = p->n_places ? phase_place(p, key) : NULL;

	if (unlikely(!site) || unlikely(!site->key))
		site = phase_add_site(p, key, record->event);
	if (unlikely(time < site->first))
		site->first = time;
	if (likely(time > site->last))
		site->last = time;
	site->count += weight;
	if (unlikely(record_cycles(record) > p->longest)) {
		p->longest = record_cycles(record);
		p->longest_at = time;
	}
	if (unlikely(site->count >= site->next))
		phase_sample(site, time);
}

/* Adds the sites of the same process that other streams, behind those of `p`, have; `more` is to be released. */
void phases_join(struct phases *p, struct phases *more);

/* What windows of recording say of a process. Begin with zeros. */
struct phase_windows {
	bool dormant; /* recording was before the first window, or is after the last one */
	bool was_up; /* a GPU was there before the first window opened */
	uint64_t opened, closed; /* the first, and the last for good: cycles; 0: none */
};

static inline bool phase_joined(const struct phase_windows *w)
{
	return w->was_up && w->opened;
}

/* Records of the session's stream that say so, in their order. */
void phase_see_window(struct phase_windows *windows, const struct record *record);

/* All streams of a process have been seen. Where a window opened in the middle of a run, or was closed in it, the phase lasts to
 * that: what begins and ends there is the recording, not the work. */
void phases_conclude(struct phases *p, const struct trace *trace,
		     const struct phase_windows *windows);

static inline bool phase_lasts(const struct phase *phase, uint64_t ns)
{
	return ns >= phase->begin_ns && ns <= phase->end_ns;
}

/* Is the time in the phase of the process? */
static inline bool phase_has(const struct phases *p, size_t process, uint64_t ns)
{
	return phase_lasts(&p->all[process], ns);
}

#endif
