/*
 * analyzer/tables/database.h: the tables of an SQLite export, and rows put into them. For the files of sqlite.c.
 *
 * The tables that Nsight Systems has, too, are declared as its documentation has them (User Guide, "SQLite Schema
 * Reference", schema 3.16): the same names of columns in the same order, so that queries made for it run. What cudaspy does
 * not know is 0 or NULL, as the declaration allows. Names of the others begin with CUDASPY_, and those of the report's tables
 * with report_.
 */
#ifndef CUDASPY_TABLES_DATABASE_H
#define CUDASPY_TABLES_DATABASE_H

#include <sqlite3.h>
#include "account/buckets.h"
#include "base/hash.h"
#include "base/util.h"

/* clang-format off */
#define BUCKET_COLUMN(name, key, text) ", " #key "_ns INTEGER NOT NULL"
#define INT "INTEGER"
#define MUST "INTEGER NOT NULL"

/* TABLE(number, name, columns) */
#define DATABASE_TABLES(TABLE) \
	TABLE(STRINGS, "StringIds", "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL") \
	TABLE(THREADS, "ThreadNames", "nameId " MUST ", priority " INT ", globalTid " INT) \
	TABLE(PROCESSES, "PROCESSES", "globalPid " INT ", pid " INT ", name TEXT") \
	TABLE(DETAILS, "ANALYSIS_DETAILS", "globalVid " MUST ", duration " MUST ", startTime " MUST ", stopTime " MUST) \
	TABLE(START_TIME, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs " INT ", utcTime TEXT, localTime TEXT") \
	TABLE(GPUS, "TARGET_INFO_GPU", \
	      "vmId " MUST ", id " MUST ", name TEXT, busLocation TEXT, isDiscrete " INT ", l2CacheSize " INT ", totalMemory " INT \
	      ", memoryBandwidth " INT ", clockRate " INT ", smCount " INT ", pwGpuId " INT ", uuid TEXT, luid " INT ", chipName TEXT" \
	      ", cuDevice " INT ", ctxswDevPath TEXT, ctrlDevPath TEXT, revision " INT ", nodeMask " INT ", constantMemory " INT \
	      ", maxIPC " INT ", maxRegistersPerBlock " INT ", maxShmemPerBlock " INT ", maxShmemPerBlockOptin " INT \
	      ", maxShmemPerSm " INT ", maxRegistersPerSm " INT ", threadsPerWarp " INT ", asyncEngines " INT ", maxWarpsPerSm " INT \
	      ", maxBlocksPerSm " INT ", maxThreadsPerBlock " INT ", maxBlockDimX " INT ", maxBlockDimY " INT ", maxBlockDimZ " INT \
	      ", maxGridDimX " INT ", maxGridDimY " INT ", maxGridDimZ " INT ", computeMajor " INT ", computeMinor " INT \
	      ", smMajor " INT ", smMinor " INT) \
	TABLE(DEVICES, "TARGET_INFO_CUDA_DEVICE", \
	      "gpuId " INT ", cudaId " MUST ", pid " MUST ", uuid TEXT, numMultiprocessors " INT) \
	TABLE(SYSTEM, "TARGET_INFO_SYSTEM_ENV", \
	      "globalVid " INT ", devStateName TEXT NOT NULL, name TEXT NOT NULL, nameEnum " MUST ", value TEXT NOT NULL") \
	TABLE(META, "META_DATA_EXPORT", "name TEXT NOT NULL, value TEXT") \
	TABLE(CALLS, "CUPTI_ACTIVITY_KIND_RUNTIME", \
	      "start " MUST ", end " MUST ", eventClass " MUST ", globalTid " INT ", correlationId INTEGER PRIMARY KEY, nameId " MUST \
	      ", returnValue " MUST ", callchainId " INT) \
	TABLE(KERNELS, "CUPTI_ACTIVITY_KIND_KERNEL", \
	      "start " MUST ", end " MUST ", deviceId " MUST ", contextId " MUST ", greenContextId " INT ", streamId " MUST \
	      ", correlationId " INT ", globalPid " INT ", demangledName " MUST ", shortName " MUST ", mangledName " INT \
	      ", launchType " INT ", cacheConfig " INT ", registersPerThread " MUST ", gridX " MUST ", gridY " MUST ", gridZ " MUST \
	      ", blockX " MUST ", blockY " MUST ", blockZ " MUST ", staticSharedMemory " MUST ", dynamicSharedMemory " MUST \
	      ", localMemoryPerThread " MUST ", localMemoryTotal " MUST ", gridId " MUST ", sharedMemoryExecuted " INT \
	      ", graphNodeId " INT ", sharedMemoryLimitConfig " INT) \
	TABLE(COPIES, "CUPTI_ACTIVITY_KIND_MEMCPY", \
	      "start " MUST ", end " MUST ", deviceId " MUST ", contextId " MUST ", greenContextId " INT ", streamId " MUST \
	      ", correlationId " INT ", globalPid " INT ", bytes " MUST ", copyKind " MUST ", deprecatedSrcId " INT ", srcKind " INT \
	      ", dstKind " INT ", srcDeviceId " INT ", srcContextId " INT ", dstDeviceId " INT ", dstContextId " INT \
	      ", migrationCause " INT ", graphNodeId " INT ", virtualAddress " INT) \
	TABLE(MEMSETS, "CUPTI_ACTIVITY_KIND_MEMSET", \
	      "start " MUST ", end " MUST ", deviceId " MUST ", contextId " MUST ", greenContextId " INT ", streamId " MUST \
	      ", correlationId " INT ", globalPid " INT ", value " MUST ", bytes " MUST ", graphNodeId " INT ", memKind " INT) \
	TABLE(SYNCS, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", \
	      "start " MUST ", end " MUST ", deviceId " MUST ", contextId " MUST ", greenContextId " INT ", streamId " MUST \
	      ", correlationId " INT ", globalPid " INT ", syncType " MUST ", eventId " MUST) \
	TABLE(OSRT, "OSRT_API", \
	      "start " MUST ", end " MUST ", eventClass " MUST ", globalTid " INT ", nameId " MUST ", returnValue " MUST \
	      ", nestingLevel " INT ", callchainId " MUST) \
	TABLE(NVTX, "NVTX_EVENTS", \
	      "start " MUST ", end " INT ", eventType " MUST ", rangeId " INT ", category " INT ", color " INT ", text TEXT" \
	      ", globalTid " INT ", endGlobalTid " INT ", textId " INT ", domainId " INT ", uint64Value " INT ", int64Value " INT \
	      ", doubleValue REAL, uint32Value " INT ", int32Value " INT ", floatValue REAL, jsonTextId " INT ", jsonText TEXT" \
	      ", binaryData TEXT") \
	TABLE(CALL_FACTS, "CUDASPY_CALLS", \
	      "correlationId INTEGER PRIMARY KEY, deviceId " INT ", contextId " INT ", streamHandle " INT ", placeId " INT \
	      ", expected_ns " INT) \
	TABLE(CALL_PARTS, "CUDASPY_ACCOUNTS", "correlationId INTEGER PRIMARY KEY, lost_ns " MUST BUCKETS(BUCKET_COLUMN)) \
	TABLE(CALL_COPIES, "CUDASPY_COPIES", \
	      "correlationId INTEGER PRIMARY KEY, bytes " MUST ", copyKind " MUST ", srcKind " MUST ", dstKind " MUST \
	      ", srcDeviceId " INT ", dstDeviceId " INT) \
	TABLE(NESTED, "CUDASPY_NESTED_CALLS", \
	      "start " MUST ", end " MUST ", eventClass " MUST ", globalTid " INT ", outerCorrelationId " INT ", nameId " MUST \
	      ", returnValue " MUST) \
	TABLE(WAITS, "CUDASPY_WAITS", \
	      "correlationId " MUST ", start " MUST ", end " MUST ", waited_ns " MUST ", globalTid " INT ", kindId " MUST \
	      ", lockId " INT ", holderGlobalTid " INT ", holderNameId " INT ", holderDeviceId " INT ", release_ns " INT ", count " INT) \
	TABLE(GAPS, "CUDASPY_GAPS", \
	      "start " MUST ", end " MUST ", waited_ns " MUST ", globalTid " INT ", causeId " MUST ", placeId " INT \
	      ", holderGlobalTid " INT) \
	TABLE(IDLE, "CUDASPY_GPU_IDLE", \
	      "gpuId " MUST ", start " MUST ", end " MUST ", idle_ns " MUST ", causeId " MUST ", exact " MUST) \
	TABLE(COLLECTIVES, "CUDASPY_COLLECTIVES", \
	      "number " MUST ", rank " MUST ", lastRank " INT ", globalPid " INT ", deviceId " INT ", nameId " MUST \
	      ", communicator " MUST ", count " MUST ", bytes " INT ", submitStart " MUST ", submitEnd " MUST ", start " INT \
	      ", end " INT ", wait_ns " MUST)
