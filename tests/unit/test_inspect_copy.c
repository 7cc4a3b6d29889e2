/* links: shim/inspect/inspect.c shim/inspect/inspect_tables.c shim/inspect/inspect_lookup.c shim/inspect/per_thread.c */
/* links: shim/inspect/inspect_copy.c shim/inspect/inspect_memory.c shim/inspect/inspect_stream.c */
/* links: shim/inspect/inspect_launch.c shim/inspect/inspect_context.c shim/inspect/memory.c shim/lib/handle_map.c shim/lib/lock.c */
/*
 * tests/unit/test_inspect_copy.c: what inspectors read out of each form of copy.
 */
#include "cudaspy/function_numbers.h"
#include "inspect_stubs.h"
#include "inspect/cuda_layout.h"

#define PAGEABLE 0x7f0000001000ull
#define PINNED 0x7f1000000000ull
#define DEVICE 0x7f2000000000ull
#define MANAGED 0x7f3000000000ull
#define MIB (1ull << 20)

static void know_memory(void)
{
	spy_memory_add(&(struct spy_memory){PINNED, PINNED + MIB, SPY_MEM_PINNED, 0, 1, 0});
	spy_memory_add(
		&(struct spy_memory){DEVICE, DEVICE + MIB, SPY_MEM_DEVICE, 0, 1, SPY_ACCESS_PEER});
	spy_memory_add(&(struct spy_memory){MANAGED, MANAGED + MIB, SPY_MEM_MANAGED, 0, 1, 0});
}

static void expect(const struct spy_details *details, int direction, int dst, int src,
		   uint64_t bytes, uint64_t stream)
{
	assert_int_equal(details->event, SPY_EV_COPY);
	assert_int_equal(details->direction, direction);
	assert_int_equal(details->dst_kind, dst);
	assert_int_equal(details->src_kind, src);
	assert_int_equal(details->bytes, bytes);
	assert_int_equal(details->stream, stream);
}

static void test_runtime_1d(void **state)
{
	const struct spy_details *d;

	(void)state;
	know_memory();
	d = BEFORE(cudaMemcpyAsync, RT13, DEVICE, PINNED + 4, 100, GARBAGE | 1, 0x77);
	expect(d, SPY_DIR_H2D, SPY_MEM_DEVICE, SPY_MEM_PINNED, 100, 0x77);
	assert_false(d->pageable);
	after(0);
	assert_int_equal(asked, 0);
	d = CALL(cudaMemcpyAsync, RT13, PAGEABLE, DEVICE, 100, 2, 0x77);
	expect(d, SPY_DIR_D2H, SPY_MEM_PAGEABLE, SPY_MEM_DEVICE, 100, 0x77);
	assert_true(d->pageable);
	assert_int_equal(asked, 1);
	d = CALL(cudaMemcpyAsync, RT13, PAGEABLE + 50, DEVICE, 8, 2, 0x77);
	assert_true(d->pageable);
	assert_int_equal(asked, 1); /* the answer was kept */
	d = CALL(cudaMemcpy, RT13, DEVICE, PAGEABLE, 10, 4);
	expect(d, SPY_DIR_H2D, SPY_MEM_DEVICE, SPY_MEM_PAGEABLE, 10, SPY_STREAM_LEGACY);
	assert_false(d->pageable); /* not an async copy */
	d = CALL(cudaMemcpy_ptds, RT12, DEVICE, DEVICE + 64, 10, 3);
	expect(d, SPY_DIR_D2D, SPY_MEM_DEVICE, SPY_MEM_DEVICE, 10, SPY_STREAM_PER_THREAD);
	d = CALL(cudaMemcpyAsync_ptsz, RT12, PINNED, MANAGED, 10, 4, 0);
	expect(d, SPY_DIR_D2H, SPY_MEM_PINNED, SPY_MEM_MANAGED, 10, SPY_STREAM_PER_THREAD);
	d = CALL(cudaMemcpyAsync, RT12, PINNED, PINNED + 64, 10, 0, 1);
	expect(d, SPY_DIR_H2H, SPY_MEM_PINNED, SPY_MEM_PINNED, 10, SPY_STREAM_LEGACY);
	d = CALL(cudaMemcpyAsync, RT12, PINNED + MIB - 4, DEVICE, 10, 2, 1);
	assert_int_equal(d->dst_kind, SPY_MEM_MIXED);
	d = CALL(cudaMemcpyAsync, RT12, 0, 0, 0, 4, 1); /* nothing to copy: nothing to ask */
	expect(d, SPY_DIR_UNKNOWN, SPY_MEM_UNKNOWN, SPY_MEM_UNKNOWN, 0, 1);
	assert_int_equal(asked, 1);
}

