/*
 * tests/unit/test_analyzer_expect.c: what is learnt of calls from a trace, and from which of them;
 * readers that start again. Of calls that wait for their own thread's work: test_analyzer_expect_gpu.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "expect_fixture.h"
#include "analysis.h"
#include "expect/priors.h"
#include "sections/sections.h"
#include "as_record.h"

/* ---- sizes ------------------------------------------------------------------------------------ */

static void test_buckets(void **state)
{
	unsigned int last = 0;
	uint64_t bytes;

	(void)state;
	assert_int_equal(class_bucket(0), 0);
	assert_int_equal(class_bucket_low(0), 0);
	assert_int_equal(class_bucket(UINT64_MAX), UINT8_MAX);
	for (bytes = 1; bytes < 100000; bytes++) {
		uint8_t bucket = class_bucket(bytes);

		assert_true(bucket >= last);
		assert_true(class_bucket_low(bucket) <= bytes);
		if (bucket != last)
			assert_int_equal(class_bucket_low(bucket), bytes);
		last = bucket;
	}
	for (bytes = 8; bytes; bytes *= 2) {
		assert_int_equal(class_bucket_low(class_bucket(bytes)), bytes);
		assert_int_equal(class_bucket(bytes - 1) + 1, class_bucket(bytes));
	}
}

/* ---- clean calls ------------------------------------------------------------------------------ */

/* The first call of a kind is cold; `n` of `us` follow. */
static void add_mallocs(struct fixture *f, unsigned int n, unsigned int us)
{
	while (n--)
		add(f, "memory cudaMalloc duration=%uus op=alloc kind=device address=1 bytes=4096",
		    us);
}

static const char malloc_4k[] = "alloc device, 4.00 KiB to 5.00 KiB";

static void test_median(void **state)
{
	struct fixture *f = *state;
	const struct call_class *c;
	struct expect *e;

	add_mallocs(f, 1, 9000);
	add_mallocs(f, 7, 10);
	add_mallocs(f, 3, 20);
	e = learn(f, NULL);
	expect_number(e, "cudaMalloc", malloc_4k, EXPECT_CLEAN, 10000);
	c = class_of(e, "cudaMalloc", malloc_4k);
	assert_int_equal(c->samples, 10);
	assert_int_equal(c->learnt, 10);
	assert_in_range(c->spread_ns, 9800, 10200);
	assert_string_equal(expect_source_text(e, c), "median of 10 unobstructed calls");
	/* What the only one cost, others need not. */
	expect_number(e, "cudaMalloc", "alloc device, 4.00 KiB to 5.00 KiB, first one", EXPECT_NONE,
		      0);
}

/* What a call was seen waiting is no work of its own; and those that failed, were kept from running or
 * lie inside others, all of them slower, teach nothing. */
static void test_obstructed(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	add_mallocs(f, 9, 10);
	for (i = 0; i < 20; i++) {
		add(f, "wait kind=mutex fn=cudaMalloc duration=400us object=0x10");
		add(f, "wait kind=mutex fn=cuMemAlloc_v2 duration=90us object=0x20 depth=1");
		add_mallocs(f, 1, 500);
		add(f, "sched window=600us not_running=100us");
		add_mallocs(f, 1, 600);
		add(f, "memory cudaMalloc duration=700us op=alloc kind=device bytes=4096 result=2");
		add(f, "memory cudaMalloc duration=800us op=alloc kind=device bytes=4096 depth=1");
		add(f, "nested cuMemAlloc_v2 duration=800us depth=1");
		add_mallocs(f, 1, 10);
	}
	learn(f, NULL);
	expect_number(&f->expect, "cudaMalloc", malloc_4k, EXPECT_CLEAN, 10000);
	assert_int_equal(class_of(&f->expect, "cudaMalloc", malloc_4k)->samples, 48);
	assert_int_equal(class_of(&f->expect, "cudaMalloc", malloc_4k)->learnt, 68);
}

/* Their near twin: little time off the processor, and a wait in the call before. */
static void test_hardly_obstructed(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	add_mallocs(f, 1, 10);
	for (i = 0; i < 8; i++) {
		add(f, "wait kind=mutex fn=cudaEventCreate duration=400us object=0x10");
		add(f, "op cudaEventCreate duration=400us object=0x20");
		add(f, "sched window=600us not_running=400ns");
		add(f, "taken kind=mutex fn=cudaMalloc object=0x10");
		add_mallocs(f, 1, 10);
	}
	expect_number(learn(f, NULL), "cudaMalloc", malloc_4k, EXPECT_CLEAN, 10000);
}