/* clang-format on */

enum database_table {
#define DATABASE_TABLE(number, name, columns) TABLE_##number,
	DATABASE_TABLES(DATABASE_TABLE)
#undef DATABASE_TABLE
		TABLE_COUNT
};

/* Where the time of each call went, also of those that have no row in CUDASPY_ACCOUNTS: these were all their own work. */
#define BUCKET_OF_ALL(name, key, text) \
	", coalesce(a." #key "_ns, " \
	"CASE '" #key "' WHEN 'own' THEN c.end - c.start ELSE 0 END) AS " #key "_ns"
#define DATABASE_VIEWS \
	"CREATE VIEW CUDASPY_CALL_PARTS AS SELECT c.correlationId, coalesce(a.lost_ns, 0) AS " \
	"lost_ns" BUCKETS(BUCKET_OF_ALL) " FROM CUPTI_ACTIVITY_KIND_RUNTIME AS c LEFT JOIN " \
					 "CUDASPY_ACCOUNTS AS a USING (correlationId);"

/* A text has one number, whatever table it is in. */
struct database_string {
	uint32_t id;
	UT_hash_handle hh;
	char text[];
};

/* What is in a column of a row that waits to be written. */
struct database_cell {
	enum { CELL_NULL, CELL_NUMBER, CELL_TEXT } type;
	union {
		int64_t number;
		char *text; /* owned */
	};
};

