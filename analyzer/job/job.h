/*
 * analyzer/job/job.h: a job of many ranks, as their digests tell it: which ranks, hosts and GPUs differ from the rest, and
 * in what; who was last at collective operations; which steps were slow. Made of a digest (load.c), in one pass over its
 * ranks. The sections (sections.c and others of this folder) make tables of it, and know no digest.
 *
 * Which operations are one, clocks, who was last and why ranks/ says, as of traces (feed.c). Beside that, ranks are compared by
 * medians and distances from them: a few ranks that are far out move neither. All thresholds of that are in differ.c.
 */
#ifndef CUDASPY_JOB_H
#define CUDASPY_JOB_H

#include "digest/digest.h"
#include "idle/causes.h"
#include "base/median.h"
#include "findings/straggler.h"

#define JOB_CAUSES_MOST 128 /* codes of causes that are told apart */

/* What calls lose that ranks are compared by. */
enum job_loss_of { JOB_LOST_TO_LOCKS, JOB_LOST_TO_OTHERS, JOB_LOST_TO_IOCTLS, JOB_LOST_TO };

/* Parts of a recording that follow one another: a row of the table `parts`. */
struct job_part {
	const char *recording;
	uint64_t first, last, parts, removed_calls;
	uint64_t from_ns, until_ns; /* since the epoch, by its host's clock */
	bool newest;
	struct job_part *next; /* in order */
};

/* A rank, as far as ranks are compared. */
struct job_rank {
	const char *name; /* "rank 3" */
	const char *job, *program; /* empty: unknown */
	uint64_t number_1, world_size, restarts, pid;
	uint32_t host; /* index */
	uint32_t gpu; /* index of its first one; UINT32_MAX: none */
	uint64_t begin_ns, span_ns, dormant_ns, records, lost_records, calls, calls_ns, lost_ns;
	uint64_t outside_ns;
	uint64_t operations, timed;
	bool sampled; /* not all of its operations that can be compared are here */
	uint64_t cost_ppm_1;
	struct job_part *parts; /* NULL: of a recording without, all of it; of the job's texts */
	/* cover.c: of the recording of its first process */
	const char *parts_words; /* "part 2", "parts 1-3, 5"; NULL as parts is */
	uint64_t n_parts, n_parts_known; /* that are here; the number of the last one of these */
	bool parts_end_known; /* … behind which there is none … */
	bool parts_complete; /* … and none is missing before it */
	uint64_t removed_calls; /* in parts that the recorder has deleted */
	bool is_apart; /* it covers another time than most ranks */
	struct {
		uint64_t ns; /* of its calls */
		uint64_t longest_ns; /* of one call, or more than that */
	} lost[JOB_LOST_TO];
	uint64_t own_ns, own_operations; /* of its GPU, exactly; 0 unknown */
	/* Of collective operations: filled in by matched.c; last, late_ns, waited_ns as in struct rank */
	uint64_t
		met; /* sampled ones in which others were there, too, and clocks could be aligned */
	uint64_t last; /* of these, those in which it came last, and others waited for it … */
	uint64_t late_ns; /* … so long, the longest of their waits in each */
	uint64_t first_met_ns, last_met_ns; /* when it submitted the first and the last one */
	uint64_t behind_ns; /* the middle of the ranks, in all of them … */
	uint64_t longest_behind_ns; /* … in one … */
	uint64_t beside_ns; /* … and in those in which another one was the last */
	uint64_t
		usual_late_ns; /* on average, but for the tenth in which it was latest: systematic, no hiccups */
	uint64_t often_late; /* in how many it was late by far more than ranks are by chance */
	uint64_t sure_ns; /* of late_ns, what something waited for, but for the longest */
	uint64_t waited_ns; /* until the last one came */
	uint64_t gpu_late,
		same_work; /* late for its GPU: how often, and with no more work than the others */
	/* Of late_ns, by what its thread did and the others did not; where it was behind and not last, of behind_ns. */
	uint64_t cause_ns[JOB_CAUSES_MOST];
	const char *place; /* where most of the largest cause was; empty: unknown */
	uint64_t place_ns;
	uint64_t fit_error_ns; /* of its GPU's timer, against the others' */
};

