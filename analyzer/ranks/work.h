/*
 * analyzer/ranks/work.h: what is kept of collective operations while records are read. For the files of this folder, and for
 * analyzer/job/, which has them read again from digests.
 */
#ifndef CUDASPY_RANKS_WORK_H
#define CUDASPY_RANKS_WORK_H

#include "ranks.h"
#include "events.h"

#define COMMS_MOST (1u << 13) /* communicators that are told apart */
#define MEMBERS_MOST (1u << 17) /* of all of them */
#define OPS_MOST (1u << 19) /* operations, one for each rank, that wait for those of other ranks */
#define BLOCK_MOST 128 /* instances by which clocks are aligned at a time */
/* Instances that wait for that, of all communicators of a digest, about. */
#define SAMPLED_OPS (1u << 15)
#define BLOCK_OPS 32768 /* and no more operations than that, a few instances at least */
#define LAUNCHES_MOST 1024 /* of a thread: a GPU may come to them long after */
#define PARTS_MOST 48 /* places at which a thread spent the time between two operations */
#define PLACES_MOST (1u << 16) /* places that are told apart, in all processes */
#define OTHERS_MOST 32 /* ranks that the last one is compared with */

/* ---- what threads did ------------------------------------------------------------------------ */

/* A place in a process, with what the evaluation knows of the time there: as it was told last (struct rank_place_event). */
struct rank_place {
	uint32_t like; /* the same number in all processes where that is the same line, and … */
	uint32_t roughly; /* … where it is the same place in a library or a program */
	uint64_t where; /* a hash that stands for the latter in other analyses, too */
	enum idle_cause cause;
	bool any_time; /* was spent there */
	struct idle_part longest;
	struct idle_holder *holder; /* as of a sum of idle.h; NULL: none; owned */
	uint64_t spent_ns; /* by its process, before all operations that were compared */
};

/* The same while records of its process are read: a sum of idle.h, which has no owner. */
struct lane_place {
	struct idle_sum sum; /* the first: hashed by its key */
	struct rank_place *place; /* the evaluation's: not to be looked into */
	bool changed; /* since it was told */
	struct lane_place *next_changed;
	/* Where the last lane that was there has it among its parts, if it still has. */
	struct rank_lane *lane;
	uint32_t part;
};

#define LANE_RECENT_BITS 7

struct lane_part {
	struct lane_place *place;
	uint64_t ns;
	uint64_t end_ns; /* of the last of it; trace time */
};

/* The same of an operation. */
struct rank_part {
	struct rank_place *place;
	uint64_t ns, end_ns;
	uint32_t like, roughly; /* the place's: parts of many operations are compared by them */
};

/* A thread that submits operations. */
struct rank_lane {
	const struct thread *thread;
	struct thread_account *account;
	uint64_t divided_ns; /* its time is divided until then */
	uint64_t divided_calls; /* and so many of its calls had returned */
	uint64_t submitted_ns; /* begin of the launch of its last operation; 0: none yet */
	uint64_t holes; /* in the process's record by then */
	uint64_t handed_over; /* operations of its GPU by then */
	/* The calls that submitted its last operations; NULL: GPU times are not recorded. A ring. */
	struct rank_launch {
		uint64_t begin_ns, end_ns;
	} * launches;
	uint64_t n_launches;
	struct lane_part parts[PARTS_MOST]; /* since then */
	uint32_t n_parts;
	struct lane_place *recent[1 << LANE_RECENT_BITS]; /* found last, by some bits of the key */
};

/* A communicator, as its process numbers it. */
struct lane_comm {
	struct lane_comm_key {
		uint32_t process, comm;
	} key;
	uint32_t device;
	/* Of its last operation: when it was submitted (0: there was none), its stream, and what that one had had then. */
	uint64_t submitted_ns;
	const struct gpu_stream *stream;
	uint64_t upto, work;
	uint64_t handed_over; /* to all streams of its device */
	UT_hash_handle hh;
};

/* Of a process: its last launch of a graph, if there are collective operations in it (graphs.c). */
struct rank_graph {
	struct completed_call launch; /* thread NULL: none yet */
	const struct gpu_stream *stream; /* NULL: unknown */
	uint64_t upto; /* of that stream, with the launch */
	bool at_once; /* the stream had nothing to do before */
	bool has_first; /* an operation of it has been seen */
	bool waited_for; /* it has been told, but not that it has run */
	uint32_t id; /* of that operation */
	/* An operation of the next launch, which has not returned yet. */
	bool ahead;
	uint64_t ahead_ns;
	struct spy_rec_collective first_ahead;
};