static void test_failed_calls_ask_nothing(void **state)
{
	(void)state;
	BEFORE(cudaMemcpyAsync, RT13, DEVICE, PAGEABLE, 100, 1, 0);
	after(3);
	assert_int_equal(asked, 0);
	assert_int_equal(the_frame.details.src_kind, SPY_MEM_UNKNOWN);
	assert_int_equal(the_frame.details.direction, SPY_DIR_H2D);
}

static void test_runtime_2d_array_symbol(void **state)
{
	const struct spy_details *d;

	(void)state;
	know_memory();
	d = CALL(cudaMemcpy2DAsync, RT13, DEVICE, 512, PINNED, 256, 100, 7, 1, 9);
	expect(d, SPY_DIR_H2D, SPY_MEM_DEVICE, SPY_MEM_PINNED, 700, 9);
	assert_int_equal(d->form, SPY_FORM_2D);
	d = CALL(cudaMemcpy2D, RT13, DEVICE, 512, PINNED, MIB / 2, 100, 7, 1);
	assert_int_equal(d->src_kind, SPY_MEM_MIXED); /* seven rows, half a MiB apart */
	d = CALL(cudaMemcpy2DToArrayAsync, RT13, 0xa0, 1, 2, PAGEABLE, 256, 100, 7, 1, 9);
	expect(d, SPY_DIR_H2D, SPY_MEM_ARRAY, SPY_MEM_PAGEABLE, 700, 9);
	assert_true(d->pageable);
	d = CALL(cudaMemcpy2DFromArray, RT13, PINNED, 256, 0xa0, 1, 2, 100, 7, 4);
	expect(d, SPY_DIR_D2H, SPY_MEM_PINNED, SPY_MEM_ARRAY, 700, 1);
	d = CALL(cudaMemcpyToArrayAsync, RT13, 0xa0, 1, 2, PINNED, 33, 1, 9);
	expect(d, SPY_DIR_H2D, SPY_MEM_ARRAY, SPY_MEM_PINNED, 33, 9);
	d = CALL(cudaMemcpyFromArray, RT13, PINNED, 0xa0, 1, 2, 33, 2);
	expect(d, SPY_DIR_D2H, SPY_MEM_PINNED, SPY_MEM_ARRAY, 33, 1);
	d = CALL(cudaMemcpy2DArrayToArray, RT13, 0xa0, 1, 2, 0xa1, 3, 4, 100, 7, 3);
	expect(d, SPY_DIR_D2D, SPY_MEM_ARRAY, SPY_MEM_ARRAY, 700, 1);
	d = CALL(cudaMemcpyArrayToArray, RT13, 0xa0, 1, 2, 0xa1, 3, 4, 100, 3);
	expect(d, SPY_DIR_D2D, SPY_MEM_ARRAY, SPY_MEM_ARRAY, 100, 1);
	d = CALL(cudaMemcpyToSymbolAsync, RT13, 0x5000, PAGEABLE, 12, 4, 1, 9);
	expect(d, SPY_DIR_H2D, SPY_MEM_DEVICE, SPY_MEM_PAGEABLE, 12, 9);
	assert_int_equal(d->form, SPY_FORM_SYMBOL);
	d = CALL(cudaMemcpyFromSymbol, RT13, PINNED, 0x5000, 12, 4, 2);
	expect(d, SPY_DIR_D2H, SPY_MEM_PINNED, SPY_MEM_DEVICE, 12, 1);
	d = CALL(cudaMemcpyToSymbol, RT13, 0x5000, DEVICE, 12, 4, 4);
	expect(d, SPY_DIR_D2D, SPY_MEM_DEVICE, SPY_MEM_DEVICE, 12, 1);
}