struct job_host {
	const char
		*name; /* "node7"; where there are several of that name, "node7 (boot 1234abcd)" */
	const char *boot; /* empty: unknown */
	uint32_t ranks;
	/* Its clock less that of the host that is taken for right, by operations of both. */
	bool clock_known;
	int64_t clock_ns;
	uint64_t clock_error_ns; /* what is left: 95 % of operations agree within that */
};

struct job_gpu {
	const char *uuid;
	uint32_t host;
};

/* An operation that came long after the one like it before. */
struct job_slow {
	uint64_t at_ns; /* since the job's begin */
	uint64_t period_ns, typical_ns;
	uint64_t late_ns; /* by which the last rank was behind the first */
	uint32_t rank; /* that one; UINT32_MAX: nobody in particular */
	uint32_t cause; /* index; UINT32_MAX unknown */
	const char *place;
	uint32_t ranks; /* that were there */
	uint8_t function;
	uint64_t bytes;
};

#define JOB_SLOW_MOST 32

/* A process of a rank on a GPU. */
struct job_tenant {
	uint32_t rank;
	const char
		*place; /* the boot of its host, or the host: a GPU of that place and uuid is one */
	const char *uuid, *gpu, *directory, *percentage;
	uint64_t pid, user, from_ns, until_ns, waited_ns, server, turn_ns, server_user;
	bool client; /* of MPS */
	/* sharing.c: with how many it ran at the same time, and took turns; for how long any other was there, and one that it
	 * took turns with. */
	uint64_t mates, rivals, shared_ns, sliced_ns;
	const char *with;
};

/* A finding of one place in the program, in all ranks. */
struct job_site {
	const char *detector, *function, *module, *caller, *file, *python;
	uint64_t offset, line;
	uint64_t severity; /* the gravest of the ranks' */
	uint64_t ranks, count, own_ns, others_ns, gain_low_ns, gain_high_ns, idle_gpu_ns, weight_ns;
	uint64_t share_ppm; /* the largest of a rank's threads */
	uint64_t problems; /* ranks in which it is a problem */
	/* The rank that was loaded last, which may have parts: */
	uint32_t rank_1;
	uint64_t rank_weight_ns;
	bool rank_has_problem;
	struct job_top {
		uint32_t rank;
		uint64_t ns;
	} top[3];
	UT_hash_handle hh;
	char key[];
};

#define JOB_NAMED 4 /* ranks that are named one by one */

/* What traces do not have, of all ranks. */
struct job_loss {
	const char *kind;
	uint64_t count, ranks;
	uint32_t last_1; /* rank */
	uint32_t first[JOB_NAMED]; /* ranks */
};

enum job_about { JOB_RANK, JOB_HOST, JOB_GPU };

/* Somebody differs from the rest. */
struct job_finding {
	enum job_about about;
	uint32_t who; /* index */
	const char *cause; /* a code: those of idle/causes.h and of differ.c */
	const char *what, *evidence, *fix; /* sentences */
	uint64_t cost_ns; /* of the job's time, about */
	uint64_t share_ppm;
};

#define JOB_FEW 8 /* ranks: of fewer it is unknown what is usual among them */
#define JOB_PARTS_MOST 64 /* ranks: of more the parts of the run are not compared */

/* Tables of the digest whose rows are put together over all ranks. */
enum job_sum_table { JOB_FUNCTIONS, JOB_CAUSES, JOB_LOCKS, JOB_EDGES, JOB_SUMS };

/* Rows of one key, folded as the schema says. */
struct job_sum {
	uint64_t ranks;
	uint32_t most_rank; /* that has most in the column `by` … */
	uint64_t most; /* … so much */
	uint32_t last_1; /* the rank that was added last … */
	uint64_t last; /* … and has so much */
	UT_hash_handle hh;
	uint64_t *cells; /* owned */
	char key[];
};

