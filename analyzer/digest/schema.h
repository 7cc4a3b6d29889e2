/*
 * analyzer/digest/schema.h: the tables that a digest has of each rank, and their columns. This is the one list: the file
 * format carries it (format.c), a digest is reduced by it (data.c), `make.c` fills the tables and analyzer/job reads them.
 *
 * Columns and tables are only ever added at the end. So of two versions of a table one begins with the other, and a reader
 * keeps, merges and reduces what it does not know.
 */
#ifndef CUDASPY_DIGEST_SCHEMA_H
#define CUDASPY_DIGEST_SCHEMA_H

#include "base/util.h"

enum digest_type {
	DIGEST_NUMBER,
	DIGEST_TEXT, /* number of a text */
	DIGEST_TYPES
};

/* What becomes of a column where rows become one, the rest of their table. */
enum digest_fold {
	DIGEST_CLEAR, /* 0: it says whose row it is */
	DIGEST_SUM, /* the sum, NUMBER_MOST at most */
	DIGEST_MAX,
	DIGEST_FOLDS
};

/* Which rows are left where a table has to be smaller. */
enum digest_rule {
	DIGEST_ALL, /* the first ones: these tables are small in any case */
	DIGEST_TOP, /* those with the most in the column `by`; the others are folded into one, the rest */
	DIGEST_PICK, /* the same, and the others are dropped */
	DIGEST_LEAST, /* those with the least in the column `by`, a hash; the others are dropped */
	DIGEST_RULES
};

#define DIGEST_PARTS_MOST 16

/* clang-format off */

/* The table; its rule and column; rows at most where there are few ranks, and where there are very many. */
#define DIGEST_TABLES(TABLE) \
	TABLE(RANK,    rank,     ALL,   job,       1,    1) \
	TABLE(GPU,     gpus,     ALL,   uuid,      16,   2) \
	TABLE(FUNC,    functions, TOP,  total_ns,  96,   4) \
	TABLE(ROLE,    roles,    TOP,   total_ns,  24,   2) \
	TABLE(SITE,    sites,    TOP,   weight_ns, 128,  8) \
	TABLE(LOCK,    locks,    TOP,   waited_ns, 32,   2) \
	TABLE(EDGE,    edges,    TOP,   waited_ns, 64,   2) \
	TABLE(CAUSE,   causes,   TOP,   ns,        96,   8) \
	TABLE(COMM,    comms,    TOP,   operations, 64,  4) \
	TABLE(MEET,    meetings, LEAST, key,       1024, 16) \
	TABLE(SLOW,    slow,     PICK,  period_ns, 64,   4) \
	TABLE(WORST,   worst,    PICK,  lost_ns,   48,   1) \
	TABLE(LOSS,    losses,   ALL,   kind,      12,   12) \
	TABLE(TENANT,  tenants,  PICK,  used_ns,   16,   2) \
	TABLE(PART,    parts,    ALL,   recording, DIGEST_PARTS_MOST, DIGEST_PARTS_MOST)

/* Who it is. rank_1, local_1, device_1 and the like are one more than the number; 0 is unknown. */
#define DIGEST_RANK(C) \
	C(RANK, job, TEXT, CLEAR) \
	C(RANK, rank_1, NUMBER, CLEAR) \
	C(RANK, restarts, NUMBER, CLEAR) \
	C(RANK, place, TEXT, CLEAR) /* of what has no rank of a launcher's: host, program, process, begin */ \
	C(RANK, host, TEXT, CLEAR) \
	C(RANK, boot, TEXT, CLEAR) \
	C(RANK, program, TEXT, CLEAR) \
	C(RANK, pid, NUMBER, CLEAR) \
	C(RANK, local_1, NUMBER, CLEAR) \
	C(RANK, world_size, NUMBER, CLEAR) /* 0 unknown */ \
	C(RANK, processes, NUMBER, SUM) \
	C(RANK, threads, NUMBER, SUM) /* that made calls */ \
	C(RANK, begin_ns, NUMBER, CLEAR) /* since the epoch, by the host's clock */ \
	C(RANK, span_ns, NUMBER, MAX) /* from the first record to the last one */ \
	C(RANK, windows, NUMBER, SUM) /* 0: recording never was dormant */ \
	C(RANK, dormant_ns, NUMBER, SUM) \
	C(RANK, clock_hz, NUMBER, CLEAR) \
	C(RANK, ended, NUMBER, CLEAR) /* 1: all of its processes ended in order */ \
	C(RANK, records, NUMBER, SUM) \
	C(RANK, lost_records, NUMBER, SUM) \
	C(RANK, calls, NUMBER, SUM) \
	C(RANK, calls_ns, NUMBER, SUM) \
	C(RANK, lost_ns, NUMBER, SUM) /* of that */ \
	C(RANK, working_ns, NUMBER, SUM) /* of the thread that submits its operations: outside and in calls */ \
	C(RANK, outside_ns, NUMBER, SUM) /* of that, outside */ \
	C(RANK, operations, NUMBER, SUM) /* NCCL's */ \
	C(RANK, timed, NUMBER, SUM) /* of these, of which it is known when they ran */ \
	C(RANK, untimed, NUMBER, SUM) \
	C(RANK, captured, NUMBER, SUM) /* submitted in graphs: not followed */ \
	C(RANK, in_collectives_ns, NUMBER, SUM) \
	C(RANK, base_ns, NUMBER, CLEAR) /* host times of operations count from here */ \
	C(RANK, timer_base_ns, NUMBER, CLEAR) /* the same, times of the GPU's timer */ \
	C(RANK, cpus, NUMBER, CLEAR) /* that its processes may use; 0 unknown */ \
	C(RANK, cost_ppm, NUMBER, CLEAR) /* what recording cost it, + 1; 0: not measured */ \
	C(RANK, cost_low_ppm, NUMBER, CLEAR) \
	C(RANK, cost_high_ppm, NUMBER, CLEAR)