static void test_runtime_3d(void **state)
{
	struct layout_rt_copy_3d p = {.kind = LAYOUT_H2D, .extent = {10, 20, 3}};
	struct layout_channel channel = {32, 32, 32, 32, 2};
	uint64_t out = 0xa0;
	const struct spy_details *d;

	(void)state;
	know_memory();
	p.src.memory = (struct layout_pitched){PINNED, 64, 10, 20};
	p.dst.memory = (struct layout_pitched){DEVICE, 64, 10, 20};
	d = CALL(cudaMemcpy3DAsync, RT13, P(&p), 0);
	expect(d, SPY_DIR_H2D, SPY_MEM_DEVICE, SPY_MEM_PINNED, 600, 1);
	assert_int_equal(d->form, SPY_FORM_3D);
	p.dst.array = 0xa0; /* nobody said how large its elements are */
	d = CALL(cudaMemcpy3DAsync, RT13, P(&p), 0);
	expect(d, SPY_DIR_H2D, SPY_MEM_ARRAY, SPY_MEM_PINNED, 0, 1);
	d = CALL(cudaMallocArray, RT13, P(&out), P(&channel), 10, 20, 0);
	assert_int_equal(d->bytes, 3200);
	d = CALL(cudaMemcpy3D, RT13, P(&p));
	expect(d, SPY_DIR_H2D, SPY_MEM_ARRAY, SPY_MEM_PINNED, 9600, 1);
	assert_int_equal(BEFORE(cudaMemcpy3D, RT13, 0)->event, SPY_EV_CALL);
}

static int get_descriptor(struct layout_array_3d *descriptor, uint64_t handle)
{
	assert_int_equal(handle, 0xa7);
	asked++;
	*descriptor = (struct layout_array_3d){.format = LAYOUT_HALF, .channels = 2};
	return 0;
}

static void test_unknown_array_is_asked_once(void **state)
{
	struct layout_rt_copy_3d p = {.kind = LAYOUT_D2H, .extent = {10, 1, 1}};

	(void)state;
	know_memory();
	real_driver[SPY_FN_cuArray3DGetDescriptor_v2] = (void *)get_descriptor;
	p.src.array = 0xa7;
	p.dst.memory = (struct layout_pitched){PINNED, 64, 10, 1};
	for (int i = 0; i < 3; i++)
		assert_int_equal(CALL(cudaMemcpy3D, RT12, P(&p))->bytes, 40);
	assert_int_equal(asked, 1);
}