static void test_few_and_none(void **state)
{
	struct fixture *f = *state;
	struct expect *e;
	unsigned int i;

	add_mallocs(f, 3, 10);
	for (i = 0; i < 11; i++) {
		add(f, "sched window=900us not_running=400us");
		add(f,
		    "memory cudaMallocHost duration=%uus op=alloc kind=pinned address=1 bytes=4096",
		    100 + 10 * i);
	}
	e = learn(f, NULL);
	expect_number(e, "cudaMalloc", malloc_4k, EXPECT_FEW, 10000);
	assert_string_equal(expect_source_text(e, class_of(e, "cudaMalloc", malloc_4k)),
			    "median of only 2 unobstructed calls");
	/* The first one is cold: the fastest of ten is the second. */
	expect_number(e, "cudaMallocHost", "alloc pinned, 4.00 KiB to 5.00 KiB",
		      EXPECT_LOW_QUANTILE, 110000);
}

/* Another size, in the second reading only. */
static void test_late_class(void **state)
{
	struct fixture *f = *state;
	const union spy_any raw = {.memory = {
					   .head = {.event = SPY_EV_MEMORY},
					   .op = SPY_MEMOP_ALLOC,
					   .kind = SPY_MEM_DEVICE,
					   .bytes = 8192,
				   }};
	const struct record call = {.event = SPY_EV_CALL};
	struct expect *e;
	struct call_class *c;
	uint32_t fn;

	add_mallocs(f, 10, 10);
	e = learn(f, NULL);
	fn = functions_number(&f->set.functions, "cudaMalloc");
	c = expect_class(e, AS_RECORD(&raw), fn, false);
	assert_int_equal(c->source, EXPECT_NEIGHBOUR);
	assert_in_range(c->expected_ns, 19800, 20200);
	assert_ptr_equal(c, expect_class(e, AS_RECORD(&raw), fn, false));
	fn = functions_number(&f->set.functions, "a function of tomorrow");
	c = expect_class(e, &call, fn, true);
	assert_int_equal(c->source, EXPECT_NONE);
	assert_ptr_equal(c, expect_class(e, &call, fn, true));
}

/* ---- cold calls ------------------------------------------------------------------------------- */

/* Slot 2 launches first; it is read last. */
static void test_cold(void **state)
{
	struct fixture *f = *state;
	struct merge merge;
	struct record record;
	unsigned int cold = 0;
	struct expect *e;

	f->us = 10000;
	add_launch(f, 5, 30);
	add_launch(f, 5, 4);
	add(f, "launch cudaLaunchKernel duration=60us stream=0x50 kernel=2");
	add(f, "launch cudaLaunchKernel duration=70us stream=0x50 kernel=2 device=1");
	add(f, "op cudaSetDevice duration=3us");
	add_slot(f, 2);
	f->us = 5000;
	add_launch(f, 6, 90);
	add_launch(f, 6, 4);
	add(f, "op cudaSetDevice duration=80us");
	add(f, "op cudaInitDevice duration=80us");
	e = learn(f, NULL);
	/* That of 60 us found work on its device: it may have waited for it. */
	expect_number(e, "cudaLaunchKernel", "first one", EXPECT_FEW, 70000);
	assert_int_equal(class_of(e, "cudaLaunchKernel", "first one")->learnt, 3);
	assert_int_equal(class_of(e, "cudaLaunchKernel", "")->learnt, 3);
	assert_int_equal(class_of(e, "cudaLaunchKernel", "")->samples, 2);
	assert_int_equal(class_of(e, "cudaSetDevice", "first one")->learnt, 1);
	assert_int_equal(class_of(e, "cudaInitDevice", "first one")->learnt, 1);

	/* The second reading finds the same ones. */
	merge_init(&merge, &f->set, false);
	while (merge_next(&merge, &record)) {
		if (!record_is_call(&record))
			continue;
		record.fn = trace_function(&f->set, record.stream->trace, record.raw->call_head.fn);
		record.contract = f->set.functions.all[record.fn].contract;
		cold += expect_cold(e, &record);
	}
	merge_release(&merge);
	assert_int_equal(cold, 5);
}

