/*
 * analyzer/tables/sqlite_targets.c: what numbers mean, and what was recorded: processes, threads, GPUs, hosts, the time at which
 * all times begin. Called once, by the SQLite export.
 */
#include <stdlib.h>
#include <time.h>
#include "sqlite.h"

/* ---- numbers --------------------------------------------------------------------------------- */

/* As the documentation of Nsight Systems has them ("SQLite Schema Event Values"): those that occur here. */
/* clang-format off */
#define EVENT_CLASSES(VALUE) \
	VALUE(0, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime") \
	VALUE(1, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver") \
	VALUE(27, "TRACE_PROCESS_EVENT_OS_RUNTIME", "OS runtime")
#define EVENT_TYPES(VALUE) \
	VALUE(34, "NvtxMark", "NvtxMark") \
	VALUE(59, "NvtxPushPopRange", "NvtxPushPopRange") \
	VALUE(60, "NvtxStartEndRange", "NvtxStartEndRange") \
	VALUE(75, "NvtxDomainCreate", "NvtxDomainCreate")
#define COPY_KINDS(VALUE) \
	VALUE(0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown") \
	VALUE(1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device") \
	VALUE(2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host") \
	VALUE(8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device") \
	VALUE(9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host")
#define MEMORY_KINDS(VALUE) \
	VALUE(0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable") \
	VALUE(1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned") \
	VALUE(2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device") \
	VALUE(3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array") \
	VALUE(4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed") \
	VALUE(7, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown")
#define SYNC_TYPES(VALUE) \
	VALUE(1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync") \
	VALUE(3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync") \
	VALUE(4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync")

#define ENUM(name, VALUES) \
	"CREATE TABLE " name " (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);" \
	VALUES(ENUM_ROW_##VALUES)
#define ENUM_ROW_EVENT_CLASSES(id, name, label) ENUM_ROW("ENUM_NSYS_EVENT_CLASS", id, name, label)
#define ENUM_ROW_EVENT_TYPES(id, name, label) ENUM_ROW("ENUM_NSYS_EVENT_TYPE", id, name, label)
#define ENUM_ROW_COPY_KINDS(id, name, label) ENUM_ROW("ENUM_CUDA_MEMCPY_OPER", id, name, label)
#define ENUM_ROW_MEMORY_KINDS(id, name, label) ENUM_ROW("ENUM_CUDA_MEM_KIND", id, name, label)
#define ENUM_ROW_SYNC_TYPES(id, name, label) ENUM_ROW("ENUM_CUPTI_SYNC_TYPE", id, name, label)
#define ENUM_ROW(table, id, name, label) \
	"INSERT INTO " table " VALUES (" #id ", '" name "', '" label "');"
/* clang-format on */

void sqlite_enums(struct sqlite_export *e)
{
	database_run(&e->db, ENUM("ENUM_NSYS_EVENT_CLASS",
				  EVENT_CLASSES) ENUM("ENUM_NSYS_EVENT_TYPE", EVENT_TYPES)
				     ENUM("ENUM_CUDA_MEMCPY_OPER", COPY_KINDS)
					     ENUM("ENUM_CUDA_MEM_KIND", MEMORY_KINDS)
						     ENUM("ENUM_CUPTI_SYNC_TYPE", SYNC_TYPES));
}

/* ---- processes and threads ------------------------------------------------------------------- */

/* Numbers may come again, of processes that ran one after the other: a query that looks a name up wants one row. */
struct seen {
	uint64_t id;
	UT_hash_handle hh;
};

static bool is_new(struct seen **all, uint64_t id)
{
	struct seen *seen;

	HASH_FIND(hh, *all, &id, sizeof(id), seen);
	if (seen)
		return false;
	HASH_NEW(*all, seen, id, id);
	return true;
}

static void forget(struct seen *all)
{
	struct seen *seen, *rest;

	HASH_EMPTY (all, seen, rest)
		free(seen);
}

static void add_processes(struct sqlite_export *e, const struct model *model)
{
	struct seen *pids = NULL;

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct trace *trace = model->processes[i].trace;

		if (!is_new(&pids, global_pid(trace)))
			continue;
		put_number(&e->db, TABLE_PROCESSES, global_pid(trace));
		put_number(&e->db, TABLE_PROCESSES, trace->pid);
		put_text(&e->db, TABLE_PROCESSES, trace->program);
		row_end(&e->db, TABLE_PROCESSES);
	}
	forget(pids);
}

static void add_threads(struct sqlite_export *e, const struct model *model)
{
	struct seen *tids = NULL;

	for (size_t i = 0; i < model->n_threads; i++) {
		const struct thread *thread = model->threads[i];

		if (thread->many || !is_new(&tids, global_tid(thread)))
			continue;
		put_number(&e->db, TABLE_THREADS, database_string(&e->db, thread_name(thread)));
		put_null(&e->db, TABLE_THREADS);
		put_number(&e->db, TABLE_THREADS, global_tid(thread));
		row_end(&e->db, TABLE_THREADS);
	}
	forget(tids);
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

static void add_gpu(struct sqlite_export *e, size_t number, const struct gpu *gpu, uint64_t vm)
{
	struct database *db = &e->db;

	put_number(db, TABLE_GPUS, vm);
	put_number(db, TABLE_GPUS, number);
	put_text(db, TABLE_GPUS, gpu ? gpu->name : NULL);
	put_text(db, TABLE_GPUS, gpu ? gpu->pci : NULL);
	put_nulls(db, TABLE_GPUS, 2);
	put_unless(db, TABLE_GPUS, gpu ? gpu->bytes : 0, 0);
	put_nulls(db, TABLE_GPUS, 2);
	put_unless(db, TABLE_GPUS, gpu ? gpu->multiprocessors : 0, 0);
	put_null(db, TABLE_GPUS);
	put_text(db, TABLE_GPUS, gpu ? gpu->uuid : NULL);
	put_nulls(db, TABLE_GPUS, 2);
	put_unless(db, TABLE_GPUS, gpu ? gpu->device : UNKNOWN_NS, UNKNOWN_NS);
	put_nulls(db, TABLE_GPUS, 22);
	put_unless(db, TABLE_GPUS, gpu ? gpu->cc_major : 0, 0);
	put_unless(db, TABLE_GPUS, gpu ? gpu->cc_minor : UNKNOWN_NS, UNKNOWN_NS);
	row_end(db, TABLE_GPUS);
}

static void add_device(struct sqlite_export *e, size_t number, const struct process *process,
		       uint16_t device)
{
	struct database *db = &e->db;
	const struct gpu *gpu = model_gpu(process, device);

	put_number(db, TABLE_DEVICES, number);
	put_number(db, TABLE_DEVICES, device);
	put_number(db, TABLE_DEVICES, process->trace->pid);
	put_text(db, TABLE_DEVICES, gpu ? gpu->uuid : NULL);
	put_unless(db, TABLE_DEVICES, gpu ? gpu->multiprocessors : 0, 0);
	row_end(db, TABLE_DEVICES);
}

/* Each GPU with the number that the report gives it, and what each process calls it. */
static void add_gpus(struct sqlite_export *e)
{
	const struct analysis *a = e->job->shown;
	const struct idle *idle = &a->idle;

	for (size_t i = 0; i < idle->n_gpus; i++)
		add_gpu(e, i, idle_named(&idle->gpus[i]),
			global_pid(idle->gpus[i].processes[0]->trace) >> 48 << 48);
	for (size_t process = 0; process < a->model.n_processes; process++)
		for (size_t device = 0; device < WORK_DEVICES; device++) {
			uint32_t gpu = idle->users ? idle->users[work_index(&a->accounts.work,
									    process, device)]
							     .gpu
						   : 0;

			if (gpu)
				add_device(e, gpu - 1, &a->model.processes[process],
					   (uint16_t)device);
		}
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void add_system(struct sqlite_export *e, uint64_t vm, const char *name, const char *value)
{
	struct database *db = &e->db;

	put_number(db, TABLE_SYSTEM, vm);
	put_text(db, TABLE_SYSTEM, "CPU");
	put_text(db, TABLE_SYSTEM, name);
	put_number(db, TABLE_SYSTEM, 0);
	put_text(db, TABLE_SYSTEM, value);
	row_end(db, TABLE_SYSTEM);
}

static void add_hosts(struct sqlite_export *e, const struct trace_set *set)
{
	struct seen *hosts = NULL;

	for (size_t i = 0; i < set->n_traces; i++) {
		const struct host *host = set->traces[i]->host;
		uint64_t vm = global_pid(set->traces[i]) >> 48 << 48;
		char cpus[24];

		if (!is_new(&hosts, host->index))
			continue;
		add_system(e, vm, "Hostname", host->label);
		snprintf(cpus, sizeof(cpus), "%llu", (unsigned long long)host->cpus);
		if (host->cpus)
			add_system(e, vm, "CpuCores", cpus);
	}
	forget(hosts);
}

static void add_start(struct sqlite_export *e, const struct model *model)
{
	struct database *db = &e->db;
	time_t seconds = (time_t)(e->zero_ns / 1000000000);
	char utc[64] = "", local[64] = "";
	struct tm parts;

	if (gmtime_r(&seconds, &parts))
		strftime(utc, sizeof(utc), "%Y-%m-%d %H:%M:%S", &parts);
	if (localtime_r(&seconds, &parts))
		strftime(local, sizeof(local), "%Y-%m-%d %H:%M:%S", &parts);
	put_number(db, TABLE_START_TIME, e->zero_ns);
	put_text(db, TABLE_START_TIME, utc);
	put_text(db, TABLE_START_TIME, local);
	row_end(db, TABLE_START_TIME);
	put_number(db, TABLE_DETAILS, (uint64_t)1 << 48);
	put_time(e, TABLE_DETAILS, model->last_ns);
	put_number(db, TABLE_DETAILS, 0);
	put_time(e, TABLE_DETAILS, model->last_ns);
	row_end(db, TABLE_DETAILS);
}

static void add_meta(struct sqlite_export *e, const char *name, const char *value)
{
	put_text(&e->db, TABLE_META, name);
	put_text(&e->db, TABLE_META, value);
	row_end(&e->db, TABLE_META);
}

#ifndef CUDASPY_VERSION
#define CUDASPY_VERSION "unknown"
#endif

void sqlite_targets(struct sqlite_export *e)
{
	const struct analysis *a = e->job->shown;

	add_processes(e, &a->model);
	add_threads(e, &a->model);
	add_gpus(e);
	add_hosts(e, a->set);
	add_start(e, &a->model);
	add_meta(e, "EXPORT_PRODUCT_NAME", "cudaspy");
	add_meta(e, "EXPORT_PRODUCT_VERSION", CUDASPY_VERSION);
	/* Whose names and order of columns the tables have. */
	add_meta(e, "EXPORT_SCHEMA_VERSION", "3.16.1");
	add_meta(e, "EXPORT_SCHEMA_VERSION_MAJOR", "3");
	add_meta(e, "EXPORT_SCHEMA_VERSION_MINOR", "16");
	add_meta(e, "EXPORT_SCHEMA_VERSION_MICRO", "1");
}
