/*
 * analyzer/idle/host.h: what threads that make CUDA calls did between two of them: on a CPU, ready
 * but not running, waiting in the C library and for what. The records of waits and of the
 * scheduler's account come before the call that ends the gap; what no record explains was on a CPU.
 */
#ifndef CUDASPY_IDLE_HOST_H
#define CUDASPY_IDLE_HOST_H

#include "account/account.h"
#include "causes.h"
#include "loops.h"
#include "progress.h"

/* A part of a thread's time. Equal parts are those of one cause at one place. */
struct idle_part {
	enum idle_cause cause;
	uint64_t address; /* of a wait: who called; else return address of the call; 0 unknown */
	uint32_t fn; /* the call that it was, or that came behind; NO_FUNCTION: a wait */
	uint32_t fn_before; /* the call before a time on a CPU; NO_FUNCTION unknown */
	uint64_t address_before;
	uint32_t holder; /* thread that had the lock, or was to end; 0 unknown */
	/* Of a wait for a thread that is not known: another one of the program that ran meanwhile, and where; 0, NULL: unknown. */
	uint32_t meanwhile_tid;
	const struct stack *meanwhile;
	/* Of a wait for a lock, or a function on the host: its address; 0 unknown. */
	uint64_t object;
	const struct thread *thread; /* whose time it is */
	const struct stack *stack; /* of the wait, the call, or the call behind; NULL: none */
	const struct stack *stack_before; /* of the call before; NULL: none */
	uint64_t at_ns; /* when it began */
	uint64_t
		compiler; /* who loaded what was compiled meanwhile: its return address; 0: unknown */
};

/* Of a part that is due to a function on the host: its address, to be looked up as if it were a return address. */
static inline uint64_t idle_function_address(const struct idle_part *part)
{
	return part->object + 1;
}

/* What a thread did for which others waited: it had their lock, or was to end. */
/* Threads that are told apart at one place; the last stands for all others, too. */
#define IDLE_HOLDERS 8

struct idle_holder {
	uint32_t tid; /* of the longest wait */
	struct {
		uint32_t tid; /* 0: others */
		uint64_t ns, waits;
	} by[IDLE_HOLDERS];
	uint64_t tid_ns, ns[IDLE_CAUSE_COUNT], longest_ns;
	struct idle_part longest;
};

/* A thread that only hands work over has a call more often than that: it takes 5 to 50 us for each, from Python, too. */
#define IDLE_LONG_NS 250000

#define PROGRESS_UNIT_NS 1000000

/* Parts at one place, summed. */
struct idle_sum {
	struct idle_sum_key {
		uint64_t owner;
		uint64_t address;
		uint32_t process, cause, code,
			line; /* the last two: the line of Python that is the place (python_line) */
	} key;
	const struct process *process;
	struct reading_position created; /* when it came up */
	struct idle_part longest;
	uint64_t ns, count, longest_ns; /* of one time between two calls, one wait, one call: */
	uint64_t last_at_ns, last_ns; /* when the last one began, and what it has of it so far */
	uint64_t long_ns; /* of ns: in times of IDLE_LONG_NS 250000or more */
	uint64_t priced_ns; /* of a GPU's: what findings have of it (findings/idle_price.h) */
	/* Of waits for the GIL: who had it most often when samples were taken, and where that was; NULL: unknown. */
	uint32_t gil_holder, meanwhile_tid;
	const struct stack *gil_held_at;
	struct idle_holder *holder; /* of waits for a thread that is known; NULL: none; owned */
	/* Of other waits for threads: where another one ran meanwhile, in most of their time (majority_moves); tid 0: several. */
	const struct stack *meanwhile; /* NULL: unknown */
	uint64_t meanwhile_lead_ns;
	struct progress *
		progress; /* by time, in PROGRESS_UNIT_NS since the phase began; NULL: unknown, or in calls; owned */
	UT_hash_handle hh;
};

#define IDLE_SUMS_RECENT_BITS 8

/* All sums of all owners: GPUs and threads. */
struct idle_sums {
	struct idle_sum *by_key;
	struct idle_sum
		*recent[1 << IDLE_SUMS_RECENT_BITS]; /* found last, by some bits of the key */
	bool holds; /* other threads forget stacks that nobody needs: those of longest parts are held */
	const struct phases *phases; /* NULL: unknown */
};

#define IDLE_SUMS_MOST (1u << 16) /* are told apart; then places are not */

/* The place of a part; idle_sums_add makes a sum of it. */
struct idle_sum_key idle_sum_key_of(uint64_t owner, const struct process *process,
				    const struct idle_part *part);

