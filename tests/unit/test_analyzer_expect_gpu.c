/*
 * tests/unit/test_analyzer_expect_gpu.c: what calls may wait for, and what is learnt of such calls: from those that had
 * nothing to wait for. For work of other threads and processes: test_analyzer_expect.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "expect_fixture.h"
#include "as_record.h"

/* ---- work of the GPU -------------------------------------------------------------------------- */

static void test_synchronise(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	add_sync(f, 5, 1);
	for (i = 0; i < 10; i++) {
		add_launch(f, 5, 3);
		add_sync(f, 6, 2); /* has nothing to do */
		add_sync(f, 5, 900);
		add_sync(f, 5, 2);
	}
	learn(f, NULL);
	expect_number(&f->expect, "cudaStreamSynchronize", "", EXPECT_CLEAN, 2000);
	assert_int_equal(class_of(&f->expect, "cudaStreamSynchronize", "")->samples, 20);
	expect_number(&f->expect, "cudaLaunchKernel", "", EXPECT_CLEAN, 3000);
}

/* Always with work: what it costs alone cannot be known, and is not made up. */
static void test_never_idle(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	add_sync(f, 5, 1);
	for (i = 0; i < 20; i++) {
		add_launch(f, 5, 3);
		add_sync(f, 5, 900);
		add_launch(f, 5, 3);
		add(f, "op cudaDeviceSynchronize duration=800us");
	}
	learn(f, NULL);
	expect_number(&f->expect, "cudaStreamSynchronize", "", EXPECT_NONE, 0);
	expect_number(&f->expect, "cudaDeviceSynchronize", "", EXPECT_NONE, 0);
}

/* For another thread's work, of which its own records know nothing. */
static void test_others_work(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	for (i = 0; i < 20; i++) {
		add_sync(f, 5, 900);
		add(f, "op cudaEventSynchronize duration=%s object=0x99", i % 2 ? "700us" : "2us");
		add(f, "memory cudaFree duration=600us op=free kind=device address=0x9");
	}
	learn(f, NULL);
	expect_number(&f->expect, "cudaStreamSynchronize", "", EXPECT_NONE, 0);
	expect_number(&f->expect, "cudaEventSynchronize", "", EXPECT_CLEAN, 2000);
	assert_int_equal(class_of(&f->expect, "cudaFree", "free device")->clean_calls, 0);
}

/* An event behind all the work of a stream: who has waited for it finds nothing more. */
static void test_event(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	add_sync(f, 5, 1);
	add(f, "op cudaEventSynchronize duration=1us object=0x99");
	for (i = 0; i < 9; i++) {
		add_launch(f, 5, 3);
		add(f, "op cudaEventRecord duration=1us stream=0x50 object=0x99");
		add(f, "op cudaEventSynchronize duration=700us object=0x99");
		add_sync(f, 5, 2);
		add_launch(f, 5, 3);
		add(f, "op cudaEventRecord duration=1us stream=0x50 object=0x99");
		add_launch(f, 5, 3);
		add(f, "op cudaEventSynchronize duration=700us object=0x99");
		add_sync(f, 5, 600);
	}
	learn(f, NULL);
	expect_number(&f->expect, "cudaStreamSynchronize", "", EXPECT_CLEAN, 2000);
	expect_number(&f->expect, "cudaEventSynchronize", "", EXPECT_NONE, 0);
}

/* Behind 64 and more only those that are short; behind 200 and more none. */
static void test_full_queue(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	add_launch(f, 5, 100);
	for (i = 1; i < 100; i++)
		add_launch(f, 5, 4);
	for (i = 0; i < 1500; i++)
		add_launch(f, 5, i < 50 ? 800 : 8);
	learn(f, NULL);
	expect_number(&f->expect, "cudaLaunchKernel", "", EXPECT_CLEAN, 4000);
	assert_int_equal(class_of(&f->expect, "cudaLaunchKernel", "")->samples, 99 + 50);
}

/* The first launch is a cold one, 210 follow; then this, and 50 more. How many of these found room for sure? */
static uint64_t with_room(unsigned int stream, unsigned int us, const char *const *between)
{
	struct fixture *f;
	uint64_t samples;
	void *state;

	assert_int_equal(setup(&state), 0);
	f = state;
	for (unsigned int i = 0; i < 211; i++)
		add_launch(f, stream, us);
	for (unsigned int i = 0; i < 3 && between[i]; i++)
		add(f, between[i]);
	for (unsigned int i = 0; i < 50; i++)
		add_launch(f, stream, us);
	learn(f, NULL);
	samples = class_of(&f->expect, "cudaLaunchKernel", "")->samples;
	teardown(&state);
	return samples;
}

