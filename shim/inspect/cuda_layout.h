/*
 * shim/inspect/cuda_layout.h: where things are in the structures that CUDA calls take.
 *
 * The shim is built without CUDA's headers, so these are its own descriptions of the fields it
 * reads; everything else is a gap. Such layouts are part of the ABI: a changed one gets a new
 * function name in the driver, and the few that changed between runtime generations are told apart
 * by the slot's layer. tests/unit/test_layout.c holds each offset against the toolkit's headers.
 * Sizes and handles are words of 64 bits; `_v1` are the 32-bit forms of the driver's first ABI.
 */
#ifndef CUDASPY_SHIM_CUDA_LAYOUT_H
#define CUDASPY_SHIM_CUDA_LAYOUT_H

#include <stdint.h>

/* CUmemorytype: what an end of a driver's 2D or 3D copy is. */
enum layout_memorytype { LAYOUT_HOST = 1, LAYOUT_DEVICE = 2, LAYOUT_ARRAY = 3, LAYOUT_UNIFIED = 4 };

/* cudaMemcpyKind */
enum layout_kind { LAYOUT_H2H, LAYOUT_H2D, LAYOUT_D2H, LAYOUT_D2D, LAYOUT_DEFAULT };

/* cudaMemcpy3DOperandType, CUmemcpy3DOperandType */
enum layout_operand_type { LAYOUT_OPERAND_POINTER = 1, LAYOUT_OPERAND_ARRAY = 2 };

struct layout_extent { /* cudaExtent */
	uint64_t width, height, depth;
};

struct layout_pitched { /* cudaPitchedPtr */
	uint64_t address, pitch, xsize, ysize;
};

struct layout_end_2d { /* one end of a CUDA_MEMCPY2D */
	uint64_t x_bytes, y;
	uint32_t type, gap;
	uint64_t host, device, array, pitch;
};

struct layout_copy_2d { /* CUDA_MEMCPY2D */
	struct layout_end_2d src, dst;
	uint64_t width_bytes, height;
};

struct layout_end_3d { /* one end of a CUDA_MEMCPY3D, or of a CUDA_MEMCPY3D_PEER */
	uint64_t x_bytes, y, z, lod;
	uint32_t type, gap;
	uint64_t host, device, array;
	uint64_t context; /* of a peer copy; else reserved */
	uint64_t pitch, height;
};

struct layout_copy_3d { /* CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER */
	struct layout_end_3d src, dst;
	uint64_t width_bytes, height, depth;
};

struct layout_copy_2d_v1 { /* CUDA_MEMCPY2D_v1 */
	uint32_t src_x_bytes, src_y, src_type, gap1;
	uint64_t src_host;
	uint32_t src_device, gap2;
	uint64_t src_array;
	uint32_t src_pitch, dst_x_bytes, dst_y, dst_type;
	uint64_t dst_host;
	uint32_t dst_device, gap3;
	uint64_t dst_array;
	uint32_t dst_pitch, width_bytes, height;
};

struct layout_copy_3d_v1 { /* CUDA_MEMCPY3D_v1 */
	uint32_t src_x_bytes, src_y, src_z, src_lod, src_type, gap1;
	uint64_t src_host;
	uint32_t src_device, gap2;
	uint64_t src_array, reserved0;
	uint32_t src_pitch, src_height, dst_x_bytes, dst_y, dst_z, dst_lod, dst_type, gap3;
	uint64_t dst_host;
	uint32_t dst_device, gap4;
	uint64_t dst_array, reserved1;
	uint32_t dst_pitch, dst_height, width_bytes, height, depth;
};

struct layout_rt_end_3d { /* one end of a runtime's 3D copy */
	uint64_t array;
	uint64_t x, y, z; /* elements of an array, bytes of memory */
	struct layout_pitched memory;
};

struct layout_rt_copy_3d { /* cudaMemcpy3DParms */
	struct layout_rt_end_3d src, dst;
	struct layout_extent extent; /* elements if an array takes part, else bytes */
	uint32_t kind;
};

