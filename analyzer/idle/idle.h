/*
 * analyzer/idle/idle.h: when GPUs certainly had nothing to do, and what the threads that feed them
 * did meanwhile.
 *
 * From the moment a call proves that nothing is outstanding on a GPU (work.h: all streams, events'
 * order followed) until the next call that may hand it work begins, the GPU was idle: a lower bound,
 * for it may be idle at other times, too. The time is charged to what the thread of that next call
 * did meanwhile. A call that is known only when it returns may take such an interval back: the GPU
 * may have worked for it since it began.
 */
#ifndef CUDASPY_IDLE_H
#define CUDASPY_IDLE_H

#include "pieces.h"
#include "in_c.h"
#include "samples.h"
#include "model/gpu_ops.h"

#define IDLE_KEPT 256 /* last intervals that later calls may take back */
#define IDLE_PAIRED 16 /* GPUs that are compared with each other */

/* A GPU was idle. */
struct idle_interval {
	uint64_t begin_ns, end_ns, ns; /* ns: what is left of it */
	struct idle_charge {
		struct idle_sum *sum;
		uint64_t ns;
	} * charges; /* what of it was given to which sum; owned */
	size_t n_charges;
	const struct range_name *range; /* innermost one of the call behind it; NULL: none */
	struct idle_ranges *ranges; /* where that is counted */
};

/* Until a call in that range, GPUs had nothing to do: by index of its name. */
struct idle_ranges {
	uint64_t *ns;
	size_t n;
};

uint64_t *idle_of_range(struct idle_ranges *ranges, const struct range_name *name);

/* What NVML said of a GPU in the working phase. */
struct gpu_looks {
	uint64_t n, busy_percent; /* looks that told of its utilisation, and the sum of it */
	/* The largest, of these and of looks at the phase's begin, which also tell of the time before it. */
	uint64_t busy_percent_most;
	uint64_t begin_ns, end_ns; /* of these the first and the last one */
	uint64_t all_n, last_ns; /* all looks in the phase; the last one */
	uint64_t copies_ns,
		pinned_ns; /* in the phase: of copies NVML says nothing (copy_most_ns); of these, of pinned memory */
	uint64_t n_rest; /* looks at the rest; sums of these: */
	uint64_t clock, clock_most, limited[64]; /* MHz; looks with that bit of NVML's reasons */
	uint64_t n_power, power; /* looks that told of power; the sum of it: mW */
	uint64_t power_limit_most; /* mW; 0 unknown */
	uint64_t temperature_most; /* degrees Celsius; 0 unknown */
	uint64_t links,
		link_mbytes; /* NVLinks that are up, at least; MB/s of each; 0 none, or unknown */
	uint64_t others_n, others_most; /* looks with other processes on it; so many */
	uint32_t other_pid; /* one of them; 0 unknown */
	uint64_t others_bytes_most;
	uint64_t shares_n, own_busy,
		others_busy; /* looks that told whose kernels ran; sums of per cents */
};

#define FUNCTIONS_KEPT 64

struct ran_function {
	const struct process *process;
	uint64_t stream, handed_ns, address;
};