static void test_driver_1d(void **state)
{
	const struct spy_details *d;

	(void)state;
	know_memory();
	d = CALL(cuMemcpyHtoDAsync_v2, DRIVER, DEVICE, PAGEABLE, 100, 0x77);
	expect(d, SPY_DIR_H2D, SPY_MEM_DEVICE, SPY_MEM_PAGEABLE, 100, 0x77);
	assert_true(d->pageable);
	d = CALL(cuMemcpyDtoHAsync_v2_ptsz, DRIVER, PINNED, DEVICE, 100, 0);
	expect(d, SPY_DIR_D2H, SPY_MEM_PINNED, SPY_MEM_DEVICE, 100, SPY_STREAM_PER_THREAD);
	d = CALL(cuMemcpyDtoD_v2, DRIVER, 0x302000000, DEVICE,
		 100); /* pool memory: not asked about */
	expect(d, SPY_DIR_D2D, SPY_MEM_DEVICE, SPY_MEM_DEVICE, 100, 1);
	d = CALL(cuMemcpyAsync, DRIVER, DEVICE, MANAGED, 100, 0x77);
	expect(d, SPY_DIR_D2D, SPY_MEM_DEVICE, SPY_MEM_MANAGED, 100, 0x77);
	d = CALL(cuMemcpyAtoHAsync_v2, DRIVER, PINNED, 0xa0, 4, 100, 0x77);
	expect(d, SPY_DIR_D2H, SPY_MEM_PINNED, SPY_MEM_ARRAY, 100, 0x77);
	d = CALL(cuMemcpyHtoA_v2, DRIVER, 0xa0, 4, PINNED, 100);
	expect(d, SPY_DIR_H2D, SPY_MEM_ARRAY, SPY_MEM_PINNED, 100, 1);
	d = CALL(cuMemcpyDtoA_v2, DRIVER, 0xa0, 4, DEVICE, 100);
	expect(d, SPY_DIR_D2D, SPY_MEM_ARRAY, SPY_MEM_DEVICE, 100, 1);
	d = CALL(cuMemcpyAtoD_v2, DRIVER, DEVICE, 0xa0, 4, 100);
	expect(d, SPY_DIR_D2D, SPY_MEM_DEVICE, SPY_MEM_ARRAY, 100, 1);
	d = CALL(cuMemcpyAtoA_v2, DRIVER, 0xa0, 4, 0xa1, 8, 100);
	expect(d, SPY_DIR_D2D, SPY_MEM_ARRAY, SPY_MEM_ARRAY, 100, 1);
}

/* The first ABI leaves garbage in the upper halves. */
static void test_driver_v1(void **state)
{
	struct layout_copy_2d_v1 two = {
		.src_type = LAYOUT_HOST,
		.src_host = PINNED,
		.src_pitch = 64,
		.dst_type = LAYOUT_DEVICE,
		.dst_device = 0x1000,
		.dst_pitch = 64,
		.width_bytes = 10,
		.height = 5,
	};
	const struct spy_details *d;

	(void)state;
	know_memory();
	d = CALL(cuMemcpyHtoD, DRIVER, GARBAGE | 0x1000, PINNED, GARBAGE | 100);
	expect(d, SPY_DIR_H2D, SPY_MEM_DEVICE, SPY_MEM_PINNED, 100, 1);
	d = CALL(cuMemcpyDtoHAsync, DRIVER, PINNED, GARBAGE | 0x1000, GARBAGE | 100, 0x77);
	expect(d, SPY_DIR_D2H, SPY_MEM_PINNED, SPY_MEM_DEVICE, 100, 0x77);
	d = CALL(cuMemcpy2DAsync, DRIVER, P(&two), 0x77);
	expect(d, SPY_DIR_H2D, SPY_MEM_DEVICE, SPY_MEM_PINNED, 50, 0x77);
}

static void test_driver_2d_3d(void **state)
{
	struct layout_copy_2d two = {
		.src = {.type = LAYOUT_HOST, .host = PAGEABLE, .pitch = 64},
		.dst = {.type = LAYOUT_ARRAY, .array = 0xa0},
		.width_bytes = 10,
		.height = 5,
	};
	struct layout_copy_3d three = {
		.src = {.type = LAYOUT_UNIFIED, .device = MANAGED, .pitch = 64, .height = 5},
		.dst = {.type = LAYOUT_UNIFIED, .device = PINNED, .pitch = 64, .height = 5},
		.width_bytes = 10,
		.height = 5,
		.depth = 2,
	};
	const struct spy_details *d;

	(void)state;
	know_memory();
	d = CALL(cuMemcpy2DAsync_v2, DRIVER, P(&two), 0x77);
	expect(d, SPY_DIR_H2D, SPY_MEM_ARRAY, SPY_MEM_PAGEABLE, 50, 0x77);
	assert_true(d->pageable);
	d = CALL(cuMemcpy3D_v2_ptds, DRIVER, P(&three));
	expect(d, SPY_DIR_D2H, SPY_MEM_PINNED, SPY_MEM_MANAGED, 100, SPY_STREAM_PER_THREAD);

	/* What is copied begins in known memory; what the offsets are counted from lies before it. */
	two.src = (struct layout_end_2d){.type = LAYOUT_HOST,
					 .x_bytes = 5,
					 .y = 3,
					 .host = PINNED - 3 * 64 - 5,
					 .pitch = 64};
	d = CALL(cuMemcpy2DAsync_v2, DRIVER, P(&two), 0x77);
	expect(d, SPY_DIR_H2D, SPY_MEM_ARRAY, SPY_MEM_PINNED, 50, 0x77);
	three.src.x_bytes = 5;
	three.src.y = 3;
	three.src.z = 2;
	three.src.device = MANAGED - 2 * 5 * 64 - 3 * 64 - 5;
	d = CALL(cuMemcpy3D_v2_ptds, DRIVER, P(&three));
	expect(d, SPY_DIR_D2H, SPY_MEM_PINNED, SPY_MEM_MANAGED, 100, SPY_STREAM_PER_THREAD);
}