/* Threads that handed nothing over themselves: first launches may have waited for others' work, most of them. */
static void test_cold_behind_others(void **state)
{
	struct fixture *f = *state;
	unsigned int slot;

	add_launch(f, 5, 70);
	for (slot = 2; slot < 7; slot++) {
		add_slot(f, slot);
		add(f, "launch cudaLaunchKernel duration=%uus stream=0x%x0 kernel=%u", 680000, slot,
		    slot);
	}
	learn(f, NULL);
	expect_number(&f->expect, "cudaLaunchKernel", "first one", EXPECT_FEW, 70000);
}

/* ---- profiles and machines -------------------------------------------------------------------- */

static void test_profile_wins(void **state)
{
	struct fixture *f = *state;
	struct profile_class classes[] = {
		{
			.function = (char *)"cudaMalloc",
			.key = {.flags = CLASS_MEMORY,
				.bucket = class_bucket(4096),
				.what = SPY_MEMOP_ALLOC,
				.kinds = SPY_MEM_DEVICE},
			.bytes = 4096,
			.expected_ns = 7000,
			.spread_ns = 50,
			.samples = 24,
		},
	};
	const struct profile profile = {.driver = (char *)"13000",
					.gpus = (char *[]){(char *)"NVIDIA H200"},
					.n_gpus = 1,
					.classes = classes,
					.n_classes = 1};
	struct expect *e;

	add(f, "gpu device=0 name=\"NVIDIA H200\"");
	add(f, "gpu device=1 name=\"NVIDIA H200\"");
	add(f, "note note=version text=\"driver 13000\"");
	add(f, "note note=version text=\"runtime /x\"");
	add_mallocs(f, 10, 10);
	add(f, "op cudaEventCreate duration=5us");
	add(f, "op cudaEventCreate duration=5us");
	e = learn(f, &profile);
	expect_number(e, "cudaMalloc", malloc_4k, EXPECT_PROFILE, 7000);
	assert_string_equal(expect_source_text(e, class_of(e, "cudaMalloc", malloc_4k)),
			    "profile of NVIDIA H200, driver 13000 (24 calls)");
	assert_int_equal(class_of(e, "cudaMalloc", malloc_4k)->learnt, 9);
	assert_int_equal(class_of(e, "cudaEventCreate", "")->source, EXPECT_FEW);
	assert_int_equal(e->machine.n_gpus, 1);
	assert_int_equal(e->machine.n_drivers, 1);
	assert_string_equal(e->machine.drivers[0], "13000");
}

/* ---- twice ------------------------------------------------------------------------------------ */

static uint64_t read_all(struct trace_set *set, uint64_t *sum)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < set->n_streams; i++)
		while (reader_next(&set->streams[i]->reader)) {
			n++;
			*sum += set->streams[i]->reader.record->other.time * n;
		}
	return n;
}

static uint64_t unreadable(const struct trace_set *set)
{
	uint64_t bytes = 0;
	size_t i;

	for (i = 0; i < set->n_streams; i++)
		bytes += set->streams[i]->reader.losses.unreadable_bytes;
	return bytes;
}

/* A damaged trace reads the same after the first reading as without one, and is damaged once. */
static void test_rewind(void **state)
{
	struct fixture *f = *state;
	uint64_t sum = 0, sum_again = 0, n;
	unsigned int complaints;
	char path[300];
	size_t size, i;
	char *bytes;

	for (i = 0; i < 500; i++)
		add_mallocs(f, 1, 10);
	fclose(f->out);
	scratch_write(f->log, f->text, f->size);
	free(f->text);
	tt_make(f->log, f->dir);
	snprintf(path, sizeof(path), "%s/a.1/stream_0001", f->dir);
	bytes = scratch_read(path, &size);
	assert_true(size > 9000);
	memset(bytes + 4096 + sizeof(struct spy_packet) + 560, 0xff, 2000);
	scratch_write(path, bytes, size);
	free(bytes);
	assert_int_equal(trace_set_open(&f->set, (const char *[]){f->dir}, 1, NULL), 0);
	complaints = warnings_count();
	expect_learn(&f->expect, &f->set);
	evidence_gather(&f->expect, 1);
	assert_int_equal(warnings_count(), complaints);
	n = read_all(&f->set, &sum);
	assert_true(n > 50 && n < 500);
	assert_true(warnings_count() > complaints);
	assert_true(unreadable(&f->set));
	complaints = warnings_count();
	for (i = 0; i < f->set.n_streams; i++)
		reader_rewind(&f->set.streams[i]->reader);
	assert_int_equal(unreadable(&f->set), 0);
	assert_int_equal(read_all(&f->set, &sum_again), n);
	assert_int_equal(sum_again, sum);
	assert_true(warnings_count() > complaints);
}

