/*
 * analyzer/findings/observed.h: a call as detectors judge it: what is known of it, and their judgement.
 * Asked by detectors, and by the sites that take judged calls up (sites.c), while records go by.
 */
#ifndef CUDASPY_OBSERVED_H
#define CUDASPY_OBSERVED_H

#include "blame/observer.h"

struct claim;

/* Operations outstanding of those the call may wait for, when it began: at most; 0 is certain.
 * UINT64_MAX: unknown. */
uint64_t observed_awaited(const struct observed *o);

/* Operations outstanding on the call's device when it began, in whatever stream: at most. */
uint64_t observed_outstanding(const struct observed *o);

/* Is nothing left to do when the call has waited: for any thread on its device, for its own thread
 * on others? */
bool observed_ends(const struct observed *o);

/* May the host see results when the call has waited that it did not see before: by copies and the
 * like since its thread's last wait, or outstanding on the device? Of memory that both see it is
 * unknown. */
bool observed_host_visible(const struct observed *o);

/* Launches and copies that the process has handed to that device. */
uint64_t observed_handed_over(const struct observed *o, uint8_t device);

/* Is all that the stream had to do when the claimed call ended waited for by this later one of its
 * thread? */
bool observed_covers(const struct observed *o, uint64_t stream, const struct claim *claim);

/* Was nothing handed to the device while the call lasted? only: the stream that alone had work when
 * it began, for observed_covers; 0: several had, or none. */
bool observed_nothing_submitted(const struct observed *o, uint64_t *only);

/* Does the call wait for the GPU, and is it made for that? */
bool observed_means_to_wait(const struct observed *o);

/* Launches and copies of the process before it. */
uint64_t observed_submissions(const struct observed *o);

/* Has the process managed memory, in which the host sees what the GPU writes? */
bool observed_host_sees(const struct observed *o);

/* Does CUDA or a GPU start up, or end, in the call or inside of it? */
bool observed_starts_up(const struct observed *o);

/* Of a call that may load code, which takes what the code takes: did it take far longer than all
 * those that had nothing to wait for, and were they enough to say so? */
bool observed_is_no_loading(const struct observed *o);

/* What a call of another size or kind of memory costs, by profile or trace; false if unknown. */
bool observed_class(const struct observed *o, uint64_t key, uint64_t *expected_ns);

/* A detector's judgement of a call. */
struct verdict {
	uint64_t cost_ns; /* of the call's time, what the problem took from its own thread */
	/* What of it the cure would give back, at least and at most. */
	uint64_t gain_low_ns, gain_high_ns;
	/* what the cure's own call takes: it comes off the sum of the least gains */
	uint64_t instead_ns;
	/* tells apart what should not be one finding; the detector's own numbers */
	uint32_t variant;
	uint64_t tally; /* whatever the detector counts: summed up in the site */
	bool open; /* settle (detector.h) decides, at the thread's next calls */
	uint64_t mark; /* what the detector wants to know then */
	bool alone; /* what other threads wait for such a call is not the problem's */
	/* Of calls right before it that belong to its case: how many, how long, of how much. */
	uint64_t earlier, earlier_ns, earlier_bytes;
};

/* A call that a detector wants, as its site takes it up: at once, or when it is settled. */
struct claim {
	struct site *site;
	struct verdict verdict;
	struct thread *thread;
	uint8_t device;
	bool failed;
	const struct phase *phase; /* its process's */
	uint64_t begin_ns, end_ns, hidden_ns, bytes;
	uint64_t submissions, progress_calls; /* as in struct site */
	const struct stack *stack; /* NULL: none */
	bool outlier; /* site_stacks.h */
	const char *kernel; /* mangled name; NULL: none, or unknown */
	struct range_name *range; /* innermost one of the program's, as shown; NULL: none */
	/* What its thread did since, while it is open: outside of CUDA, and in calls that are no
	 * cases of the same detector, but not while they waited for the GPU. */
	uint64_t outside_ns, inside_ns;
	uint64_t seen_ns; /* until then */
	/* of outside_ns, what the recorder may have taken to look closer at long calls */
	uint64_t looks_ns;
};

/* What its thread did since, in and outside of calls. */
static inline uint64_t claim_between_ns(const struct claim *claim)
{
	return claim->outside_ns + claim->inside_ns;
}

/* Its thread then waits for the same work, in any case: without the hidden wait in the call it
 * would have been there earlier, and waited. It gains what it did in between. */
void claim_waits_anyway(const struct claim *claim, struct verdict *v);

#endif
