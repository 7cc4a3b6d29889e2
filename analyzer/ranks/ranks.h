/*
 * analyzer/ranks/ranks.h: the ranks of a job, and who of them held the others up in collective operations, by how much and
 * why. No sentences here: the report's sections and the detectors make them of these sums.
 *
 * NCCL's operations of all ranks are matched (match.c), the timers of their GPUs aligned by the ends of these operations
 * (clocks.c), and of each operation it is found who came last, and how long the others waited in it for that (evaluate.c).
 * The reason is what the last one's submitting thread did since its operation before, and the others did not (reasons.c).
 * Steps are found by NVTX or by the pattern of operations (steps.c). Called by the main reading, for the records of NCCL
 * and, of threads that submit operations, for their calls. Nothing is kept of traces without any.
 *
 * All times are nanoseconds; sums of time are of GPUs unless said otherwise. Everything below is filled in by
 * ranks_finish.
 */
#ifndef CUDASPY_RANKS_H
#define CUDASPY_RANKS_H

#include "lateness.h"
#include "blame/journal.h"
#include "idle/idle.h"

#define RANKS_MOST 2048 /* are told apart; processes beyond these are left out and counted */
#define RANK_GROUPS_MOST 4096 /* then sizes are not told apart any more, and then functions */
#define RANK_SITES_MOST 4096
#define RANK_STEPS_SLOW_MOST 32 /* slow steps that are kept */
#define RANK_MISSING_MOST 64

/* How often a rank was the last one, and for how long others waited for it, all of them together. */
struct rank_share {
	uint64_t count, ns;
};

/* A rank of a job; or of a communicator, where no launcher said which rank a process is. */
struct rank {
	uint32_t index; /* in ranks.all, and of idle_owner_rank */
	uint32_t number; /* which rank */
	bool from_launcher; /* number, local_rank, world_size and job are a launcher's */
	int32_t local_rank; /* -1 unknown */
	uint32_t world_size; /* 0 unknown */
	uint32_t restarts; /* times it was started before: the most that is known */
	const char *job; /* NULL unknown */
	const struct process **processes; /* its traces, in the order they began; owned */
	size_t n_processes;
	const struct process
		*process; /* the one that submitted its last operation; else its last one */
	uint8_t device; /* of its last communicator, as that process numbers it; SPY_DEVICE_NONE */
	uint64_t operations; /* that it submitted */
	uint64_t skips; /* times that NCCL's numbers leave out operations: they are not recorded */
	uint64_t timed; /* of these, those that were matched, aligned and are in the sums below */
	uint64_t first_ns, last_ns; /* when it submitted its first and last one; trace time */
	uint64_t in_collectives_ns; /* its kernels of these, one at a time */
	uint64_t wait_ns; /* of that, until the last rank came */
	uint64_t *
		waited_for_ns; /* of wait_ns, by index of the rank it waited for; n of them: ranks.n; owned */
	uint64_t messages,
		messages_wait_ns; /* its sends and receives, without those of an all-to-all; of wait_ns, in these */
	uint64_t exchanged_bytes; /* that it received in all-to-alls, also from itself */
	uint64_t
		last_count; /* operations in which it was the last one, by more than the clocks' error */
	uint64_t caused_ns; /* others' waits for it, all of them together */
	uint64_t paid_ns; /* of caused_ns, what was no wait beside the others' own work */
	/* The longest of others' waits for it in each operation, where it was not behind before, and of several communicators at the same
	 * time once: so long it held the others up. The idle_sums of idle_owner_rank(index) say why: their sum is late_ns exactly. */
	uint64_t late_ns;
	uint64_t longest_late_ns; /* of late_ns, in one operation */
	uint64_t sure_ns,
		longest_sure_ns; /* the same of operations that something waited for before the next one */
	uint64_t
		held_ns; /* of late_ns, until the last but one came: what the job would gain, at least */
	/* Of late_ns, what its GPU was late, not its thread (IDLE_GPU_WORK): in how many operations, and in how many of
	 * these it had had as many operations of the GPU submitted since the operation before as the others; and what its
	 * thread was waiting in such operations. */
	uint64_t gpu_late_count, gpu_late_same_work, gpu_late_ns;
	uint64_t longest_gpu_late_ns; /* the same of longest_late_ns */
	/* Of late_ns, what its thread did where no other rank's ever was, or next to never (unshared.c). The rest is at places
	 * where all are, for longer now and then: so are threads that run the same code. */
	struct rank_unshared {
		uint64_t ns, most_ns; /* of all; of the one function that has most of it */
		const struct idle_sum *most; /* of that function; NULL: there is none */
		/* The most of the rest that it was late by in one function for longer than any other rank was. */
		uint64_t excess_ns;
		/* Of late_ns, what its thread computed at places where another rank was for two thirds as long as it, or longer. */
		uint64_t alike_ns;
	} unshared;
	/* Before sends and receives, while its GPU had them and had not come to them: it worked all the time. */
	uint64_t work_ns;
	/* Before and behind its process's working phase: in none of the sums above but operations, timed. */
	uint64_t start_wait_ns, start_caused_ns;
	uint64_t steps; /* that it was the last one of, most of the time (struct rank_step) */
	/* With GPU times (idle/exact.c) of its GPU: time in which kernels of collective operations ran, and of that, when
	 * nothing else did. exposed_known: they are known, all the time. */
	bool exposed_known;
	uint64_t collective_ns, exposed_ns;
	/* Likewise: time in which other operations ran, and how many: a slow GPU takes longer for each. */
	uint64_t own_ns, own_operations;
	/* How well its GPU's timer is known: against the other ranks' (95 % of all operations' ends agree within that) and
	 * against its host's clock (half of what is left open). 0: not compared. */
	uint64_t align_error_ns, host_error_ns;
	/* Its GPU's timer is not known: host times stand in (interfaces 1 to 3 of NCCL's) */
	bool by_host_times;
	struct rank_spans late; /* late_ns, by its GPU's timer, in this process: */
	const struct process *late_process;
	uint64_t ended_ns; /* its last operation that has run, by that timer; 0: none yet */
	const struct rank_member *ended_as; /* in its communicator, in that process */
	struct rank_samples *samples; /* sample.h; NULL: none; owned */
};

