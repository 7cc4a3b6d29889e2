/*
 * tests/sim/cupti_check.c: holds the look-alike's records and numbers against CUPTI's headers. Compiled by
 * `make sim` where cupti.h of CUDA 13 is present and empty where it is not; nothing runs it.
 */
#if __has_include(<cupti.h>)
#include <cuda.h>
#if CUDA_VERSION >= 13000
#include <cupti.h>

#include "cupti_types.h"

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(theirs), #ours)
#define SAME_PLACE(ours, field, theirs, their_field) \
	_Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field), \
		       #ours "." #field)
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)

#define KERNEL(field, their_field) \
	SAME_PLACE(cupti_kernel, field, CUpti_ActivityKernel10, their_field)
SAME_SIZE(cupti_kernel, CUpti_ActivityKernel10);
KERNEL(start, start);
KERNEL(device, deviceId);
KERNEL(grid, gridX);
KERNEL(block, blockX);
KERNEL(dynamic_shared, dynamicSharedMemory);
KERNEL(correlation, correlationId);
KERNEL(grid_id, gridId);
KERNEL(name, name);
KERNEL(submitted, submitted);
KERNEL(graph_node, graphNodeId);
KERNEL(graph, graphId);
KERNEL(channel, channelID);
KERNEL(cluster, clusterX);
KERNEL(max_active_clusters, maxActiveClusters);
KERNEL(device_launched, isDeviceLaunched);

/* A reader of CUDA 12's record finds its fields where they were. */
#define KERNEL9(field, their_field) \
	SAME_PLACE(cupti_kernel, field, CUpti_ActivityKernel9, their_field)
KERNEL9(end, end);
KERNEL9(stream, streamId);
KERNEL9(correlation, correlationId);
KERNEL9(name, name);
KERNEL9(graph, graphId);

#define COPY(field, their_field) SAME_PLACE(cupti_copy, field, CUpti_ActivityMemcpy6, their_field)
SAME_SIZE(cupti_copy, CUpti_ActivityMemcpy6);
COPY(flags, flags);
COPY(bytes, bytes);
COPY(start, start);
COPY(stream, streamId);
COPY(correlation, correlationId);
COPY(runtime_correlation, runtimeCorrelationId);
COPY(graph_node, graphNodeId);
COPY(graph, graphId);
COPY(channel_type, channelType);
COPY(copies, copyCount);

#define PEER(field, their_field) \
	SAME_PLACE(cupti_peer_copy, field, CUpti_ActivityMemcpyPtoP4, their_field)
SAME_SIZE(cupti_peer_copy, CUpti_ActivityMemcpyPtoP4);
PEER(end, end);
PEER(stream, streamId);
PEER(src_device, srcDeviceId);
PEER(dst_context, dstContextId);
PEER(correlation, correlationId);
PEER(graph, graphId);

#define SET(field, their_field) SAME_PLACE(cupti_set, field, CUpti_ActivityMemset4, their_field)
SAME_SIZE(cupti_set, CUpti_ActivityMemset4);
SET(value, value);
SET(end, end);
SET(correlation, correlationId);
SET(memory_kind, memoryKind);
SET(graph, graphId);

#define CALL(field, their_field) SAME_PLACE(cupti_call, field, CUpti_ActivityAPI, their_field)
SAME_SIZE(cupti_call, CUpti_ActivityAPI);
CALL(cbid, cbid);
CALL(start, start);
CALL(thread, threadId);
CALL(correlation, correlationId);
CALL(result, returnValue);

#define GRAPH(field, their_field) \
	SAME_PLACE(cupti_graph, field, CUpti_ActivityGraphTrace2, their_field)
SAME_SIZE(cupti_graph, CUpti_ActivityGraphTrace2);
GRAPH(correlation, correlationId);
GRAPH(end, end);
GRAPH(stream, streamId);
GRAPH(end_device, endDeviceId);

SAME(KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(KIND_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL);
SAME(KIND_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME(KIND_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME(KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME(KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME(KIND_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
SAME(COPY_HTOD, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME(COPY_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME(COPY_ATOD, CUPTI_ACTIVITY_MEMCPY_KIND_ATOD);
SAME(COPY_DTOD, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SAME(COPY_HTOH, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
SAME(COPY_PTOP, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
SAME(CUPTI_COPY_ASYNC, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
SAME(CUPTI_MEMSET_ASYNC, CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC);
SAME(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(CUPTI_THREAD_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
SAME(CUPTI_CHANNEL_COMPUTE, CUPTI_CHANNEL_TYPE_COMPUTE);
SAME(CUPTI_CHANNEL_COPY, CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY);
SAME(CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
SAME(CUPTI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
SAME(CUPTI_BAD_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER);
SAME(CUPTI_BAD_OPERATION, CUPTI_ERROR_INVALID_OPERATION);
SAME(CUPTI_TOO_SMALL, CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
SAME(CUPTI_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
SAME(CUPTI_BAD_KIND, CUPTI_ERROR_INVALID_KIND);
SAME(CUPTI_UNSUPPORTED, CUPTI_ERROR_NOT_SUPPORTED);
SAME(CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);

#define CBID_DRIVER(function, number) SAME(number, CUPTI_DRIVER_TRACE_CBID_##function);
#define CBID_RUNTIME(function, version, number) \
	SAME(number, CUPTI_RUNTIME_TRACE_CBID_##function##_##version);
#include "cupti_cbid.def"
#endif
#endif