static void test_peer(void **state)
{
	struct layout_rt_copy_3d_peer p = {.src_device = 1, .dst_device = 0, .extent = {10, 2, 3}};
	uint64_t context = 0xc1;
	const struct spy_details *d;

	(void)state;
	know_memory();
	d = CALL(cudaMemcpyPeerAsync, RT13, DEVICE, GARBAGE | 3, DEVICE + 64, GARBAGE | 1, 100,
		 0x77);
	expect(d, SPY_DIR_D2D, SPY_MEM_DEVICE, SPY_MEM_DEVICE, 100, 0x77);
	assert_int_equal(d->dst_device, 3);
	assert_int_equal(d->src_device, 1);
	CALL(cuCtxCreate_v2, DRIVER, P(&context), 0, 5);
	d = CALL(cuMemcpyPeer, DRIVER, DEVICE, 0xc1, DEVICE + 64, 0xc2, 100);
	assert_int_equal(d->dst_device, 5);
	assert_int_equal(d->src_device, 0); /* no such context: where the memory was allocated */
	/* functions that do not say from which GPU to which */
	spy_memory_add(&(struct spy_memory){DEVICE + MIB, DEVICE + 2 * MIB, SPY_MEM_DEVICE, 2, 1,
					    SPY_ACCESS_MAPPED});
	d = CALL(cudaMemcpyAsync, RT13, DEVICE, DEVICE + MIB + 8, 100, GARBAGE | 4, 0x77);
	assert_int_equal(d->dst_device, 0);
	assert_int_equal(d->src_device, 2);
	assert_int_equal(d->access, SPY_ACCESS_MAPPED | SPY_ACCESS_PEER << 2);
	d = CALL(cuMemcpyDtoD_v2, DRIVER, DEVICE + MIB, DEVICE + MIB + 8, 100);
	assert_int_equal(d->dst_device, 2);
	assert_int_equal(d->src_device, 2);
	d = CALL(cuMemcpyDtoD_v2, DRIVER, DEVICE + 3 * MIB, MANAGED, 100);
	assert_int_equal(d->dst_device, SPY_DEVICE_NONE);
	assert_int_equal(d->src_device, SPY_DEVICE_NONE);
	assert_int_equal(d->access, 0);
	d = CALL(cudaMemcpyAsync, RT13, PINNED, DEVICE, 100, GARBAGE | 4, 0x77);
	assert_int_equal(d->src_device, SPY_DEVICE_NONE); /* no matter */
	p.src.memory = (struct layout_pitched){DEVICE, 64, 10, 2};
	p.dst.memory = (struct layout_pitched){DEVICE, 64, 10, 2};
	d = CALL(cudaMemcpy3DPeerAsync, RT13, P(&p), 0x77);
	expect(d, SPY_DIR_D2D, SPY_MEM_DEVICE, SPY_MEM_DEVICE, 60, 0x77);
	assert_int_equal(d->src_device, 1);
	assert_int_equal(d->form, SPY_FORM_PEER);
}