/* The same function with the same size, in one communicator. */
struct rank_group {
	uint64_t hash; /* the communicator's */
	const char *comm_name; /* that the program gave it; empty: none */
	uint32_t comm_ranks; /* that it has; 0 unknown */
	uint8_t func; /* enum spy_nccl_func */
	uint64_t count, bytes; /* elements and bytes of each operation; 0: of several sizes */
	bool graphs; /* these are launches of graphs with such operations */
	uint64_t operations; /* matched and timed ones; each once for all its ranks */
	uint64_t wait_ns; /* of all ranks together */
	uint64_t
		late_ns; /* the longest wait of each: as rank.late_ns, but for that of other communicators at the same time */
	uint64_t transfer_ns; /* from the last one's arrival to the end, of each */
	/* Of operations: those that followed one of the same function and communicator, with no other operation of the GPU
	 * submitted between, on the first rank: they could be one. */
	uint64_t in_a_row;
	struct rank_share *
		last; /* by index of the rank that was last; n_last of them (fewer than ranks.n); owned */
	size_t n_last;
	uint64_t nobody; /* operations to which all came at the same time, as far as clocks tell */
};

/* Where operations are submitted. */
struct rank_site {
	struct idle_part
		part; /* the call: words are made of it as of a cause's place; of `process` */
	const struct process *process;
	uint8_t func; /* of the first one */
	uint64_t operations, wait_ns, late_ns; /* as in a group */
	struct rank_share *last;
	size_t n_last;
};

/* A step of the job: it begins with the arrival of its first operation and ends with that of the next step's. */
struct rank_step {
	uint64_t number; /* from 1 on */
	uint64_t begin_ns; /* trace time of the reference rank, about */
	uint64_t ns;
	uint64_t wait_ns, late_ns; /* in its operations, as in a group */
	uint32_t
		last; /* index of the rank that was last for the most of late_ns; UINT32_MAX: nobody */
	uint64_t last_ns; /* of late_ns */
	/* The largest reason of that rank; process NULL: none known. */
	struct idle_part cause;
	const struct process *process;
	uint64_t cause_ns; /* of last_ns, this reason */
};

