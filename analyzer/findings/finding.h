/*
 * analyzer/findings/finding.h: problems, as cudaspy tells them: one cause at one place of the
 * program, what it cost, and what its cure would gain.
 *
 * The accounting shows each call that might be a case to the detectors (detector.h); the first one
 * that wants it gets it. Calls of one detector at one place are a site; sites of several processes
 * at the same place become one finding. Where only what a thread does next tells whether a call is
 * a case, or what its cure would gain, the claim stays open until then. What a call did to other
 * threads is added when their waits have been followed to their roots. So a nanosecond counts for
 * one finding only; a detector that looks at the whole run says of its findings that they overlap
 * with those.
 */
#ifndef CUDASPY_FINDING_H
#define CUDASPY_FINDING_H

#include "python_lines.h"
#include "recurrence.h"
#include "account/account.h"
#include "symbols/symbolize.h"

struct detector;

struct claim;
struct idle_part;
struct ranks;

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
bool observed_stood_still(const struct observed *o, uint64_t *only);

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
	struct reading_moment born; /* when it came up */
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
	uint64_t idle_gpu_ns; /* GPUs had nothing to do because of it: idle_price.h */
	bool kept; /* a finding has it */
	UT_hash_handle hh;
};

/* COMPARED_NOT: there is no baseline. */
enum compared { COMPARED_NOT, COMPARED_NEW, COMPARED_WORSE, COMPARED_SAME };

enum severity { SEVERITY_PROBLEM, SEVERITY_NOTE, SEVERITY_MINOR };

/* As a report in JSON has them; of COMPARED_NOT NULL. */
extern const char *const compared_keys[];
extern const char *const severity_keys[];

/* Whose calls they are. */
struct origin {
	const struct process *process; /* one of them; NULL: of the whole run */
	const struct host *host; /* of all of them; NULL: of several, or unknown */
	uint32_t processes;
	uint64_t places; /* of the program; where it was costliest is shown */
};

struct cost {
	uint64_t own_ns, others_ns, gain_low_ns, gain_high_ns;
	uint64_t elsewhere_ns; /* of the gain, what the cures of other findings give back, too */
	uint64_t idle_gpu_ns; /* its second price, if it is known: idle_price.h */
	bool idle_gpu_known;
	bool gain_known, overlaps; /* where the cost is unknown, so is the gain */
	bool unknown; /* a note */
	/* Which thread, where there is no site and the detector knows; and of what that is which
	 * share. */
	struct thread_costs threads;
	struct stake stake;
};

/* Where the cost is unknown, the most that it may be: for the order only. */
static inline uint64_t cost_ns(const struct cost *cost)
{
	return cost->own_ns + cost->others_ns;
}

/* For sums. */
static inline uint64_t cost_known_ns(const struct cost *cost)
{
	return cost->unknown ? 0 : cost_ns(cost);
}

/* What the cure would give back, at most; where that is unknown, what it cost. For the order and
 * for gates. */
static inline uint64_t cost_gain_ns(const struct cost *cost)
{
	return cost->gain_known ? cost->gain_high_ns : cost_ns(cost);
}

/* What makes a finding a problem or a note, whatever it costs. */
struct remarks {
	bool shown; /* in text also if it costs nothing to speak of */
	bool wrong; /* the program does not do what it means to: a problem */
	bool perhaps_free; /* the thread may have had nothing better to do than to wait: a note */
	bool once; /* it is done once, however long the program runs: a note */
	bool counted; /* another finding has its cost, and is named: a note */
	bool not_ours; /* others on the host did it, nothing in the program: a note */
};

/* Minor ones of its detector at other places, and what they cost, if together with it that is not
 * minor; it is the costliest of them, and a note. */
struct alike {
	uint64_t count, ns;
	struct stake stake; /* of all of them together */
};

/* Where it is in the program. */
struct finding_place {
	const char *function; /* the CUDA function; NULL: none in particular */
	const char *words; /* where the call is made; NULL: the rest is unknown */
	const char *module, *caller, *file; /* NULL unknown */
	const char *inner; /* compiled into the caller, and called it; NULL: none */
	const char *library; /* NVIDIA's, which makes the calls: its file; NULL: none */
	/* What of the program called a library that makes them: then the caller is that library's function, and
	 * file, line and `inner` are the program's; NULL unknown. */
	const char *library_caller;
	bool elsewhere; /* there is more than one place behind that code; the costliest is told */
	uint64_t offset, line;
};