/* The same for a process that may be writing still: its tail is what it was when it was looked at. */
static void test_rewind_live(void **state)
{
	struct fixture *f = *state;
	uint64_t sum = 0, sum_again = 0, n;
	size_t i;

	fputs("board ended=0\n", f->out);
	add_mallocs(f, 500, 10);
	learn(f, NULL);
	assert_int_equal(class_of(&f->expect, "cudaMalloc", malloc_4k)->learnt, 499);
	n = read_all(&f->set, &sum);
	assert_int_equal(n, 501);
	for (i = 0; i < f->set.n_streams; i++)
		reader_rewind(&f->set.streams[i]->reader);
	assert_int_equal(read_all(&f->set, &sum_again), n);
	assert_int_equal(sum_again, sum);
}

/* ---- the table -------------------------------------------------------------------------------- */

/* By the main reading, whatever the first one learnt from. */
static void test_table(void **state)
{
	struct fixture *f = *state;
	struct analysis analysis;
	const struct table *t;
	struct report report;
	char text[64];

	add_mallocs(f, 10, 10);
	add(f, "memory cudaMalloc duration=700us op=alloc kind=device bytes=4096 result=2");
	add(f, "nested cuMemAlloc_v2 duration=800us depth=1");
	add_sync(f, 5, 1);
	add_launch(f, 5, 3);
	add_sync(f, 5, 900);
	open_set(f);
	setenv("HOME", f->dir, 1); /* where no profile is */
	unsetenv("XDG_CONFIG_HOME");
	assert_int_equal(analysis_run(&analysis, &f->set, &(struct analysis_options){0}), 0);
	report_init(&report, "test");
	report_expectations(&report, &analysis.expect);
	t = &report.tables[0];
	assert_int_equal(t->n_rows, 5);
	/* By total time; columns: function, expected, spread, calls, took. */
	assert_string_equal(table_text(t, 0, &t->kind->columns[0]), "cudaStreamSynchronize");
	table_format(t, 0, &t->kind->columns[1], text, sizeof(text));
	assert_string_equal(text, "?");
	assert_string_equal(table_text(t, 1, &t->kind->columns[0]), "cudaMalloc");
	table_format(t, 1, &t->kind->columns[1], text, sizeof(text));
	assert_string_equal(text, "10.00 us");
	table_format(t, 1, &t->kind->columns[3], text, sizeof(text));
	assert_string_equal(text, "9");
	table_format(t, 1, &t->kind->columns[4], text, sizeof(text));
	assert_string_equal(text, "90.00 us");
	report_release(&report);
	analysis_release(&analysis);
}

/* Of a long stream its beginning and one packet in eight; what is between them may have left work behind. */
static void test_long_stream(void **state)
{
	struct fixture *f = *state;
	const struct call_class *c;
	unsigned int i;

	for (i = 0; i < 100000; i++) {
		if (i % 3 == 0) /* packets begin with this and with that */
			add_launch(f, 5, 3);
		add_launch(f, 5, 3);
		add_sync(f, 5, 900);
	}
	learn(f, NULL);
	expect_number(&f->expect, "cudaLaunchKernel", "", EXPECT_CLEAN, 3000);
	c = class_of(&f->expect, "cudaLaunchKernel", "");
	assert_in_range(c->learnt, 133334 / 2, 133334 * 3 / 4);
	/* How full its queue is nobody knows in the beginning of a packet. */
	assert_in_range(c->learnt - c->clean_calls, 50, 500);
	assert_in_range(f->expect.records, 220000, 250000); /* of 233,334: an estimate */
}

