/* links: shim/inspect/inspect.c shim/inspect/inspect_tables.c shim/inspect/inspect_lookup.c shim/inspect/per_thread.c */
/* links: shim/inspect/inspect_copy.c shim/inspect/inspect_memory.c shim/inspect/inspect_stream.c */
/* links: shim/inspect/inspect_launch.c shim/inspect/inspect_context.c shim/inspect/memory.c shim/lib/handle_map.c shim/lib/lock.c */
/*
 * tests/unit/test_inspect_memory.c: allocations, frees, registrations, memset, prefetch, mappings.
 */
#include "inspect_stubs.h"
#include "inspect/cuda_layout.h"

static uint8_t kind_at(uint64_t address)
{
	struct spy_memory found;

	spy_memory_find(address, &found);
	return found.kind;
}

static void expect(const struct spy_details *d, int op, int kind, uint64_t address, uint64_t bytes)
{
	assert_int_equal(d->event, SPY_EV_MEMORY);
	assert_int_equal(d->op, op);
	assert_int_equal(d->dst_kind, kind);
	assert_int_equal(d->address, address);
	assert_int_equal(d->bytes, bytes);
}

/* Neither in the order of a stream, nor from a pool. */
static void expect_alloc(const struct spy_details *d, int kind, uint64_t address, uint64_t bytes)
{
	expect(d, SPY_MEMOP_ALLOC, kind, address, bytes);
	assert_false(d->pool || d->captured);
	assert_int_equal(d->stream, 0);
}

static void expect_free(const struct spy_details *d, int kind, uint64_t address, uint64_t bytes)
{
	expect(d, SPY_MEMOP_FREE, kind, address, bytes);
	assert_false(d->pool || d->captured);
	assert_int_equal(d->stream, 0);
}

static void test_alloc_free(void **state)
{
	uint64_t out = 0x10000, pitch = 512;
	const struct spy_details *d;

	(void)state;
	d = CALL(cudaMalloc, RT13, P(&out), 0x1000);
	expect_alloc(d, SPY_MEM_DEVICE, 0x10000, 0x1000);
	assert_int_equal(kind_at(0x10fff), SPY_MEM_DEVICE);
	assert_int_equal(the_thread.device, 1); /* the runtime begins on device 0 */
	d = BEFORE(cudaFree, RT13, 0x10000);
	assert_int_equal(kind_at(0x10000), SPY_MEM_UNKNOWN); /* before the real free */
	after(1);
	expect_free(d, SPY_MEM_DEVICE, 0x10000, 0x1000);
	assert_int_equal(kind_at(0x10000), SPY_MEM_DEVICE); /* it failed */
	CALL(cuMemFree_v2, DRIVER, 0x10000);
	assert_int_equal(kind_at(0x10000), SPY_MEM_UNKNOWN);
	BEFORE(cudaMalloc, RT13, P(&out), 0x1000);
	after(2);
	assert_int_equal(kind_at(0x10000), SPY_MEM_UNKNOWN);
	assert_int_equal(the_frame.details.address, 0);
	d = CALL(cudaMallocPitch, RT13, P(&out), P(&pitch), 500, 10);
	expect_alloc(d, SPY_MEM_DEVICE, 0x10000, 5120);
	d = CALL(cudaMallocManaged, RT12, P(&out), 0x100, GARBAGE | 1);
	expect_alloc(d, SPY_MEM_MANAGED, 0x10000, 0x100);
	assert_int_equal(kind_at(0x10100), SPY_MEM_UNKNOWN); /* the old range is gone, all of it */
	d = CALL(cudaFree, RT13, 0);
	expect_free(d, SPY_MEM_UNKNOWN, 0, 0);
}

static void test_alloc_v1(void **state)
{
	struct {
		uint32_t address, rest;
	} out = {0x10000, 0xdead}, pitch = {512, 0xdead};
	uint64_t host = 0x7f0000000000;
	const struct spy_details *d;

	(void)state;
	d = CALL(cuMemAlloc, DRIVER, P(&out), GARBAGE | 0x1000);
	expect_alloc(d, SPY_MEM_DEVICE, 0x10000, 0x1000);
	d = CALL(cuMemFree, DRIVER, GARBAGE | 0x10000);
	expect_free(d, SPY_MEM_DEVICE, 0x10000, 0x1000);
	d = CALL(cuMemAllocPitch, DRIVER, P(&out), P(&pitch), GARBAGE | 10, GARBAGE | 4, 4);
	expect_alloc(d, SPY_MEM_DEVICE, 0x10000, 2048);
	d = CALL(cuMemAllocHost, DRIVER, P(&host), GARBAGE | 0x1000);
	expect_alloc(d, SPY_MEM_PINNED, host, 0x1000);
}

