/*
 * tests/unit/test_analyzer_findings_syncs.c: waits for the GPU: after every launch, sooner than needed,
 * again, or to read a value back. For each detector a log in which it speaks, and a near twin in which
 * it is silent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "story.h"

/* ---- synchronisation after every launch ------------------------------------------------------ */

struct sync_story {
	const char *copy; /* beside each launch; NULL none */
	const char *work; /* handed over beside it; NULL nothing */
	uint64_t pause_ns, kernel_ns;
	unsigned int launches, places; /* of waits, in turns; 0: one */
	unsigned int others; /* launches before every second wait; 0: as before the first */
	bool managed, ahead;
};

static void tell_syncs(struct story *s, const struct sync_story *t)
{
	int i;
	unsigned int j;

	begin(s);
	if (t->managed)
		call(s, 0, 20000,
		     "memory cudaMallocManaged op=alloc kind=managed bytes=4096 address=0x9");
	for (i = 0; i < 10; i++) /* what launches and synchronisations cost alone */
		launch(s, 1000, 4000);
	wait_for_stream(s, 40000, 0x20);
	for (i = 0; i < 1000; i++) {
		if (t->ahead)
			call(s, 100, 1000, "launch cudaLaunchKernel kernel=1 stream=9 caller=0x11");
		for (j = 0; j < (i % 2 && t->others ? t->others : t->launches); j++)
			launch(s, t->pause_ns, 4000);
		if (t->copy)
			call(s, 500, 2000,
			     "copy cudaMemcpyAsync %s bytes=4096 stream=8 caller=0x13", t->copy);
		if (t->work)
			call(s, 500, 2000, "%s", t->work);
		wait_for_stream(s, t->kernel_ns, 0x21 + (t->places ? i % t->places : 0));
	}
	conclude(s);
}

/* A thread serves so many GPUs, with a kernel of 90 us on each; it waits for each, or for all of them behind the last.
 * `between` is what it calls in front of each wait, on the GPU that it waits for. */
struct turns_story {
	unsigned int gpus;
	bool waits_last, managed;
	const char *between;
};

static void tell_turns(struct story *s, const struct turns_story *t)
{
	unsigned int i, gpu;

	begin(s);
	if (t->managed)
		call(s, 1000, 9000,
		     "memory cudaMallocManaged op=alloc kind=managed address=0x5000 bytes=64");
	for (i = 0; i < 100; i++) {
		for (gpu = 0; gpu < t->gpus; gpu++) {
			call(s, 500, 4000,
			     "launch cudaLaunchKernel kernel=1 stream=%u caller=0x10 device=%u",
			     8 + gpu, gpu);
			if (t->between)
				call(s, 500, 2000, "%s stream=%u device=%u", t->between, 8 + gpu,
				     gpu);
			if (!t->waits_last)
				call(s, 500, 90000,
				     "op cudaStreamSynchronize stream=%u caller=0x20 device=%u",
				     8 + gpu, gpu);
		}
		for (gpu = 0; gpu < t->gpus && t->waits_last; gpu++)
			call(s, 500, gpu ? 2000 : 90000,
			     "op cudaStreamSynchronize stream=%u caller=0x20 device=%u", 8 + gpu,
			     gpu);
	}
	conclude(s);
}