/* A place where operations are submitted that has been told. */
struct lane_site {
	uint64_t key;
	UT_hash_handle hh;
};

#define FEEDERS_MOST 8

/* Threads of a process that make calls: one that submits operations may only do so on behalf of another. */
struct rank_feeders {
	const struct thread *all[FEEDERS_MOST];
	bool submits[FEEDERS_MOST]; /* it has handed work to a GPU */
	size_t n;
};

/* ---- operations ------------------------------------------------------------------------------ */

/* t of a timer is t + offset + slope * (t - at_ns) of another one. */
struct clock_fit {
	bool known;
	int64_t offset_ns;
	double slope;
	uint64_t at_ns; /* 0: it is that timer itself */
	uint64_t error_ns; /* 95 % of the differences are no larger */
};

/* Of the offset that makes trace time of a GPU's timer, at that time of the timer. */
struct clock_bounds {
	int64_t least_ns, most_ns;
	bool has_least, has_most;
	uint64_t at_ns;
};

/* A GPU's timer, as a process has it. */
struct rank_timer {
	struct timer_key {
		uint32_t process, device;
	} key;
	const struct rank_comm *comm; /* whose clock the fit is about */
	struct clock_fit fit; /* to that of the communicator's reference */
	struct clock_bounds host;
	UT_hash_handle hh;
};

/* What sends and receives say of a member's timer against the reference's. */
struct rank_messages {
	const struct rank_member *reference;
	struct clock_bounds bounds;
	uint64_t since_ns; /* the first one of the block, by its own timer; 0: none */
};

/* How far a member's GPU is behind the others' from operation to operation. */
struct rank_lag {
	bool known; /* there was an operation before */
	uint64_t gpu_ns; /* that its GPU's own work made it late before its thread did */
	/* That its thread made it late, then or earlier, and is not made up for. */
	uint64_t host_ns;
	struct idle_part cause; /* of host_ns, the most of it */
};

/* The last operation that was evaluated of those that two members have: [0] of the communicator's first one. */
struct rank_pair {
	bool known;
	uint64_t first_ordinal, ordinal;
	uint64_t first_holes, holes;
	uint64_t ns[2]; /* submitted; trace time */
	struct rank_op_seen seen[2];
};

/* A rank in a communicator. */
struct rank_member {
	struct member_key {
		uint32_t process, comm; /* the process's number of it */
	} key;
	struct rank_comm *comm;
	struct rank_member *graph; /* the same of its launches of graphs (graphs.c); NULL: none */
	struct rank *rank;
	const struct process *process;
	struct rank_timer *timer;
	uint32_t index; /* in the communicator's members */
	uint32_t number; /* in the communicator */
	uint32_t device;
	uint64_t ordinal; /* of its next operation that is recorded, sends and receives aside */
	uint64_t ran_ordinal_1; /* of the last one that is known to have run, and 1; 0: none */
	uint64_t next_seq[SPY_NCCL_FUNCS]; /* behind its last operation of the function … */
	uint64_t seq_ns[SPY_NCCL_FUNCS]; /* … which was then; 0: none */
	uint64_t longest_ns; /* between two operations */
	struct rank_op_seen last; /* its last operation */
	bool has_last;
	struct rank_op_seen odd; /* the last one that was evaluated without others */
	bool has_odd;
	struct rank_pair pair; /* of it and the communicator's first member */
	/* By the GPU's own timer: until then its operations, and its waits, are in the sums. */
	uint64_t busy_until_ns, waited_until_ns;
	/* The operation before, when instances are evaluated: its end on the host's clock; 0 unknown. Of several messages of one kernel it is
	 * the kernel's: met_after_ns is for what comes behind the launch of that time. */
	uint64_t met_ns, met_after_ns, met_launch_ns;
	struct rank_lag lag;
	/* So far it is behind the others since something waited for its operations: evaluate.c. */
	uint64_t behind_ns;
	/* Since then, of its GPU's time for its own work, what the others' do not take for the same: 0 … 1. */
	double slower;
	uint64_t ended_ns; /* its operation before, by the GPU's timer; 0: none yet */
	uint64_t behind_middle_ns; /* the same behind the middle of the ranks: job/matched.c */
	uint64_t sampled_end_ns; /* of its operation before, by the GPU's timer: sample.c */
	size_t sampled_comm_1; /* its communicator in the rank's samples */
	struct rank_messages messages;
	struct rank_op *message; /* the last one that it submitted; NULL: none; held */
	/* Of those that are known to have run, the last one that was launched: when, and its begin by the GPU's timer; 0: none. */
	uint64_t begun_launch_ns, begun_ns;
	uint64_t paid_ns; /* launch of the last operation that it was late in */
	/* Of the block that is evaluated. */
	struct clock_fit fit; /* to the timer of the reference */
	bool fitted; /* by many operations, not by a few and no better */
	bool has_host;
	int64_t host_offset_ns; /* trace time less the GPU's timer */
	uint64_t host_error_ns;
	size_t n_block;
	UT_hash_handle hh, by_number;
};

