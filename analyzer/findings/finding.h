/*
 * analyzer/findings/finding.h: problems, as cudaspy tells them: one cause at one place of the
 * program, what it cost, and what its cure would gain.
 *
 * Sites of several processes at the same place (site.h) become one finding. A nanosecond counts for
 * one finding of calls only; a detector that looks at the whole run says of its findings that they
 * overlap with those.
 */
#ifndef CUDASPY_FINDING_H
#define CUDASPY_FINDING_H

#include "python_lines.h"
#include "recurrence.h"
#include "base/util.h"

struct accounting;
struct arena;
struct findings;
struct idle_part;
struct ranks;
struct symbolizer;

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
	uint64_t joined_ns; /* the cost of findings that its cure mends, too */
	uint64_t idle_gpu_ns; /* its second price, if it is known: idle_price.h */
	bool idle_gpu_known;
	bool gain_known, overlaps; /* where the cost is unknown, so is the gain */
	bool unknown; /* a note */
	/* Which thread, where there is no site and the detector knows; and of what that is which
	 * share. */
	struct thread_costs threads;
	struct cost_share cost_share;
};

/* Where the cost is unknown, the most that it may be: for the order only. */
static inline uint64_t cost_ns(const struct cost *cost)
{
	return cost->own_ns + cost->others_ns + cost->joined_ns;
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
	bool ends_all; /* the process can use no GPU any more: before all others */
	bool maybe_harmless; /* the thread may have had nothing better to do than to wait: a note */
	bool once; /* it is done once, however long the program runs: a note */
	bool counted; /* another finding has its cost, and is named: a note */
	bool joined; /* another finding, which its cure mends, too, has its cost: minor */
	bool not_ours; /* others on the host did it, nothing in the program: a note */
};

/* Minor ones of its detector at other places, and what they cost, if together with it that is not
 * minor; it is the costliest of them, and a note. */
struct similar_cases {
	uint64_t count, ns;
	struct cost_share cost_share; /* of all of them together */
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
	bool works; /* no function, and no wait: what the program does between its calls */
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

/* Words of a finding's `what`, and a place behind them. */
struct named_place {
	const char *words;
	/* Code, or else data, of the process at that time; 0: none */
	uint64_t address, variable, ns;
	/* Of a call from there; NULL: none. Without an address: its line of Python is the place. */
	const struct stack *stack;
	bool in_library, whole_library; /* named as text_in_library does */
	const char *file, *function; /* where that is, once it has been looked up; NULL unknown */
	uint64_t line;
};

/* What the place is looked up by: set by conclude, where it knows the caller of the function. */
struct finding_lookup {
	uint64_t address, address_ns; /* of the process, at that time; 0: none */
	struct named_place *named; /* behind `what`; they live as long as its text */
	size_t n_named;
	uint64_t variable, variable_ns; /* what they wait for: its name goes behind that; 0: none */
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
	struct similar_cases similar;
	struct finding_place place;
	struct finding_stacks stacks;
	struct finding_lookup lookup;
	struct gate_result gate;
};

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

/* For conclude: these words go behind `what`, and behind them the place, if there is one and it is known. */
void finding_name_place(struct finding *finding, struct arena *texts,
			const struct named_place *more);

/* The same of a wait of the process of `finding`, at that address and time, with that stack (NULL: none): behind `at` stands the line of Python, behind `in` the
 * place in the program. */
void finding_name_wait(struct finding *finding, struct arena *texts, const char *at, const char *in,
		       uint64_t address, uint64_t ns, const struct stack *stack);

/* Costs too little to speak of. */
bool finding_minor(const struct finding *f);

/* Its cure certainly gives back so much, or it is so wrong, that something should be done: no note,
 * and not minor. */
bool finding_problem(const struct finding *f);

/* It costs much, and its cure gives next to nothing of it back: a note. */
bool finding_gains_little(const struct finding *f);

enum severity finding_severity(const struct finding *f);

/* What is at cost_share in it. */
struct cost_share finding_cost_share(const struct accounting *a, const struct finding *f);

/* It costs so much, all of which its cure gives back at most. */
static inline void finding_set_cost(struct finding *f, uint64_t ns)
{
	f->cost.own_ns = f->cost.gain_high_ns = ns;
	f->cost.gain_known = true;
}

/* Of findings whose costs are added up: what the cure of each would give back of them. */
void finding_add_gains(struct thread_costs *sum, const struct finding *f);

/* Is a time too little to speak of, if it is that share of a thread's time? */
bool finding_little(uint64_t ns, double share);

/* From this share of a thread's time on its waits for other threads are a finding: of all of it, and a problem of the working
 * phase. */
#define STALL_LEAST_SHARE 0.01

#endif