static void test_serial_gpus(void **state)
{
	static const struct turns_story silent[] = {
		{.gpus = 4, .waits_last = true},
		{.gpus = 2, .managed = true},
		{.gpus = 2,
		 .between = "copy cudaMemcpyAsync direction=d2h src=device dst=pinned bytes=4096 "
			    "caller=0x13"},
		/* the next one needs it */
		{.gpus = 2,
		 .between =
			 "copy cudaMemcpyPeerAsync form=peer direction=d2d src=device dst=device "
			 "src_device=0 dst_device=1 bytes=4096 caller=0x13"},
		/* it may: a small copy between memory of pools, of which nobody asked where it lies */
		{.gpus = 2,
		 .between = "copy cudaMemcpyAsync form=1d direction=d2d src=device dst=device "
			    "bytes=4096 caller=0x13"},
	};
	struct story *s = *state;
	json_t *finding;
	size_t i;

	tell_turns(s, &(struct turns_story){.gpus = 4});
	finding = only(s, "serial-gpus", "396 times a thread waited for one GPU");
	assert_in_range(number(finding, "cost_ns"), 396 * 65000, 396 * 76000);
	assert_int_equal(number(finding, "gain_low_ns"), 0);
	tell_turns(s, &(struct turns_story){.gpus = 2});
	finding = only(s, "serial-gpus", "198 times a thread waited for one GPU");
	assert_in_range(number(finding, "cost_ns"), 198 * 44000, 198 * 54000);
	for (i = 0; i < ARRAY_SIZE(silent); i++) {
		tell_turns(s, &silent[i]);
		assert_null(found(s, "serial-gpus"));
	}
	tell_turns(s, &(struct turns_story){.gpus = 1});
	assert_null(found(s, "serial-gpus"));
}

static void test_sync_every_launch(void **state)
{
	static const struct sync_story silent[] = {
		/* host work between, perhaps with results */
		{.launches = 1, .pause_ns = 300000, .kernel_ns = 9000},
		{.launches = 1, .pause_ns = 1000, .kernel_ns = 3 * MS}, /* long kernels */
		{.launches = 8, .pause_ns = 1000, .kernel_ns = 60000},
		/* one wait behind an upload, another one behind the work */
		{.launches = 1, .others = 8, .places = 2, .pause_ns = 1000, .kernel_ns = 60000},
		{.launches = 1, .pause_ns = 1000, .kernel_ns = 9000, .managed = true},
		/* the GPU has other work meanwhile */
		{.launches = 1, .pause_ns = 1000, .kernel_ns = 9000, .ahead = true},
		{.launches = 1,
		 .pause_ns = 1000,
		 .kernel_ns = 9000,
		 .copy = "direction=d2h src=device dst=pinned"},
		/* nobody knows what is in a graph; a function on the host may tell others */
		{.pause_ns = 1000,
		 .kernel_ns = 90000,
		 .work = "op cudaGraphLaunch stream=8 object=0x70 caller=0x72"},
		{.launches = 1,
		 .pause_ns = 1000,
		 .kernel_ns = 9000,
		 .work = "op cudaLaunchHostFunc stream=8 caller=0x72"},
	};
	static const struct sync_story speaks[] = {
		{.launches = 1, .pause_ns = 1000, .kernel_ns = 9000},
		{.launches = 2, .pause_ns = 1000, .kernel_ns = 20000},
		{.launches = 1,
		 .pause_ns = 1000,
		 .kernel_ns = 9000,
		 .copy = "direction=h2d src=pinned dst=device"},
	};
	struct story *s = *state;
	json_t *finding;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(speaks); i++) {
		tell_syncs(s, &speaks[i]);
		finding = only(s, "sync-every-launch", "handed over the next 1.000 us later");
		assert_int_equal(number(finding, "count"), 999); /* the first comes after another */
		/* The launch's own work, and what is known of the synchronisation's. */
		assert_in_range(number(finding, "cost_ns"), 999 * 4000, 999 * 7000);
		assert_int_equal(number(finding, "gain_low_ns"), 0);
		assert_int_equal(number(finding, "gain_high_ns"), number(finding, "cost_ns"));
	}
	for (i = 0; i < ARRAY_SIZE(silent); i++) {
		tell_syncs(s, &silent[i]);
		nothing(s);
	}
	/* The macro that looks for errors behind each launch is at many places. */
	tell_syncs(s, &(struct sync_story){
			      .launches = 1, .places = 3, .pause_ns = 1000, .kernel_ns = 9000});
	assert_int_equal(json_array_size(s->findings), 3);
	json_array_foreach(s->findings, i, finding)
	{
		says(finding, "handed over the next 1.000 us later");
		assert_in_range(number(finding, "count"), 333, 334);
	}
}

/* ---- a synchronisation that could come later ------------------------------------------------- */