#define DIGEST_GPU(C) \
	C(GPU, uuid, TEXT, CLEAR) \
	C(GPU, name, TEXT, CLEAR) \
	C(GPU, pci, TEXT, CLEAR) \
	C(GPU, device_1, NUMBER, CLEAR) /* as the process numbers it */ \
	C(GPU, exact, NUMBER, CLEAR) /* 1: its times were recorded */ \
	C(GPU, busy_ns, NUMBER, SUM) /* exactly; else 0 */ \
	C(GPU, idle_ns, NUMBER, SUM) /* no less */ \
	C(GPU, own_ns, NUMBER, SUM) /* busy with other things than collective operations */ \
	C(GPU, own_operations, NUMBER, SUM) \
	C(GPU, exposed_ns, NUMBER, SUM) /* with collective operations and nothing else */

/* Durations of calls by powers of two: below 1 us, below 2 us, ... below 2^20 us, the rest. */
#define DIGEST_FUNC(C) \
	C(FUNC, function, TEXT, CLEAR) \
	C(FUNC, nested, NUMBER, CLEAR) /* 1: inside of other calls */ \
	C(FUNC, count, NUMBER, SUM) \
	C(FUNC, failed, NUMBER, SUM) \
	C(FUNC, total_ns, NUMBER, SUM) \
	C(FUNC, longest_ns, NUMBER, MAX) \
	C(FUNC, lost_ns, NUMBER, SUM) \
	C(FUNC, us_1, NUMBER, SUM) C(FUNC, us_2, NUMBER, SUM) C(FUNC, us_4, NUMBER, SUM) \
	C(FUNC, us_8, NUMBER, SUM) C(FUNC, us_16, NUMBER, SUM) C(FUNC, us_32, NUMBER, SUM) \
	C(FUNC, us_64, NUMBER, SUM) C(FUNC, us_128, NUMBER, SUM) C(FUNC, us_256, NUMBER, SUM) \
	C(FUNC, us_512, NUMBER, SUM) C(FUNC, us_1024, NUMBER, SUM) C(FUNC, us_2048, NUMBER, SUM) \
	C(FUNC, us_4096, NUMBER, SUM) C(FUNC, us_8192, NUMBER, SUM) C(FUNC, us_16384, NUMBER, SUM) \
	C(FUNC, us_32768, NUMBER, SUM) C(FUNC, us_65536, NUMBER, SUM) C(FUNC, us_131072, NUMBER, SUM) \
	C(FUNC, us_262144, NUMBER, SUM) C(FUNC, us_524288, NUMBER, SUM) C(FUNC, us_1048576, NUMBER, SUM) \
	C(FUNC, us_more, NUMBER, SUM)