/* A stream's queue has room for 200, and if launches take more than 50 us, for 64: until it is known to be done. */
static void test_room(void **state)
{
#define RECORDED "op cudaEventRecord duration=1us stream=0x50 object=0x99"
#define WAITED "op cudaEventSynchronize duration=700us object=0x99"
	static const struct {
		unsigned int stream, us;
		const char *between[3];
		uint64_t samples;
	} cases[] = {
		{5, 4, {NULL}, 199},
		{5, 50, {NULL}, 199},
		{5, 51, {NULL}, 63},
		{5, 51, {"op cudaStreamSynchronize duration=9us stream=0x50"}, 63 + 50},
		{5, 4, {"op cudaStreamSynchronize duration=9us stream=0x50"}, 249},
		{5, 4, {"op cudaStreamSynchronize duration=9us stream=0x60"}, 199},
		{5, 4, {"op cudaStreamSynchronize duration=9us stream=0x50 device=1"}, 249},
		{5, 4, {"op cudaStreamSynchronize duration=9us stream=0x50 result=1"}, 199},
		{5, 4, {"op cudaStreamSynchronize duration=9us stream=0x50 depth=1"}, 199},
		{0, 4, {"op cudaStreamSynchronize duration=9us"}, 249},
		{0, 4, {"op cudaStreamSynchronize duration=9us device=1"}, 199},
		{5, 4, {"op cudaDeviceSynchronize duration=9us"}, 249},
		{5, 4, {"op cudaDeviceSynchronize duration=9us device=1"}, 199},
		{5, 4, {"op cudaStreamQuery duration=1us stream=0x50 result=600"}, 199},
		/* Another stream has work, too. */
		{5,
		 4,
		 {"launch cudaLaunchKernel duration=4us kernel=1 stream=0x60",
		  "op cudaStreamSynchronize duration=9us stream=0x50"},
		 250},
		{5,
		 4,
		 {"launch cudaLaunchKernel duration=4us kernel=1 stream=0x60",
		  "op cudaStreamSynchronize duration=9us stream=0x60"},
		 200},
		/* An event behind all of it; not behind all; another one. */
		{5, 4, {RECORDED, WAITED}, 249},
		{5,
		 4,
		 {RECORDED, "launch cudaLaunchKernel duration=4us kernel=1 stream=0x50", WAITED},
		 199},
		{5, 4, {RECORDED, "op cudaEventSynchronize duration=700us object=0x98"}, 199},
		{5, 4, {"op cudaEventRecord duration=1us stream=0x60 object=0x99", WAITED}, 199},
		{5, 4, {"op cudaEventSynchronize duration=700us"}, 199},
		/* Another thread, in the same slot. */
		{5, 4, {"thread tid=8 name=\"other\""}, 249},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(with_room(cases[i].stream, cases[i].us, cases[i].between),
				 cases[i].samples);
}

/* What 210 calls of a kind make of the room that 50 launches behind them find for sure. */
static void test_filled(void **state)
{
	static const struct {
		const char *call;
		uint64_t clean;
	} cases[] = {
		{"op cudaEventRecord duration=1us stream=0x50 object=0x9", 0},
		{"op cudaEventRecord duration=1us stream=0x60 object=0x9", 50},
		{"copy cudaMemcpyAsync duration=9us stream=0x50 direction=h2d src=pageable dst=device bytes=4096",
		 0},
		{"copy cudaMemcpyAsync duration=9us stream=0x50 direction=h2d src=pinned dst=device bytes=4096",
		 0},
		{"copy cudaMemcpyAsync duration=9us stream=0x50 direction=d2h src=device dst=pageable bytes=4096",
		 50},
		{"memory cudaMallocAsync duration=5us stream=0x50 op=alloc kind=device pool=1 bytes=64",
		 0},
		{"call cudaDeviceSetLimit duration=5us", 50},
		{"call cudaSetDevice duration=1us", 50},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture *f;
		void *own;

		assert_int_equal(setup(&own), 0);
		f = own;
		add_launch(f, 7, 4); /* a cold one, elsewhere */
		for (unsigned int k = 0; k < 210; k++)
			add(f, cases[i].call);
		for (unsigned int k = 0; k < 50; k++)
			add_launch(f, 5, 4);
		learn(f, NULL);
		assert_int_equal(class_of(&f->expect, "cudaLaunchKernel", "")->clean_calls,
				 cases[i].clean);
		teardown(&own);
	}
}

/* Ten launches of 100 us, of which the thread was seen waiting for 97 us, or was kept from running: the first is no
 * work of its own, and who had no CPU teaches nothing. */
static void test_launches_that_wait(void **state)
{
	static const char *const seen[] = {
		"wait kind=mutex fn=cudaLaunchKernel duration=97us object=0x1000",
		"wait kind=ioctl fn=cudaLaunchKernel duration=97us object=0x21",
		"sched window=100us not_running=97us",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++) {
		struct fixture *f;
		void *own;

		assert_int_equal(setup(&own), 0);
		f = own;
		for (unsigned int k = 0; k < 10; k++)
			add_launch(f, 5, 3);
		for (unsigned int k = 0; k < 10; k++) {
			add(f, seen[i]);
			add_launch(f, 5, 100);
		}
		learn(f, NULL);
		expect_number(&f->expect, "cudaLaunchKernel", "", EXPECT_CLEAN, 3000);
		assert_int_equal(class_of(&f->expect, "cudaLaunchKernel", "")->samples,
				 i < 2 ? 19 : 9);
		teardown(&own);
	}
}

static void add_copy(struct fixture *f, const char *what, unsigned int bytes, unsigned int us)
{
	add(f, "copy cudaMemcpyAsync duration=%uus stream=0x50 %s bytes=%u", us, what, bytes);
}

/* A copy that took far longer than its bytes take has waited for what another thread does in its stream. */
static void test_others_stream(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	for (i = 0; i < 20; i++)
		add_copy(f, "direction=d2h src=device dst=pageable", 65536, i < 8 ? 100 : 900);
	learn(f, NULL);
	assert_int_equal(class_of(&f->expect, "cudaMemcpyAsync",
				  "d2h device to pageable, 64.0 KiB to 80.0 KiB")
				 ->clean_calls,
			 7);
}

static void test_copies(void **state)
{
	static const char out[] = "direction=d2h src=device dst=pageable";
	static const char in[] = "direction=h2d src=pageable dst=device";
	struct fixture *f = *state;
	struct expect *e;
	unsigned int i;

	add_copy(f, out, 4096, 50);
	for (i = 0; i < 9; i++) {
		add_copy(f, out, 65536, 20);
		add_launch(f, 5, 3);
		add_copy(f, out, 65536, 900); /* waits for the kernel */
		add_launch(f, 5, 3);
		add_copy(f, out, 131072, 900); /* always */
		add_launch(f, 5, 3);
		add_copy(f, in, 16u << 20, 900);
		add(f, "copy cudaMemcpyAsync duration=1us stream=0x50 captured=1 direction=h2d "
		       "src=pageable dst=device bytes=65536");
		add(f, "op cudaDeviceSynchronize duration=800us");
	}
	e = learn(f, NULL);
	expect_number(e, "cudaMemcpyAsync", "d2h device to pageable, 64.0 KiB to 80.0 KiB",
		      EXPECT_CLEAN, 20000);
	/* Twice the bytes. */
	expect_number(e, "cudaMemcpyAsync", "d2h device to pageable, 128.0 KiB to 160.0 KiB",
		      EXPECT_NEIGHBOUR, 40000);
	/* Nothing near: 5 us, and 18 MiB at 10 GB/s. */
	expect_number(e, "cudaMemcpyAsync", "h2d pageable to device, 16.0 MiB to 20.0 MiB",
		      EXPECT_DEFAULT, 5000 + (18u << 20) / 10);
	expect_number(e, "cudaMemcpyAsync", "captured", EXPECT_CLEAN, 1000);
}

/* ---- what calls wait for ---------------------------------------------------------------------- */

static const struct gpu_waits *waits_of(const union spy_any *raw, uint8_t contract)
{
	return gpu_wait_of(AS_RECORD(raw), contract,
			   &(struct cuda_settings){.launches_block = false});
}

static void test_gpu_waits(void **state)
{
	static const struct {
		union spy_any copy;
		uint8_t contract, sort;
	} copies[] = {
/* clang-format off */
#define COPY(c, d, s, t, n, size, in_graph) \
	{{.copy = {.head.event = SPY_EV_COPY, .direction = SPY_DIR_##d, .src_kind = SPY_MEM_##s, \
		   .dst_kind = SPY_MEM_##t, .bytes = size, .captured = in_graph}}, \
	 SPY_CONTRACT_COPY_##c, GPU_WAIT_##n}
		COPY(ASYNC, H2D, PAGEABLE, DEVICE,   HIDDEN,   4, 0),
		COPY(ASYNC, H2D, PINNED,   DEVICE,   QUEUE,    4, 0),
		COPY(ASYNC, D2H, DEVICE,   PAGEABLE, HIDDEN,   4, 0),
		COPY(ASYNC, D2H, DEVICE,   MANAGED,  QUEUE,    4, 0),
		COPY(ASYNC, H2H, PINNED,   PINNED,   HIDDEN,   4, 0),
		COPY(ASYNC, D2D, DEVICE,   DEVICE,   QUEUE,    4, 0),
		COPY(BATCH, H2D, PAGEABLE, DEVICE,   HIDDEN,   4, 0),
		COPY(ASYNC, D2H, DEVICE,   PAGEABLE, NOT,      4, 1),
		COPY(ASYNC, D2H, DEVICE,   PAGEABLE, NOT,      0, 0),
		COPY(SYNC,  D2H, DEVICE,   PAGEABLE, INTENDED, 4, 0),
		COPY(SYNC,  H2D, PINNED,   DEVICE,   INTENDED, 4, 0),
		COPY(SYNC,  D2D, DEVICE,   DEVICE,   QUEUE,    4, 0),
		/* clang-format on */
	};
	union spy_any raw = {.call_head.event = SPY_EV_OP};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(copies); i++)
		assert_int_equal(waits_of(&copies[i].copy, copies[i].contract)->sort,
				 copies[i].sort);
	assert_int_equal(waits_of(&raw, SPY_CONTRACT_DEVICE)->what, GPU_WAIT_DEVICE);
	assert_int_equal(waits_of(&raw, SPY_CONTRACT_HOST)->sort, GPU_WAIT_NOT);
	raw.memory = (struct spy_rec_memory){.head.event = SPY_EV_MEMORY,
					     .op = SPY_MEMOP_FREE,
					     .kind = SPY_MEM_DEVICE,
					     .address = 16};
	assert_int_equal(waits_of(&raw, SPY_CONTRACT_FREE)->sort, GPU_WAIT_HIDDEN);
	raw.memory.pool = 1;
	assert_int_equal(waits_of(&raw, SPY_CONTRACT_FREE)->sort, GPU_WAIT_NOT);
	raw.memory.pool = 0;
	raw.memory.address = 0;
	assert_int_equal(waits_of(&raw, SPY_CONTRACT_FREE)->sort, GPU_WAIT_NOT);
	raw.memory.op = SPY_MEMOP_SET;
	assert_int_equal(waits_of(&raw, SPY_CONTRACT_MEMSET_SYNC)->sort, GPU_WAIT_QUEUE);
	raw.memory.kind = SPY_MEM_PINNED;
	assert_int_equal(waits_of(&raw, SPY_CONTRACT_MEMSET_SYNC)->sort, GPU_WAIT_INTENDED);
}

/* With CUDA_LAUNCH_BLOCKING launches wait, and with CUDA_MODULE_LOADING=EAGER a library's load is a module's; all else is as
 * without them. */
static void test_settings(void **state)
{
	const struct cuda_settings none = {.launches_block = false};
	const struct cuda_settings blocking = {.launches_block = true};
	const struct cuda_settings eager = {.loads_eagerly = true};
	const union spy_any raw = {.call_head.event = SPY_EV_CALL};

	(void)state;
	for (uint8_t contract = 0; contract < SPY_CONTRACT_COUNT; contract++) {
		const struct gpu_waits *usual = gpu_wait_of(AS_RECORD(&raw), contract, &none);

		assert_ptr_equal(usual, &gpu_waits_by_contract[contract]);
		assert_ptr_equal(gpu_wait_of(AS_RECORD(&raw), contract, &blocking),
				 contract == SPY_CONTRACT_LAUNCH ? &gpu_waits_launch_blocks
								 : usual);
		assert_ptr_equal(gpu_wait_of(AS_RECORD(&raw), contract, &eager),
				 contract == SPY_CONTRACT_LIBRARY
					 ? &gpu_waits_by_contract[SPY_CONTRACT_MODULE]
					 : usual);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settings),
		TEST(test_synchronise),
		TEST(test_never_idle),
		TEST(test_others_work),
		TEST(test_others_stream),
		TEST(test_event),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_launches_that_wait),
		cmocka_unit_test(test_filled),
		TEST(test_full_queue),
		TEST(test_copies),
		cmocka_unit_test(test_gpu_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