/* A GPU, as far as processes that were recorded use it. */
struct idle_gpu {
	struct reading_position created; /* when it came up */
	const struct process **processes; /* that used it */
	size_t n_processes;
	const char *uuid; /* as the first one had told it by then; NULL: not; not owned */
	uint8_t device; /* its ordinal in the first one */
	bool elsewhere; /* other parts use it, too: what is to be known of it goes into the journal */
	size_t n_busy; /* processes that have work outstanding on it */
	uint64_t since_ns; /* idle since then; 0: not, or unknown */
	uint64_t idle_ns; /* in the working phase */
	uint64_t doubt_ns; /* of that, what a call may have taken back that is kept no more */
	uint64_t waited_ns, waited_until_ns; /* threads waited for it: busy.c */
	bool left_out; /* the report is not about it: filter.h */
	struct gpu_looks looks;
	uint64_t
		estimated_ns; /* of idle_ns: what calls do not prove, but NVML does (findings/gpu_use.c) */
	bool certain; /* what is said of its idle time: after the last record, idle_price.h */
	/* How often a thread found that all its work was done; of these, with copies to the host in
	 * it, and with work on several GPUs or copies between them (recent_ops.h). */
	uint64_t turns, turns_brought, turns_across;
	uint64_t together_ns[IDLE_PAIRED]; /* idle while that other one was, by its index */
	struct idle_interval *intervals; /* a ring, IDLE_KEPT at most */
	size_t intervals_size;
	uint64_t n_intervals;
	/* On the host, in its streams: the last FUNCTIONS_KEPT; NULL: none; owned. */
	struct ran_function *ran;
	uint64_t n_ran;
	struct exact_gpu {
		size_t n_known; /* processes whose operations are recorded at this time */
		bool ever; /* they were, of all of them */
		bool sound; /* at the end: nothing is missing, nor most of the time */
		bool known; /* they are */
		uint64_t at_ns; /* accounted for until then */
		uint64_t busy_ns, idle_ns; /* in the working phase */
		uint64_t operations; /* likewise */
		/* Of busy_ns: with operations of several GPUs together (is_collective), and of that, with nothing else;
		 * until when either kind goes on; divided until then; of operations, those. */
		uint64_t collective_ns, exposed_ns;
		uint64_t own_until_ns, collective_until_ns, divided_ns;
		uint64_t collectives;
		uint64_t
			small_ns; /* busy with kernels of fewer blocks than it has multiprocessors */
		uint32_t tid; /* thread that submitted the last operation, 0 unknown … */
		const struct process *process; /* … and its process */
	} exact;
};

/* A process's view of it. */
struct idle_user {
	uint32_t gpu; /* index + 1; 0: it has not used it */
	bool busy;
	bool unseen; /* recording was dormant, and nothing has been waited for since: it may have work */
	/* As if it were the only one: idle since then, 0: not, or unknown; and since when that is so and it is busy. */
	uint64_t since_ns, works_ns;
	/* The stream of the last call that may have given the GPU something to do, NULL: none of its own; when that returned,
	 * and when the last one of another stream did. Calls on the fast path are none of these. */
	const struct gpu_stream *handed_to;
	uint64_t handed_ns, elsewhere_ns;
};

/* What a call of a process says of a GPU. What several of them make of the GPU is decided by these, in their order, alone. */
struct idle_event {
	const struct process *process;
	uint64_t begin_ns, ns; /* the call */
	bool submits; /* it may have handed work to the GPU */
	bool dormant; /* it is no call: recording ends, and nothing is known of the GPU from here on */
	int8_t busier; /* 1: it has work outstanding on it, from here on; -1: not any more */
	uint64_t own_since_ns; /* the process's own since_ns, before the call */
	/* The thread that made the call; NULL: `told` has what is to be known of it. */
	const struct thread_account *account;
	const struct idle_activity *activity;
};

/* Of a part's thread: what it did since its process's own work was done, until the call. */
struct idle_activity {
	const struct idle_piece *pieces;
	size_t n_pieces;
	const struct range_name *range; /* innermost one */
	struct idle_ranges *ranges;
};

struct idle_gpu_name {
	uint64_t key;
	uint32_t gpu; /* index + 1 */
	UT_hash_handle hh;
};

/* A profiler of the program's own, in a process: from one sample in its begin to one in its end it recorded. */
struct profiler_use {
	const char *name; /* NULL: none was seen to end */
	uint64_t begun_ns; /* 0: it does not record, for all that is known */
	uint64_t ns; /* of the working phase, in which it recorded */
};