struct early_story {
	uint64_t wait_ns, host_ns;
	const char *before; /* the first call; NULL none */
	const char *work; /* handed over beside the kernel; NULL nothing */
	const char *sync; /* NULL: for the kernel's stream */
	const char *between; /* in the midst of the host's time; NULL none */
	const char *next; /* NULL: the next kernel */
	unsigned int rounds; /* 0: 100 */
	bool ahead; /* a kernel of the other stream is waited for when the next one is under way */
};

/* Kernels that are waited for with nothing to do afterwards, so that the rounds are not all of the work. */
static void tell_plain_work(struct story *s)
{
	int i;

	for (i = 0; i < 30; i++) {
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		wait_for_stream(s, 40000, 0x20);
	}
}

static void tell_early(struct story *s, const struct early_story *t)
{
	unsigned int i, rounds = t->rounds ?: 100;

	begin(s);
	if (t->before)
		call(s, 1000, 20000, "%s", t->before);
	s->ns += 300 * MS;
	tell_plain_work(s);
	if (t->ahead)
		call(s, 1000, 4000, "launch cudaLaunchKernel kernel=1 stream=9 caller=0x10");
	for (i = 0; i < rounds; i++) {
		unsigned int stream = t->ahead && i % 2 ? 9 : 8;

		call(s, 1000, 4000, "launch cudaLaunchKernel kernel=1 stream=%u caller=0x10",
		     stream);
		if (t->work)
			call(s, 1000, 4000, "%s", t->work);
		if (t->sync)
			call(s, 1000, t->wait_ns, "%s", t->sync);
		else
			call(s, 1000, t->wait_ns, "op cudaStreamSynchronize stream=%u caller=0x21",
			     t->ahead ? 17 - stream : 8);
		if (t->between) {
			s->ns += t->host_ns / 2;
			call(s, 0, 90000, "%s", t->between);
			s->ns += t->host_ns / 2;
		} else {
			s->ns += t->host_ns;
		}
		if (t->next)
			call(s, 0, 20000, "%s", t->next);
	}
	launch(s, 1000, 4000);
	wait_for_stream(s, 40000, 0x20);
	tell_plain_work(s);
	conclude(s);
}

#define TO_HOST \
	"copy cudaMemcpyAsync direction=d2h src=device dst=pinned bytes=4096 stream=8 caller=0x13"
#define BACK "copy cudaMemcpy direction=d2h src=device dst=pageable bytes=4096 stream=1 caller=0x13"
#define EVENT "op cudaEventRecord stream=8 object=0x70 caller=0x14"

