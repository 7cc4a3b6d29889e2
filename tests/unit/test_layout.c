/*
 * tests/unit/test_layout.c: the places in CUDA's structures that shim/inspect/cuda_layout.h names, against
 * the headers of the installed toolkit. Everything is checked by the compiler; without a toolkit
 * there is nothing to check.
 */
#include <stdio.h>
#if __has_include(<cuda.h>)
#define __CUDA_API_VERSION_INTERNAL /* the structures of the driver's first ABI, too */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>
#include "inspect/cuda_layout.h"

#define AT(ours, our_field, theirs, their_field) \
	_Static_assert(offsetof(struct ours, our_field) == offsetof(theirs, their_field), \
		       #theirs "." #their_field); \
	_Static_assert(sizeof(((struct ours *)0)->our_field) == \
			       sizeof(((theirs *)0)->their_field), \
		       "size of " #theirs "." #their_field)
#define SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(theirs), #theirs)
#define VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

typedef struct cudaMemcpy3DParms rt_3d;
typedef struct cudaMemcpy3DPeerParms rt_3d_peer;
typedef struct cudaPitchedPtr pitched;
typedef struct cudaExtent extent;
typedef struct cudaChannelFormatDesc channel;

AT(layout_extent, width, extent, width);
AT(layout_extent, height, extent, height);
AT(layout_extent, depth, extent, depth);
SIZE(layout_extent, extent);
AT(layout_pitched, address, pitched, ptr);
AT(layout_pitched, pitch, pitched, pitch);
AT(layout_pitched, xsize, pitched, xsize);
AT(layout_pitched, ysize, pitched, ysize);
SIZE(layout_pitched, pitched);

AT(layout_copy_2d, src.x_bytes, CUDA_MEMCPY2D, srcXInBytes);
AT(layout_copy_2d, src.y, CUDA_MEMCPY2D, srcY);
AT(layout_copy_2d, src.type, CUDA_MEMCPY2D, srcMemoryType);
AT(layout_copy_2d, src.host, CUDA_MEMCPY2D, srcHost);
AT(layout_copy_2d, src.device, CUDA_MEMCPY2D, srcDevice);
AT(layout_copy_2d, src.array, CUDA_MEMCPY2D, srcArray);
AT(layout_copy_2d, src.pitch, CUDA_MEMCPY2D, srcPitch);
AT(layout_copy_2d, dst.x_bytes, CUDA_MEMCPY2D, dstXInBytes);
AT(layout_copy_2d, dst.y, CUDA_MEMCPY2D, dstY);
AT(layout_copy_2d, dst.type, CUDA_MEMCPY2D, dstMemoryType);
AT(layout_copy_2d, dst.host, CUDA_MEMCPY2D, dstHost);
AT(layout_copy_2d, dst.device, CUDA_MEMCPY2D, dstDevice);
AT(layout_copy_2d, dst.array, CUDA_MEMCPY2D, dstArray);
AT(layout_copy_2d, dst.pitch, CUDA_MEMCPY2D, dstPitch);
AT(layout_copy_2d, width_bytes, CUDA_MEMCPY2D, WidthInBytes);
AT(layout_copy_2d, height, CUDA_MEMCPY2D, Height);
SIZE(layout_copy_2d, CUDA_MEMCPY2D);

#define END_3D(end, theirs) \
	AT(layout_copy_3d, end.x_bytes, theirs, end##XInBytes); \
	AT(layout_copy_3d, end.y, theirs, end##Y); \
	AT(layout_copy_3d, end.z, theirs, end##Z); \
	AT(layout_copy_3d, end.lod, theirs, end##LOD); \
	AT(layout_copy_3d, end.type, theirs, end##MemoryType); \
	AT(layout_copy_3d, end.host, theirs, end##Host); \
	AT(layout_copy_3d, end.device, theirs, end##Device); \
	AT(layout_copy_3d, end.array, theirs, end##Array); \
	AT(layout_copy_3d, end.pitch, theirs, end##Pitch); \
	AT(layout_copy_3d, end.height, theirs, end##Height)
#define COPY_3D(theirs) \
	END_3D(src, theirs); \
	END_3D(dst, theirs); \
	AT(layout_copy_3d, width_bytes, theirs, WidthInBytes); \
	AT(layout_copy_3d, height, theirs, Height); \
	AT(layout_copy_3d, depth, theirs, Depth); \
	SIZE(layout_copy_3d, theirs)
COPY_3D(CUDA_MEMCPY3D);
COPY_3D(CUDA_MEMCPY3D_PEER);
AT(layout_copy_3d, src.context, CUDA_MEMCPY3D_PEER, srcContext);
AT(layout_copy_3d, dst.context, CUDA_MEMCPY3D_PEER, dstContext);

#define END_V1(ours, theirs, end) \
	AT(ours, end##_x_bytes, theirs, end##XInBytes); \
	AT(ours, end##_y, theirs, end##Y); \
	AT(ours, end##_type, theirs, end##MemoryType); \
	AT(ours, end##_host, theirs, end##Host); \
	AT(ours, end##_device, theirs, end##Device); \
	AT(ours, end##_array, theirs, end##Array); \
	AT(ours, end##_pitch, theirs, end##Pitch)
END_V1(layout_copy_2d_v1, CUDA_MEMCPY2D_v1, src);
END_V1(layout_copy_2d_v1, CUDA_MEMCPY2D_v1, dst);
AT(layout_copy_2d_v1, width_bytes, CUDA_MEMCPY2D_v1, WidthInBytes);
AT(layout_copy_2d_v1, height, CUDA_MEMCPY2D_v1, Height);
SIZE(layout_copy_2d_v1, CUDA_MEMCPY2D_v1);
END_V1(layout_copy_3d_v1, CUDA_MEMCPY3D_v1, src);
END_V1(layout_copy_3d_v1, CUDA_MEMCPY3D_v1, dst);
AT(layout_copy_3d_v1, src_z, CUDA_MEMCPY3D_v1, srcZ);
AT(layout_copy_3d_v1, dst_z, CUDA_MEMCPY3D_v1, dstZ);
AT(layout_copy_3d_v1, src_height, CUDA_MEMCPY3D_v1, srcHeight);
AT(layout_copy_3d_v1, dst_height, CUDA_MEMCPY3D_v1, dstHeight);
AT(layout_copy_3d_v1, width_bytes, CUDA_MEMCPY3D_v1, WidthInBytes);
AT(layout_copy_3d_v1, height, CUDA_MEMCPY3D_v1, Height);
AT(layout_copy_3d_v1, depth, CUDA_MEMCPY3D_v1, Depth);
SIZE(layout_copy_3d_v1, CUDA_MEMCPY3D_v1);

#define RT_END(ours, theirs, end) \
	AT(ours, end.array, theirs, end##Array); \
	AT(ours, end.x, theirs, end##Pos.x); \
	AT(ours, end.y, theirs, end##Pos.y); \
	AT(ours, end.z, theirs, end##Pos.z); \
	AT(ours, end.memory, theirs, end##Ptr)
RT_END(layout_rt_copy_3d, rt_3d, src);
RT_END(layout_rt_copy_3d, rt_3d, dst);
AT(layout_rt_copy_3d, extent, rt_3d, extent);
AT(layout_rt_copy_3d, kind, rt_3d, kind);
SIZE(layout_rt_copy_3d, rt_3d);
RT_END(layout_rt_copy_3d_peer, rt_3d_peer, src);
RT_END(layout_rt_copy_3d_peer, rt_3d_peer, dst);
AT(layout_rt_copy_3d_peer, src_device, rt_3d_peer, srcDevice);
AT(layout_rt_copy_3d_peer, dst_device, rt_3d_peer, dstDevice);
AT(layout_rt_copy_3d_peer, extent, rt_3d_peer, extent);
SIZE(layout_rt_copy_3d_peer, rt_3d_peer);

#if CUDA_VERSION >= 12080
typedef struct cudaMemcpy3DBatchOp rt_batch_op;
#define BATCH_END(theirs, end) \
	AT(layout_batch_op_3d, end.type, theirs, end.type); \
	AT(layout_batch_op_3d, end.object, theirs, end.op.ptr.ptr); \
	AT(layout_batch_op_3d, end.object, theirs, end.op.array.array); \
	AT(layout_batch_op_3d, end.row_length, theirs, end.op.ptr.rowLength); \
	AT(layout_batch_op_3d, end.layer_height, theirs, end.op.ptr.layerHeight)
BATCH_END(rt_batch_op, src);
BATCH_END(rt_batch_op, dst);
BATCH_END(CUDA_MEMCPY3D_BATCH_OP, src);
BATCH_END(CUDA_MEMCPY3D_BATCH_OP, dst);
AT(layout_batch_op_3d, extent, rt_batch_op, extent);
AT(layout_batch_op_3d, extent, CUDA_MEMCPY3D_BATCH_OP, extent);
SIZE(layout_batch_op_3d, rt_batch_op);
SIZE(layout_batch_op_3d, CUDA_MEMCPY3D_BATCH_OP);
VALUE(LAYOUT_OPERAND_POINTER, cudaMemcpyOperandTypePointer);
VALUE(LAYOUT_OPERAND_ARRAY, cudaMemcpyOperandTypeArray);
VALUE(LAYOUT_OPERAND_POINTER, CU_MEMCPY_OPERAND_TYPE_POINTER);
VALUE(LAYOUT_OPERAND_ARRAY, CU_MEMCPY_OPERAND_TYPE_ARRAY);
#endif

AT(layout_channel, x, channel, x);
AT(layout_channel, w, channel, w);
AT(layout_channel, format, channel, f);
SIZE(layout_channel, channel);
VALUE(LAYOUT_CHANNEL_BC_FIRST, cudaChannelFormatKindUnsignedBlockCompressed1);
VALUE(LAYOUT_CHANNEL_BC_LAST, cudaChannelFormatKindUnsignedBlockCompressed7SRGB);
#if CUDART_VERSION >= 12080
VALUE(LAYOUT_CHANNEL_1010102, cudaChannelFormatKindUnsignedNormalized1010102);
#endif

#define ARRAY(ours, theirs) \
	AT(ours, width, theirs, Width); \
	AT(ours, height, theirs, Height); \
	AT(ours, format, theirs, Format); \
	AT(ours, channels, theirs, NumChannels); \
	SIZE(ours, theirs)
ARRAY(layout_array, CUDA_ARRAY_DESCRIPTOR);
ARRAY(layout_array_3d, CUDA_ARRAY3D_DESCRIPTOR);
ARRAY(layout_array_v1, CUDA_ARRAY_DESCRIPTOR_v1);
ARRAY(layout_array_3d_v1, CUDA_ARRAY3D_DESCRIPTOR_v1);
AT(layout_array_3d, depth, CUDA_ARRAY3D_DESCRIPTOR, Depth);
AT(layout_array_3d_v1, depth, CUDA_ARRAY3D_DESCRIPTOR_v1, Depth);
VALUE(LAYOUT_UINT8, CU_AD_FORMAT_UNSIGNED_INT8);
VALUE(LAYOUT_UINT16, CU_AD_FORMAT_UNSIGNED_INT16);
VALUE(LAYOUT_UINT32, CU_AD_FORMAT_UNSIGNED_INT32);
VALUE(LAYOUT_SINT8, CU_AD_FORMAT_SIGNED_INT8);
VALUE(LAYOUT_SINT16, CU_AD_FORMAT_SIGNED_INT16);
VALUE(LAYOUT_SINT32, CU_AD_FORMAT_SIGNED_INT32);
VALUE(LAYOUT_HALF, CU_AD_FORMAT_HALF);
VALUE(LAYOUT_FLOAT, CU_AD_FORMAT_FLOAT);

AT(layout_launch_config, grid[0], cudaLaunchConfig_t, gridDim.x);
AT(layout_launch_config, block[2], cudaLaunchConfig_t, blockDim.z);
AT(layout_launch_config, shared_bytes, cudaLaunchConfig_t, dynamicSmemBytes);
AT(layout_launch_config, stream, cudaLaunchConfig_t, stream);
AT(layout_launch_config, attributes_cnt, cudaLaunchConfig_t, numAttrs);
SIZE(layout_launch_config, cudaLaunchConfig_t);
AT(layout_launch_config, grid[0], CUlaunchConfig, gridDimX);
AT(layout_launch_config, block[2], CUlaunchConfig, blockDimZ);
AT(layout_launch_config, stream, CUlaunchConfig, hStream);
AT(layout_launch_config, attributes_cnt, CUlaunchConfig, numAttrs);
SIZE(layout_launch_config, CUlaunchConfig);
AT(layout_cu_launch_params, function, CUDA_LAUNCH_PARAMS, function);
AT(layout_cu_launch_params, grid[0], CUDA_LAUNCH_PARAMS, gridDimX);
AT(layout_cu_launch_params, shared_bytes, CUDA_LAUNCH_PARAMS, sharedMemBytes);
AT(layout_cu_launch_params, stream, CUDA_LAUNCH_PARAMS, hStream);
SIZE(layout_cu_launch_params, CUDA_LAUNCH_PARAMS);
#if CUDART_VERSION < 13000 /* gone since */
typedef struct cudaLaunchParams rt_params;
AT(layout_rt_launch_params, function, rt_params, func);
AT(layout_rt_launch_params, stream, rt_params, stream);
SIZE(layout_rt_launch_params, rt_params);
#endif

AT(layout_allocation, location_type, CUmemPoolProps, location.type);
AT(layout_allocation, location_id, CUmemPoolProps, location.id);
AT(layout_allocation, location_type, struct cudaMemPoolProps, location.type);
AT(layout_allocation, location_id, struct cudaMemPoolProps, location.id);
AT(layout_allocation, location_type, CUmemAllocationProp, location.type);
AT(layout_allocation, location_id, CUmemAllocationProp, location.id);
VALUE(LAYOUT_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
AT(layout_access, location_type, CUmemAccessDesc, location.type);
AT(layout_access, location_id, CUmemAccessDesc, location.id);
AT(layout_access, flags, CUmemAccessDesc, flags);
SIZE(layout_access, CUmemAccessDesc);
AT(layout_access, location_type, struct cudaMemAccessDesc, location.type);
AT(layout_access, location_id, struct cudaMemAccessDesc, location.id);
AT(layout_access, flags, struct cudaMemAccessDesc, flags);
SIZE(layout_access, struct cudaMemAccessDesc);
#if CUDA_VERSION >= 12000
VALUE(LAYOUT_LOCATION_HOST, CU_MEM_LOCATION_TYPE_HOST);
#endif
AT(layout_mapped_buffer, offset, CUDA_EXTERNAL_MEMORY_BUFFER_DESC, offset);
AT(layout_mapped_buffer, size, CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size);
AT(layout_mapped_buffer, offset, struct cudaExternalMemoryBufferDesc, offset);
AT(layout_mapped_buffer, size, struct cudaExternalMemoryBufferDesc, size);

VALUE(LAYOUT_HOST, CU_MEMORYTYPE_HOST);
VALUE(LAYOUT_DEVICE, CU_MEMORYTYPE_DEVICE);
VALUE(LAYOUT_ARRAY, CU_MEMORYTYPE_ARRAY);
VALUE(LAYOUT_UNIFIED, CU_MEMORYTYPE_UNIFIED);
VALUE(LAYOUT_H2H, cudaMemcpyHostToHost);
VALUE(LAYOUT_H2D, cudaMemcpyHostToDevice);
VALUE(LAYOUT_D2H, cudaMemcpyDeviceToHost);
VALUE(LAYOUT_D2D, cudaMemcpyDeviceToDevice);
VALUE(LAYOUT_DEFAULT, cudaMemcpyDefault);

/* Numbers that memory.c uses. */
VALUE(2, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
VALUE(8, CU_POINTER_ATTRIBUTE_IS_MANAGED);
VALUE(11, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
VALUE(12, CU_POINTER_ATTRIBUTE_RANGE_SIZE);

int main(void)
{
	puts("layouts agree with the toolkit's headers");
	return 0;
}
#else
int main(void)
{
	puts("skipped: no CUDA toolkit");
	return 0;
}
#endif