struct idle {
	struct accounting *accounts;
	struct idle_gpu *gpus;
	size_t n_gpus;
	struct idle_gpu_name *names; /* of them, by their hash */
	struct idle_user *users; /* by work_index */
	uint32_t n_devices; /* 1 + the highest one of which there is one */
	struct host_threads threads;
	struct idle_sums sums; /* owners: idle_owner_… */
	struct sample_pools samples;
	struct in_c_lines in_c;
	/* By process: of the sample that came last, of the holder of a GIL; NULL: it was none. */
	const struct stack **gil_held_at;
	/* exact.c: where GPU times were recorded */
	struct gpu_ops ops;
	/* Is it an operation of several GPUs together? NULL: nobody knows of any. */
	bool (*is_collective)(void *data, const struct gpu_event *op);
	void *collectives; /* data */
	uint64_t due_ns; /* when the next of them is to be accounted for; UINT64_MAX: none */
	bool *recorded; /* by process: they are, at this time */
	struct profiler_use *profilers; /* by process */
	struct journal
		*journal; /* of a part: has what is to be known of it elsewhere; NULL: none */
	const uint64_t *elsewhere; /* groups_gpu_key of GPUs that other parts use, too, ascending */
	size_t n_elsewhere;
	uint64_t *shared; /* groups_gpu_key of GPUs that several processes use, ascending; owned */
	size_t n_shared;
	bool shared_known;
	struct idle_ranges ranges;
	struct idle_pieces pieces; /* of the call in hand */
};

/* Are the exact times all there is to know of the GPU? Then its causes are those of idle_owner_exact. */
static inline bool idle_gpu_is_exact(const struct idle_gpu *gpu)
{
	return gpu->exact.sound;
}

static inline uint64_t idle_owner_gpu(size_t gpu)
{
	return (uint64_t)1 << 32 | gpu;
}

/* The same by exact times. */
static inline uint64_t idle_owner_exact(size_t gpu)
{
	return (uint64_t)2 << 32 | gpu;
}

/* What its first process says of it; NULL: nothing. Valid until the next record. */
static inline const struct gpu *idle_named(const struct idle_gpu *gpu)
{
	return model_gpu(gpu->processes[0], gpu->device);
}

void idle_init(struct idle *idle, struct accounting *accounts);
void idle_release(struct idle *idle);

/* Recording of the record's process is dormant from here on: nothing is known of its GPUs. */
void idle_see_dormant(struct idle *idle, const struct record *record);

/* Each record that does not go the fast path, after the accounting. in_calls_ns: so long the
 * record's thread was in calls until then. */
void idle_see(struct idle *idle, const struct record *record, uint64_t in_calls_ns);

/* After the last record: shows the listener the idle times that calls might have taken back. */
void idle_show_rest(const struct idle *idle);

/* A process uses a GPU, which it knows by that number. uuid: NULL: it has not told it. Returns its index + 1. */
uint32_t idle_meet(struct idle *idle, const struct process *process, uint8_t device,
		   const char *uuid);

/* The GPUs are there: they are to be found by their uuids, too. */
void idle_name_gpus(struct idle *idle);

/* busy.c: a call of the application has returned, and may have waited for the GPU; the scheduler's account of a thread; for
 * how long the GPU, which one process alone uses, certainly worked in the working phase. in_calls_ns: so long the thread
 * was in calls until then. */
void busy_see_call(struct idle_gpu *gpu, struct host_thread *h, const struct phase *phase,
		   const struct record *record, const struct completed_call *f,
		   uint64_t in_calls_ns);
void busy_see_look(struct host_thread *h, const struct phase *phase, const struct record *record,
		   uint64_t in_calls_ns);
uint64_t busy_certain_ns(const struct idle *idle, const struct idle_gpu *gpu);

/* gpu_looks.c: what NVML says of a GPU. */
void gpu_looks_see(struct idle *idle, const struct record *record);
void gpu_looks_see_copy(struct idle *idle, const struct record *record);

void gpu_looks_join(struct gpu_looks *looks, const struct gpu_looks *other);

/* So much of the time a kernel ran at most, by its utilisation: 0 to 1; there were looks. */
double gpu_looks_busy(const struct gpu_looks *looks);

/* The part of the time in which kernels of other processes ran; negative: unknown. */
double gpu_looks_others(const struct gpu_looks *looks);

/* How long the GPU was idle at least, by its utilisation and the copies that were made, of work_ns, which end then; 0: unknown. */
uint64_t gpu_looks_idle_ns(const struct gpu_looks *looks, uint64_t work_ns, uint64_t end_ns,
			   uint64_t fast_copies_ns);

/* For how long kernels ran, and copies of pinned memory, at most; work_ns: all the time, for all that is known. */
uint64_t gpu_looks_worked_ns(const struct gpu_looks *looks, uint64_t work_ns, uint64_t end_ns,
			     uint64_t fast_copies_ns);

