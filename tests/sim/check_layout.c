/*
 * tests/sim/check_layout.c: holds the simulator's structures against the toolkit's headers. Compiled by
 * `make sim` where cuda.h is present and empty where it is not; nothing runs it.
 */
#if __has_include(<cuda.h>) && __has_include(<driver_types.h>)
#include <cuda.h>
#include <driver_types.h>

#include "sim_types.h"

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(theirs), #ours)
#define SAME_PLACE(ours, field, theirs, their_field) \
	_Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field), \
		       #ours "." #field)

SAME_SIZE(sim_memcpy2d, CUDA_MEMCPY2D);
SAME_PLACE(sim_memcpy2d, src_pitch, CUDA_MEMCPY2D, srcPitch);
SAME_PLACE(sim_memcpy2d, dst_array, CUDA_MEMCPY2D, dstArray);
SAME_PLACE(sim_memcpy2d, height, CUDA_MEMCPY2D, Height);
SAME_SIZE(sim_memcpy3d, CUDA_MEMCPY3D);
SAME_SIZE(sim_memcpy3d, CUDA_MEMCPY3D_PEER);
SAME_PLACE(sim_memcpy3d, src_height, CUDA_MEMCPY3D, srcHeight);
SAME_PLACE(sim_memcpy3d, dst_ctx, CUDA_MEMCPY3D_PEER, dstContext);
SAME_PLACE(sim_memcpy3d, depth, CUDA_MEMCPY3D, Depth);
SAME_SIZE(sim_array_desc, CUDA_ARRAY_DESCRIPTOR);
SAME_SIZE(sim_array3d_desc, CUDA_ARRAY3D_DESCRIPTOR);
SAME_PLACE(sim_array3d_desc, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
SAME_SIZE(sim_launch_config, CUlaunchConfig);
SAME_PLACE(sim_launch_config, stream, CUlaunchConfig, hStream);
SAME_PLACE(sim_launch_config, attr_cnt, CUlaunchConfig, numAttrs);
SAME_SIZE(sim_kernel_node, CUDA_KERNEL_NODE_PARAMS);
SAME_PLACE(sim_kernel_node, params, CUDA_KERNEL_NODE_PARAMS, kernelParams);
SAME_PLACE(sim_kernel_node, kernel, CUDA_KERNEL_NODE_PARAMS, kern);
SAME_SIZE(sim_memset_node, CUDA_MEMSET_NODE_PARAMS);
SAME_PLACE(sim_memset_node, width, CUDA_MEMSET_NODE_PARAMS, width);
SAME_SIZE(sim_host_node, CUDA_HOST_NODE_PARAMS);
SAME_SIZE(sim_location, CUmemLocation);
SAME_SIZE(sim_access_desc, CUmemAccessDesc);
SAME_SIZE(sim_pool_props, CUmemPoolProps);
SAME_PLACE(sim_pool_props, max_size, CUmemPoolProps, maxSize);
SAME_SIZE(sim_alloc_prop, CUmemAllocationProp);
SAME_PLACE(sim_alloc_prop, location, CUmemAllocationProp, location);
SAME_SIZE(sim_instantiate_params, CUDA_GRAPH_INSTANTIATE_PARAMS);
SAME_SIZE(sim_update_result, CUgraphExecUpdateResultInfo);

SAME_SIZE(sim_pitched, struct cudaPitchedPtr);
SAME_SIZE(sim_extent, struct cudaExtent);
SAME_SIZE(sim_pos, struct cudaPos);
SAME_SIZE(sim_channel_desc, struct cudaChannelFormatDesc);
SAME_SIZE(sim_rt_memcpy3d, struct cudaMemcpy3DParms);
SAME_PLACE(sim_rt_memcpy3d, dst, struct cudaMemcpy3DParms, dstPtr);
SAME_PLACE(sim_rt_memcpy3d, kind, struct cudaMemcpy3DParms, kind);
SAME_SIZE(sim_rt_memcpy3d_peer, struct cudaMemcpy3DPeerParms);
SAME_PLACE(sim_rt_memcpy3d_peer, dst_device, struct cudaMemcpy3DPeerParms, dstDevice);
SAME_SIZE(sim_rt_launch_config, cudaLaunchConfig_t);
SAME_PLACE(sim_rt_launch_config, stream, cudaLaunchConfig_t, stream);
SAME_SIZE(sim_rt_kernel_node, struct cudaKernelNodeParams);
SAME_PLACE(sim_rt_kernel_node, params, struct cudaKernelNodeParams, kernelParams);
SAME_SIZE(sim_rt_memcpy_node, struct cudaMemcpyNodeParams);
SAME_PLACE(sim_rt_memcpy_node, copy, struct cudaMemcpyNodeParams, copyParams);

#if CUDART_VERSION >= 13000 || CUDA_VERSION >= 13000
_Static_assert(sizeof(struct sim_pointer_attributes) + 8 * sizeof(long) ==
		       sizeof(struct cudaPointerAttributes),
	       "cudaPointerAttributes");
SAME_PLACE(sim_pointer_attributes, host_pointer, struct cudaPointerAttributes, hostPointer);
SAME_SIZE(sim_func_attributes, struct cudaFuncAttributes);
SAME_PLACE(sim_func_attributes, carveout, struct cudaFuncAttributes, preferredShmemCarveout);
SAME_PLACE(sim_func_attributes, cluster, struct cudaFuncAttributes, clusterDimMustBeSet);

/* Every field of cudaDeviceProp of 13, from the same list the runtime fills it by. */
#define PROP_GEN 13
#define PROP_NAME prop13
#include "runtime_prop.h"
SAME_SIZE(prop13, struct cudaDeviceProp);
#define ALL(type, field, suffix, attr) SAME_PLACE(prop13, field, struct cudaDeviceProp, field);
#define NEW ALL
#define ONLY13 ALL
#define OLD(type, field, suffix, attr)
#define ONLY12 OLD
#include "prop.def"
#endif
#endif