static void test_alloc_3d(void **state)
{
	struct layout_pitched out = {0x10000, 128, 100, 5};
	const struct spy_details *d;

	(void)state;
	d = CALL(cudaMalloc3D, RT13, P(&out), 1, 1, 1, 1, 1, 100, 5, 3);
	expect_alloc(d, SPY_MEM_DEVICE, 0x10000, 128 * 15);
}

static void test_host(void **state)
{
	uint64_t out = 0x10000;
	const struct spy_details *d;

	(void)state;
	d = CALL(cudaMallocHost, RT13, P(&out), 0x1000);
	expect_alloc(d, SPY_MEM_PINNED, 0x10000, 0x1000);
	d = CALL(cuMemFreeHost, DRIVER, 0x10000);
	expect_free(d, SPY_MEM_PINNED, 0x10000, 0x1000);
	d = CALL(cudaHostRegister, RT13, 0x20010, 0x30, 2);
	expect(d, SPY_MEMOP_REGISTER, SPY_MEM_PINNED, 0x20010, 0x30);
	assert_int_equal(d->flags, 2);
	assert_int_equal(kind_at(0x20020), SPY_MEM_PINNED);
	BEFORE(cudaHostRegister, RT13, 0x30000, 0x30, 2);
	after(712);
	assert_int_equal(kind_at(0x30000), SPY_MEM_UNKNOWN);
	d = CALL(cudaHostUnregister, RT13, 0x20010);
	expect(d, SPY_MEMOP_UNREGISTER, SPY_MEM_PINNED, 0x20010, 0x30);
	assert_int_equal(kind_at(0x20020), SPY_MEM_UNKNOWN);
}

static void test_pool(void **state)
{
	uint64_t out = 0x10000;
	const struct spy_details *d;

	(void)state;
	d = CALL(cudaMallocAsync_ptsz, RT13, P(&out), 0x1000, 0);
	expect(d, SPY_MEMOP_ALLOC, SPY_MEM_DEVICE, 0x10000, 0x1000);
	assert_true(d->pool);
	assert_int_equal(d->stream, SPY_STREAM_PER_THREAD);
	assert_int_equal(kind_at(0x10000), SPY_MEM_UNKNOWN);
	d = CALL(cudaMallocFromPoolAsync, RT13, P(&out), 0x1000, 0x99, 0x77);
	assert_int_equal(d->stream, 0x77);
	d = CALL(cudaFreeAsync, RT13, 0x10000, 0x77);
	expect(d, SPY_MEMOP_FREE, SPY_MEM_DEVICE, 0x10000, 0);
	assert_true(d->pool);
	assert_int_equal(d->stream, 0x77);
	CALL(cudaMalloc, RT13, P(&out), 0x1000);
	d = CALL(cudaFreeAsync, RT13, 0x10000, 0x77);
	expect(d, SPY_MEMOP_FREE, SPY_MEM_DEVICE, 0x10000, 0x1000);
	assert_false(d->pool);
	assert_int_equal(kind_at(0x10000), SPY_MEM_UNKNOWN);
}