/* An operation of one rank. */
struct rank_op {
	struct rank_op *next; /* of its instance */
	struct rank_instance *instance;
	struct rank_member *member;
	uint64_t key; /* process and id, for the record that says when it ran */
	uint64_t ordinal; /* among the recorded ones of its member, sends and receives aside */
	uint64_t submit_begin_ns, submit_end_ns; /* the launch; trace time */
	uint64_t begin_ns, end_ns; /* GPU's timer, or of host times trace time */
	uint64_t seen_ns,
		ran_ns; /* trace time: begin no later than (0: unknown), end no later than */
	int64_t arrival_ns, left_ns; /* by the reference's timer: begin and end */
	uint64_t wait_ns; /* of it, until the last one came */
	uint64_t
		met_before_ns; /* end of its rank's operation before, of another communicator; by its timer; 0: none */
	uint64_t gpu_operations; /* handed over since the lane's operation before */
	const struct operation_row *row; /* of a digest that it comes from; NULL: of traces */
	/* Until then: its process's recording was dormant, or numbers of its rank's operations are missing. */
	uint64_t holes;
	struct rank_site_sum *site;
	bool followed; /* when it ran was to be told */
	bool expected; /* a record is to say when it ran */
	bool ran; /* it is there */
	bool by_host_times;
	bool launched; /* the launch is known; else its times are those of the record */
	bool continues; /* nothing has waited for the communicator's operation before it, which may be going on still */
	bool first; /* its lane's first one or first behind a hole, or of no lane: what the thread did before is not known */
	bool exchange; /* a message of an all-to-all: all ranks send to all of them, and to themselves */
	bool one_of_several; /* messages of one kernel: only its begin is known, not when this one of them ended */
	bool in_a_row; /* nothing else was handed over since an operation like this */
	bool aligned;
	bool aside; /* in none of the sums: a digest has it because it came late */
	bool reference; /* of the rank by which steps are counted */
	/* The first message of its kernel, which has what the thread did before; NULL: it is no message, or the first. */
	struct rank_op *lead;
	uint32_t held; /* by others than its instance */
	bool spent; /* its parts are in the sums of their places */
	double since_met; /* of what its parts are since the ranks met last, at most: so much is */
	UT_hash_handle hh;
	uint32_t n_parts;
	struct rank_part *parts; /* its own or its lead's */
	struct rank_part own_parts[];
};

/* An operation of all ranks of a communicator, or of two of them. */
struct rank_instance {
	/* Without padding: it is hashed byte by byte. */
	struct instance_key {
		uint64_t seq;
		uint32_t func; /* of a receive that of the send */
		uint32_t from, to; /* of sends and receives, ranks in the communicator */
		uint32_t zero;
	} key;
	struct rank_comm *comm;
	struct rank_instance *prev, *next; /* in the communicator's list, the older first */
	struct rank_op *ops;
	uint64_t *came; /* members of whom there is one: a bit for each index; owned */
	uint32_t n_came; /* words of it */
	/* Some of many operations, which others are compared with; NULL: not chosen yet; owned: reasons.c. */
	const struct rank_op **spread;
	uint32_t n_spread;
	uint32_t n_ops, n_done; /* done: they ran, or nobody will say when */
	bool ready;
	uint8_t func;
	uint8_t bytes_each;
	int32_t peer;
	uint64_t count;
	int64_t left_ns; /* of its last operation, while a block is put in order */
	uint64_t step; /* number; 0: none known */
	uint64_t number; /* of those the listener has seen */
	uint32_t log_at, log_round; /* where steps are found later: steps.c */
	UT_hash_handle hh;
};