/* Threads of one name, digits aside; the process's first one is "main". The buckets are those of account/buckets.h. */
#define DIGEST_ROLE(C) \
	C(ROLE, role, TEXT, CLEAR) \
	C(ROLE, threads, NUMBER, SUM) \
	C(ROLE, calls, NUMBER, SUM) \
	C(ROLE, total_ns, NUMBER, SUM) \
	C(ROLE, lost_ns, NUMBER, SUM) \
	C(ROLE, own_ns, NUMBER, SUM) \
	C(ROLE, loading_ns, NUMBER, SUM) \
	C(ROLE, gpu_intended_ns, NUMBER, SUM) \
	C(ROLE, gpu_hidden_ns, NUMBER, SUM) \
	C(ROLE, lock_ns, NUMBER, SUM) \
	C(ROLE, ioctl_ns, NUMBER, SUM) \
	C(ROLE, queue_ns, NUMBER, SUM) \
	C(ROLE, mps_ns, NUMBER, SUM) \
	C(ROLE, not_running_ns, NUMBER, SUM) \
	C(ROLE, unexplained_ns, NUMBER, SUM)

/* Findings, by their place in the program. */
#define DIGEST_SITE(C) \
	C(SITE, detector, TEXT, CLEAR) \
	C(SITE, function, TEXT, CLEAR) \
	C(SITE, module, TEXT, CLEAR) \
	C(SITE, offset, NUMBER, CLEAR) \
	C(SITE, caller, TEXT, CLEAR) \
	C(SITE, file, TEXT, CLEAR) \
	C(SITE, line, NUMBER, CLEAR) \
	C(SITE, python, TEXT, CLEAR) /* "train.py:42 in step" */ \
	C(SITE, severity, NUMBER, CLEAR) /* enum severity */ \
	C(SITE, count, NUMBER, SUM) \
	C(SITE, own_ns, NUMBER, SUM) \
	C(SITE, others_ns, NUMBER, SUM) \
	C(SITE, gain_low_ns, NUMBER, SUM) \
	C(SITE, gain_high_ns, NUMBER, SUM) \
	C(SITE, idle_gpu_ns, NUMBER, SUM) \
	C(SITE, bytes, NUMBER, SUM) \
	C(SITE, weight_ns, NUMBER, SUM) /* by which sites are kept: the gain; where it is unknown, the cost */ \
	C(SITE, share_ppm, NUMBER, MAX) /* of the time of the thread that pays most */

#define DIGEST_LOCK(C) \
	C(LOCK, place, TEXT, CLEAR) /* "libcuda.so.1+0x1234", "heap" */ \
	C(LOCK, kind, TEXT, CLEAR) \
	C(LOCK, function, TEXT, CLEAR) /* that it was first waited for in */ \
	C(LOCK, locks, NUMBER, SUM) \
	C(LOCK, waits, NUMBER, SUM) \
	C(LOCK, waited_ns, NUMBER, SUM) \
	C(LOCK, longest_ns, NUMBER, MAX)

/* Who waited for whom, by role and function. */
#define DIGEST_EDGE(C) \
	C(EDGE, waiter, TEXT, CLEAR) \
	C(EDGE, waiter_function, TEXT, CLEAR) \
	C(EDGE, holder, TEXT, CLEAR) \
	C(EDGE, holder_function, TEXT, CLEAR) \
	C(EDGE, cause, TEXT, CLEAR) /* what the holder was doing, at the root */ \
	C(EDGE, inferred, NUMBER, CLEAR) \
	C(EDGE, waits, NUMBER, SUM) \
	C(EDGE, waited_ns, NUMBER, SUM)

/* Why GPUs had nothing to do (of "gpu"), and what the thread that submits work did outside of calls (of "thread"). */
#define DIGEST_CAUSE(C) \
	C(CAUSE, of, TEXT, CLEAR) \
	C(CAUSE, cause, TEXT, CLEAR) /* a code of idle/causes.h */ \
	C(CAUSE, place, TEXT, CLEAR) \
	C(CAUSE, count, NUMBER, SUM) \
	C(CAUSE, ns, NUMBER, SUM) \
	C(CAUSE, longest_ns, NUMBER, MAX)

#define DIGEST_COMM(C) \
	C(COMM, comm, NUMBER, CLEAR) /* hash */ \
	C(COMM, name, TEXT, CLEAR) \
	C(COMM, ranks, NUMBER, CLEAR) /* that it has; 0 unknown */ \
	C(COMM, member_1, NUMBER, CLEAR) /* its rank in it */ \
	C(COMM, operations, NUMBER, SUM) \
	C(COMM, kernel_ns, NUMBER, SUM) /* of those that are timed */ \
	C(COMM, period_ns, NUMBER, SUM) /* from each to the next like it */ \
	C(COMM, periods, NUMBER, SUM)

