/*
 * tests/unit/test_analyzer_live.c: running programs from made-up boards: chains to their end, cycles, locks that have changed
 * hands, waits that were left, boards that change while they are read, and boards of any bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "cudaspy/function_numbers.h"
#include "live_view/prometheus.h"
#include "live_view/tables.h"
#include "render/render.h"
#include "render/render.h"
#include "scratch.h"
#include "trace_writer.h"
#include "text/text.h"

/* Thread of slot 1, less 1: among the last that Linux may give, which hardly a machine has. */
#define TID 4190000u
#define SECOND 1000000000ull

static char *dir;
static struct tw_trace trace;
static struct live live;
static struct recorded recorded;
static struct recorded_list list;
static uint64_t now;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static uint64_t monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* A trace of that process in `dir`, whose clock is the system's. more: lines of the env block. */
static void open_trace(uint32_t pid, const char *more)
{
	uint64_t epoch_ns = clock_ns(CLOCK_REALTIME) - monotonic_ns();
	char env[512], boot[64] = "";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

	assert_non_null(file);
	assert_non_null(fgets(boot, sizeof(boot), file));
	fclose(file);
	boot[strcspn(boot, "\n")] = '\0';
	tw_open(&trace, dir, 0);
	trace.board.ended = 0;
	trace.board.pid = pid;
	snprintf(env, sizeof(env),
		 "\ttracer_name = \"cudaspy\";\n\ttrace_version = %d;\n\tpid = %u;\n"
		 "\tprogram = \"app\";\n\tboot_id = \"%s\";\n\tclock_source = "
		 "\"monotonic\";\n%s",
		 SPY_TRACE_VERSION, pid, boot, more);
	tw_write_metadata(&trace, &(struct tw_metadata){.frequency = SECOND,
							.offset_s = epoch_ns / SECOND,
							.offset = epoch_ns % SECOND,
							.env = env});
}

static void begin_trace(void)
{
	dir = scratch_make();
	open_trace((uint32_t)getpid(), "");
	now = monotonic_ns();
}

static struct spy_slot_page *thread(unsigned int slot)
{
	struct spy_slot_page *page = tw_page(&trace, slot - 1);

	page->tid = TID + slot;
	page->device = SPY_DEVICE_NONE;
	return page;
}

/* In a call for so long. */
static struct spy_slot_page *in_call(unsigned int slot, uint16_t fn, uint64_t ns)
{
	struct spy_slot_page *page = thread(slot);

	page->fn = page->outer_fn = fn;
	page->depth = 1;
	page->device = 0;
	page->since = now - ns;
	return page;
}

/* In a call, for a lock that the thread of another slot has. */
static void waits(unsigned int slot, uint64_t lock, unsigned int holder, uint64_t ns)
{
	struct spy_slot_page *page = in_call(slot, SPY_FN_cudaMalloc, ns + 1000);

	page->wait_kind = SPY_WAIT_MUTEX + 1;
	page->wait_object = lock;
	page->wait_holder = holder ? TID + holder : 0;
	page->wait_since = now - ns;
}

/* Between two calls, likewise. */
static struct spy_slot_page *waits_outside(unsigned int slot, uint64_t lock, unsigned int holder,
					   uint64_t ns)
{
	struct spy_slot_page *page = thread(slot);

	page->since = now - ns - 1000;
	page->outside_kind = SPY_WAIT_MUTEX + 1;
	page->outside_object = lock;
	page->outside_holder = TID + holder;
	page->outside_since = now - ns;
	page->outside_calls = (uint16_t)page->calls;
	return page;
}

static void write_at(const char *name, const void *bytes, size_t size, long offset)
{
	char path[1200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "r+");
	assert_non_null(file);
	assert_int_equal(fseek(file, offset, SEEK_SET), 0);
	assert_int_equal(fwrite(bytes, size, 1, file), 1);
	assert_int_equal(fclose(file), 0);
}

static struct live_options options = {.recorded = &list, .whole_bytes = 1 << 20};

/* The first look. */
static void look(void)
{
	const char *dirs[] = {dir};
	char path[1200];
	struct stat st;

	tw_close(&trace);
	snprintf(path, sizeof(path), "%s/.board", dir);
	assert_int_equal(stat(path, &st), 0);
	recorded = (struct recorded){
		.pid = getpid(), .inner_pid = getpid(), .dir = dir, .board_inode = st.st_ino};
	list = (struct recorded_list){.all = &recorded, .n = 1};
	assert_int_equal(live_begin(&live, dirs, 1, &options), 0);
}

static void look_twice(void)
{
	look();
	live_end(&live, &options);
}

static struct live_thread *of(unsigned int slot)
{
	size_t i;

	for (i = 0; i < live.n_threads; i++)
		if (live.threads[i]->tid == TID + slot)
			return live.threads[i];
	fail();
	return NULL;
}

static void end(void)
{
	live_release(&live);
	scratch_remove(dir);
}

/* The first verdict is of that kind, and has that text in it, but not the other one. */
static void expect_verdict_without(enum verdict_kind kind, const char *text, const char *never)
{
	struct arena texts = {0};
	struct live_words words;
	struct verdicts verdicts;

	live_words_init(&words, &live, &texts);
	verdicts_find(&verdicts, &words, SECOND);
	if (verdicts.all[0].kind != kind || !strstr(verdicts.all[0].text, text) ||
	    (never && strstr(verdicts.all[0].text, never)))
		fail_msg("%s: %s: not '%s' without '%s'", verdict_name(verdicts.all[0].kind),
			 verdicts.all[0].text, text, never ?: "");
	verdicts_release(&verdicts);
	live_words_release(&words);
	arena_release(&texts);
}

static void expect_verdict(enum verdict_kind kind, const char *text)
{
	expect_verdict_without(kind, text, NULL);
}

