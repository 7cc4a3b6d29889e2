/*
 * analyzer/account/account.h: where the time of each call of the application went. Calls are seen by blame/calls.c.
 *
 * A call's duration is the sum of the buckets below, exactly; none is negative. What the probes saw
 * (locks, ioctl, not running) is measured; the rest is divided by what such a call costs when
 * nothing is in its way (expect.h) and by what it may wait for on the GPU (gpu_wait.h). Waits
 * inside the calls that a call makes are its own.
 */
#ifndef CUDASPY_ACCOUNT_H
#define CUDASPY_ACCOUNT_H

#include "buckets.h"
#include "callstats.h"
#include "cpu_pressure.h"
#include "history.h"
#include "peers.h"
#include "ranges.h"
#include "recent_ops.h"
#include "waits.h"
#include "work.h"
#include "expect/expect.h"
#include "trace/listener.h"

/* The calls of one function by one thread, or any other sum. */
struct account {
	uint64_t calls, total_ns;
	/* their own work, had each cost what its class does; UNKNOWN_NS: unknown for one of them */
	uint64_t expected_ns;
	/* of what is unexplained: asleep in the C library, for no lock, the reason unknown */
	uint64_t asleep_ns;
	uint64_t maybe_ns; /* of what was lost: in calls that had work of their own to wait for */
	/* of the kernel module's bucket: what such calls take there, and not lost */
	uint64_t kernel_ns;
	/* As the program started (work_starting): calls that other threads of the same GPU, and of
	 * another one, stalled. */
	uint64_t starting_stalls[2];
	uint64_t bucket_ns[BUCKET_COUNT];
};

void account_add(struct account *sum, const struct account *more);

/* What was lost: everything but own work, in the kernel module too, the loading of code and the
 * waits that the call is made for. Of one bucket, and of all. */
uint64_t account_lost_by(const struct account *a, enum bucket bucket);
uint64_t account_lost(const struct account *a);

/* A call that has returned. */
struct completed_call {
	struct thread *thread;
	uint32_t fn;
	uint8_t device;
	bool divided; /* else all of it was its own work, and bucket_ns is not valid */
	bool fast; /* it went the fast path: the time before it is one of the thread's short gaps */
	bool awaits; /* it may have had to wait for work of its own on the GPU, in any case */
	uint64_t begin_ns, end_ns;
	uint64_t expected_ns; /* UNKNOWN_NS: unknown */
	uint64_t return_address; /* return address, 0 unknown */
	uint64_t stream; /* its handle; 0: none */
	const struct stack *stack; /* NULL: none was taken */
	struct site *site; /* of the problem it is a case of; NULL none */
	/* The rest is only looked at if it is divided. */
	struct wait *waits; /* in the order of time; owned */
	size_t n_waits;
	uint64_t kernel_ns; /* as in struct account */
	/* of its time in the kernel module, had its thread a process of its own */
	uint64_t avoidable_ns;
	uint64_t bucket_ns[BUCKET_COUNT];
};

static inline uint64_t completed_ns(const struct completed_call *f, enum bucket bucket)
{
	if (f->divided)
		return f->bucket_ns[bucket];
	return bucket == BUCKET_OWN ? f->end_ns - f->begin_ns : 0;
}

/* Of a divided call: as account_lost. */
static inline uint64_t completed_lost(const struct completed_call *f)
{
	return f->end_ns - f->begin_ns - f->bucket_ns[BUCKET_OWN] - f->bucket_ns[BUCKET_LOADING] -
	       f->bucket_ns[BUCKET_GPU_INTENDED] - f->kernel_ns;
}

#define COMPLETED_KEPT 64 /* calls of a thread that are remembered, for those they held up */
#define COMPLETED_KEPT_GPU 1024 /* … and for operations that begin long after */

struct claim;

/* Where the account of a function is: accounts[number - 1]; 0: an empty place. */
struct account_place {
	uint32_t fn, number;
};

/* The calls of a thread that are remembered one by one: the last ones. */
struct call_ring {
	struct completed_call *calls; /* by number modulo size */
	size_t size; /* a power of two, `most` at most */
	size_t most; /* COMPLETED_KEPT, or with GPU times COMPLETED_KEPT_GPU */
	uint64_t n; /* that have completed so far */
};

/* The accounts of a thread by function: an open table of n_places, a power of two; a thread calls a
 * few of a thousand functions. */
struct function_accounts {
	struct account_place *places;
	uint32_t n_places, n;
	struct account *all; /* n of them */
	uint32_t *fns; /* the function of each */
};

/* A thread, as the accounting sees it. What each call needs comes first: with many threads it has
 * to be fetched each time. */