/* Who may reach a pool's memory, and whose that is. */
static void test_pool_access(void **state)
{
	struct layout_access to[] = {{1, 1, 3}, {1, 0, 0}};
	struct layout_allocation properties = {1, 0, 1, 2};
	struct {
		uint32_t type, id;
	} location = {1, 4};
	uint64_t out = 0x91;
	const struct spy_details *d;

	(void)state;
	d = CALL(cudaMemPoolSetAccess, RT13, 0x91, P(to), 2);
	assert_int_equal(d->event, SPY_EV_OP);
	assert_int_equal(d->object, SPY_ACCESS_GIVEN | 1 << 1);
	assert_int_equal(d->flags, SPY_DEVICE_NONE); /* nobody told */
	CALL(cudaDeviceGetDefaultMemPool, RT13, P(&out), GARBAGE | 3);
	assert_int_equal(CALL(cuMemPoolSetAccess, DRIVER, 0x91, P(to), 1)->flags, 3);
	d = CALL(cuMemPoolCreate, DRIVER, P(&out), P(&properties)); /* it is another one now */
	assert_int_equal(d->object, 0x91);
	assert_int_equal(CALL(cuMemPoolSetAccess, DRIVER, 0x91, P(to), 1)->flags, 2);
	CALL(cudaMemGetMemPool, RT13, P(&out), P(&location), 1);
	assert_int_equal(CALL(cudaMemPoolSetAccess, RT13, 0x91, P(to), 1)->flags, 4);
	location.type = 2; /* the host */
	out = 0x92;
	CALL(cuMemGetDefaultMemPool, DRIVER, P(&out), P(&location), 1);
	assert_int_equal(CALL(cudaMemPoolSetAccess, RT13, 0x92, P(to), 1)->flags, SPY_DEVICE_NONE);
	BEFORE(cuDeviceGetMemPool, DRIVER, P(&out), 5);
	after(101);
	CALL(cuDeviceGetMemPool, DRIVER, 0, 5);
	CALL(cuMemPoolCreate, DRIVER, P(&out), 0);
	assert_int_equal(CALL(cudaMemPoolSetAccess, RT13, 0x92, 0, 1)->object, SPY_ACCESS_GIVEN);
	out = 0x91; /* another process's now */
	d = CALL(cudaMemPoolImportFromShareableHandle, RT13, P(&out), 7, 1);
	assert_int_equal(d->object, 0x91);
	assert_int_equal(CALL(cuMemPoolSetAccess, DRIVER, 0x91, P(to), 1)->flags, SPY_DEVICE_NONE);
}

static void test_arrays(void **state)
{
	struct layout_channel rgba = {8, 8, 8, 8, 1}, bc = {8, 8, 8, 8, 17};
	struct layout_array two = {10, 20, LAYOUT_FLOAT, 2};
	struct layout_array_3d three = {10, 0, 3, LAYOUT_HALF, 1, 0};
	struct layout_array_v1 old = {10, 20, LAYOUT_UINT8, 1};
	struct layout_array_3d_v1 old3 = {10, 20, 2, LAYOUT_SINT32, 1, 0};
	uint64_t out = 0xa000000001, level = 0xa2;
	const struct spy_details *d;

	(void)state;
	d = CALL(cudaMallocArray, RT13, P(&out), P(&rgba), 10, 0, 0);
	expect(d, SPY_MEMOP_ALLOC, SPY_MEM_ARRAY, out, 40);
	d = CALL(cudaMalloc3DArray, RT13, P(&out), P(&rgba), 0, 1, 1, 1, 10, 20, 3);
	expect(d, SPY_MEMOP_ALLOC, SPY_MEM_ARRAY, out, 2400);
	assert_int_equal(spy_array_element(&the_frame, out, false), 4);
	d = CALL(cudaFreeArray, RT13, out);
	expect(d, SPY_MEMOP_FREE, SPY_MEM_ARRAY, out, 0);
	assert_int_equal(spy_array_element(&the_frame, out, false), 0);
	CALL(cudaMallocArray, RT13, P(&out), P(&bc), 10, 0, 0);
	assert_int_equal(spy_array_element(&the_frame, out, true), 0); /* known to have none */
	assert_int_equal(CALL(cuArrayCreate_v2, DRIVER, P(&out), P(&two))->bytes, 1600);
	assert_int_equal(CALL(cuArray3DCreate_v2, DRIVER, P(&out), P(&three))->bytes, 60);
	assert_int_equal(CALL(cuArrayCreate, DRIVER, P(&out), P(&old))->bytes, 200);
	assert_int_equal(the_frame.details.address, 0xa000000001);
	assert_int_equal(CALL(cuArray3DCreate, DRIVER, P(&out), P(&old3))->bytes, 1600);
	CALL(cudaGetMipmappedArrayLevel, RT13, P(&level), out, 1);
	assert_int_equal(spy_array_element(&the_frame, 0xa2, false), 4);
}