static void test_chain(void **state)
{
	(void)state;
	begin_trace();
	waits(1, 0x1000, 2, 5 * SECOND);
	waits_outside(2, 0x2000, 3, 6 * SECOND);
	in_call(3, SPY_FN_cudaStreamSynchronize, 9 * SECOND);
	waits(4, 0x2000, 3, 4 * SECOND);
	thread(5);
	look_twice();
	assert_int_equal(live.n_threads, 5);
	assert_ptr_equal(of(1)->holder, of(2));
	assert_ptr_equal(of(1)->root, of(3));
	assert_ptr_equal(of(2)->root, of(3));
	assert_ptr_equal(of(3)->root, of(3));
	assert_ptr_equal(of(5)->root, of(5));
	assert_int_equal(of(3)->waiters, 3);
	assert_int_equal(of(1)->doing, LIVE_LOCK);
	assert_int_equal(of(2)->doing, LIVE_LOCK);
	assert_int_equal(of(3)->doing, LIVE_GPU);
	assert_int_equal(of(5)->doing, LIVE_BETWEEN);
	assert_true(of(2)->outside && !of(2)->in_call);
	assert_in_range(of(1)->wait_ns, 5 * SECOND, 60 * SECOND);
	assert_int_equal(live.n_cycles, 0);
	expect_verdict(VERDICT_GPU, "in cudaStreamSynchronize");
	end();
}

static void test_cycle(void **state)
{
	(void)state;
	begin_trace();
	waits(1, 0x1000, 2, 5 * SECOND);
	waits_outside(2, 0x2000, 3, 4 * SECOND);
	waits(3, 0x3000, 1, 3 * SECOND);
	waits(4, 0x1000, 2, 2 * SECOND); /* behind them */
	waits(5, 0x4000, 4, 2 * SECOND);
	waits(6, 0x5000, 6, 2 * SECOND); /* for a lock that it has itself */
	look_twice();
	assert_int_equal(live.n_cycles, 2);
	assert_true(of(1)->cycle && of(1)->cycle == of(2)->cycle && of(2)->cycle == of(3)->cycle);
	assert_int_equal(of(4)->cycle, 0);
	assert_ptr_equal(of(5)->root, of(2));
	assert_int_equal(of(2)->waiters, 2);
	assert_true(of(6)->cycle && of(6)->cycle != of(1)->cycle);
	expect_verdict(VERDICT_DEADLOCK, "DEADLOCK: thread 4190001");
	expect_verdict(VERDICT_DEADLOCK, "2 threads behind them");
	end();
}

/* Records say that a lock was given back, or that another thread has it now. */
static void test_changed_hands(void **state)
{
	struct spy_rec_taken taken = {
		.time = now, .event = SPY_EV_TAKEN, .kind = SPY_WAIT_MUTEX, .object = 0x1000};
	struct spy_rec_held held = {.event = SPY_EV_HELD, .kind = SPY_WAIT_MUTEX, .object = 0x2000};

	(void)state;
	begin_trace();
	waits(1, 0x1000, 2, 3 * SECOND);
	waits(2, 0x2000, 1, 3 * SECOND);
	thread(3);
	taken.time = now - SECOND;
	held.time = now - SECOND;
	tw_stream(&trace, 2)->tid = TID + 3;
	tw_record(&trace, 2, &taken, sizeof(taken)); /* what looks like a cycle is none */
	tw_stream(&trace, 0)->tid = TID + 1;
	tw_record(&trace, 0, &held, sizeof(held));
	look_twice();
	assert_int_equal(live.n_cycles, 0);
	assert_ptr_equal(of(1)->holder, of(3));
	assert_null(of(2)->holder);
	end();

	/* It had the lock itself meanwhile, in one of the waits of a row, and waits for it again. */
	begin_trace();
	waits(1, 0x1000, 2, 3 * SECOND);
	thread(2);
	tw_stream(&trace, 0)->tid = TID + 1;
	tw_record(&trace, 0, &taken, sizeof(taken));
	look_twice();
	assert_int_equal(live.n_cycles, 0);
	assert_ptr_equal(of(1)->holder, of(2));
	end();
}

/* Left by longjmp: the thread has made calls since. */
static void test_left(void **state)
{
	struct spy_slot_page *page;

	(void)state;
	begin_trace();
	page = waits_outside(1, 0x1000, 2, 3 * SECOND);
	page->calls = 7;
	page = waits_outside(2, 0x1000, 1, 3 * SECOND);
	page->since = now; /* of one that was only counted */
	page = waits_outside(3, 0x1000, 1, 3 * SECOND);
	page->depth = 1;
	look_twice();
	assert_false(of(1)->waits || of(2)->waits || of(3)->waits);
	assert_int_equal(live.n_cycles, 0);
	end();
}

/* Between the two looks both threads went on, and wait again: that is no deadlock yet. */
static void test_goes_on(void **state)
{
	struct spy_slot_page page;

	(void)state;
	begin_trace();
	waits(1, 0x1000, 2, 3 * SECOND);
	waits(2, 0x2000, 1, 3 * SECOND);
	waits_outside(3, 0x1000, 2, 3 * SECOND);
	page = *tw_page(&trace, 0);
	look();
	page.wait_since += SECOND; /* in the same call another wait */
	write_at(".board", &page, sizeof(page), SPY_BOARD_PAGE);
	live_end(&live, &options);
	assert_int_equal(of(1)->doing, LIVE_CALL);
	assert_null(of(1)->holder);
	assert_int_equal(of(2)->doing, LIVE_LOCK);
	assert_int_equal(live.n_cycles, 0);
	end();

	begin_trace();
	waits(1, 0x1000, 2, 3 * SECOND);
	page = *tw_page(&trace, 0);
	look();
	page.since += SECOND; /* another call */
	write_at(".board", &page, sizeof(page), SPY_BOARD_PAGE);
	live_end(&live, &options);
	assert_int_equal(of(1)->doing, LIVE_GOES_ON);
	end();
}

/* A holder that is in no slot, and not a thread of this process either. */
static void test_gone(void **state)
{
	(void)state;
	begin_trace();
	waits(1, 0x1000, 7, 3 * SECOND);
	look_twice();
	assert_int_equal(live.n_threads, 2);
	assert_int_equal(of(7)->doing, LIVE_GONE);
	expect_verdict(VERDICT_WAIT, "is not there any more");
	end();
}