#define POOL0 0x302000000
#define POOL1 0x402000000

/* The map knows nothing of pools' memory: where it lies is asked once, of large copies. */
static void test_pools(void **state)
{
	const struct spy_details *d;

	(void)state;
	know_memory();
	driver_ranges[0] =
		(struct spy_memory){POOL0, POOL0 + MIB, SPY_MEM_DEVICE, 0, 0, SPY_ACCESS_POOL};
	driver_ranges[1] =
		(struct spy_memory){POOL1, POOL1 + MIB, SPY_MEM_DEVICE, 1, 0, SPY_ACCESS_POOL};
	spy_gpus = 1;
	CALL(cudaMemcpyAsync, RT13, POOL1, POOL0, MIB, 3, 0x77);
	spy_gpus = 2;
	d = CALL(cudaMemcpyAsync, RT13, POOL1, POOL0, 4096, 3, 0x77);
	assert_int_equal(d->dst_device, SPY_DEVICE_NONE);
	assert_int_equal(d->access, 0);
	BEFORE(cudaMemcpyAsync, RT13, POOL1, POOL0, MIB, 3, 0x77);
	after(1);
	assert_int_equal(asked, 0);
	for (int i = 0; i < 3; i++) {
		d = CALL(cudaMemcpyAsync, RT13, POOL1, POOL0, MIB, 3, 0x77);
		expect(d, SPY_DIR_D2D, SPY_MEM_DEVICE, SPY_MEM_DEVICE, MIB, 0x77);
		assert_int_equal(d->src_device, 0);
		assert_int_equal(d->dst_device, 1);
		assert_int_equal(d->access, SPY_ACCESS_POOL | SPY_ACCESS_POOL << 2);
	}
	assert_int_equal(asked, 2);
	d = CALL(cudaMemcpyPeerAsync, RT13, POOL1, 1, DEVICE, 0, MIB, 0x77);
	assert_int_equal(d->access, SPY_ACCESS_PEER | SPY_ACCESS_POOL << 2);
	driver_ranges[1].hi += MIB; /* given back, and given again as more */
	d = CALL(cudaMemcpyAsync, RT13, POOL1, POOL0, 2 * MIB, 4, 0x77);
	expect(d, SPY_DIR_D2D, SPY_MEM_DEVICE, SPY_MEM_DEVICE, 2 * MIB, 0x77);
	assert_int_equal(asked, 2);
	d = CALL(cuMemcpyDtoDAsync_v2, DRIVER, POOL1, POOL0, MIB, 0x77);
	assert_int_equal(d->dst_device, 1);
}

/* So it is where the call names the GPUs. */
static void test_pools_of_peers(void **state)
{
	const struct spy_details *d;

	(void)state;
	driver_ranges[0] =
		(struct spy_memory){POOL0, POOL0 + MIB, SPY_MEM_DEVICE, 0, 0, SPY_ACCESS_POOL};
	d = CALL(cudaMemcpyPeerAsync, RT13, POOL1, 1, POOL0, 0, MIB, 0x77);
	assert_int_equal(d->dst_device, 1);
	assert_int_equal(d->access, SPY_ACCESS_POOL); /* of the other the driver knows nothing */
	d = CALL(cudaMemcpyPeerAsync, RT13, 0, 1, 0, 0, MIB, 0x77);
	assert_int_equal(d->access, 0);
	assert_int_equal(asked, 2);
}