struct rank_comm {
	struct comm_key {
		uint64_t hash;
		uint64_t job; /* hash of its name */
		uint64_t graphs; /* 1: its operations are launches of graphs (graphs.c) */
	} key;
	uint32_t ranks; /* 0 unknown */
	char name[33];
	struct rank_member **members; /* owned array */
	size_t n_members;
	struct rank_member *by_number; /* the same */
	bool grew; /* a member has joined: what was ready may be so no more */
	struct rank_instance *instances; /* by key */
	struct rank_instance *first, *last; /* the same by age */
	size_t n_open, n_ready, n_ops;
	uint64_t n_disagreements, n_odd;
	struct rank *
		row_last; /* of the operation that was evaluated last: who was last, and by how much; NULL: nobody */
	uint64_t row_late_ns;
	UT_hash_handle hh;
};

/* ---- sums ------------------------------------------------------------------------------------ */

struct rank_group_sum {
	struct group_key {
		uint64_t hash, job;
		uint64_t graphs; /* 1: launches of graphs */
		uint64_t count;
		uint32_t func, bytes_each;
	} key;
	struct rank_group sum;
	struct rank_site_sum *site; /* of its last operation that had a stack */
	UT_hash_handle hh;
};

struct rank_site_sum {
	uint64_t key; /* hash of the place */
	struct rank_site sum;
	UT_hash_handle hh;
};

struct rank_identity {
	char *key; /* job and number; or process and device */
	struct rank *rank;
	UT_hash_handle hh;
};

struct rank_steps_work;

/*
 * Two things are in it. What is found while the records of a process are read, and is about that process alone: lanes.c,
 * capture.c. And what is about several: who was last, by how much and why. All that the second has to know of a process
 * is emitted to it as events (events.h): at once, where one thread reads all records. Where several do, each has its own struct
 * ranks, in which there is only the first, and the events go through a journal to the whole's.
 */
struct ranks_work {
	/* ---- of the processes that are read */
	struct rank_lane **lanes; /* by thread index; NULL: none */
	size_t n_lanes;
	struct rank_feeders *feeders; /* by process; owned */
	struct rank_graph *graphs; /* likewise */
	struct idle_sum *lane_places; /* struct lane_place, by key */
	struct lane_place *changed_places; /* to be told */
	struct lane_comm *lane_comms;
	struct lane_site *lane_sites;
	/* ---- of all ranks */
	const char *
		refused; /* what is only right if one thread reads all records; NULL: nothing yet */
	struct rank_comm *comms; /* the youngest of each key */
	size_t n_comms;
	struct rank_comm **all_comms; /* owned, with what they have */
	struct rank_member *members; /* by process and number */
	size_t n_members;
	struct rank_timer *timers;
	struct rank_identity *identities;
	struct rank_op *pending; /* submitted, and not known to have run */
	size_t n_ops;
	uint64_t
		captured_follow; /* operations in graphs of which NCCL is still to say that they ran */
	struct rank_place **places; /* in the order in which they came up; owned */
	size_t n_places;
	struct like_place *likes;
	uint32_t n_likes;
	struct rank_group_sum *groups;
	struct rank_site_sum *sites;
	struct rank_steps_work *steps;
	struct rank_name *names;
	uint8_t *lacks; /* by process: order.c; owned */
	struct rank_disagreement *
		disagreements; /* the first ones of each communicator, in the order they came up; owned */
	size_t n_disagreements;
	uint64_t n_shown; /* instances, to the listener */
};

/* ---- ranks.c --------------------------------------------------------------------------------- */

/* The rank's shares, with room for that one. */
struct rank_share *rank_share_of(struct rank_share **shares, size_t *n, const struct rank *rank);

/* Is the process at work then? */
bool rank_working(const struct ranks *ranks, const struct process *process, uint64_t ns);

/* ---- capture.c ------------------------------------------------------------------------------- */

/* Records of NCCL's: what is to be known of them is told. */
void rank_capture_comm(struct ranks *ranks, const struct record *record);
void rank_capture_collective(struct ranks *ranks, const struct record *record);
void rank_capture_ran(struct ranks *ranks, const struct record *record);