static void test_fine(void **state)
{
	(void)state;
	begin_trace();
	in_call(1, SPY_FN_cudaStreamSynchronize, SECOND / 10);
	waits(2, 0x1000, 1, SECOND / 10);
	look_twice();
	expect_verdict(VERDICT_FINE, "nothing hangs");
	end();
}

/* Of calls between the two looks, whatever time there was. */
static void test_rate(void **state)
{
	struct spy_slot_page page;
	struct arena texts = {0};

	(void)state;
	begin_trace();
	page = *thread(1);
	page.calls = 7000;
	look();
	write_at(".board", &page, sizeof(page), SPY_BOARD_PAGE);
	live_end(&live, &options);
	assert_int_equal(live.processes[0].calls, 7000);
	expect_verdict(VERDICT_FINE,
		       text_count(&texts, 7000 * SECOND / live.processes[0].apart_ns, "call"));
	arena_release(&texts);
	end();
}

/* ---- ranks ----------------------------------------------------------------------------------- */

#define RANKS 3

static char *parent;
static struct recorded all_recorded[RANKS];

/* A rank's trace, in a folder of its own; its thread waits for its GPU. */
static void begin_rank(uint32_t rank)
{
	struct spy_rec_nccl_comm comm = {.head = {now - 9 * SECOND, SPY_EV_NCCL_COMM},
					 .comm = 1,
					 .hash = 0xabc,
					 .rank = rank,
					 .ranks = RANKS,
					 .tid = TID + 2};
	char more[32];

	dir = NULL;
	assert_true(asprintf(&dir, "%s/app.rank%u-%u.cudaspy", parent, rank, 100 + rank) > 0);
	snprintf(more, sizeof(more), "\trank = %u;\n", rank);
	open_trace(100 + rank, more);
	tw_stream(&trace, 0)->tid = 100 + rank;
	tw_record(&trace, 0, &comm, sizeof(comm));
	in_call(2, SPY_FN_cudaStreamSynchronize, 4 * SECOND);
	tw_stream(&trace, 1)->tid = TID + 2;
}

static uint32_t submitted; /* the last operation's number */

static void submit(uint8_t func, uint64_t seq, uint64_t ago_ns, bool ran)
{
	struct spy_rec_collective op = {.time = now - ago_ns,
					.event = SPY_EV_COLLECTIVE,
					.func = func,
					.flags = SPY_COLLECTIVE_RUN_FOLLOWS,
					.comm = 1,
					.seq = seq,
					.id = ++submitted};
	struct spy_rec_collective_ran end = {.time = now - ago_ns + 1000,
					     .event = SPY_EV_COLLECTIVE_RAN,
					     .comm = 1,
					     .id = submitted};

	tw_record(&trace, 1, &op, sizeof(op));
	if (ran)
		tw_record(&trace, 1, &end, sizeof(end));
}

static void end_rank(uint32_t rank)
{
	char path[1200];
	struct stat st;

	tw_close(&trace);
	snprintf(path, sizeof(path), "%s/.board", dir);
	assert_int_equal(stat(path, &st), 0);
	all_recorded[rank] = (struct recorded){.pid = (pid_t)(100 + rank),
					       .inner_pid = (pid_t)(100 + rank),
					       .dir = dir,
					       .board_inode = st.st_ino};
}

static void look_at_ranks(void)
{
	const char *dirs[] = {parent};

	list = (struct recorded_list){.all = all_recorded, .n = RANKS};
	assert_int_equal(live_begin(&live, dirs, 1, &options), 0);
	live_end(&live, &options);
	assert_int_equal(live.n_processes, RANKS);
}

static void end_ranks(void)
{
	uint32_t rank;

	live_release(&live);
	for (rank = 0; rank < RANKS; rank++)
		free(all_recorded[rank].dir);
	scratch_remove(parent);
}

/* What the ranks have submitted last: a row for each rank of each case. */
/* clang-format off */
static const struct rank_case {
	struct {
		uint8_t func;
		uint64_t seq, ago_s;
		bool ran;
	} last[RANKS];
	enum verdict_kind kind;
	const char *text;
} rank_cases[] = {
	{{{SPY_NCCL_ALL_REDUCE, 7, 4, false}, {SPY_NCCL_ALL_REDUCE, 6, 5, true}, {SPY_NCCL_ALL_REDUCE, 7, 3, false}},
	 VERDICT_COLLECTIVE, "rank 1 has not entered ncclAllReduce #7, which ranks 0 and 2 have been in for 4"},
	{{{SPY_NCCL_ALL_REDUCE, 7, 4, false}, {SPY_NCCL_BROADCAST, 3, 4, false}, {SPY_NCCL_ALL_REDUCE, 7, 3, false}},
	 VERDICT_COLLECTIVE, "rank 1 is in ncclBroadcast #3 instead, for 4"},
	{{{SPY_NCCL_ALL_REDUCE, 7, 4, false}, {SPY_NCCL_ALL_REDUCE, 7, 4, false}, {SPY_NCCL_ALL_REDUCE, 7, 3, false}},
	 VERDICT_COLLECTIVE, "ncclAllReduce #7 has been open for 4"},
	{{{SPY_NCCL_ALL_REDUCE, 7, 4, true}, {SPY_NCCL_ALL_REDUCE, 7, 4, true}, {SPY_NCCL_ALL_REDUCE, 7, 3, true}},
	 VERDICT_GPU, "in cudaStreamSynchronize for 4"},
	{{{SPY_NCCL_SEND, 0, 4, false}, {SPY_NCCL_ALL_REDUCE, 6, 5, true}, {SPY_NCCL_RECV, 0, 3, false}},
	 VERDICT_GPU, "in cudaStreamSynchronize for 4"},
};
/* clang-format on */