/* What comes first in a packet that is read has been before, perhaps, in those that are not. */
static void test_long_stream_cold(void **state)
{
	struct fixture *f = *state;
	unsigned int i, kernel;

	for (kernel = 1; kernel <= 5; kernel++) {
		add(f, "launch cudaLaunchKernel duration=300us stream=0x50 kernel=%u", kernel);
		add_sync(f, 5, 900);
	}
	for (i = 0; i < 70000; i++) {
		add_launch(f, 5, 3);
		add_sync(f, 5, 900);
	}
	for (; kernel <= 46; kernel++)
		for (i = 0; i < 500; i++) {
			add_launch(f, 5, 3);
			add_sync(f, 5, 900);
			add(f, "launch cudaLaunchKernel duration=%uus stream=0x50 kernel=%u",
			    i ? 3 : 300, kernel);
			add_sync(f, 5, 900);
		}
	learn(f, NULL);
	assert_int_equal(class_of(&f->expect, "cudaLaunchKernel", "first one")->learnt, 5);
	expect_number(&f->expect, "cudaLaunchKernel", "first one", EXPECT_CLEAN, 300000);
	assert_int_equal(class_of(&f->expect, "cudaLaunchKernel", "first one")->clean_calls, 46);
}

/* ---- what others have outstanding ------------------------------------------------------------- */

/* Thread 8 frees and launches for the first time, six times; thread 7 has work outstanding then, or has waited for it.
 * In its own records thread 8 has nothing in its way. */
static void add_two_threads(struct fixture *f, bool busy)
{
	uint64_t begin = f->us;
	unsigned int i;

	add_launch(f, 5, 3);
	add_sync(f, 5, 900);
	for (i = 0; i < 6; i++) {
		add(f, "launch cudaLaunchKernel duration=3us stream=0x50 kernel=1");
		if (!busy)
			add_sync(f, 5, 900);
		f->us += 200000;
		if (busy)
			add_sync(f, 5, 190000);
	}
	f->us = begin + 3000;
	add_slot(f, 2);
	for (i = 0; i < 6; i++) {
		f->us += 100000;
		add(f, "launch cudaLaunchKernel duration=80ms stream=0x60 kernel=%u", 2 + i);
		add(f, "op cudaStreamSynchronize duration=2us stream=0x60");
		add(f, "memory cudaFree duration=70us op=free kind=device address=0x9");
		f->us += 100000 - 1000;
	}
}

static void test_other_thread_is_busy(void **state)
{
	struct fixture *f = *state;

	add_two_threads(f, true);
	learn(f, NULL);
	assert_int_equal(class_of(&f->expect, "cudaLaunchKernel", "first one")->clean_calls, 1);
	assert_int_equal(class_of(&f->expect, "cudaFree", "free device")->clean_calls, 0);
}

static void test_other_thread_is_idle(void **state)
{
	struct fixture *f = *state;

	add_two_threads(f, false);
	learn(f, NULL);
	assert_int_equal(class_of(&f->expect, "cudaLaunchKernel", "first one")->clean_calls, 7);
	expect_number(&f->expect, "cudaFree", "free device", EXPECT_FEW, 70000);
}

/* Another process on the same GPU, or on another one. */
static void add_process(struct fixture *f, char uuid)
{
	uint64_t begin = f->us;
	unsigned int i;

	add(f, "gpu device=0 name=\"G\" uuid=\"GPU-1\"");
	for (i = 0; i < 12; i++)
		add_sync(f, 5, 2);
	fputs("trace b.2 pid=2 program=\"b\"\nslot 1 tid=9\n1us thread tid=9 name=\"main\"\n",
	      f->out);
	f->us = begin;
	add(f, "gpu device=0 name=\"G\" uuid=\"GPU-%c\"", uuid);
	add_launch(f, 5, 3);
	f->us += 20000;
	add_sync(f, 5, 2000);
}

static void test_other_process_is_busy(void **state)
{
	struct fixture *f = *state;

	add_process(f, '1');
	learn(f, NULL);
	assert_in_range(class_of(&f->expect, "cudaStreamSynchronize", "")->clean_calls, 0, 1);
}

static void test_other_process_elsewhere(void **state)
{
	struct fixture *f = *state;

	add_process(f, '2');
	learn(f, NULL);
	assert_int_equal(class_of(&f->expect, "cudaStreamSynchronize", "")->clean_calls, 11);
}

