/*
 * analyzer/tables/sqlite.h: what the files of the SQLite export share: sqlite.c (what happens, one by one),
 * sqlite_names.c (numbers for what has names), sqlite_targets.c (what was recorded), sqlite_report.c (the report's tables).
 */
#ifndef CUDASPY_TABLES_SQLITE_H
#define CUDASPY_TABLES_SQLITE_H

#include "database.h"
#include "export/export.h"

/* Calls of a thread that are remembered for operations of GPUs, which are shown when they begin. */
#define CALLS_KEPT 1024

struct kept_call {
	uint64_t id, begin_ns, end_ns;
};

struct thread_rows {
	uint64_t global_tid;
	/* The number that the call in progress will have: something that happened in it at that time refers to it; 0: nothing. */
	uint64_t pending_id, pending_ns;
	struct kept_call *calls; /* a ring of CALLS_KEPT; NULL: its process has no GPU times */
	uint64_t n_calls;
};

/* Numbers of texts, found by what they are the names of. */
struct name_key {
	uint64_t owner, item;
};

struct name_row {
	struct name_key key;
	uint32_t id, short_id, mangled_id; /* the last two: of kernels */
	UT_hash_handle hh;
};

#define NAMES_CACHED 32

struct sqlite_export {
	const struct export_job *job;
	struct listener listener;
	struct database db;
	uint64_t zero_ns;
	uint64_t last_id; /* of calls */
	struct thread_rows *threads; /* by index */
	size_t n_threads;
	uint32_t *functions; /* numbers of names, + 1, by the set's number */
	size_t n_functions;
	struct name_row *kernels, *places,
		*domains; /* by process and number, by process and address, by name */
	uint32_t n_domains;
	struct name_row unknown_kernel;
	uint32_t waits[NAMES_CACHED],
		wait_functions[NAMES_CACHED]; /* by enum spy_wait_kind; 0: not yet */
};

/* Nanoseconds since the recording's begin, which is when its first record was written: the first call began before. */
static inline void put_time(struct sqlite_export *e, enum database_table table, uint64_t ns)
{
	struct database_cell *cell = row_next(&e->db, table);

	cell->type = CELL_NUMBER;
	cell->number = (int64_t)(ns - e->zero_ns);
}

/* NULL if it is not known. */
static inline void put_time_if(struct sqlite_export *e, enum database_table table, bool known,
			       uint64_t ns)
{
	if (known)
		put_time(e, table, ns);
	else
		put_null(&e->db, table);
}

/*
 * As Nsight Systems numbers processes and threads: the host and a byte, the process, the thread. A database of a recording
 * on several hosts has a number for each in the upper bytes.
 */
static inline uint64_t global_pid(const struct trace *trace)
{
	return ((uint64_t)trace->host->index % 0x7ffe + 1) << 48 | (uint64_t)(trace->pid & 0xffffff)
									   << 24;
}

static inline uint64_t global_tid(const struct thread *thread)
{
	return global_pid(thread->process->trace) | (thread->tid & 0xffffff);
}

/* Numbers in StringIds. */
uint32_t sqlite_function(struct sqlite_export *e, uint32_t fn); /* NO_FUNCTION: 0 */
const struct name_row *sqlite_kernel(struct sqlite_export *e, uint32_t process, uint32_t kernel);
uint32_t sqlite_place(struct sqlite_export *e, const struct process *process, uint64_t address,
		      uint64_t ns, const struct stack *stack);
/* Of a range's domain; a new one is a row of NVTX_EVENTS. 0: the default one. */
uint32_t sqlite_domain(struct sqlite_export *e, const char *domain, uint64_t ns,
		       const struct thread *thread);
void sqlite_names_release(struct sqlite_export *e);

/* What numbers in the tables mean. */
void sqlite_enums(struct sqlite_export *e);

/* After the last record: processes, threads, GPUs, the host, the export. */
void sqlite_targets(struct sqlite_export *e);

/* A table for each of the report's. */
void sqlite_report(struct sqlite_export *e);

#endif