static void test_ranks(void **state)
{
	size_t i;
	uint32_t rank;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rank_cases); i++) {
		now = monotonic_ns();
		parent = scratch_make();
		for (rank = 0; rank < RANKS; rank++) {
			begin_rank(rank);
			submit(SPY_NCCL_ALL_REDUCE, 6, 6 * SECOND, true);
			submit(SPY_NCCL_BROADCAST, 2, 6 * SECOND, true);
			submit(rank_cases[i].last[rank].func, rank_cases[i].last[rank].seq,
			       rank_cases[i].last[rank].ago_s * SECOND,
			       rank_cases[i].last[rank].ran);
			end_rank(rank);
		}
		look_at_ranks();
		expect_verdict(rank_cases[i].kind, rank_cases[i].text);
		end_ranks();
	}
}

/* What a rank's thread has done, in its order, 100 ms apart, from 5 s ago on:
 *   K, k   a kernel in its stream; in another one      S  the stream was waited for
 *   L      a function looked up, which may load code   e  the stream waits for the other one's event
 *   7, 8   that all-reduce, launched in its stream     3  that broadcast
 *   +      the last operation of these ran             w  recording stopped for a moment */
static uint64_t story_ns;

static void story_call(uint16_t event, uint16_t fn, uint64_t stream, uint64_t object)
{
	struct spy_rec_head head = {
		.time = story_ns - 1000, .event = event, .fn = fn, .duration = 1000};
	struct spy_rec_launch launch = {.head = head, .kernel_lo = 1, .stream = stream};
	struct spy_rec_op op = {.head = head, .stream = stream, .object = object};

	if (event == SPY_EV_LAUNCH)
		tw_record(&trace, 1, &launch, sizeof(launch));
	else
		tw_record(&trace, 1, &op, sizeof(op));
}

static void story_window(uint16_t state, uint64_t ns)
{
	struct spy_rec_window window = {
		.head = {.time = ns, .event = SPY_EV_WINDOW}, .state = state, .number = 1};

	tw_record(&trace, 0, &window, sizeof(window));
}

static void story_step(char step)
{
	switch (step) {
	case 'K':
	case 'k':
		story_call(SPY_EV_LAUNCH, SPY_FN_cudaLaunchKernel, step == 'K' ? 1 : 2, 0);
		break;
	case 'S':
		story_call(SPY_EV_OP, SPY_FN_cudaStreamSynchronize, 1, 0);
		break;
	case 'L':
		story_call(SPY_EV_OP, SPY_FN_cuKernelGetFunction, 0, 0);
		break;
	case 'e':
		story_call(SPY_EV_OP, SPY_FN_cudaEventRecord, 2, 99);
		story_ns += 2000;
		story_call(SPY_EV_OP, SPY_FN_cudaStreamWaitEvent, 1, 99);
		break;
	case 'x': /* work of which nothing is recorded */
	case 'y':
	case 'z':
		submit(SPY_NCCL_ALL_REDUCE, (uint64_t)(step - 'x') + 7, now - story_ns, false);
		break;
	case 'w':
		story_window(SPY_WINDOW_COUNTING, story_ns);
		story_window(SPY_WINDOW_RECORDING, story_ns + 1000);
		break;
	default:
		story_call(SPY_EV_LAUNCH, SPY_FN_cudaLaunchKernel, 1, 0);
		submit(step == '3' ? SPY_NCCL_BROADCAST : SPY_NCCL_ALL_REDUCE,
		       (uint64_t)(step - '0'), now - story_ns, false);
		break;
	}
	story_ns += SECOND / 10;
}

static void tell_story(const char *story)
{
	static const char *const name = "never_ends";
	struct spy_rec_kernel kernel = {.head = {.time = now - 8 * SECOND, .event = SPY_EV_KERNEL},
					.kernel = 1};

	tw_record_text(&trace, 1, &kernel, sizeof(kernel), 1, &name);
	for (story_ns = now - 5 * SECOND; *story; story++) {
		if (story[1] == '+') {
			struct spy_rec_collective_ran ran = {.event = SPY_EV_COLLECTIVE_RAN,
							     .comm = 1};

			story_step(*story++);
			ran.time = story_ns - 1000;
			ran.id = submitted;
			tw_record(&trace, 1, &ran, sizeof(ran));
		} else {
			story_step(*story);
		}
	}
}

#define FRONT "in the stream of rank 1 it is queued behind kernel never_ends, launched"

/* clang-format off */
static const struct story_case {
	const char *ranks[RANKS];
	const char *text, *never; /* NULL: nothing that must not be said */
	enum verdict_kind kind;
} story_cases[] = {
	/* work in front of the operation, in its own stream, and in one that that waits for; which may not have ended though
	 * a look-up could have waited for it */
	{{"7", "K7", "7"}, "ranks 0, 1 and 2 have submitted it", "moves the data", VERDICT_COLLECTIVE},
	{{"7", "K7", "7"}, FRONT, "stream of rank 0", VERDICT_COLLECTIVE},
	{{"7", "KL7", "7"}, FRONT, NULL, VERDICT_COLLECTIVE},
	{{"7", "ke7", "7"}, FRONT, NULL, VERDICT_COLLECTIVE},
	{{"7", "keS7", "7"}, "although all ranks are in it: it moves no data", "behind kernel", VERDICT_COLLECTIVE},
	{{"7", "KS7", "7"}, "although all ranks are in it: it moves no data", "behind kernel", VERDICT_COLLECTIVE},
	{{"7", "K6+7", "7"}, "although all ranks are in it: it moves no data", "behind kernel", VERDICT_COLLECTIVE},
	{{"K7", "K7", "K6"}, "rank 2 has not entered ncclAllReduce #7, which ranks 0 and 1 submitted 4.", "been in for", VERDICT_COLLECTIVE},
	/* another order: both have submitted both */
	{{"73", "37", "73"}, "rank 1 is in ncclBroadcast #3 instead, for", NULL, VERDICT_COLLECTIVE},
	{{"73", "37", "73"}, "rank 1 has not entered ncclAllReduce #7, which ranks 0 and 2 have been in for", "further", VERDICT_COLLECTIVE},
	{{"73", "37", "73"}, ", and has submitted ncclAllReduce #7 behind it: the ranks do not make the same operations in the same order", NULL, VERDICT_COLLECTIVE},
	{{"7+8", "78", "7+8"}, "rank 1 has not entered ncclAllReduce #8", "same order", VERDICT_COLLECTIVE},
	{{"7+8", "78", "7+8"}, "rank 1 is still in ncclAllReduce #7", NULL, VERDICT_COLLECTIVE},
	/* the first that a rank lacks, and not the last */
	{{"7893", "6+", "7893"}, "rank 1 has not entered ncclAllReduce #7, which", "#9", VERDICT_COLLECTIVE},
	{{"7893", "6+", "78"}, "Rank 0 has submitted 3 further operations behind it", NULL, VERDICT_COLLECTIVE},
	/* what was not recorded is unknown */
	{{"7", "6+w", "7"}, "rank 1 is not known to have entered ncclAllReduce #7", "has not entered", VERDICT_COLLECTIVE},
	{{"7", "w6+", "7"}, "rank 1 has not entered ncclAllReduce #7", "not known", VERDICT_COLLECTIVE},
	/* all have ended */
	{{"7+8", "78+9", "7+8+9"}, "rank 0 is still in ncclAllReduce #8", "#7", VERDICT_COLLECTIVE},
	{{"x+y", "xy+z", "x+y+z"}, "rank 0 has not entered ncclAllReduce #9", "#7", VERDICT_COLLECTIVE},
	{{"7+", "K7+", "7+"}, "in cudaStreamSynchronize for", "nccl", VERDICT_GPU},
};
/* clang-format on */