static void test_vmm(void **state)
{
	struct layout_allocation device = {1, 0, 1, 2}, host = {1, 0, 3, 0};
	struct layout_allocation nowhere = {1, 0, 1, SPY_DEVICE_NONE};
	struct spy_memory found;
	struct layout_access to[] = {{1, 3, 3}, {1, 2, 0}, {2, 5, 3}, {1, 1, 1}};
	uint64_t out = 0x10000, handle = 0x51;
	const struct spy_details *d;

	(void)state;
	d = CALL(cuMemAddressReserve, DRIVER, P(&out), 0x400000, 0, 0, 0);
	expect(d, SPY_MEMOP_RESERVE, SPY_MEM_UNKNOWN, 0x10000, 0x400000);
	d = CALL(cuMemCreate, DRIVER, P(&handle), 0x200000, 0, 0); /* without properties */
	expect(d, SPY_MEMOP_ALLOC, SPY_MEM_DEVICE, 0x51, 0x200000);
	assert_int_equal(d->src_device, SPY_DEVICE_NONE);
	d = CALL(cuMemCreate, DRIVER, P(&handle), 0x200000, P(&nowhere), 0);
	expect(d, SPY_MEMOP_ALLOC, SPY_MEM_DEVICE, 0x51, 0x200000);
	assert_int_equal(d->src_device, SPY_DEVICE_NONE);
	d = CALL(cuMemCreate, DRIVER, P(&handle), 0x200000, P(&device), 0);
	expect(d, SPY_MEMOP_ALLOC, SPY_MEM_DEVICE, 0x51, 0x200000);
	the_thread.device = 1; /* not where the memory is */
	d = CALL(cuMemMap, DRIVER, 0x10000, 0x200000, 0, 0x51, 0);
	expect(d, SPY_MEMOP_MAP, SPY_MEM_DEVICE, 0x10000, 0x200000);
	d = CALL(cuMemSetAccess, DRIVER, 0x10000, 0x200000, P(to), 4);
	assert_int_equal(d->event, SPY_EV_OP);
	assert_int_equal(d->object, SPY_ACCESS_GIVEN | 1 << 3 | 1 << 1);
	assert_int_equal(d->flags, 2); /* whose memory it is */
	assert_true(spy_memory_find(0x10000, &found));
	assert_int_equal(found.device, 2);
	assert_int_equal(found.access, SPY_ACCESS_MAPPED);
	spy_memory_remove_context(2, 0); /* belongs to no context */
	spy_memory_remove_context(2, 1);
	assert_int_equal(kind_at(0x10000), SPY_MEM_DEVICE);
	assert_int_equal(CALL(cuMemSetAccess, DRIVER, 0x8000, 0x200000, P(to), 1)->flags,
			 SPY_DEVICE_NONE);
	BEFORE(cuMemSetAccess, DRIVER, 0x10000, 0x200000, P(to), GARBAGE);
	after(1);
	assert_int_equal(d->object, 0x10000);
	handle = 0x52;
	CALL(cuMemCreate, DRIVER, P(&handle), 0x200000, P(&host), 0);
	CALL(cuMemMap, DRIVER, 0x210000, 0x200000, 0, 0x52, 0);
	assert_int_equal(kind_at(0x210000), SPY_MEM_PINNED);
	CALL(cuMemMap, DRIVER, 0x610000, 0x200000, 0, 0x99, 0); /* from elsewhere */
	assert_true(spy_memory_find(0x610000, &found));
	assert_int_equal(found.kind, SPY_MEM_DEVICE);
	assert_int_equal(found.device, SPY_DEVICE_NONE);
	assert_int_equal(CALL(cuMemRelease, DRIVER, 0x52)->dst_kind, SPY_MEM_PINNED);
	handle = 0x53; /* between two pieces of GPU 2's one of GPU 3's */
	device.location_id = 3;
	CALL(cuMemCreate, DRIVER, P(&handle), 0x200000, P(&device), 0);
	CALL(cuMemMap, DRIVER, 0x1000000, 0x200000, 0, 0x51, 0);
	CALL(cuMemMap, DRIVER, 0x1200000, 0x200000, 0, 0x53, 0);
	CALL(cuMemMap, DRIVER, 0x1400000, 0x200000, 0, 0x51, 0);
	assert_int_equal(CALL(cuMemSetAccess, DRIVER, 0x1000000, 0x600000, P(to), 1)->flags,
			 SPY_DEVICE_NONE);
	CALL(cuMemMap, DRIVER, 0x1200000, 0x200000, 0, 0x51, 0);
	assert_int_equal(CALL(cuMemSetAccess, DRIVER, 0x1000000, 0x600000, P(to), 1)->flags, 2);
	assert_int_equal(CALL(cuMemSetAccess, DRIVER, 0x1000000, 0x800000, P(to), 1)->flags,
			 SPY_DEVICE_NONE); /* not all of it is mapped */
	handle = 0x51; /* free again, and given to what lies nobody knows where */
	d = CALL(cuMemImportFromShareableHandle, DRIVER, P(&handle), 7, 1);
	assert_int_equal(d->event, SPY_EV_OP);
	assert_int_equal(d->object, 0x51);
	CALL(cuMemMap, DRIVER, 0x810000, 0x200000, 0, 0x51, 0);
	assert_true(spy_memory_find(0x810000, &found));
	assert_int_equal(found.device, SPY_DEVICE_NONE);
	handle = 0x52;
	CALL(cuMulticastCreate, DRIVER, P(&handle), P(&device));
	CALL(cuMemMap, DRIVER, 0xa10000, 0x200000, 0, 0x52, 0);
	assert_int_equal(kind_at(0xa10000), SPY_MEM_DEVICE);
	d = CALL(cuMemUnmap, DRIVER, 0x10000, 0x400000);
	expect(d, SPY_MEMOP_UNMAP, SPY_MEM_DEVICE, 0x10000, 0x400000);
	assert_int_equal(kind_at(0x10000), SPY_MEM_UNKNOWN);
	assert_int_equal(kind_at(0x210000), SPY_MEM_UNKNOWN);
	assert_int_equal(CALL(cuMemAddressFree, DRIVER, 0x10000, 0x400000)->op, SPY_MEMOP_FREE);
}

