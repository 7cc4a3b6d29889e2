/*
 * tests/sim/sim_types.h: the few CUDA structures and numbers the simulator needs, declared by itself
 * so that it builds where no toolkit is installed. Layouts are facts of the public ABI;
 * check_layout.c holds them against cuda.h and driver_types.h where those exist. Included by
 * driver and runtime alike.
 */
#ifndef SIM_TYPES_H
#define SIM_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exported; in the static runtime as hidden as a static cudart's functions are. */
#ifdef RT_STATIC
#define SIM_PUBLIC __attribute__((visibility("hidden")))
#else
#define SIM_PUBLIC __attribute__((visibility("default")))
#endif

/* A device address: an integer in the driver's interface, real host memory here. */
typedef uint64_t sim_ptr;

/* Results: the driver's and the runtime's agree on every number used here. */
enum sim_result {
	SIM_OK = 0,
	SIM_INVALID_VALUE = 1,
	SIM_OUT_OF_MEMORY = 2,
	SIM_NOT_INITIALIZED = 3,
	SIM_DEINITIALIZED = 4,
	SIM_INVALID_CONFIGURATION = 9,
	SIM_INVALID_PITCH = 12,
	SIM_INVALID_SYMBOL = 13,
	SIM_INVALID_DIRECTION = 21,
	SIM_INSUFFICIENT_DRIVER = 35,
	SIM_INVALID_FUNCTION = 98,
	SIM_NO_DEVICE = 100,
	SIM_INVALID_DEVICE = 101,
	SIM_INVALID_IMAGE = 200,
	SIM_INVALID_CONTEXT = 201,
	SIM_FILE_NOT_FOUND = 301,
	SIM_INVALID_HANDLE = 400,
	SIM_ILLEGAL_STATE = 401,
	SIM_NOT_FOUND = 500,
	SIM_NOT_READY = 600,
	SIM_PEER_ALREADY_ENABLED = 704,
	SIM_PEER_NOT_ENABLED = 705,
	SIM_TOO_MANY_PEERS = 711,
	SIM_ALREADY_REGISTERED = 712,
	SIM_NOT_REGISTERED = 713,
	SIM_NOT_SUPPORTED = 801,
	SIM_MPS_CONNECTION_FAILED = 805,
	SIM_MPS_RPC_FAILURE = 806,
	SIM_MPS_MAX_CLIENTS = 808,
	SIM_CAPTURE_UNSUPPORTED = 900,
	SIM_CAPTURE_INVALIDATED = 901,
	SIM_CAPTURE_UNMATCHED = 903,
	SIM_CAPTURE_UNJOINED = 904,
	SIM_CAPTURE_ISOLATION = 905,
	SIM_CAPTURE_IMPLICIT = 906,
	SIM_GRAPH_UPDATE_FAILURE = 910,
};

enum { SIM_HOST = 1, SIM_DEVICE = 2, SIM_ARRAY = 3, SIM_UNIFIED = 4 }; /* CUmemorytype */

struct sim_memcpy2d {
	size_t src_x, src_y;
	int src_type;
	const void *src_host;
	sim_ptr src_dev;
	void *src_array;
	size_t src_pitch;
	size_t dst_x, dst_y;
	int dst_type;
	void *dst_host;
	sim_ptr dst_dev;
	void *dst_array;
	size_t dst_pitch;
	size_t width, height;
};

/* CUDA_MEMCPY3D; CUDA_MEMCPY3D_PEER puts contexts where this has reserved pointers. */
struct sim_memcpy3d {
	size_t src_x, src_y, src_z, src_lod;
	int src_type;
	const void *src_host;
	sim_ptr src_dev;
	void *src_array;
	void *src_ctx;
	size_t src_pitch, src_height;
	size_t dst_x, dst_y, dst_z, dst_lod;
	int dst_type;
	void *dst_host;
	sim_ptr dst_dev;
	void *dst_array;
	void *dst_ctx;
	size_t dst_pitch, dst_height;
	size_t width, height, depth;
};

struct sim_array_desc {
	size_t width, height;
	int format;
	unsigned channels;
};

struct sim_array3d_desc {
	size_t width, height, depth;
	int format;
	unsigned channels;
	unsigned flags;
};

struct sim_launch_config {
	unsigned grid[3], block[3];
	unsigned shared;
	void *stream;
	void *attrs;
	unsigned attr_cnt;
};

struct sim_kernel_node {
	void *func;
	unsigned grid[3], block[3];
	unsigned shared;
	void **params;
	void **extra;
	void *kernel; /* from here on only in the second version */
	void *ctx;
};

struct sim_memset_node {
	sim_ptr dst;
	size_t pitch;
	unsigned value, element;
	size_t width, height;
};

struct sim_host_node {
	void (*fn)(void *);
	void *arg;
};

struct sim_location {
	int type, id;
};

struct sim_access_desc {
	struct sim_location location;
	int flags;
};

struct sim_pool_props {
	int alloc_type, handle_types;
	struct sim_location location;
	void *security;
	size_t max_size;
	unsigned short usage;
	unsigned char reserved[54];
};

struct sim_alloc_prop {
	int type, handle_types;
	struct sim_location location;
	void *security;
	unsigned char flags[8];
};

struct sim_instantiate_params {
	unsigned long long flags;
	void *upload_stream;
	void *error_node;
	int result;
};

struct sim_update_result {
	int result;
	void *error_node;
	void *error_from_node;
};

/* ---- the runtime's ---- */
struct sim_dim3 {
	unsigned x, y, z;
};

struct sim_pitched {
	void *ptr;
	size_t pitch, xsize, ysize;
};

struct sim_extent {
	size_t width, height, depth;
};

struct sim_pos {
	size_t x, y, z;
};

struct sim_channel_desc {
	int x, y, z, w;
	int kind; /* 0 signed, 1 unsigned, 2 float */
};

struct sim_rt_memcpy3d {
	void *src_array;
	struct sim_pos src_pos;
	struct sim_pitched src;
	void *dst_array;
	struct sim_pos dst_pos;
	struct sim_pitched dst;
	struct sim_extent extent;
	int kind;
};

struct sim_rt_memcpy3d_peer {
	void *src_array;
	struct sim_pos src_pos;
	struct sim_pitched src;
	int src_device;
	void *dst_array;
	struct sim_pos dst_pos;
	struct sim_pitched dst;
	int dst_device;
	struct sim_extent extent;
};

struct sim_rt_launch_config {
	struct sim_dim3 grid, block;
	size_t shared;
	void *stream;
	void *attrs;
	unsigned attr_cnt;
};

struct sim_rt_kernel_node {
	const void *func;
	struct sim_dim3 grid, block;
	unsigned shared;
	void **params;
	void **extra;
};

struct sim_rt_memcpy_node {
	int flags, reserved[3];
	struct sim_rt_memcpy3d copy;
};

struct sim_pointer_attributes { /* up to CUDA 12; 13 adds eight reserved longs */
	int type, device;
	void *device_pointer, *host_pointer;
};

struct sim_func_attributes { /* up to CUDA 11 the first 56 bytes; 12 and 13 all of it */
	size_t shared_bytes, const_bytes, local_bytes;
	int max_threads, regs, ptx, binary, cache_ca, max_dynamic_shared, carveout;
	int cluster[6];
	int reserved[16];
};

#endif