#define ROWS_KEPT 256 /* of a table, which are written together */
#define COLUMNS_MOST 48

/* Rows of a table. */
struct database_rows {
	sqlite3_stmt *insert; /* of all that wait; NULL: there has not been one */
	struct database_cell *cells; /* n_columns of each row; NULL likewise */
	uint32_t n_columns, n; /* n: rows, without the one in hand */
	struct database_cell *next; /* of the row in hand */
};

struct database {
	sqlite3 *sql;
	struct database_rows tables[TABLE_COUNT];
	const struct database_rows *writing; /* whose rows are being inserted: rows.c */
	struct database_string *strings;
	uint32_t n_strings;
	char *error; /* the first one; NULL: none. Nothing is written after it */
};

#define STRINGS_MOST (1u << 20) /* texts with a number; what comes then has that of the empty one */

/* Makes the file and its tables. Errors: db->error, from here on. */
void database_open(struct database *db, const char *path);

/* Indexes; all that was put is in the file. */
void database_finish(struct database *db);
void database_close(struct database *db);

/* Any statements. */
void database_run(struct database *db, const char *statements);
void database_fail(struct database *db);

/* The number of a text, redacted if that was asked for; a new one is a row of StringIds. NULL and "": 0. */
uint32_t database_string(struct database *db, const char *text);

/* rows.c: rows that wait, as something that a statement can select from: INSERT INTO ... SELECT c0, c1 FROM waiting. */
#define ROWS_NAME "waiting"
int rows_register(struct database *db);

/* Rows are put column by column from the first one on, then row_end: the columns behind the last one are NULL. */
void row_first(struct database *db, enum database_table table);
void rows_write(struct database *db, enum database_table table);

static inline struct database_cell *row_next(struct database *db, enum database_table table)
{
	if (unlikely(!db->tables[table].next))
		row_first(db, table);
	return db->tables[table].next++;
}

static inline void put_number(struct database *db, enum database_table table, uint64_t value)
{
	struct database_cell *cell = row_next(db, table);

	cell->type = CELL_NUMBER;
	cell->number = (int64_t)min_u64(value, NUMBER_MOST);
}

static inline void put_null(struct database *db, enum database_table table)
{
	row_next(db, table)->type = CELL_NULL;
}

static inline void put_nulls(struct database *db, enum database_table table, unsigned int n)
{
	while (n--)
		put_null(db, table);
}

static inline void put_zeros(struct database *db, enum database_table table, unsigned int n)
{
	while (n--)
		put_number(db, table, 0);
}

/* NULL if it is the value that stands for unknown. */
static inline void put_unless(struct database *db, enum database_table table, uint64_t value,
			      uint64_t unknown)
{
	if (value == unknown)
		put_null(db, table);
	else
		put_number(db, table, value);
}

/* A text, made what data formats want, and redacted; NULL: NULL. */
void put_text(struct database *db, enum database_table table, const char *text);

static inline void row_end(struct database *db, enum database_table table)
{
	struct database_rows *rows = &db->tables[table];

	while (rows->next < rows->cells + (size_t)(rows->n + 1) * rows->n_columns)
		rows->next++->type = CELL_NULL;
	if (unlikely(++rows->n == ROWS_KEPT))
		rows_write(db, table);
}

#endif