static void test_early_sync(void **state)
{
	static const struct early_story speaks[] = {
		{.wait_ns = 2 * MS, .host_ns = MS},
		{.wait_ns = MS, .host_ns = 3 * MS},
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .sync = "call cudaDeviceSynchronize caller=0x21"},
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .work = EVENT,
		 .sync = "op cudaEventSynchronize object=0x70 caller=0x21"},
		/* what the host gets it gets afterwards */
		{.wait_ns = 2 * MS, .host_ns = MS, .next = BACK},
		/* somebody set memory in another stream, long ago, and never waited for that */
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .before = "memory cudaMemsetAsync op=set kind=device bytes=4096 stream=9 "
			   "caller=0x12"},
		/* the host's time within CUDA does not count, and does not end it */
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .between = "memory cudaMalloc op=alloc kind=device bytes=4096 address=0x9 "
			    "caller=0x30"},
		{.wait_ns = 2 * MS, .host_ns = MS, .between = "call cudaSetDevice caller=0x30"},
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .between = "memory cudaFree op=free kind=device bytes=4096 address=0x9 "
			    "caller=0x30"},
		/* pinned memory, and copies to it, but not here */
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .before = "memory cudaMallocHost op=alloc kind=pinned bytes=4096 address=0x9",
		 .next = BACK},
	};
	static const struct early_story silent[] = {
		{.wait_ns = 2 * MS, .host_ns = 40000},
		/* a copy may have gone on in another stream: so long that it need not be over */
		{.wait_ns = 30 * MS,
		 .host_ns = MS,
		 .rounds = 50,
		 .before = "copy cudaMemcpyAsync direction=h2d src=pinned dst=device bytes=1 "
			   "stream=9 caller=0x12"},
		{.wait_ns = 30000, .host_ns = MS},
		{.wait_ns = 2 * MS, .host_ns = MS, .rounds = 9},
		{.wait_ns = 900 * MS, .host_ns = 900 * MS, .rounds = 1},
		{.wait_ns = 2 * MS, .host_ns = MS, .work = TO_HOST}, /* for its results */
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .work = "op cudaGraphLaunch stream=8 object=0x70 caller=0x72"},
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .work = "op cudaLaunchHostFunc stream=8 caller=0x72"},
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .before = "memory cudaMallocManaged op=alloc kind=managed bytes=4096 address=0x9"},
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .before = "memory cudaMallocHost op=alloc kind=pinned bytes=4096 address=0x9"},
		/* the GPU has work meanwhile */
		{.wait_ns = 2 * MS, .host_ns = MS, .ahead = true},
		{.wait_ns = 2 * MS,
		 .host_ns = MS,
		 .work = "launch cudaLaunchKernel kernel=1 device=1 stream=10 caller=0x15"},
	};
	struct story *s = *state;
	json_t *finding;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(speaks); i++) {
		tell_early(s, &speaks[i]);
		finding = found(s, "early-sync");
		if (!finding)
			fail_msg("%zu: nothing in:\n%s", i, s->shown);
		says(finding, "100 times the thread waited for the GPU");
		assert_int_equal(number(finding, "offset"), 0x21); /* where the wait is */
		assert_in_range(number(finding, "cost_ns"), 99 * MS, 101 * MS);
		assert_int_equal(number(finding, "gain_low_ns"), 0);
		assert_int_equal(number(finding, "gain_high_ns"), number(finding, "cost_ns"));
		assert_int_equal(number(finding, "worst_ns"), speaks[i].wait_ns);
		assert_string_equal(json_string_value(json_object_get(finding, "severity")),
				    "note");
		assert_true(is_shown(s, finding));
	}
	for (i = 0; i < ARRAY_SIZE(silent); i++) {
		tell_early(s, &silent[i]);
		if (found(s, "early-sync"))
			fail_msg("%zu: nothing expected in:\n%s", i, s->shown);
	}
}

/* Another thread gives the GPU work while the host is busy, or another GPU. */
static void tell_neighbour(struct story *s, unsigned int device)
{
	int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		launch(s, 1000, 4000);
		call(s, 1000, 2 * MS, "op cudaStreamSynchronize stream=8 caller=0x21");
		s->ns += MS;
	}
	launch(s, 1000, 4000);
	fprintf(s->log, "slot 2 tid=8\n1us thread tid=8 name=\"b\"\n");
	s->ns = 1000;
	for (i = 0; i < 3000; i++)
		call(s, 96000, 4000,
		     "launch cudaLaunchKernel kernel=1 device=%u stream=9 caller=0x50", device);
	conclude(s);
}

/* Behind each long call the recorder itself needs some time. */
static void tell_looks(struct story *s, uint64_t pause_ns)
{
	int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		call(s, pause_ns, 4000, "launch cudaLaunchKernel kernel=1 stream=8 caller=0x10");
		wait_for_stream(s, 2 * MS, 0x20);
		call(s, pause_ns, 500000, "op cudaStreamDestroy stream=9 caller=0x30");
		call(s, pause_ns, 500000, "op cudaStreamCreate stream=9 caller=0x31");
	}
	conclude(s);
}

static void test_early_sync_for_the_recorder(void **state)
{
	struct story *s = *state;

	tell_looks(s, 45000);
	assert_null(found(s, "early-sync"));
	tell_looks(s, 120000);
	assert_non_null(found(s, "early-sync"));
}

static void test_early_sync_beside_others(void **state)
{
	struct story *s = *state;

	tell_neighbour(s, 1);
	says(found(s, "early-sync"), "100 times");
	tell_neighbour(s, 0);
	assert_null(found(s, "early-sync"));
}