static void test_stories(void **state)
{
	size_t i;
	uint32_t rank;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(story_cases); i++) {
		const struct story_case *c = &story_cases[i];

		now = monotonic_ns();
		parent = scratch_make();
		for (rank = 0; rank < RANKS; rank++) {
			begin_rank(rank);
			tell_story(c->ranks[rank]);
			end_rank(rank);
		}
		look_at_ranks();
		expect_verdict_without(c->kind, c->text, c->never);
		end_ranks();
	}
}

/* The main thread of that rank, not the one that submits, keeps it: it reads from a descriptor; its last recorded stack was
 * in Python. */
static void read_in_python(uint32_t rank)
{
	struct spy_slot_page *submits = waits_outside(2, 0x1000, 0, 4 * SECOND);
	struct spy_slot_page *reads = waits_outside(3, 70, 0, 4 * SECOND);
	struct spy_rec_python_code code = {.head = {now - 8 * SECOND, SPY_EV_PYTHON_CODE},
					   .code = 1};
	struct spy_rec_stack stack = {
		.time = now - 5 * SECOND, .event = SPY_EV_STACK, .count = 1, .frames = {0x30}};
	struct spy_rec_python_stack python = {.time = now - 5 * SECOND,
					      .event = SPY_EV_PYTHON_STACK,
					      .count = 2,
					      .codes = {1, 1},
					      .lines = {128, 9}};

	submits->fn = submits->outer_fn = 0;
	submits->depth = 0;
	submits->outside_kind = SPY_WAIT_CONDITION + 1;
	submits->outside_holder = reads->outside_holder = 0;
	reads->tid = 100 + rank;
	reads->outside_kind = SPY_WAIT_TRANSFER + 1;
	tw_stream(&trace, 2)->tid = 100 + rank;
	tw_record_text(&trace, 2, &code, sizeof(code), 3,
		       (const char *[]){"/home/user/train.py", "step", ""});
	tw_record(&trace, 2, &stack, sizeof(stack));
	tw_record(&trace, 2, &python, sizeof(python));
}

static void test_missing_rank(void **state)
{
	uint32_t rank;

	(void)state;
	now = monotonic_ns();
	parent = scratch_make();
	for (rank = 0; rank < RANKS; rank++) {
		begin_rank(rank);
		submit(SPY_NCCL_ALL_REDUCE, 6, 6 * SECOND, true);
		if (rank == 1)
			read_in_python(rank);
		else
			submit(SPY_NCCL_ALL_REDUCE, 7, 4 * SECOND, false);
		end_rank(rank);
	}
	look_at_ranks();
	expect_verdict(VERDICT_COLLECTIVE,
		       " and waits for a read or write of descriptor 70. The last recorded Python "
		       "line of thread 101: train.py:128, at t = 4.000 s.");
	end_ranks();
}

static void check_links(void)
{
	size_t i;

	for (i = 0; i < live.n_threads; i++) {
		const struct live_thread *t = live.threads[i];

		assert_non_null(t->root);
		assert_true(!t->cycle || t->root == t);
		assert_true(t->cycle <= live.n_cycles);
		if (t->holder && !t->cycle)
			assert_ptr_equal(t->root, t->holder->cycle ? t->holder : t->holder->root);
	}
}

/* Whatever a board says, the picture is made, and has no loose ends. */
static void test_any_bytes(void **state)
{
	unsigned int seed, slot, n;
	size_t i;

	(void)state;
	for (seed = 1; seed <= 60; seed++) {
		struct report report;
		struct live_words words;
		struct verdicts verdicts;

		srand(seed);
		begin_trace();
		n = 1 + (unsigned int)rand() % 12;
		for (slot = 1; slot <= n; slot++) {
			struct spy_slot_page *page = thread(slot);

			if (rand() % 3)
				waits(slot, (uint64_t)(rand() % 4) * 4096,
				      (unsigned int)rand() % (n + 2),
				      SECOND * (uint64_t)(rand() % 5));
			else
				for (i = 0; i < offsetof(struct spy_slot_page, counts); i++)
					((uint8_t *)page)[i] = (uint8_t)rand();
			if (seed % 2)
				page->tid = TID + slot;
		}
		look_twice();
		check_links();
		report_init(&report, "test");
		live_words_init(&words, &live, &report.arena);
		verdicts_find(&verdicts, &words, SECOND);
		assert_true(verdicts.n);
		live_add_verdicts(&report, &verdicts);
		live_add_chains(&report, &words, SECOND);
		live_add_threads(&report, &words, SECOND, true);
		live_add_locks(&report, &words);
		live_add_gpus(&report, &words);
		live_add_processes(&report, &words);
		verdicts_release(&verdicts);
		live_words_release(&words);
		report_release(&report);
		end();
	}
}