static void test_elsewhere(void **state)
{
	struct layout_mapped_buffer buffer = {0, 0x3000};
	uint64_t out = 0x10000, bytes = 0x40;
	const struct spy_details *d;

	(void)state;
	d = CALL(cudaIpcOpenMemHandle, RT13, P(&out), 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8);
	expect(d, SPY_MEMOP_MAP, SPY_MEM_DEVICE, 0x10000, 0);
	d = CALL(cudaIpcCloseMemHandle, RT13, 0x10000);
	expect(d, SPY_MEMOP_UNMAP, SPY_MEM_UNKNOWN, 0x10000, 0);
	d = CALL(cuExternalMemoryGetMappedBuffer, DRIVER, P(&out), 5, P(&buffer));
	expect(d, SPY_MEMOP_MAP, SPY_MEM_DEVICE, 0x10000, 0x3000);
	out = 0x20000;
	d = CALL(cuLibraryGetManaged, DRIVER, P(&out), P(&bytes), 1, 2);
	expect(d, SPY_MEMOP_MAP, SPY_MEM_MANAGED, 0x20000, 0x40);
	assert_int_equal(kind_at(0x20010), SPY_MEM_MANAGED);
	CALL(cuLibraryGetManaged, DRIVER, P(&out), 0, 1, 2);
	CALL(cuLibraryGetManaged, DRIVER, 0, 0, 1, 2);
}