/* One more owner; the release by the last one frees it, and what it holds itself. */
struct rank_op *rank_op_hold(struct rank_op *op);
void rank_op_release(struct rank_op *op);

/* The communicator of that number; NULL: unknown. */
struct lane_comm *rank_lane_comm(const struct ranks_work *w, uint32_t process, uint32_t number);

/* An operation that the thread has submitted, with what it did before. launch: the call; NULL: not known, then it was at that time. */
struct rank_op *rank_op_new(struct ranks *ranks, const struct thread *thread, uint64_t ns,
			    const struct completed_call *launch, uint32_t device);

/* ---- graphs.c ------------------------------------------------------------------------------- */

/* A record of an operation in a graph. */
void rank_graph_see(struct ranks *ranks, const struct record *record,
		    const struct spy_rec_collective *operation);

/* A call of a process that submits operations has returned. */
void rank_graph_see_call(struct ranks *ranks, const struct record *record);

/* ---- lanes.c --------------------------------------------------------------------------------- */

/* The lane of a thread, made if it is new; NULL: it has made no call. */
struct rank_lane *rank_lane_get(struct ranks *ranks, const struct thread *thread);

/* For idle.h: does the operation of a GPU come from a launch of that kind? data: the ranks. */
bool rank_is_collective(void *data, const struct gpu_event *op);

/* Divides what the lane's thread did since the last time, up to the end of its last call. */
void rank_lane_divide(struct ranks *ranks, struct rank_lane *lane);

/* Takes what the lane's thread did, or others for it that it waited for, since it was taken last. Returns how many parts. */
uint32_t rank_lane_take(struct ranks *ranks, struct rank_lane *lane,
			struct lane_part parts[PARTS_MOST]);

/* A line of Python, or else a function or a call: the same number in all processes; 0: no place, or unknown. */
uint64_t rank_line_key(const struct process *process, const struct idle_part *part);

/* Where an operation was submitted. stack: taken for it; NULL: that of the launch. */
void rank_site_see(struct ranks *ranks, const struct thread *thread, uint64_t ns,
		   const struct stack *stack, const struct completed_call *launch,
		   struct rank_site_event *event);

/* As ranks_parts. */
size_t rank_lane_places_parts(const struct ranks_work *w,
			      size_t (*see)(const struct idle_part *part));
void rank_lanes_release(struct ranks_work *w);

/* ---- places.c -------------------------------------------------------------------------------- */

void rank_place_apply(struct ranks *ranks, const struct rank_place_event *event);
struct rank_site_sum *rank_site_get(struct ranks *ranks, const struct process *process,
				    const struct rank_site_event *event, uint8_t func);

/* The name of that key: the same one for all processes. */
const struct range_name *rank_name_get(struct ranks_work *w, const struct range_name *name);

void rank_names_forget(struct ranks_work *w);

/* As ranks_parts. */
size_t rank_places_parts(const struct ranks_work *w, size_t (*see)(const struct idle_part *part));
void rank_places_release(struct ranks_work *w);

/* ---- reasons.c ------------------------------------------------------------------------------- */

/* Why an operation was late: what its thread did and the others' did not, and what that does not explain. */
struct rank_reasons {
	struct rank_reason {
		struct idle_part part; /* IDLE_GPU_WORK: what it waited for its GPU */
		const struct rank_place *of; /* NULL: no place */
		uint64_t ns;
	} all[PARTS_MOST + 1];
	uint32_t n;
	uint64_t rounding_ns;
	bool same_work; /* about as many operations of the GPU had been submitted as the others' */
};
void rank_reasons_find(const struct ranks *ranks, struct rank_instance *instance,
		       const struct rank_op *op, uint64_t late_ns, struct rank_reasons *reasons);

/* The instance's last operation was late by so much: says why, to the sums of its rank. Shows the largest part. */
void rank_reasons_charge(struct ranks *ranks, struct rank_instance *instance,
			 const struct rank_op *last, uint64_t late_ns, struct idle_part *largest,
			 uint64_t *largest_ns);

/* Of a part what was since the ranks met last: nothing before that can have made it late. All parts are no more than the time that has passed
 * since: for each operation that is looked at, first. */
void rank_reasons_see(struct rank_op *op);
uint64_t rank_part_since_met(const struct rank_op *op, const struct rank_part *part);