/* What the stacks of some of its calls tell. */
struct finding_stacks {
	/* The lines of Python it was called in, the costliest first; and how many there are that
	 * make next to nothing of its cost. */
	const struct costly_line *python;
	size_t n_python, n_minor_python;
	bool python_place; /* the costliest is the finding's place */
	const struct site_stack *shown; /* of where most of the cost is made; NULL: none */
};

/* What the place is looked up by: set by conclude, where it knows the caller of the function. */
struct finding_lookup {
	uint64_t address, address_ns; /* of the process, at that time; 0: none */
	uint64_t waiters_address,
		waiters_ns; /* another place, told behind `what`: where others wait for it, what it runs; 0: none */
	uint64_t variable, variable_ns; /* what they wait for: its name goes behind that; 0: none */
	const struct stack *waiters_stack; /* of such a wait; NULL: none */
	const struct stack *const
		*stacks; /* of calls there, where there is no site: SITE_STACKS at most */
	size_t n_stacks;
	bool of_wait; /* between calls: the caller is who waits, and there is no CUDA function */
	bool between; /* the caller is somebody else's code (place_is_between), as far as is known */
};

/* As a gate (gate.h) has judged it. */
struct gate_result {
	const char *suppressed; /* why; NULL: it is not */
	enum compared compared; /* with the baseline */
	uint64_t before_ns; /* what it cost in the baseline; UNKNOWN_NS: unknown, or it is new */
	bool fails; /* the gate, if there is one */
};

/* What is shown. Texts live as long as the report. */
struct finding {
	const struct detector *detector;
	uint32_t variant;
	struct site *site; /* sums and evidence; NULL: of the whole run */
	uint64_t count, bytes;
	const char *what, *fix; /* sentences; the gain is that of `fix` */
	const char *otherwise; /* another cure, with what that one would gain; NULL: none */
	struct origin origin;
	struct cost cost;
	struct remarks remarks;
	struct recurrence recurrence; /* of a site; else unknown */
	struct alike alike;
	struct finding_place place;
	struct finding_stacks stacks;
	struct finding_lookup lookup;
	struct gate_result gate;
};

/* The length of the longest call that a stack told of, where it is made: of launches for each kernel. */
struct told {
	struct told_key {
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
	struct told *told; /* of which calls stacks told */
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

/*
 * After the last record: the findings, the costliest first; `texts` owns what they say, the caller
 * frees the array. Calls made at no known place are a finding, too.
 */
struct finding *findings_conclude(struct findings *f, const struct ranks *ranks,
				  struct symbolizer *symbols, struct arena *texts, size_t *n);
void findings_free(struct finding *findings, size_t n);

/* The call and where it is made, in words; NULL: none in particular. */
const char *finding_where(const struct finding *f, struct arena *texts);

/* For conclude: the place is that of the part, by its stack if it has one. */
void finding_look_up(struct finding *finding, struct arena *texts, const struct idle_part *part);

/* Costs too little to speak of. */
bool finding_minor(const struct finding *f);

/* Its cure certainly gives back so much, or it is so wrong, that something should be done: no note,
 * and not minor. */
bool finding_problem(const struct finding *f);

/* It costs much, and its cure gives next to nothing of it back: a note. */
bool finding_gains_little(const struct finding *f);

enum severity finding_severity(const struct finding *f);

/* What is at stake at a site, or in a finding of the whole run. */
struct stake site_stake(const struct accounting *a, const struct site *site);
struct stake finding_stake(const struct accounting *a, const struct finding *f);

/* Of findings whose costs are added up: the costs of each, or what its cure would give back of
 * them. */
void finding_add_costs(struct thread_costs *sum, const struct finding *f);
void finding_add_gains(struct thread_costs *sum, const struct finding *f);

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

/* Is a time too little to speak of, if it is that share of a thread's time? */
bool finding_little(uint64_t ns, double share);

#endif