static void test_memset_prefetch(void **state)
{
	uint64_t pointers[] = {0x10000, 0x20000}, sizes[] = {5, 6};
	const struct spy_details *d;

	(void)state;
	CALL(cudaHostRegister, RT13, 0x50000, 0x1000, 0);
	d = CALL(cudaMemset, RT13, 0x50000, 0, 10);
	expect(d, SPY_MEMOP_SET, SPY_MEM_PINNED, 0x50000, 10);
	assert_int_equal(d->stream, SPY_STREAM_LEGACY);
	d = CALL(cudaMemset2DAsync, RT13, 0x10000, 512, 0, 10, 4, 0x77);
	expect(d, SPY_MEMOP_SET, SPY_MEM_DEVICE, 0x10000, 40);
	assert_int_equal(d->stream, 0x77);
	d = CALL(cudaMemset3DAsync, RT13, 0, 0x77, 1, 1, 1, 1, 0x10000, 512, 10, 5, 10, 5, 3);
	expect(d, SPY_MEMOP_SET, SPY_MEM_DEVICE, 0x10000, 150);
	assert_int_equal(d->stream, 0x77);
	d = CALL(cudaMemset3D_ptds, RT13, 0, 1, 1, 1, 1, 1, 0x10000, 512, 10, 5, 10, 5, 3);
	assert_int_equal(d->stream, SPY_STREAM_PER_THREAD);
	assert_int_equal(CALL(cuMemsetD32_v2, DRIVER, 0x10000, 0, 10)->bytes, 40);
	assert_int_equal(CALL(cuMemsetD16Async, DRIVER, 0x10000, 0, 10, 0x77)->bytes, 20);
	assert_int_equal(CALL(cuMemsetD8, DRIVER, GARBAGE | 0x10000, 0, GARBAGE | 10)->bytes, 10);
	assert_int_equal(the_frame.details.address, 0x10000);
	d = CALL(cuMemsetD2D16, DRIVER, GARBAGE | 0x10000, 64, 0, GARBAGE | 10, GARBAGE | 3);
	assert_int_equal(d->bytes, 60);
	d = CALL(cudaMemPrefetchAsync, RT12, 0x10000, 0x100, 0, 0x77, 0x78);
	expect(d, SPY_MEMOP_PREFETCH, SPY_MEM_MANAGED, 0x10000, 0x100);
	assert_int_equal(d->stream, 0x77);
	assert_int_equal(CALL(cudaMemPrefetchAsync, RT13, 1, 1, 0, 0x77, 0x78)->stream, 0x78);
	assert_int_equal(CALL(cudaMemPrefetchAsync_v2, RT12, 1, 1, 0, 0x77, 0x78)->stream, 0x78);
	assert_int_equal(CALL(cuMemPrefetchAsync, DRIVER, 1, 1, 0, 0x77, 0x78)->stream, 0x77);
	assert_int_equal(CALL(cuMemPrefetchAsync_v2, DRIVER, 1, 1, 0, 0x77, 0x78)->stream, 0x78);
	d = CALL(cudaMemPrefetchBatchAsync, RT13, P(pointers), P(sizes), 2, 0, 0, 0, 0, 0x77);
	expect(d, SPY_MEMOP_PREFETCH, SPY_MEM_MANAGED, 0x10000, 11);
	assert_int_equal(d->stream, 0x77);
	d = CALL(cuMemDiscardBatchAsync, DRIVER, P(pointers), P(sizes), 2, 0, 0x77);
	assert_int_equal(d->stream, 0x77);
}

/* A child of fork knows nothing of what its parent's driver had: neither memory, nor arrays, captures or contexts. */
static void test_reset(void **state)
{
	const struct layout_channel rgba = {8, 8, 8, 8, 0};
	uint64_t array = 0xa77a1, context = 0xc0;
	struct spy_memory found;

	(void)state;
	spy_memory_add(&(struct spy_memory){0x1000, 0x2000, SPY_MEM_PINNED, 1, 0, 0});
	CALL(cudaMallocArray, RT13, P(&array), P(&rgba), 10, 0, 0);
	CALL(cudaStreamBeginCapture, RT13, 0x77, 0);
	CALL(cuCtxCreate_v2, DRIVER, P(&context), 0, 3);
	assert_true(spy_memory_find(0x1800, &found));
	assert_int_equal(spy_array_element(&the_frame, array, false), 4);
	assert_true(spy_stream_captured(&the_thread, 0x77));
	assert_int_equal(spy_context_device(context), 3);
	spy_inspect_reset();
	assert_false(spy_memory_find(0x1800, &found));
	assert_int_equal(spy_array_element(&the_frame, array, false), 0);
	assert_false(spy_stream_captured(&the_thread, 0x77));
	assert_int_equal(spy_captures, 0);
	assert_int_equal(spy_context_device(context), SPY_DEVICE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_alloc_free),
		TEST(test_alloc_v1),
		TEST(test_alloc_3d),
		TEST(test_host),
		TEST(test_pool),
		TEST(test_pool_access),
		TEST(test_arrays),
		TEST(test_vmm),
		TEST(test_elsewhere),
		TEST(test_reset),
		TEST(test_memset_prefetch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