struct layout_rt_copy_3d_peer { /* cudaMemcpy3DPeerParms */
	struct layout_rt_end_3d src;
	uint32_t src_device, gap1;
	struct layout_rt_end_3d dst;
	uint32_t dst_device, gap2;
	struct layout_extent extent;
};

struct layout_operand_3d { /* cudaMemcpy3DOperand, CUmemcpy3DOperand */
	uint32_t type, gap;
	uint64_t object; /* address or array */
	uint64_t row_length, layer_height; /* elements; 0: packed */
	uint64_t rest;
};

struct layout_batch_op_3d { /* cudaMemcpy3DBatchOp, CUDA_MEMCPY3D_BATCH_OP */
	struct layout_operand_3d src, dst;
	struct layout_extent extent; /* elements */
	uint32_t source_access_order, flags;
};

struct layout_channel { /* cudaChannelFormatDesc */
	int32_t x, y, z, w; /* bits */
	uint32_t format;
};

/* cudaChannelFormatKind: block-compressed formats have no bytes per element. */
enum { LAYOUT_CHANNEL_BC_FIRST = 17, LAYOUT_CHANNEL_BC_LAST = 30, LAYOUT_CHANNEL_1010102 = 31 };

struct layout_array { /* CUDA_ARRAY_DESCRIPTOR */
	uint64_t width, height;
	uint32_t format, channels;
};

struct layout_array_3d { /* CUDA_ARRAY3D_DESCRIPTOR */
	uint64_t width, height, depth;
	uint32_t format, channels, flags;
};

struct layout_array_v1 { /* CUDA_ARRAY_DESCRIPTOR_v1 */
	uint32_t width, height, format, channels;
};

struct layout_array_3d_v1 { /* CUDA_ARRAY3D_DESCRIPTOR_v1 */
	uint32_t width, height, depth, format, channels, flags;
};

/* CUarray_format: those with a whole number of bytes per channel */
enum layout_array_format {
	LAYOUT_UINT8 = 0x01,
	LAYOUT_UINT16 = 0x02,
	LAYOUT_UINT32 = 0x03,
	LAYOUT_SINT8 = 0x08,
	LAYOUT_SINT16 = 0x09,
	LAYOUT_SINT32 = 0x0a,
	LAYOUT_HALF = 0x10,
	LAYOUT_FLOAT = 0x20,
};

struct layout_launch_config { /* cudaLaunchConfig_t, CUlaunchConfig: the same places */
	uint32_t grid[3], block[3];
	uint64_t shared_bytes; /* 32 bits in CUlaunchConfig */
	uint64_t stream;
	uint64_t attributes;
	uint32_t attributes_cnt;
};

struct layout_rt_launch_params { /* cudaLaunchParams, of a multi-device launch */
	uint64_t function;
	uint32_t grid[3], block[3];
	uint64_t args, shared_bytes, stream;
};

struct layout_cu_launch_params { /* CUDA_LAUNCH_PARAMS, of a multi-device launch */
	uint64_t function;
	uint32_t grid[3], block[3];
	uint32_t shared_bytes, gap;
	uint64_t stream, args;
};

struct layout_allocation { /* the start of CUmemAllocationProp */
	uint32_t type, handle_types;
	uint32_t location_type, location_id; /* CUmemLocation */
};

/* CUmemLocationType: from the second on the memory is the host's */
enum { LAYOUT_LOCATION_DEVICE = 1, LAYOUT_LOCATION_HOST = 2 };

struct layout_access { /* CUmemAccessDesc, cudaMemAccessDesc */
	uint32_t location_type, location_id; /* whose access */
	uint32_t flags; /* 0: no access */
};

struct layout_mapped_buffer { /* cudaExternalMemoryBufferDesc, CUDA_EXTERNAL_MEMORY_BUFFER_DESC */
	uint64_t offset, size;
};

#endif