/* Did samples find the thread in a line of the program's own that calls no library? Between calls without one the line is the
 * next call's. */
bool idle_sum_is_own_python(const struct idle_sum *sum);

static inline bool idle_sum_key_same(const struct idle_sum_key *a, const struct idle_sum_key *b)
{
	return a->address == b->address && a->owner == b->owner && a->cause == b->cause &&
	       a->process == b->process && a->code == b->code && a->line == b->line;
}

/* A part shown for all of its place: where it has no stack, that of another one there shows as well how the program comes to
 * it. Stacks are a sample; those with Python are places of their own. Returns whether it was of use. */
bool idle_part_borrow(struct idle_part *part, const struct idle_part *from);

/* The key's place in a table of 2^bits that were found last. The top bits: those below do not depend on the owner, nor on
 * the cause. */
static inline size_t idle_sum_key_place(const struct idle_sum_key *key, unsigned int bits)
{
	return hash_mix(key->address ^ key->owner << 40 ^ (uint64_t)key->cause << 56 ^ key->line) >>
	       (64 - bits);
}

struct idle_sum *idle_sums_add(struct idle_sums *sums, uint64_t owner,
			       const struct process *process, const struct idle_part *part,
			       uint64_t ns);
/* The same for time that another sum has had: as often, and no part longer, in proportion. */
struct idle_sum *idle_sums_add_of(struct idle_sums *sums, uint64_t owner,
				  const struct idle_part *part, uint64_t ns,
				  const struct idle_sum *from);
void idle_sums_release(struct idle_sums *sums);

/* Of a thread the last so many are kept. */
#define HOST_WAITS 64
#define HOST_GAPS 16
#define HOST_KNOWN 16

/* A ring that begins small, for most threads have few of anything: room for one more behind n. Returns
 * it, moved or not; entry i lies at i % *size. most: 4 times a power of 4. */
void *ring_grow(void *ring, size_t *size, uint64_t n, size_t most, size_t bytes);

struct host_wait {
	uint64_t begin_ns, end_ns, ns; /* several in a row: ns is their sum */
	struct idle_part part;
};

/* Of a gap that ended with a call: what the scheduler says of it. */
struct host_gap {
	uint64_t end_ns, not_running_ns, blocked_ns;
};

/* The sampler has looked where the thread is. */
struct host_sample {
	uint64_t ns, weight_us;
	const struct stack *place; /* NULL: unknown */
	uint16_t state; /* enum spy_sample_state, or-ed */
	/* Of a wait for the GIL: the thread that had it, 0 unknown, and where that was; NULL: unknown. */
	uint32_t holder;
	const struct stack *held_at;
};

#define HOST_SAMPLES 1024
/* A time without a call that is so long is divided by the samples in it; shorter ones by those in all of their place. */
#define HOST_LONG_GAP_NS 30000000

#define HOST_BRIEF_NS 1000000

/* Between its calls, a thread. The arrays are rings. */
struct host_thread {
	struct host_wait *waits; /* HOST_WAITS at most */
	struct host_gap *gaps; /* HOST_GAPS at most */
	struct host_sample *samples; /* HOST_SAMPLES at most */
	size_t waits_size, gaps_size, samples_size;
	uint64_t n_waits, n_gaps, n_samples;
	uint64_t n_pooled; /* of the samples: what was going on then is known (samples.c) */
	bool in_python; /* its stacks have frames in Python */
	/* What waits without a stack are taken for: as the last one with a stack there. */
	struct host_known {
		uint64_t address;
		uint32_t kind;
		enum idle_cause cause;
	} * known; /* HOST_KNOWN at most */
	size_t known_size;
	uint64_t n_known;
	/* Of the working phase, so far. */
	uint64_t seen_ns, seen_in_calls_ns; /* until when, and all its calls by then */
	uint64_t outside_ns, in_calls_ns;
	/* Of outside_ns: in times between two calls of less than HOST_BRIEF_NS. */
	uint64_t brief_ns;
	/* Of in_calls_ns: waits for GPUs; and all of them until seen_ns. */
	uint64_t gpu_ns, seen_gpu_ns;
	uint64_t loading_ns; /* of in_calls_ns: in calls that load or unload code */
	uint64_t
		waited_ns; /* after the last record: of outside_ns, for other threads of the program */
	uint64_t queried_ns; /* of outside_ns: it asked over and over whether a GPU is done */
	/* busy.c: the last look at the scheduler's account, and all calls by then; in the working phase, ready and on no
	 * CPU while it may have been in a call, at most; waits for a GPU since that look. */
	uint64_t looked_ns, looked_in_calls_ns, lacked_ns, unsure_ns;
	struct progress_clock *
		clock; /* of calls by which it goes on (recent_ops.h); NULL: it has made few; owned */
	struct loops *loops; /* NULL: it has not waited for a GPU for long; owned */
};