enum rank_steps_by { RANK_STEPS_UNKNOWN, RANK_STEPS_NVTX, RANK_STEPS_PATTERN };

struct rank_steps {
	enum rank_steps_by by;
	const struct range_name *range; /* of NVTX: its name or family */
	uint64_t operations; /* of a pattern: how many each step has */
	uint64_t count; /* whole ones */
	uint64_t median_ns; /* about, where there are more than are kept */
	uint64_t total_ns; /* of all whole ones */
	/* From the first operation to the last one of the rank that steps are counted by, what is before its first step and
	 * behind the begin of its last one. Unknown (UINT64_MAX) where the job was started again meanwhile. */
	uint64_t outside_ns;
	uint64_t wait_ns;
	/* Longer than 1.5 times the median, and by 100 us: how many, together, and how much longer they were. */
	uint64_t slow_count, slow_ns, slow_more_ns;
	uint64_t
		slow_every; /* from a long one to the next it is mostly so many steps; 0: not the same number */
	struct rank_step slow[RANK_STEPS_SLOW_MOST]; /* the longest of them, in their order */
	size_t n_slow;
};

/* An operation as one rank had it. */
struct rank_op_seen {
	uint32_t rank; /* index */
	uint8_t func;
	uint64_t seq, count;
	uint32_t bytes_each;
	int32_t peer;
	uint64_t ns; /* when it was submitted: trace time */
	struct idle_part part; /* where; process NULL: unknown */
	const struct process *process;
};

enum rank_disagree {
	RANK_ANOTHER_SIZE, /* a and b are the same operation, as two ranks have it */
	RANK_ANOTHER_ORDER, /* a's rank submits a before b, b's rank b before a */
	RANK_ONE_MORE, /* b's rank never submits a, though it goes on: b is its next one that both have */
};

/* Ranks disagree about the operations of a communicator. The first such. */
struct rank_disagreement {
	uint64_t count; /* of them in all communicators, at least; 0: none */
	enum rank_disagree kind;
	uint64_t hash; /* of the communicator */
	struct rank_op_seen a, b;
	/* It holds if no records of these processes are missing in that trace time; of RANK_ONE_MORE. */
	const struct process *processes[2];
	uint64_t begin_ns[2], end_ns[2];
};

/* An operation that some ranks wait in at the end, and others have not submitted. */
struct rank_missing {
	uint64_t hash; /* of the communicator */
	struct rank_op_seen waiting; /* of the first rank that waits */
	uint32_t n_waiting, n_missing; /* ranks that were recorded */
	uint32_t
		missing; /* index of the first of them; what its threads are in: its process's board */
	bool has_last;
	struct rank_op_seen last; /* the last operation of the missing one in this communicator */
};

/* Of a process: who serves NCCL's profiler interface. */
struct rank_state {
	bool seen;
	uint16_t state; /* enum spy_nccl_state */
	char text[113];
};

struct ranks_work;
struct rank_instance;
struct rank_op;