/* A chain through all slots there can be takes no time to speak of. */
static void test_long_chain(void **state)
{
	unsigned int slot, n = 4000;

	(void)state;
	begin_trace();
	for (slot = 1; slot < n; slot++)
		waits(slot, slot * 64, slot + 1, 3 * SECOND);
	in_call(n, SPY_FN_cudaDeviceSynchronize, 3 * SECOND);
	look_twice();
	assert_ptr_equal(of(1)->root, of(n));
	assert_int_equal(of(n)->waiters, n - 1);
	check_links();
	expect_verdict(VERDICT_GPU, "cudaDeviceSynchronize");
	end();
}

/* ---- in words ------------------------------------------------------------------------------- */

/* All tables as text of so many columns; the caller frees. name_columns: as in struct live_words. */
static char *as_text(unsigned int width, size_t name_columns)
{
	struct live_words words;
	struct report report;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	report_init(&report, "test");
	report.view = (struct view){.width = width, .always_brief = true};
	live_words_init(&words, &live, &report.arena);
	words.name_columns = name_columns;
	live_add_chains(&report, &words, SECOND);
	live_add_threads(&report, &words, SECOND, true);
	live_add_gpus(&report, &words);
	assert_int_equal(render_text(&report, out), 0);
	assert_int_equal(fclose(out), 0);
	live_words_release(&words);
	report_release(&report);
	return text;
}

static void expect_in(const char *text, const char *wanted)
{
	if (!strstr(text, wanted))
		fail_msg("no '%s' in: %s", wanted, text ? text : "nothing");
}

/* The first line below the GPUs' rows and all that follow it. */
static size_t lines_of(const char *text, const char *from)
{
	const char *at = strstr(text, from);
	size_t n = 0;

	assert_non_null(at);
	for (; *at; at++)
		n += *at == '\n';
	return n;
}

/* A kernel as PyTorch's are: people see its function, data all of its name. */
static void test_names(void **state)
{
#define LONG \
	"at::(anonymous namespace)::Metadata<2, at::(anonymous namespace)::Functor<float, 2>, " \
	"float>"
	static const char *const name =
		"void at::native::(anonymous namespace)::apply_to_many<" LONG ", " LONG ", " LONG
		">(" LONG ", " LONG ", " LONG ")";
	struct spy_rec_kernel kernel = {.head = {.time = now, .event = SPY_EV_KERNEL}, .kernel = 1};
	struct spy_rec_launch launch = {
		.head = {.event = SPY_EV_LAUNCH, .fn = SPY_FN_cudaLaunchKernel},
		.kernel_lo = 1,
		.stream = 1};
	unsigned int width;
	char *text;

	(void)state;
	begin_trace();
	in_call(1, SPY_FN_cudaStreamSynchronize, 3 * SECOND);
	tw_stream(&trace, 0)->tid = TID + 1;
	kernel.head.time = now - 5 * SECOND;
	launch.head.time = now - 4 * SECOND;
	tw_record_text(&trace, 0, &kernel, sizeof(kernel), 1, &name);
	tw_record(&trace, 0, &launch, sizeof(launch));
	look_twice();
	for (width = 80; width <= 120; width += 40) {
		text = as_text(width, LIVE_NAME_COLUMNS);
		expect_in(text, "apply_to_many<..>(..)");
		assert_null(strstr(text, "Metadata"));
		assert_in_range(lines_of(text, "last: kernel void"), 1, 3);
		free(text);
	}
	assert_int_equal(live_name_columns(0), LIVE_NAME_COLUMNS);
	assert_int_equal(live_name_columns(80), LIVE_NAME_COLUMNS);
	assert_int_equal(live_name_columns(400), 200);
	text = as_text(2000, live_name_columns(2000)); /* what is not needed is not cut */
	expect_in(text, name);
	free(text);
	text = as_text(2000, 0);
	expect_in(text, name);
	free(text);
	end();
}

/* Threads that go on are one line, with no more than some of their names. */
static void test_active(void **state)
{
	struct spy_slot_page pages[7];
	unsigned int slot;
	char *text;

	(void)state;
	begin_trace();
	for (slot = 1; slot <= 7; slot++)
		pages[slot - 1] = *in_call(slot, SPY_FN_cudaEventQuery, SECOND);
	look();
	for (slot = 2; slot <= 7; slot++) {
		pages[slot - 1].since += SECOND / 2; /* another call */
		write_at(".board", &pages[slot - 1], sizeof(pages[0]), (long)slot * SPY_BOARD_PAGE);
	}
	live_end(&live, &options);
	text = as_text(200, LIVE_NAME_COLUMNS);
	expect_in(text, "cudaEventQuery for ");
	expect_in(text, "  and 6 more, making calls: 4190002, 4190003, 4190004, 4190005, "
			"... (--format=json has all)\n");
	assert_null(strstr(text, "4190006"));
	free(text);
	end();
}

/* A thread that asks for event 99, over and over for 5 s, which was recorded so long ago behind a kernel. */
static void asking(uint64_t recorded_ns, bool goes_on)
{
	struct spy_slot_page *page, after;

	begin_trace();
	page = thread(1);
	page->device = 0;
	page->outside_kind = SPY_WAIT_QUERY + 1;
	page->outside_object = 99;
	page->outside_since = now - 5 * SECOND;
	tw_stream(&trace, 0)->tid = TID + 1;
	tw_stream(&trace, 1)->tid = TID + 1;
	story_ns = now - recorded_ns;
	story_call(SPY_EV_LAUNCH, SPY_FN_cudaLaunchKernel, 2, 0);
	story_ns += 2000;
	story_call(SPY_EV_OP, SPY_FN_cudaEventRecord, 2, 99);
	after = *page;
	look();
	after.counts[3] += goes_on;
	after.depth = goes_on; /* in such a question just now */
	after.fn = after.outer_fn = SPY_FN_cudaEventQuery;
	write_at(".board", &after, sizeof(after), SPY_BOARD_PAGE);
	live_end(&live, &options);
}