/* For how long the GPU had nothing to do in a working phase of that length, at most, if NVML saw it at work all the time; UINT64_MAX:
 * unknown. Kernels of other processes would count as its work. */
uint64_t gpu_looks_spare_ns(const struct gpu_looks *looks, uint64_t work_ns);

/* functions.c: a call has returned that may have given the process's GPU something to do, in that stream (NULL: in none, or
 * unknown); and a function on the host has run. */
void functions_see_call(struct idle_user *user, const struct gpu_stream *stream, uint64_t ns);
void functions_see_run(struct idle *idle, const struct record *record);

/* The address of the function that a call of the process put into that stream; 0: unknown. */
uint64_t functions_address(const struct idle_gpu *gpu, const struct process *process,
			   const struct completed_call *call);

/* intervals.c: the GPU, which the process alone uses, had nothing to do because of that. */
void idle_add_interval(struct idle *idle, struct idle_gpu *gpu, const struct process *process,
		       uint64_t begin_ns, uint64_t end_ns, const struct idle_part *part);

/* intervals.c: the GPU had nothing to do until the call; and a call that may have handed work to it was going on until now,
 * so that it may have had. */
void idle_end(struct idle *idle, struct idle_gpu *gpu, const struct idle_event *event);
void idle_take_back(struct idle *idle, struct idle_gpu *gpu, const struct idle_event *event);

/* Events of a GPU, in the order of positions. */
static inline void idle_apply(struct idle *idle, struct idle_gpu *gpu,
			      const struct idle_event *event)
{
	if (event->submits) {
		if (gpu->since_ns && event->begin_ns > gpu->since_ns)
			idle_end(idle, gpu, event);
		if (gpu->n_intervals)
			idle_take_back(idle, gpu, event);
	}
	if (event->submits || event->dormant)
		gpu->since_ns = 0;
	gpu->n_busy += (size_t)event->busier;
	if (!gpu->n_busy && !gpu->since_ns)
		gpu->since_ns = event->ns;
}

/* The GPU that the process knows by that number; it makes itself known by its first operation. */
struct idle_gpu *idle_gpu_of(struct idle *idle, const struct process *process, uint8_t device);

/* exact.c: the streams of GPU times have their first record in hand (merge_init). */
void exact_begin(struct idle *idle);

/* Accounts for what GPUs did until ns; before a record of that time is looked at. */
void exact_go_on(struct idle *idle, uint64_t ns);

/* For how long it was known what the GPU did, in the working phase. */
static inline uint64_t exact_known_ns(const struct exact_gpu *exact)
{
	return exact->busy_ns + exact->idle_ns;
}

/* Of another GPU's last intervals, those that lie in this one: all of them have ended before it. */
uint64_t idle_in_both(const struct idle_gpu *other, const struct idle_interval *interval);

/* Room for one more, which is counted: the place of an old one, once there are IDLE_KEPT. */
struct idle_interval *idle_next_interval(struct idle_gpu *gpu);

/* Of a GPU's new interval: how much of it other GPUs were idle, too (together.c). */
void idle_together(struct idle_gpu *gpus, size_t n_gpus, size_t gpu,
		   const struct idle_interval *interval);

/* How long the GPU was certainly idle in its working phase; and, of its sums, what is to be taken
 * for their part of it. */
uint64_t idle_certain_ns(const struct idle_gpu *gpu);

/* Of that, what calls prove: it is known when it was. What NVML says beside that may have been at any time. */
static inline uint64_t idle_proven_ns(const struct idle_gpu *gpu)
{
	uint64_t ns = idle_certain_ns(gpu);

	return ns - min_u64(gpu->estimated_ns, ns);
}

/* After the last record: the same as idle_certain_ns, or exactly how long it was, where that is known. */
static inline uint64_t idle_known_ns(const struct idle_gpu *gpu)
{
	return idle_gpu_is_exact(gpu) ? gpu->exact.idle_ns : idle_certain_ns(gpu);
}

uint64_t idle_scaled_ns(const struct idle_gpu *gpu, uint64_t ns);

#endif