/* A free that slept, for what no probe saw, and one that was at work all the time. */
static void test_off_cpu(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	add_launch(f, 5, 3);
	add_sync(f, 5, 900);
	for (i = 0; i < 10; i++) {
		add(f, "sched window=%uus not_running=0 running=%uus", 900, i % 2 ? 200 : 895);
		add(f, "memory cudaFree duration=%uus op=free kind=device address=0x9",
		    i % 2 ? 890 : 500);
	}
	learn(f, NULL);
	expect_number(&f->expect, "cudaFree", "free device", EXPECT_FEW, 500000);
	assert_int_equal(class_of(&f->expect, "cudaFree", "free device")->clean_calls, 4);
}

/* What was seen before a call belongs to that call alone, also if it failed, was one of another thread in the same slot, or
 * the last one of its stream; what was seen inside it, in calls of depth, belongs to it. */
static void test_seen_before(void **state)
{
	static const char *const seen[] = {
		"wait kind=mutex fn=cudaEventCreate duration=400us object=0x10",
		"wait kind=ioctl fn=cudaEventCreate duration=400us object=0x10",
		"sched window=600us not_running=400us",
		"sched window=600us not_running=0 running=1us",
	};
	static const char *const between[] = {
		"op cudaEventCreate duration=500us object=0x20",
		"op cudaEventCreate duration=500us object=0x20 result=2",
		"thread tid=7 name=\"main\"",
	};
	struct fixture *f = *state;
	unsigned int i, j, round;

	add_mallocs(f, 1, 10);
	add_sync(f, 5, 1);
	add(f, "launch cudaLaunchKernel duration=3us stream=0x60 kernel=1");
	add(f, "op cudaDeviceSynchronize duration=900us");
	for (round = 0; round < 8; round++)
		for (i = 0; i < ARRAY_SIZE(seen); i++)
			for (j = 0; j < 3; j++) {
				add(f, seen[i]);
				add(f, between[j]);
				if (j == 2 &&
				    i) /* what a thread leaves, evidence_gather does not part */
					add(f, "op cudaEventCreate duration=500us object=0x20");
				add_mallocs(f, 1, 10);
				add(f, seen[i]);
				add(f, between[j % 2]);
				add_sync(f, 5, 20);
			}
	/* A stream ends with what another one has no part in. */
	add(f, seen[0]);
	add_slot(f, 2);
	add_mallocs(f, 2, 10);
	learn(f, NULL);
	expect_number(&f->expect, "cudaMalloc", malloc_4k, EXPECT_CLEAN, 10000);
	assert_int_equal(class_of(&f->expect, "cudaMalloc", malloc_4k)->clean_calls, 97);
	expect_number(&f->expect, "cudaStreamSynchronize", "", EXPECT_CLEAN, 20000);
	assert_int_equal(class_of(&f->expect, "cudaStreamSynchronize", "")->clean_calls, 96);
}

/* Waits inside the nested calls of a call are no work of its own. */
static void test_seen_inside(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	add_mallocs(f, 1, 10);
	add_sync(f, 5, 1);
	for (i = 0; i < 20; i++) {
		add(f, "wait kind=mutex fn=cuMemAlloc_v2 duration=400us object=0x10 depth=1");
		add(f, "nested cuMemAlloc_v2 duration=410us depth=1");
		add_mallocs(f, 1, 410);
		add(f, "wait kind=mutex fn=cuStreamSynchronize duration=400us object=0x10 depth=1");
		add(f, "wait kind=mutex fn=cuStreamSynchronize duration=80us object=0x10 depth=1");
		add(f, "nested cuStreamSynchronize duration=485us depth=1");
		add_sync(f, 5, 500);
	}
	learn(f, NULL);
	expect_number(&f->expect, "cudaMalloc", malloc_4k, EXPECT_CLEAN, 10000);
	expect_number(&f->expect, "cudaStreamSynchronize", "", EXPECT_CLEAN, 20000);
}

/* How many calls of a kind a waiting call of so many microseconds has taught, of ten. */
static uint64_t taught(void **state, const char *format, unsigned int us, const char *function,
		       const char *text)
{
	struct fixture *f = *state;
	const struct call_class *c;
	unsigned int i;
	uint64_t n;

	add_launch(f, 5, 3); /* the first one of its kernel */
	add_launch(f, 5, 3);
	add(f, "op cudaDeviceSynchronize duration=900us");
	for (i = 0; i < 11; i++)
		add(f, format, us);
	learn(f, NULL);
	c = class_of(&f->expect, function, text);
	n = c->clean_calls;
	teardown(state);
	setup(state);
	return n;
}