struct job {
	const struct digest *digest;
	struct arena texts;
	struct job_rank *ranks;
	size_t n_ranks;
	struct job_host *hosts;
	size_t n_hosts;
	struct job_gpu *gpus;
	size_t n_gpus;
	uint32_t n_jobs; /* names of jobs */
	uint64_t world_size, span_ns;
	uint64_t begin_ns; /* since the epoch, by the first host's clock: cover.c */
	size_t n_partial,
		n_apart; /* ranks of whose recordings parts are missing; that cover other times than most */
	uint64_t most_from_ns, most_until_ns; /* what most ranks cover, since begin_ns */
	uint32_t *missing; /* numbers of ranks that are not there, of one job; owned */
	size_t n_missing;
	const char *causes[JOB_CAUSES_MOST]; /* codes, by index */
	size_t n_causes;
	uint64_t compared, unaligned; /* operations that were compared, and that could not be */
	uint64_t typical_ns; /* from an operation to the next like it, median */
	uint64_t align_error_ns; /* the worst rank's */
	struct job_slow slow[JOB_SLOW_MOST];
	size_t n_slow;
	uint64_t slow_count, slow_more_ns;
	struct job_site *sites;
	struct job_tenant *tenants; /* by GPU, in the order of their beginnings; owned */
	size_t n_tenants;
	struct job_loss *losses;
	size_t n_losses;
	struct job_finding *findings;
	size_t n_findings;
	struct job_sum *sums[JOB_SUMS]; /* by key; in the order of JOB_SUM_TABLES */
	uint64_t records, lost_records, calls, calls_ns, lost_ns;
	struct job_times {
		uint64_t *all;
		size_t n;
	} * late; /* of each rank, in each operation; while it is made */
	struct rank_parts
		parts; /* the same in the order of time, where there are few ranks; likewise */
	const struct ranks *ranks_of; /* that operations are evaluated by; likewise: feed.c */
	uint32_t
		straggler; /* rank that holds the others up, by the rules for traces; UINT32_MAX: none */
	enum straggler_by straggler_by;
	struct operation_row *rows; /* while it is made: load.c, matched.c */
	size_t n_rows;
};

/* job_release in all cases; the digest must live as long. */
void job_init(struct job *job, const struct digest *digest);
void job_release(struct job *job);

/* Operations that those that were compared stand for, and these. */
static inline uint64_t job_operations_of(const struct job_rank *r)
{
	return r->sampled ? max_u64(r->timed, r->met) : r->met;
}

/* The words of a cause's code, as a sentence has them. */
const char *job_cause_text(const char *code);

/* ---- for the files of this folder ------------------------------------------------------------ */

/* An operation of a rank: a row of the tables "meetings" and "slow". */
struct operation_row {
	uint64_t key, comm, bytes;
	uint32_t rank;
	uint32_t comm_number; /* from 1 on: feed.c */
	uint8_t function;
	bool slow; /* it was among the longest */
	bool by_host, continues, first; /* as in struct rank_op */
	uint64_t submit_ns, submitted_ns; /* by the host's clock, since the epoch */
	uint64_t host_ns, host_error_ns; /* the same of its begin; 0 unknown */
	uint64_t begin_ns, end_ns; /* GPU's timer */
	uint64_t period_ns, work;
	struct operation_cause {
		uint8_t cause;
		uint64_t ns, where; /* 0 unknown */
	} causes[DIGEST_OPERATION_CAUSES];
	const char *place;
};

uint8_t job_cause_index(struct job *job, const char *code);

/* The one of that detector at no place in particular; of a rank's own digest, or new. */
struct job_site *job_site_nowhere(struct job *job, const char *detector);

/* sums.c: the rows of a rank. */
void job_sum_add(struct job *job, const struct digest_data *data, uint32_t rank);
void job_sums_release(struct job *job);

/* Those of a table, the ones with most in the column `by` first; *n of them. The caller frees the array. */
struct job_sum **job_sums(const struct job *job, enum job_sum_table table, size_t *n);

void job_align_hosts(struct job *job); /* clocks.c */
void job_match(struct job *job); /* matched.c: who was last, when the begin is known */
void job_begin(struct job *job); /* cover.c: when it began */
/* A time of a rank's host, since the job's begin, by the first host's clock as far as that is known; no less than 0. */
uint64_t job_at_ns(const struct job *job, uint32_t rank, uint64_t ns);
void job_share(struct job *job); /* sharing.c: who used a GPU beside whom */
/* Did it take turns for long enough to tell? */
bool job_is_sliced(const struct job_tenant *tenant);
void job_cover(struct job *job); /* cover.c: what ranks are there for */
/* What it covers, since the job's begin, by the first host's clock. */
uint64_t job_from_ns(const struct job *job, const struct job_rank *r);
uint64_t job_until_ns(const struct job *job, const struct job_rank *r);
void job_differ(struct job *job); /* differ.c: findings */

#endif