struct host_threads {
	struct host_thread **all; /* by thread index; NULL: nothing known */
	size_t n;
};

struct host_thread *host_thread_get(struct host_threads *threads, const struct thread *thread);
const struct host_thread *host_thread_find(const struct host_threads *threads,
					   const struct thread *thread);
void host_threads_release(struct host_threads *threads);

/* A record of a wait between calls. threads: all, for what others did meanwhile. */
void host_see_wait(const struct host_threads *threads, struct host_thread *h,
		   const struct record *record);

/* A sample of the thread. */
void host_see_sample(struct host_thread *h, const struct host_sample *sample);

/* Does the sample say something of time that no record speaks of? Most waits have records of their own. */
bool host_sample_counts(const struct host_thread *h, const struct host_sample *sample);

/* A time between calls that no record of a wait speaks of, as it is told where no sample says more. */
struct idle_part host_gap_part(const struct accounting *a, const struct process *process,
			       const struct host_thread *h, const struct completed_call *before,
			       const struct completed_call *behind, uint64_t begin_ns);

/* The same where a sample has found the thread. The calls on both sides of it stay known. */
struct idle_part host_sampled_part(const struct idle_part *part, const struct stack *place,
				   uint16_t state);

/* The scheduler's account of the time before a call begins. c: with the call before it. */
void host_see_gap(struct host_thread *h, const struct thread_account *c,
		  const struct record *record);

/* Does the function load or unload code, by itself and not as part of a launch? */
bool host_loads_code(const struct accounting *a, uint32_t fn);

/* What the time of a thread between two calls is that no record speaks of. */
enum idle_cause host_cpu_cause(const struct accounting *a, const struct process *process,
			       const struct host_thread *h);

/*
 * A part has been added to the sum: if it was a wait for a thread that makes CUDA calls, what did that one meanwhile? The
 * chain ends there. False: nothing of the sum is another.
 */
bool idle_sum_follow(const struct accounting *a, const struct host_threads *threads,
		     struct idle_sum *sum, const struct idle_part *part, uint64_t ns);

/* Where a part lies that is shown: evenly in that time, or (rest) in what the waits shown before it leave of it. */
struct idle_span {
	uint64_t begin_ns, end_ns;
	bool rest;
};

typedef void idle_visit(void *data, const struct idle_part *part, uint64_t ns);

/* The same in two: the holder of such a part of the sum, which may be known by its number only; and what it did. */
struct idle_holder *idle_sum_holder(struct idle_sum *sum, const struct idle_part *part,
				    uint64_t ns);
void idle_holder_add(struct idle_holder *holder, const struct idle_part *part, uint64_t ns,
		     bool holds);

/* Other threads than the one that reads the process's records need a part's stacks: so many times more. */
void idle_part_hold(const struct idle_part *part, int by);

/* Shows what the holder did meanwhile, as host_divide_spans, if the part is such a wait and that thread is known. */
void host_divide_holder(const struct accounting *a, const struct host_threads *threads,
			const struct process *process, const struct idle_part *part, uint64_t ns,
			struct idle_span *span, idle_visit *visit, void *data);

/*
 * Divides a thread's time [begin_ns, end_ns) and shows each part, the last first, waits between two calls before what else
 * was there: its sums are exactly end_ns - begin_ns. The last calls of the thread are known (account.h); what was before is
 * unexplained.
 */
void host_divide(const struct accounting *a, const struct host_thread *h,
		 const struct thread_account *c, uint64_t begin_ns, uint64_t end_ns,
		 idle_visit *visit, void *data);

/* The same; *span is that of the part that is shown just now. */
void host_divide_spans(const struct accounting *a, const struct host_thread *h,
		       const struct thread_account *c, uint64_t begin_ns, uint64_t end_ns,
		       struct idle_span *span, idle_visit *visit, void *data);

/*
 * Divides the time [begin_ns, end_ns) that passes in a call of the thread which submits an operation, until that one
 * begins on the GPU: what the call waited for but for GPUs, and the rest is submitting.
 */
void host_divide_submission(const struct accounting *a, const struct thread_account *c,
			    uint64_t begin_ns, uint64_t end_ns, idle_visit *visit, void *data);

#endif