struct thread_account {
	struct call_ring ring;
	uint64_t slices; /* of its host's cpu_pressure: it has been counted in, or is past */
	struct cpu_pressure *cpu_pressure;
	size_t n_waits, n_open, n_deferred; /* of those below */
	size_t n_need_next; /* of the claims, those that have to see whatever call comes next */
	/* Of the scheduler's account just read; 0 none. */
	uint64_t sched_window_ns, not_running_ns, running_ns;
	struct gpu_stream *stream; /* it used last */
	struct function_accounts functions;
	uint8_t device; /* current, as last seen */
	bool rested; /* the call in progress comes after a pause: expect.h */
	bool starts_up; /* the call in progress has started CUDA or a GPU up */
	bool left_out; /* its record in hand does not count: filter.h */
	bool divided_often; /* what it does is divided as it goes on: ranks/reasons.c */
	bool gap_recorded; /* records tell what the thread did before its next call: idle/host.h */
	struct recent_ops recent_ops; /* until the call in progress */
	struct thread *thread;
	struct wait *waits; /* of the call in progress */
	/* of calls that the ring has no more; NULL: they were all their own work */
	struct history *history;
	size_t waits_kept; /* of calls in the ring, and their hold intervals */
	struct claim *open; /* on its calls, which its next calls settle: findings/site.h */
	size_t open_size;
	struct wait_chain_link *deferred; /* waits that end at this thread's call in progress */
	uint64_t
		not_running_working_ns; /* ready and on no CPU, while its process worked: phase.h */
	/* on a CPU, at least, in waits for the GPU that the calls are made for */
	uint64_t busy_wait_ns;
	/* of its divided calls: what was lost; waits for the GPU, and for locks */
	uint64_t lost_ns, gpu_ns, lock_ns;
	uint64_t left_out_ns; /* in calls that did not count */
	uint64_t waited_until_ns; /* end of its last wait */
	uint64_t overlap_request; /* number of one of its requests: kernel_overlap.c */
	uint32_t overlap_number; /* its own there, while journals are replayed; 0: none yet */
	/* in its process's list of those that are remembered */
	struct thread_account *prev, *next;
};

/* Time in ioctl, by what was asked for. */
#define IOCTLS_MOST 256 /* different requests of ioctl */

struct ioctl_sum {
	uint64_t request, count, ns;
	struct reading_position created; /* when it came up */
};

/* What a process has done with its contexts so far, in calls that took their time. */
struct contexts {
	uint64_t ended, made_again; /* after one had ended */
};

/* A process, as the accounting sees it: what has a bound has it for each process. */
struct process_account {
	/* of what calls lost in the kernel module: a process for each GPU would not */
	double avoidable_ns;
	uint64_t walks; /* events of locks that waits may look at (holders.c); 0: not begun */
	size_t n_threads, n_locks;
	size_t n_pairs[2]; /* edges with its waiters: direct ones, roots */
	/* threads that have more than the last call in their rings */
	struct thread_account *remembered;
	size_t n_remembered;
	struct cpu_use cpu_use;
	/* of launches that wait for their kernels, where that is set; NULL: there are none; owned */
	struct run_ahead *ahead;
};

struct accounting {
	struct model *model;
	struct expect *expect;
	const struct filtering *filtering; /* what of the recording counts */
	const struct callstats *stats;
	struct locks locks;
	struct gpu_work work;
	struct peers *peers; /* by process */
	struct cpu_pressure *cpu_pressure; /* by host */
	struct blame *blame; /* stands on it, and knows which threads waits are due to */
	struct thread_account **thread_accounts; /* by thread index; NULL: has made no call */
	size_t n_thread_accounts;
	struct ioctl_sum *ioctls;
	size_t n_ioctls;
	struct signature_cache *signatures; /* by process */
	struct ranges ranges;
	bool *probed; /* by process: it was recorded with probes */
	bool *gaps_recorded; /* likewise, between calls, too */
	uint64_t *gpus_used; /* by process: a bit for each device that was current in a call */
	struct contexts *contexts; /* by process */
	struct process_account *processes; /* by process */
	struct observer *observer; /* NULL: none */
	const struct listener *listener; /* of the whole reading; NULL: none */
};

struct join;

void account_init(struct accounting *a, struct model *model, struct expect *expect,
		  const struct callstats *stats);
void account_release(struct accounting *a);

/* For a part of a set. begun_ns: by host, when the first call began. Then what the parts know becomes the whole's, whose
 * threads have their numbers; blame_join is next. */
void account_init_part(struct accounting *a, const uint64_t *begun_ns);
bool account_join(struct accounting *whole, struct accounting *const *parts, struct join *join);

#define ACCOUNT_LONG_NS 1000000 /* calls inside others are of interest from here on */

/* A call that has returned, by its number: one of the last `size`. */
static inline struct completed_call *completed_call_at(const struct call_ring *ring,
						       uint64_t number)
{
	return &ring->calls[number & (ring->size - 1)];
}

/* Of all processes: process_account. */
double account_avoidable_ns(const struct accounting *a);

/* All calls of a process. */
struct account account_sum(const struct accounting *a, const struct process *process);

/* A thread's account; NULL if it has made no call. */
static inline struct thread_account *thread_account_of(const struct accounting *a,
						       const struct thread *thread)
{
	return thread->index < a->n_thread_accounts ? a->thread_accounts[thread->index] : NULL;
}

/* Is the thread's record in hand left out? For whoever is shown records while they are read: what is left out is not for
 * him. False for a thread without an account, which has made no call. */
static inline bool account_leaves_out(const struct accounting *a, const struct thread *thread)
{
	const struct thread_account *c = thread_account_of(a, thread);

	return c && c->left_out;
}

/* The place of a function, or the empty one where it would be; the table is not empty. */
static inline struct account_place *account_place(const struct function_accounts *f, uint32_t fn)
{
	uint32_t at = fn;

	while (f->places[at & (f->n_places - 1)].number &&
	       f->places[at & (f->n_places - 1)].fn != fn)
		at++;
	return &f->places[at & (f->n_places - 1)];
}

/* The sums of a thread's calls of a function; NULL: it has made none. */
static inline struct account *account_find(const struct function_accounts *f, uint32_t fn)
{
	uint32_t number = likely(f->n_places) ? account_place(f, fn)->number : 0;

	return likely(number) ? &f->all[number - 1] : NULL;
}

#endif