/* A collective operation as this rank had it. Rows of several ranks with one key are one operation. */
#define DIGEST_OPERATION(C, TABLE) \
	C(TABLE, key, NUMBER, CLEAR) /* hash of all that tells the operation from others; the rows with the least are kept */ \
	C(TABLE, comm, NUMBER, CLEAR) \
	C(TABLE, ordinal, NUMBER, CLEAR) /* NCCL's number, of this function in this communicator */ \
	C(TABLE, function, NUMBER, CLEAR) /* enum spy_nccl_func */ \
	C(TABLE, bytes, NUMBER, CLEAR) \
	C(TABLE, by_host, NUMBER, CLEAR) /* 1: begin and end by the host's clock */ \
	C(TABLE, submit_ns, NUMBER, CLEAR) /* begin of the launch, from base_ns on */ \
	C(TABLE, submitted_ns, NUMBER, CLEAR) /* its end, likewise */ \
	C(TABLE, begin_ns, NUMBER, CLEAR) /* by the GPU's timer, from timer_base_ns on */ \
	C(TABLE, took_ns, NUMBER, CLEAR) /* to its end */ \
	C(TABLE, period_ns, NUMBER, CLEAR) /* from the end of the one like it before to its end, GPU's timer; 0 unknown */ \
	C(TABLE, gap_ns, NUMBER, CLEAR) /* from the end of the communicator's operation before to its begin, GPU's timer; 0 unknown */ \
	C(TABLE, queued_ns, NUMBER, CLEAR) /* it began so long after its submission, as far as clocks can tell */ \
	C(TABLE, work, NUMBER, CLEAR) /* operations of the GPU submitted since the one before */ \
	C(TABLE, cause_a, TEXT, CLEAR) /* what its thread did since that: causes, and how long; "cuda-wait:FUNCTION" where it asked for the wait */ \
	C(TABLE, ns_a, NUMBER, CLEAR) \
	C(TABLE, cause_b, TEXT, CLEAR) \
	C(TABLE, ns_b, NUMBER, CLEAR) \
	C(TABLE, cause_c, TEXT, CLEAR) \
	C(TABLE, ns_c, NUMBER, CLEAR) \
	C(TABLE, cause_d, TEXT, CLEAR) \
	C(TABLE, ns_d, NUMBER, CLEAR) \
	C(TABLE, cause_e, TEXT, CLEAR) \
	C(TABLE, ns_e, NUMBER, CLEAR) \
	C(TABLE, cause_f, TEXT, CLEAR) \
	C(TABLE, ns_f, NUMBER, CLEAR) \
	C(TABLE, place, TEXT, CLEAR) /* of the most of cause_a */ \
	C(TABLE, host_1_ns, NUMBER, CLEAR) /* its begin by the host's clock, from base_ns on, + 1; 0 unknown */ \
	C(TABLE, host_error_ns, NUMBER, CLEAR) /* by which that may be wrong */ \
	C(TABLE, continues, NUMBER, CLEAR) /* 1: nothing has waited for the communicator's operation before it (since 1.3) */ \
	C(TABLE, first, NUMBER, CLEAR) /* 1: what its thread did before it is not known: the rank's first one, or behind a gap (since 1.3) */ \
	C(TABLE, where_a, NUMBER, CLEAR) /* of cause_a, where it is "cuda-wait:FUNCTION": hash of the place, the same in all ranks; 0 unknown (since 1.3) */ \
	C(TABLE, where_b, NUMBER, CLEAR) C(TABLE, where_c, NUMBER, CLEAR) C(TABLE, where_d, NUMBER, CLEAR) \
	C(TABLE, where_e, NUMBER, CLEAR) C(TABLE, where_f, NUMBER, CLEAR)

#define DIGEST_MEET(C) DIGEST_OPERATION(C, MEET)
#define DIGEST_SLOW(C) DIGEST_OPERATION(C, SLOW)

#define DIGEST_WORST(C) \
	C(WORST, function, TEXT, CLEAR) \
	C(WORST, role, TEXT, CLEAR) \
	C(WORST, at_ns, NUMBER, CLEAR) /* since begin_ns */ \
	C(WORST, took_ns, NUMBER, CLEAR) \
	C(WORST, lost_ns, NUMBER, CLEAR) \
	C(WORST, why, TEXT, CLEAR) /* the largest part of that: a bucket */ \
	C(WORST, holder_function, TEXT, CLEAR)

/* What its traces do not have. */
#define DIGEST_LOSS(C) \
	C(LOSS, kind, TEXT, CLEAR) \
	C(LOSS, count, NUMBER, SUM)