/* That is a wait for the GPU; but not if the event was recorded again since, or nobody asks any more. */
static void test_asks(void **state)
{
	(void)state;
	asking(6 * SECOND, true);
	assert_int_equal(of(1)->doing, LIVE_GPU);
	expect_verdict(VERDICT_GPU, "asking over and over whether its work has ended for 5.0");
	expect_verdict(VERDICT_GPU, "work handed over in cudaLaunchKernel 6.0");
	end();
	asking(SECOND / 10, true);
	assert_int_equal(of(1)->doing, LIVE_GPU);
	expect_verdict(VERDICT_FINE, "nothing hangs");
	end();
	asking(6 * SECOND, false);
	assert_int_equal(of(1)->doing, LIVE_BETWEEN);
	expect_verdict(VERDICT_FINE, "nothing hangs");
	end();
}

/* What a process's threads wait for between two calls, of slots 1, 2 and 3, and which of them says why it does not go on.
 * Slot 1 is the main thread, slot 2 called NCCL last, slot 3 has made the most calls. */
static const struct matter {
	uint8_t waits_for[3]; /* enum spy_wait_kind; IN_CALL: in a call instead */
	unsigned int matters;
} matters[] = {
#define IN_CALL 255
	{{SPY_WAIT_TRANSFER, SPY_WAIT_CONDITION, SPY_WAIT_CONDITION}, 1},
	{{SPY_WAIT_POLL, SPY_WAIT_CONDITION, SPY_WAIT_POLL}, 1},
	{{SPY_WAIT_SLEEP, SPY_WAIT_FUTEX, SPY_WAIT_TRANSFER}, 1},
	{{SPY_WAIT_CONDITION, SPY_WAIT_CONDITION, SPY_WAIT_CONDITION}, 1},
	{{SPY_WAIT_CONDITION, SPY_WAIT_CONDITION, SPY_WAIT_POLL}, 1}, /* a helper always polls */
	{{SPY_WAIT_CONDITION, SPY_WAIT_POLL, SPY_WAIT_CONDITION}, 2},
	{{SPY_WAIT_CONDITION, SPY_WAIT_CONDITION, SPY_WAIT_TRANSFER}, 3},
	{{SPY_WAIT_JOIN, SPY_WAIT_TRANSFER, SPY_WAIT_TRANSFER}, 3},
	{{SPY_WAIT_MUTEX, SPY_WAIT_SEMAPHORE, SPY_WAIT_FUTEX}, 1}, /* nobody is known to hold it */
	{{SPY_WAIT_MUTEX, SPY_WAIT_TRANSFER, SPY_WAIT_FUTEX}, 2},
	{{SPY_WAIT_TRANSFER, SPY_WAIT_CONDITION, IN_CALL}, 3},
	{{IN_CALL, SPY_WAIT_TRANSFER, IN_CALL}, 1},
};

static void test_matters(void **state)
{
	unsigned int slot;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(matters); i++) {
		const struct live_thread *t;
		uint32_t expected =
			matters[i].matters == 1 ? (uint32_t)getpid() : TID + matters[i].matters;

		begin_trace();
		for (slot = 1; slot <= 3; slot++) {
			uint8_t kind = matters[i].waits_for[slot - 1];
			struct spy_slot_page *page =
				kind == IN_CALL
					? in_call(slot, SPY_FN_cudaMalloc, SECOND)
					: waits_outside(slot, slot * 0x1000, 0, slot * SECOND);

			page->outside_kind = kind == IN_CALL ? 0 : kind + 1;
			page->outside_holder = 0;
			page->calls = slot * 10;
			page->outside_calls = (uint16_t)page->calls;
			if (slot == 1)
				page->tid = (uint32_t)getpid();
		}
		look_twice();
		t = live_decisive_thread(&live.processes[0], TID + 2);
		if (!t || t->tid != expected)
			fail_msg("row %zu: thread %u", i, t ? t->tid : 0);
		end();
	}
}

/* ---- what samples cost ----------------------------------------------------------------------- */

static uint64_t cost_of(uint32_t fn, uint32_t kind, uint64_t object, uint32_t holder)
{
	uint64_t ns = 0;

	for (const struct live_cost *cost = live.costs; cost; cost = cost->hh.next)
		if (cost->key.fn == fn && cost->key.kind == kind && cost->key.object == object &&
		    cost->key.holder == holder)
			ns += cost->ns;
	return ns;
}