/* What takes longer than any call with nothing to wait for has waited for work that was not seen. */
static void test_bounds(void **state)
{
	static const char sync[] = "op cudaStreamSynchronize duration=%uus stream=0x50";
	static const char copy[] = "copy cudaMemcpyAsync duration=%uus stream=0x50 direction=d2h "
				   "src=device dst=pageable bytes=65536";
	static const char rows[] = "copy cudaMemcpy2D duration=%uus stream=0x50 direction=d2h "
				   "src=device dst=pageable bytes=65536";
	static const char text[] = "d2h device to pageable, 64.0 KiB to 80.0 KiB";

	assert_int_equal(taught(state, sync, 50, "cudaStreamSynchronize", ""), 10);
	assert_int_equal(taught(state, sync, 51, "cudaStreamSynchronize", ""), 0);
	/* 50 us and 2 ns for each byte. */
	assert_int_equal(taught(state, copy, 181, "cudaMemcpyAsync", text), 10);
	assert_int_equal(taught(state, copy, 182, "cudaMemcpyAsync", text), 0);
	assert_int_equal(taught(state, rows, 9000, "cudaMemcpy2D", text), 10);
}

/* ---- after a pause ---------------------------------------------------------------------------- */

/* Launches in a row, and one of `us` after each pause of a millisecond. */
static void add_pauses(struct fixture *f, unsigned int n, unsigned int us)
{
	unsigned int i;

	while (n--) {
		add_launch(f, 5, us);
		for (i = 0; i < 9; i++) {
			f->us -= 990;
			add_launch(f, 5, 4);
		}
		f->us -= 990;
		add_sync(f, 5, 2);
	}
}

static void test_pause(void **state)
{
	struct fixture *f = *state;
	const struct call_class *c;

	add_pauses(f, 20, 16);
	learn(f, NULL);
	expect_number(&f->expect, "cudaLaunchKernel", "", EXPECT_CLEAN, 4000);
	c = class_of(&f->expect, "cudaLaunchKernel", "");
	assert_in_range(c->rested_ns, 15800, 16200);
	assert_int_equal(c->rested_samples, 19); /* the first one is cold */
}

/* Their near twins: too few to say so; and no longer after a pause. */
static void test_few_pauses(void **state)
{
	struct fixture *f = *state;

	add_pauses(f, 8, 16);
	learn(f, NULL);
	assert_int_equal(class_of(&f->expect, "cudaLaunchKernel", "")->rested_ns, 0);
}

static void test_idle_pauses(void **state)
{
	struct fixture *f = *state;

	add_pauses(f, 20, 4);
	learn(f, NULL);
	assert_int_equal(class_of(&f->expect, "cudaLaunchKernel", "")->rested_ns, 0);
}

/* ---- priors ------------------------------------------------------------------------------------ */

/* Each row says what its file is of, and each file can be read. */
static void test_prior_rows(void **state)
{
	const char *gpu, *driver, *text;
	struct profile p;
	size_t size, i;

	(void)state;
	for (i = 0; (text = priors_row(i, &gpu, &driver, &size)); i++) {
		assert_int_equal(profile_parse(&p, text, size, gpu), 0);
		assert_string_equal(p.driver, driver);
		assert_int_equal(p.n_gpus, 1);
		assert_string_equal(p.gpus[0], gpu);
		assert_true(p.n_classes > 100);
		profile_release(&p);
	}
	assert_true(i > 0);
}

static struct expect *learn_with_prior(struct fixture *f, const char *gpu)
{
	add(f, "gpu device=0 name=\"%s\"", gpu);
	add(f, "note note=version text=\"driver 13000\"");
	open_set(f);
	expect_learn(&f->expect, &f->set);
	evidence_gather(&f->expect, 1);
	expect_settle(&f->expect, NULL,
		      priors_choose(&f->prior, &f->expect.machine) ? &f->prior : NULL);
	return &f->expect;
}

/* Three first launches of 80 ms with nothing in their way that the trace knows of; of streams that are made, a few
 * that took 100 ms, and many events that took a millisecond. */