struct ranks {
	struct rank **all; /* by index; owned */
	size_t n;
	struct rank **order; /* the same by job and number; owned */
	bool sample; /* some operations are to be kept: sample.h */
	/* There are no traces, but some operations of each rank, as digests have them (analyzer/job/feed.c). part: of all
	 * operations, these; else 0. */
	bool from_digests;
	double part;
	/* Is shown each operation that was evaluated; last: its last one, NULL: nobody. NULL: none. */
	void (*on_evaluated)(void *data, struct rank_instance *instance,
			     const struct rank_op *last);
	void *data;
	bool any; /* there are operations of NCCL's, in any trace */
	bool *submits; /* by process: it has submitted some; owned */
	bool from_launcher; /* of any trace a launcher said which rank it is */
	uint32_t world_size; /* of the job, or else of its largest communicator; 0 unknown */
	struct rank **by_process; /* of the set's traces; NULL: of no rank; owned */
	struct rank_group *groups; /* the longest late_ns first; owned */
	size_t n_groups;
	struct rank_site *sites; /* likewise */
	size_t n_sites;
	struct rank_steps steps;
	struct rank_disagreement disagreement;
	struct rank_missing missing[RANK_MISSING_MOST];
	size_t n_missing;
	struct rank_state *states; /* by process; owned */
	size_t n_states;
	/* Operations, each once for all its ranks: in the sums; those of which a recorded rank's part never came, or no
	 * times; those of ranks whose clocks could not be aligned; of one recorded rank only. */
	uint64_t matched, incomplete, unaligned, alone;
	uint64_t untimed; /* those whose times the recorder did not ask for, or NCCL has none */
	uint64_t lost; /* records that could not be followed: damaged, or too many at a time */
	uint64_t captured; /* operations in graphs, whose times are not known … */
	uint64_t
		graphs; /* … and launches of such graphs that were compared by the hosts' times; of matched */
	uint64_t align_operations, align_messages; /* by which timers were aligned; sends */
	uint64_t align_error_ns; /* the worst rank's */
	uint64_t host_error_ns;
	bool by_host_times; /* of some operations */
	uint64_t wait_ns, late_ns, caused_ns; /* of all ranks */
	struct rank_parts parts; /* how late each one was in which part of the work */
	/* Where the thread of each was before all operations, late or not: owners are idle_owner_rank, times as in its reasons. */
	struct idle_sums spent;
	struct ranks_work *work; /* while records are read */
	struct journal *
		journal; /* of a part of a set: has what is about other processes, too; NULL: none */
	struct idle *idle;
};

static inline uint64_t idle_owner_rank(size_t index)
{
	return (uint64_t)3 << 32 | index;
}

/* From its first operation to its last one. */
static inline uint64_t rank_job_ns(const struct rank *rank)
{
	return rank->last_ns - min_u64(rank->first_ns, rank->last_ns);
}

/* The set's metadata are known. apart: it is of a part of a set, and gets a journal. */
void ranks_init(struct ranks *ranks, struct idle *idle, bool apart);
void ranks_release(struct ranks *ranks);

/* For ranks_see: a record of NCCL's; a call of a thread that submits operations. */
void ranks_see_nccl(struct ranks *ranks, const struct record *record);
void ranks_see_call(struct ranks *ranks, const struct record *record);

/* Each record that does not go the fast path, after idle_see. */
static inline void ranks_see(struct ranks *ranks, const struct record *record)
{
	if (unlikely(record->event >= SPY_EV_NCCL_COMM) && record->event <= SPY_EV_NCCL_STATE)
		ranks_see_nccl(ranks, record);
	else if (unlikely(ranks->any) && ranks->submits[record->process] &&
		 record_is_outer_call(record))
		ranks_see_call(ranks, record);
}

/* After the last record; and when samples have divided their sums. */
void ranks_finish(struct ranks *ranks);
void ranks_find_unshared(struct ranks *ranks);

/* The first part of that: evaluates what is open. */
void ranks_close(struct ranks *ranks);

/* Bytes a second that each link between the ranks has carried for the group's operations, on average, from the last rank's arrival on (bus
 * bandwidth); 0: unknown, or they are too small for it to matter. */
double rank_group_rate(const struct ranks *ranks, const struct rank_group *group);

/* ---- parts of a set (analyzer/parallel/) ------------------------------------------------------- */

struct rank_event;

/* An entry of a journal, for the whole's ranks; the journals of all parts in the order of moments. Then what it owned is
 * theirs, and it can be freed. */
void ranks_apply(struct ranks *ranks, const struct rank_event *event);

/* It is applied soon: into the cache with it; sooner, and with what it owns. */
void ranks_fetch(const struct rank_event *event);
void ranks_fetch_owned(const struct rank_event *event);

/* One that is not applied. */
void ranks_drop(struct rank_event *event);

/* Why they are worth nothing; NULL: they are not. */
const char *ranks_refused(const struct ranks *ranks);

/* The same of a part's journal, which owned it. */
void ranks_replay(struct ranks *ranks, const struct journal_entry *entry);

/* What the parts know; names of ranges and GPUs have been joined. */
struct join;
void ranks_join(struct ranks *ranks, struct ranks *const *parts, const struct join *join);

/* For the garbage collection of stacks: shows all parts that are kept. Returns how many. */
size_t ranks_parts(const struct ranks *ranks, size_t (*see)(const struct idle_part *part));

#endif