/* What the program does when all is done, and then clears away, came after the last round. */
static void test_early_sync_at_the_end(void **state)
{
	struct story *s = *state;
	int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		launch(s, MS, 4000);
		call(s, 1000, 2 * MS, "op cudaStreamSynchronize stream=8 caller=0x21");
	}
	call(s, 900 * MS, 20000,
	     "memory cudaFree op=free kind=device bytes=4096 address=0x9 caller=0x30");
	conclude(s);
	says(found(s, "early-sync"), "99 times");
}

/* Each thread once, in its preparations. */
static void test_early_sync_of_each_thread(void **state)
{
	struct story *s = *state;
	int i;

	begin(s);
	for (i = 0; i < 20; i++) {
		if (i)
			fprintf(s->log, "slot %d tid=%d\n1us thread tid=%d name=\"b\"\n", i + 1,
				i + 7, i + 7);
		s->ns = (uint64_t)(1 + i) * 10 * MS;
		launch(s, 1000, 4000);
		call(s, 1000, 2 * MS, "op cudaStreamSynchronize stream=8 caller=0x21");
		launch(s, 3 * MS, 4000);
	}
	conclude(s);
	assert_null(found(s, "early-sync"));
}

/* ---- one event, several who wait ---------------------------------------------------------------- */

static void wait_for_event(struct story *s, uint64_t ns)
{
	call(s, 0, ns, "op cudaEventSynchronize object=0x70 caller=0x21");
}

/* Two threads that hand nothing over wait for the same event; for the last one it is done when its wait ends. */
static void test_event_of_all(void **state)
{
	struct story *s = *state;
	int i, thread;

	begin(s);
	s->ns = 0;
	for (i = 0; i < 50; i++) {
		launch(s, 1000, 4000);
		call(s, 0, 5000, "op cudaEventRecord stream=8 object=0x70 caller=0x11");
		s->ns += MS - 10000;
	}
	for (thread = 0; thread < 2; thread++) {
		fprintf(s->log, "slot %d tid=%d\n1us thread tid=%d name=\"b\"\n", 2 + thread,
			8 + thread, 8 + thread);
		s->ns = 20000;
		for (i = 0; i < 50; i++) {
			wait_for_event(s, MS / 2 + (uint64_t)thread * 5000);
			s->ns += MS / 2 - (uint64_t)thread * 5000;
		}
	}
	conclude(s);
	nothing(s);
}

/* ---- values read back ------------------------------------------------------------------------ */

static void tell_read_back(struct story *s, unsigned int rounds, unsigned int bytes, bool between)
{
	unsigned int i;

	begin(s);
	for (i = 0; i < 100; i++) {
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		launch(s, 1000, 4000);
		if (i % (100 / rounds))
			continue;
		call(s, 1000, 5000,
		     "copy cudaMemcpyAsync direction=d2h src=device dst=pinned bytes=%u stream=8 "
		     "caller=0x40",
		     bytes);
		if (between)
			launch(s, 1000, 4000);
		wait_for_stream(s, MS, 0x20);
	}
	wait_for_stream(s, 40000, 0x21);
	conclude(s);
}

static void test_read_back(void **state)
{
	struct story *s = *state;
	json_t *finding;
	int i;

	tell_read_back(s, 50, 8, false);
	finding = only(s, "read-back", /* the first is cold */
		       "49 times the thread fetched a few bytes");
	assert_string_equal(json_string_value(json_object_get(finding, "severity")), "note");
	assert_in_range(number(finding, "cost_ns"), 45 * MS, 50 * MS);
	assert_int_equal(number(finding, "gain_low_ns"), 0);
	/* Synchronous copies wait themselves; what they cost is known from some on an idle GPU. */
	begin(s);
	for (i = 0; i < 60; i++) {
		if (i >= 10) {
			launch(s, 1000, 4000);
			launch(s, 1000, 4000);
		}
		call(s, 1000, i < 10 ? 9000 : MS,
		     "copy cudaMemcpy direction=d2h src=device dst=pageable bytes=4 caller=%#x",
		     i < 10 ? 0x41 : 0x40);
	}
	conclude(s);
	only(s, "read-back", "50 times");
	tell_read_back(s, 5, 8, false); /* seldom */
	nothing(s);
	tell_read_back(s, 50, 4096, false); /* a result */
	nothing(s);
	tell_read_back(s, 50, 0, false); /* none, this time */
	nothing(s);
	tell_read_back(s, 50, 8, true); /* the wait is for something else */
	nothing(s);
}