/* Waits that began before the first look cost nothing now, unless they are for locks. */
static void test_costs(void **state)
{
	struct spy_slot_page *page, late;

	(void)state;
	begin_trace();
	waits(1, 0x1000, 2, 5 * SECOND);
	in_call(2, SPY_FN_cudaFree, 9 * SECOND);
	waits_outside(3, 0x2000, 2, 3 * SECOND);
	page = waits_outside(4, 0x3000, 0, 3 * SECOND);
	page->outside_kind = SPY_WAIT_CONDITION + 1;
	page = waits_outside(5, 0x4000, 0, 3 * SECOND);
	page->outside_kind = SPY_WAIT_SEMAPHORE + 1;
	late = *page;
	thread(6);
	look();
	late.outside_since = monotonic_ns() + SECOND / 1000;
	write_at(".board", &late, sizeof(late), 5 * SPY_BOARD_PAGE);
	live_sample(&live);
	live_sample(&live);
	assert_int_equal(HASH_COUNT(live.costs), 4);
	assert_true(cost_of(trace_function(&live.set, live.processes[0].trace, SPY_FN_cudaMalloc),
			    SPY_WAIT_MUTEX + 1, 0x1000, TID + 2));
	assert_true(cost_of(trace_function(&live.set, live.processes[0].trace, SPY_FN_cudaFree), 0,
			    0, 0));
	assert_true(cost_of(LIVE_BETWEEN_CALLS, SPY_WAIT_MUTEX + 1, 0x2000, TID + 2));
	assert_true(cost_of(LIVE_BETWEEN_CALLS, SPY_WAIT_SEMAPHORE + 1, 0, 0));
	end();
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* The metrics of what is seen now; the caller frees. */
static char *metrics(void)
{
	struct arena texts = {0};
	struct live_words words;
	struct verdicts verdicts;
	char path[1200], *text;

	snprintf(path, sizeof(path), "%s/metrics", dir);
	live_words_init(&words, &live, &texts);
	verdicts_find(&verdicts, &words, SECOND);
	assert_int_equal(prometheus_write(path, &words, &verdicts), 0);
	verdicts_release(&verdicts);
	live_words_release(&words);
	arena_release(&texts);
	text = scratch_read(path, NULL);
	assert_non_null(text);
	return text;
}

/* The value of the only sample of that name that has those labels in it. */
static double metric(const char *text, const char *name, const char *labels)
{
	char head[80];
	const char *found = NULL;

	snprintf(head, sizeof(head), "\ncudaspy_%s{", name);
	for (const char *at = text; (at = strstr(at, head)); at++) {
		const char *end = strchr(at + 1, '\n'), *has = strstr(at, labels);

		if (!has || has > end)
			continue;
		if (found)
			fail_msg("%s with %s twice", name, labels);
		found = strstr(at, "} ");
	}
	if (!found)
		fail_msg("no %s with %s in:\n%s", name, labels, text);
	return strtod(found + 2, NULL);
}

#define expect_metric(text, name, labels, wanted) \
	assert_float_equal(metric(text, name, labels), wanted, (wanted)*1e-9)

/* What pages of threads count, and how long threads wait: neither the first one nor the last one for longest. */
static void make_counts(void)
{
	static const uint64_t s[] = {0, 3 * SECOND, 90 * SECOND, SECOND};

	in_call(1, SPY_FN_cudaStreamSynchronize, s[1]);
	in_call(2, SPY_FN_cudaStreamSynchronize, s[2]);
	in_call(3, SPY_FN_cudaMalloc, s[3]);
	waits(4, 0x1000, 3, SECOND / 2);
	waits(5, 0x1000, 3, 5 * SECOND);
	waits(6, 0x1000, 3, 2 * SECOND);
	for (unsigned int slot = 1; slot <= 6; slot++) {
		struct spy_slot_page *page = tw_page(&trace, slot - 1);

		page->calls = slot;
		page->pageable = 10 * slot;
		page->lost = 100 * slot;
	}
	trace.board.lost = 1000;
}

static void launches(uint8_t device)
{
	struct spy_rec_launch launch = {.head = {.time = now,
						 .event = SPY_EV_LAUNCH,
						 .fn = SPY_FN_cudaLaunchKernel,
						 .device = device},
					.stream = 0x11 + device};

	tw_stream(&trace, 0)->tid = TID + 1;
	tw_record(&trace, 0, &launch, sizeof(launch));
}

static void test_metrics(void **state)
{
	struct spy_rec_gpu_look look = {.head = {.event = SPY_EV_GPU_LOOK},
					.busy = 40,
					.clock = 990,
					.reasons = 1 | 4 | 8,
					.power = 312600,
					.temperature = 64,
					.others = 2,
					.known = SPY_GPU_LOOK_REASONS | SPY_GPU_LOOK_PROCESSES};
	char *text;

	(void)state;
	begin_trace();
	launches(0);
	launches(1);
	launches(0);
	make_counts();
	look.head.time = now;
	tw_record(&trace, 0, &look, sizeof(look));
	look.device = 1;
	look.busy = 255; /* not supported */
	tw_record(&trace, 0, &look, sizeof(look));
	look_twice();
	text = metrics();
	expect_metric(text, "calls_total", "program=\"app\"", 21);
	expect_metric(text, "pageable_copies_total", "", 210);
	expect_metric(text, "lost_records_total", "", 3100);
	expect_metric(text, "threads", "state=\"gpu\"", 2);
	expect_metric(text, "threads", "state=\"lock\"", 3);
	expect_metric(text, "gpu_waiting_threads", "gpu=\"0\"", 2);
	expect_metric(text, "gpu_outstanding_operations", "gpu=\"0\"", 2);
	assert_in_range(metric(text, "longest_call_seconds", ""), 90, 900);
	assert_in_range(metric(text, "longest_lock_wait_seconds", ""), 5, 80);
	expect_metric(text, "gpu_utilization_ratio", "gpu=\"0\"", 0.4);
	expect_metric(text, "gpu_clock_hertz", "gpu=\"0\"", 990e6);
	expect_metric(text, "gpu_power_watts", "gpu=\"0\"", 312.6);
	expect_metric(text, "gpu_temperature_celsius", "gpu=\"0\"", 64);
	expect_metric(text, "gpu_slowdown_reasons", "gpu=\"0\"", 2); /* idle is none */
	expect_metric(text, "gpu_other_processes", "gpu=\"0\"", 2);
	expect_metric(text, "hangs", "kind=\"gpu\"", 1);
	assert_null(strstr(text, "gpu=\"1\""));
	free(text);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain),         cmocka_unit_test(test_cycle),
		cmocka_unit_test(test_changed_hands), cmocka_unit_test(test_left),
		cmocka_unit_test(test_goes_on),       cmocka_unit_test(test_gone),
		cmocka_unit_test(test_fine),          cmocka_unit_test(test_rate),
		cmocka_unit_test(test_ranks),         cmocka_unit_test(test_stories),
		cmocka_unit_test(test_asks),          cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_long_chain),    cmocka_unit_test(test_matters),
		cmocka_unit_test(test_missing_rank),  cmocka_unit_test(test_names),
		cmocka_unit_test(test_active),        cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
