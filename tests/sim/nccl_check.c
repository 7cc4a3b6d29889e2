/*
 * tests/sim/nccl_check.c: holds the look-alike's numbers against nccl.h. Compiled by `make sim` where that is
 * present and empty where it is not; nothing runs it.
 */
#if __has_include(<nccl.h>)
#include <nccl.h>

#include "nccl.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME(NCCL_CUDA_ERROR, ncclUnhandledCudaError);
SAME(NCCL_SYSTEM_ERROR, ncclSystemError);
SAME(NCCL_INTERNAL_ERROR, ncclInternalError);
SAME(NCCL_INVALID_ARGUMENT, ncclInvalidArgument);
SAME(NCCL_INVALID_USAGE, ncclInvalidUsage);
SAME(NCCL_REMOTE_ERROR, ncclRemoteError);
SAME(NCCL_IN_PROGRESS, ncclInProgress);
SAME(NCCL_INT8, ncclInt8);
SAME(NCCL_UINT32, ncclUint32);
SAME(NCCL_UINT64, ncclUint64);
SAME(NCCL_FLOAT16, ncclFloat16);
SAME(NCCL_FLOAT32, ncclFloat32);
SAME(NCCL_FLOAT64, ncclFloat64);
SAME(NCCL_BFLOAT16, ncclBfloat16);
SAME(NCCL_SUM, ncclSum);
SAME(NCCL_MAX, ncclMax);
SAME(NCCL_AVG, ncclAvg);
SAME(NCCL_ID_BYTES, NCCL_UNIQUE_ID_BYTES);
#endif