#define SMALL_ASYNC "copy cudaMemcpyAsync direction=d2h src=device dst=pinned bytes=256 stream=8"
#define SMALL_SYNC "copy cudaMemcpy direction=d2h src=device dst=pageable bytes=256"

/* Each condition alone: in 100 steps of the work those from `first` to `last` have the copy and the wait. */
static void test_read_back_twins(void **state)
{
	static const struct {
		const char *copy, *wait; /* no wait: the copy itself waits */
		unsigned int first, last;
		bool found;
	} twins[] = {
		{SMALL_ASYNC, "op cudaStreamSynchronize stream=8", 0, 99, true},
		{SMALL_ASYNC, "op cudaStreamSynchronize stream=8", 0, 20,
		 true}, /* 20: one is cold */
		{SMALL_ASYNC, "op cudaStreamSynchronize stream=8", 0, 19, false},
		{SMALL_ASYNC, "op cudaDeviceSynchronize", 0, 99, true},
		{SMALL_ASYNC, "op cudaStreamSynchronize stream=9", 0, 99, false},
		{SMALL_ASYNC, "op cudaStreamSynchronize stream=8 result=700", 0, 99, false},
		{"copy cudaMemcpyAsync direction=d2h src=device dst=pinned bytes=257 stream=8",
		 "op cudaStreamSynchronize stream=8", 0, 99, false},
		{"copy cudaMemcpyAsync direction=h2d src=pinned dst=device bytes=256 stream=8",
		 "op cudaStreamSynchronize stream=8", 0, 99, false},
		{"launch cudaLaunchKernel kernel=1 stream=8", "op cudaStreamSynchronize stream=8",
		 0, 99, false},
		{SMALL_SYNC, NULL, 0, 99, true},
		{"copy cudaMemcpy direction=d2h src=device dst=pageable bytes=257", NULL, 0, 99,
		 false},
		{"copy cudaMemcpy direction=h2d src=pinned dst=device bytes=256", NULL, 0, 99,
		 false},
		{SMALL_SYNC " result=700", NULL, 0, 99, false},
	};
	struct story *s = *state;

	for (size_t t = 0; t < ARRAY_SIZE(twins); t++) {
		bool found = false;
		const json_t *finding;
		size_t f;

		begin(s);
		for (unsigned int i = 0; i < 110; i++) {
			bool here = i >= 10 && i - 10 >= twins[t].first && i - 10 <= twins[t].last;

			if (i >= 10) { /* the first are on an idle GPU */
				launch(s, 1000, 4000);
				launch(s, 1000, 4000);
			}
			if (here || (i < 10 && !twins[t].wait))
				call(s, 1000,
				     twins[t].wait ? 5000
				     : here        ? MS
						   : 9000,
				     "%s caller=0x40", twins[t].copy);
			if (here && twins[t].wait)
				call(s, 1000, MS, "%s caller=0x20", twins[t].wait);
			else if (!here)
				call(s, 1000, i < 10 ? 2000 : MS,
				     "op cudaEventSynchronize object=0x77 caller=0x21");
		}
		conclude(s);
		json_array_foreach(s->findings, f, finding) found |=
			!strcmp(json_string_value(json_object_get(finding, "id")), "read-back");
		if (found != twins[t].found)
			fail_msg("%s, %s, steps %u to %u: %s", twins[t].copy, twins[t].wait,
				 twins[t].first, twins[t].last, s->shown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY_TEST(test_sync_every_launch),
		STORY_TEST(test_serial_gpus),
		STORY_TEST(test_early_sync),
		STORY_TEST(test_early_sync_for_the_recorder),
		STORY_TEST(test_early_sync_beside_others),
		STORY_TEST(test_early_sync_at_the_end),
		STORY_TEST(test_early_sync_of_each_thread),
		STORY_TEST(test_event_of_all),
		STORY_TEST(test_read_back),
		STORY_TEST(test_read_back_twins),
	};

	return RUN_WITH_FINDINGS(tests);
}