/* Was it a wait of the thread for its own GPU, because that has too much to do? common: other ranks wait there, too. */
bool rank_waits_for_own_gpu(const struct ranks *ranks, const struct idle_part *part, bool common);

/* How long it waited for its GPU, which had all before it already; 0: it was on the way, or it is not known. */
uint64_t rank_op_queued(const struct rank_op *op);

/* Nobody came later than this member. */
void rank_reasons_in_time(const struct rank_op *op);

/* ---- unshared.c ------------------------------------------------------------------------------ */

/* An operation of all ranks was compared: what their threads did before it. */
void rank_unshared_see(const struct rank_instance *instance);

/* After the last record: sums up where each rank's thread was. */
void rank_unshared_finish(struct ranks *ranks);

/* ---- match.c --------------------------------------------------------------------------------- */

void rank_apply_submitted(struct ranks *ranks, const struct rank_submitted_event *event);
void rank_apply_ran(struct ranks *ranks, const struct rank_ran_event *event);

/* A send or a receive. */
bool rank_func_is_between_two(uint8_t func);

/* Of a member, the same for its launches of graphs; NULL: there are too many. ranks.c. */
struct rank_member *rank_graph_member(struct ranks *ranks, struct rank_member *member);

/* Of the events, each: ranks.c. */
void rank_apply_comm(struct ranks *ranks, const struct rank_comm_event *event);

/* After the last record: evaluates all that is open. */
void rank_comm_close(struct ranks *ranks, struct rank_comm *comm);
void rank_comm_free(struct ranks *ranks, struct rank_comm *comm);

/* ---- clocks.c -------------------------------------------------------------------------------- */

/* Of the instances of a block, the oldest n: finds each member's fit. */
void rank_clocks_fit(struct ranks *ranks, struct rank_comm *comm,
		     struct rank_instance *const *block, size_t n);

/* Operations of this function end at the same time on all ranks. */
bool rank_func_is_symmetric(uint8_t func);

/* ---- evaluate.c ------------------------------------------------------------------------------ */

void rank_evaluate(struct ranks *ranks, struct rank_instance *instance);
void rank_evaluate_end(struct rank_comm *comm); /* there are no more of it */
struct rank_group_sum *rank_group_get(struct ranks *ranks, const struct rank_instance *instance);

/* ---- order.c --------------------------------------------------------------------------------- */

/* An operation, as its instance has it. */
struct rank_op_seen rank_seen_of(const struct rank_op *op);

/* A member submits an operation, which is the first in the instance's list: is it the same one as the others'? */
void rank_order_see(struct ranks *ranks, const struct rank_instance *instance,
		    const struct rank_op_seen *seen);

/* An instance is evaluated: are its operations in the same order in all members? */
void rank_order_compare(struct ranks *ranks, const struct rank_instance *instance);

/* After the last record: what ranks disagreed about, where nothing is missing that would explain it. */
void rank_disagreement_find(struct ranks *ranks);

/* After the last record: the open instances of a communicator. */
void rank_missing_find(struct ranks *ranks, const struct rank_comm *comm);

/* ---- steps.c --------------------------------------------------------------------------------- */

void rank_steps_release(struct ranks_work *w);

/* A rank submits its operation of an instance. */
void rank_steps_see(struct ranks *ranks, struct rank_op *op,
		    const struct rank_submitted_event *event);

/* When parts of a set have become one: names of ranges are the whole's. */
void rank_steps_rename(struct ranks *ranks);

/* What an instance that was evaluated adds to its step. */
struct rank_step_part {
	uint64_t begin_ns; /* trace time at which the reference rank submitted it */
	/* When the first rank came, by the reference rank's GPU timer; 0 unknown. */
	uint64_t first_ns;
	bool by_host_times; /* no, by its host's clock */
	uint64_t wait_ns, late_ns;
	const struct rank *last; /* NULL: nobody */
	struct idle_part cause;
	const struct process *process;
	uint64_t cause_ns;
};
void rank_steps_add(struct ranks *ranks, const struct rank_instance *instance,
		    const struct rank_step_part *part);
void rank_steps_finish(struct ranks *ranks);

/* As ranks_parts. */
size_t rank_steps_parts(const struct ranks_work *w, size_t (*see)(const struct idle_part *part));

#endif