/* A process of it on a GPU: who was there at the same time, only the report of all ranks can tell. */
#define DIGEST_TENANT(C) \
	C(TENANT, uuid, TEXT, CLEAR) \
	C(TENANT, name, TEXT, CLEAR) \
	C(TENANT, pid, NUMBER, CLEAR) \
	C(TENANT, user, NUMBER, CLEAR) \
	C(TENANT, from_ns, NUMBER, CLEAR) /* its first call there, from begin_ns on */ \
	C(TENANT, used_ns, NUMBER, CLEAR) /* to the end of its last one */ \
	C(TENANT, waited_ns, NUMBER, CLEAR) /* all its calls for GPUs */ \
	C(TENANT, client, NUMBER, CLEAR) /* 1: of MPS */ \
	C(TENANT, server, NUMBER, CLEAR) /* of MPS: its process; 0 unknown */ \
	C(TENANT, directory, TEXT, CLEAR) /* of MPS: its pipes */ \
	C(TENANT, percentage, TEXT, CLEAR) /* of the GPU's threads that it may use */ \
	C(TENANT, turn_ns, NUMBER, CLEAR) /* it waited for another user's server */ \
	C(TENANT, server_user, NUMBER, CLEAR) /* whose that was */

/*
 * Of a recording in parts, which are here: a row for each that follow one another, by process. No row: the recordings have no
 * parts, and are here as a whole. What a digest is of must be the same at all levels: of these rows none is dropped.
 */
#define DIGEST_PART(C) \
	C(PART, recording, TEXT, CLEAR) /* its UUID */ \
	C(PART, pid, NUMBER, CLEAR) \
	C(PART, first, NUMBER, CLEAR) /* the parts' numbers, from 1 on */ \
	C(PART, last, NUMBER, CLEAR) \
	C(PART, parts, NUMBER, CLEAR) /* that are here: from the first to the last, if none is missing */ \
	C(PART, newest, NUMBER, CLEAR) /* 1: there is none behind the last one, as far as is known */ \
	C(PART, from_ns, NUMBER, CLEAR) /* when they began, from begin_ns on */ \
	C(PART, lasted_ns, NUMBER, CLEAR) \
	C(PART, removed, NUMBER, CLEAR) /* parts that the recorder has deleted, as far as they know: the first ones */ \
	C(PART, removed_calls, NUMBER, CLEAR) \
	C(PART, removed_ns, NUMBER, CLEAR)

/* clang-format on */

#define DIGEST_TABLE_NUMBER(table, name, rule, by, most, least) D_##table,
enum digest_table { DIGEST_TABLES(DIGEST_TABLE_NUMBER) DIGEST_TABLES_KNOWN };
#undef DIGEST_TABLE_NUMBER

/* D_SITE_count, … and D_SITE_COLUMNS. */
#define DIGEST_COLUMN_NUMBER(table, name, type, fold) D_##table##_##name,
#define DIGEST_COLUMN_NUMBERS(table, name, rule, by, most, least) \
	enum { DIGEST_##table(DIGEST_COLUMN_NUMBER) D_##table##_COLUMNS };
DIGEST_TABLES(DIGEST_COLUMN_NUMBERS)
#undef DIGEST_COLUMN_NUMBERS
#undef DIGEST_COLUMN_NUMBER

#define DIGEST_OPERATION_CAUSES ((D_MEET_place - D_MEET_cause_a) / 2)
#define DIGEST_BUCKETS (D_FUNC_us_more - D_FUNC_us_1 + 1)

#define DIGEST_NAME_BYTES 32 /* of tables and columns, with the NUL */
#define DIGEST_COLUMNS_MOST 64
#define DIGEST_TABLES_MOST 32
#define DIGEST_ROWS_MOST 4096 /* of a table of one rank */

struct digest_column {
	char name[DIGEST_NAME_BYTES];
	uint8_t type, fold;
};

struct digest_table_info {
	char name[DIGEST_NAME_BYTES];
	uint8_t rule, by; /* by: a column */
	uint32_t most, least;
	uint32_t n_columns;
	struct digest_column columns[DIGEST_COLUMNS_MOST];
};

struct digest_schema {
	struct digest_table_info tables[DIGEST_TABLES_MOST];
	uint32_t n_tables;
};

/* That of this version. */
void digest_schema_init(struct digest_schema *schema);

/* Adds what the other one has more, of tables and columns. -EPROTO with *why (an arena's text) where neither begins with
 * the other: they are no versions of one format. */
int digest_schema_join(struct digest_schema *schema, const struct digest_schema *more,
		       struct arena *texts, const char **why);

/* Rows that the table may have at a level: data.h. */
static inline uint32_t digest_rows_at(const struct digest_table_info *table, unsigned int level)
{
	uint32_t most = level < 32 ? table->most >> level : 0;

	return most > table->least ? most : table->least;
}

#endif