static void add_slow_calls(struct fixture *f)
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		f->us += 100000;
		add(f, "launch cudaLaunchKernel duration=80ms stream=0x50 kernel=%u", 1 + i);
		add_sync(f, 5, 2);
	}
	for (i = 0; i < 6; i++) {
		f->us += 100000;
		add(f, "op cudaStreamCreateWithFlags duration=100ms object=0x90");
	}
	for (i = 0; i < 70; i++)
		add(f, "op cudaEventCreateWithFlags duration=900us object=0x91");
}

static struct profile_class prior_of(const struct fixture *f, const char *function, uint8_t flags)
{
	const struct class_key key = {.flags = flags};
	struct profile_class found;

	assert_true(profile_find(&f->prior, function, &key, &found));
	return found;
}

static uint64_t prior_most(const struct fixture *f, const char *function, uint8_t flags)
{
	struct profile_class prior = prior_of(f, function, flags);

	return EXPECT_PRIOR_MOST * (prior.expected_ns + prior.spread_ns);
}

static void test_prior_bounds(void **state)
{
	struct fixture *f = *state;
	struct expect *e;

	add_slow_calls(f);
	e = learn_with_prior(f, "NVIDIA H200");
	expect_number(e, "cudaLaunchKernel", "first one", EXPECT_PRIOR,
		      prior_most(f, "cudaLaunchKernel", CLASS_COLD));
	expect_number(e, "cudaStreamCreateWithFlags", "", EXPECT_PRIOR,
		      prior_most(f, "cudaStreamCreateWithFlags", 0));
	assert_non_null(strstr(expect_source_text(e, class_of(e, "cudaStreamCreateWithFlags", "")),
			       "8 times the prior, the profile of NVIDIA H200, driver 13000: few"));
	expect_number(e, "cudaEventCreateWithFlags", "", EXPECT_CLEAN, 900000);
}

/* Of a GPU that nobody has measured the trace's own calls are believed. */
static void test_prior_of_another_gpu(void **state)
{
	struct fixture *f = *state;
	struct expect *e;

	add_slow_calls(f);
	add_launch(f, 5, 3);
	add(f, "memory cudaFree duration=5ms op=free kind=device address=0x9");
	add(f, "op cudaEventSynchronize duration=5ms object=0x99");
	add(f, "op cudaEventSynchronize duration=5ms object=0x99");
	e = learn_with_prior(f, "Another");
	expect_number(e, "cudaStreamCreateWithFlags", "", EXPECT_FEW, 100000000);
	expect_number(e, "cudaEventSynchronize", "", EXPECT_PRIOR,
		      prior_of(f, "cudaEventSynchronize", 0).expected_ns);
	assert_non_null(strstr(expect_source_text(e, class_of(e, "cudaEventSynchronize", "")),
			       "prior of another GPU: the profile of NVIDIA H200"));
}

/* Where nobody knows the GPU there is none. */
static void test_no_prior(void **state)
{
	struct fixture *f = *state;

	add(f, "op cudaEventSynchronize duration=5ms object=0x99");
	add(f, "op cudaEventSynchronize duration=5ms object=0x99");
	learn(f, NULL);
	assert_false(priors_choose(&f->prior, &f->expect.machine));
	expect_number(&f->expect, "cudaEventSynchronize", "", EXPECT_NONE, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets),
		TEST(test_median),
		TEST(test_obstructed),
		TEST(test_hardly_obstructed),
		TEST(test_few_and_none),
		TEST(test_late_class),
		TEST(test_cold),
		TEST(test_cold_behind_others),
		TEST(test_profile_wins),
		TEST(test_rewind),
		TEST(test_rewind_live),
		TEST(test_table),
		TEST(test_long_stream),
		TEST(test_long_stream_cold),
		TEST(test_other_thread_is_busy),
		TEST(test_other_thread_is_idle),
		TEST(test_other_process_is_busy),
		TEST(test_other_process_elsewhere),
		TEST(test_off_cpu),
		TEST(test_seen_before),
		TEST(test_seen_inside),
		TEST(test_bounds),
		TEST(test_pause),
		TEST(test_few_pauses),
		TEST(test_idle_pauses),
		cmocka_unit_test(test_prior_rows),
		TEST(test_prior_bounds),
		TEST(test_prior_of_another_gpu),
		TEST(test_no_prior),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