static void test_batch(void **state)
{
	uint64_t dsts[] = {DEVICE, DEVICE + 64, DEVICE + 128};
	uint64_t srcs[] = {PINNED, PINNED + 64, PAGEABLE}, sizes[] = {10, 20, 30};
	struct layout_batch_op_3d op = {
		.src = {.type = LAYOUT_OPERAND_POINTER, .object = PINNED},
		.dst = {.type = LAYOUT_OPERAND_POINTER, .object = DEVICE},
		.extent = {4, 5, 6},
	};
	const struct spy_details *d;

	(void)state;
	know_memory();
	d = CALL(cudaMemcpyBatchAsync, RT13, P(dsts), P(srcs), P(sizes), 2, 0, 0, 0, 0x77);
	expect(d, SPY_DIR_H2D, SPY_MEM_DEVICE, SPY_MEM_PINNED, 30, 0x77);
	assert_false(d->pageable);
	d = CALL(cudaMemcpyBatchAsync, RT12, P(dsts), P(srcs), P(sizes), 3, 0, 0, 0, 0, 0x78);
	expect(d, SPY_DIR_H2D, SPY_MEM_DEVICE, SPY_MEM_PAGEABLE, 60, 0x78);
	assert_true(d->pageable);
	d = CALL(cuMemcpyBatchAsync_v2, DRIVER, P(dsts), P(srcs), P(sizes), 2, 0, 0, 0, 0x77);
	assert_int_equal(d->stream, 0x77);
	d = CALL(cuMemcpyBatchAsync, DRIVER, P(dsts), P(srcs), P(sizes), 2, 0, 0, 0, 0, 0x79);
	assert_int_equal(d->stream, 0x79);
	srcs[1] = MANAGED;
	d = CALL(cudaMemcpyBatchAsync, RT13, P(dsts), P(srcs), P(sizes), 2, 0, 0, 0, 0x77);
	expect(d, SPY_DIR_UNKNOWN, SPY_MEM_DEVICE, SPY_MEM_MIXED, 30, 0x77);
	d = CALL(cudaMemcpy3DBatchAsync, RT13, 1, P(&op), 0, 0x77);
	expect(d, SPY_DIR_H2D, SPY_MEM_DEVICE, SPY_MEM_PINNED, 120, 0x77);
	d = CALL(cudaMemcpy3DBatchAsync, RT12, 1, P(&op), 0, 0, 0x78);
	assert_int_equal(d->stream, 0x78);
	d = CALL(cuMemcpy3DBatchAsync_v2, DRIVER, 1, P(&op), 0, 0x79);
	assert_int_equal(d->stream, 0x79);
	d = CALL(cuMemcpy3DBatchAsync, DRIVER, 1, P(&op), 0, 0, 0x7a);
	assert_int_equal(d->stream, 0x7a);
	d = CALL(cudaMemcpyBatchAsync, RT13, 0, 0, 0, 0, 0, 0, 0, 0x77);
	assert_int_equal(d->bytes, 0);
}

/* A symbol is told by the address of a variable of the host's: whatever memory that one lies in, it is
 * not what is copied. */
static void test_symbol_shadow(void **state)
{
	const struct spy_details *d;

	(void)state;
	spy_memory_add(&(struct spy_memory){0x5000, 0x6000, SPY_MEM_PINNED, 0, 1, 0});
	d = CALL(cudaMemcpyToSymbolAsync, RT13, 0x5020, 0x5100, 64, 0, 1, 0x77);
	assert_int_equal(d->dst_kind, SPY_MEM_DEVICE);
	assert_int_equal(d->src_kind, SPY_MEM_PINNED);
	assert_int_equal(d->direction, SPY_DIR_H2D);
	assert_false(d->pageable);
	d = CALL(cudaMemcpyFromSymbolAsync, RT13, 0x5100, 0x5020, 64, 0, 2, 0x77);
	assert_int_equal(d->src_kind, SPY_MEM_DEVICE);
	assert_int_equal(d->direction, SPY_DIR_D2H);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_runtime_1d),
		TEST(test_failed_calls_ask_nothing),
		TEST(test_runtime_2d_array_symbol),
		TEST(test_runtime_3d),
		TEST(test_unknown_array_is_asked_once),
		TEST(test_pools),
		TEST(test_pools_of_peers),
		TEST(test_driver_1d),
		TEST(test_driver_v1),
		TEST(test_driver_2d_3d),
		TEST(test_peer),
		TEST(test_symbol_shadow),
		TEST(test_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
