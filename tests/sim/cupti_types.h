/*
 * tests/sim/cupti_types.h: as much of CUPTI's interface as the look-alike speaks, declared anew from
 * CUPTI's documentation and headers (CUDA 13.0), so that it builds without a toolkit. cupti_check.c holds
 * all of it against the headers where they are. Times in records are CUPTI's ns.
 */
#ifndef SIM_CUPTI_TYPES_H
#define SIM_CUPTI_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cupti_result {
	CUPTI_OK = 0,
	CUPTI_BAD_PARAMETER = 1,
	CUPTI_BAD_DEVICE = 2,
	CUPTI_BAD_CONTEXT = 3,
	CUPTI_BAD_OPERATION = 7,
	CUPTI_TOO_SMALL = 10,
	CUPTI_LIMIT_REACHED = 12,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_BAD_STREAM = 20,
	CUPTI_BAD_KIND = 21,
	CUPTI_UNSUPPORTED = 27,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
	CUPTI_UNKNOWN = 999,
};

enum cupti_kind {
	KIND_MEMCPY = 1,
	KIND_MEMSET = 2,
	KIND_KERNEL = 3,
	KIND_DRIVER = 4,
	KIND_RUNTIME = 5,
	KIND_CONCURRENT_KERNEL = 10,
	KIND_OVERHEAD = 17,
	KIND_MEMCPY2 = 22,
	KIND_GRAPH_TRACE = 51,
	KIND_CNT = 55
};

enum { CUPTI_VERSION = 130001, CUPTI_DOMAIN_DRIVER = 1, CUPTI_DOMAIN_RUNTIME = 2 };
enum { CUPTI_COPY_ASYNC = 1, CUPTI_MEMSET_ASYNC = 1, CUPTI_FLUSH_FORCED = 1 };
enum { CUPTI_THREAD_DEFAULT, CUPTI_THREAD_SYSTEM };
enum { CUPTI_CHANNEL_COMPUTE = 1, CUPTI_CHANNEL_COPY = 2 };
enum { COPY_HTOD = 1, COPY_DTOH, COPY_HTOA, COPY_ATOH, COPY_ATOA, COPY_ATOD, COPY_DTOA, COPY_DTOD };
enum { COPY_HTOH = 9, COPY_PTOP };

/* Every record is aligned to 8, and packed. */
#define CUPTI_RECORD __attribute__((packed, aligned(8)))

struct cupti_kernel { /* CUpti_ActivityKernel10; what Kernel9 has lies where it lay */
	int32_t kind;
	uint8_t cache_config, shared_config;
	uint16_t registers;
	int32_t cache_requested, cache_executed;
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared, dynamic_shared;
	uint32_t local_per_thread, local_total;
	uint32_t correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch_type, carveout_requested, carveout, padding;
	uint32_t shared_executed;
	uint64_t graph_node;
	int32_t shared_limit;
	uint32_t graph;
	void *access_policy;
	uint32_t channel;
	int32_t channel_type;
	uint32_t cluster[3], cluster_scheduling;
	uint64_t local_total_v2;
	uint32_t max_potential_cluster, max_active_clusters;
	uint8_t device_launched;
	uint8_t padding3[7];
} CUPTI_RECORD;

struct cupti_copy { /* CUpti_ActivityMemcpy6 */
	int32_t kind;
	uint8_t copy_kind, src_kind, dst_kind, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t correlation, runtime_correlation;
	uint32_t pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel;
	int32_t channel_type;
	uint8_t device_launched;
	uint8_t pad2[3];
	uint64_t copies;
} CUPTI_RECORD;

struct cupti_peer_copy { /* CUpti_ActivityMemcpyPtoP4 */
	int32_t kind;
	uint8_t copy_kind, src_kind, dst_kind, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t src_device, src_context, dst_device, dst_context;
	uint32_t correlation;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel;
	int32_t channel_type;
} CUPTI_RECORD;

struct cupti_set { /* CUpti_ActivityMemset4 */
	int32_t kind;
	uint32_t value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t correlation;
	uint16_t flags, memory_kind;
	uint32_t pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel;
	int32_t channel_type;
	uint8_t device_launched;
	uint8_t pad2[3];
} CUPTI_RECORD;

struct cupti_call { /* CUpti_ActivityAPI */
	int32_t kind;
	uint32_t cbid;
	uint64_t start, end;
	uint32_t process, thread, correlation, result;
} CUPTI_RECORD;

struct cupti_graph { /* CUpti_ActivityGraphTrace2 */
	int32_t kind;
	uint32_t correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream;
	void *reserved;
	uint32_t end_device, end_context;
} CUPTI_RECORD;

typedef void cupti_wanted(uint8_t **buffer, size_t *bytes, size_t *record_max);
typedef void cupti_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			     size_t valid);

#endif
