/*
 * tests/unit/test_analyzer_traces.c: which traces there are in the directories that are named, whose clock they are on,
 * and what of them is lost.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include "scratch.h"
#include "trace_text.h"
#include "trace/losses.h"
#include "trace/parts.h"

/* ---- directories ------------------------------------------------------------------------------ */

/* trace_set_open's answer; the number of traces, of names without any, of traces that cannot be read, and of
 * complaints. */
static int opened(const char *const *dirs, size_t n, size_t *traces, unsigned int *not_found,
		  unsigned int *unreadable, unsigned int *complaints)
{
	unsigned int before = warnings_count();
	struct trace_set set;
	int err = trace_set_open(&set, dirs, n, NULL);

	*traces = set.n_traces;
	*not_found = set.not_found;
	*unreadable = set.unreadable;
	*complaints = warnings_count() - before;
	trace_set_release(&set);
	return err;
}

static void test_directories(void **state)
{
	static const char log[] =
		"trace a.1 pid=1 program=a\nslot 1 tid=7\n10us call cudaSetDevice\n"
		"trace b.2 pid=2 program=b\nslot 1 tid=8\n10us call cudaSetDevice\n";
	char *dir = scratch_make(), empty[300], other[300], file[300], good[300], inner[300],
	     bad[300], path[400];
	unsigned int not_found, unreadable, complaints;
	size_t traces;

	(void)state;
	snprintf(empty, sizeof(empty), "%s/empty", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	snprintf(file, sizeof(file), "%s/other/file", dir);
	snprintf(good, sizeof(good), "%s/good", dir);
	snprintf(inner, sizeof(inner), "%s/good/b.2", dir);
	snprintf(bad, sizeof(bad), "%s/good/c.3", dir);
	assert_int_equal(mkdir(empty, 0777) | mkdir(other, 0777) | mkdir(good, 0777), 0);
	scratch_write(file, "x", 1);
	snprintf(path, sizeof(path), "%s/folder", other);
	assert_int_equal(mkdir(path, 0777), 0);
	snprintf(path, sizeof(path), "%s/log", dir);
	scratch_write(path, log, strlen(log));
	tt_make(path, good);
#define OPENED(...) \
	opened((const char *[]){__VA_ARGS__}, \
	       sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), &traces, &not_found, \
	       &unreadable, &complaints)
#define EXPECT(traces_, not_found_, unreadable_, complaints_) \
	do { \
		assert_int_equal(traces, traces_); \
		assert_int_equal(not_found, not_found_); \
		assert_int_equal(unreadable, unreadable_); \
		assert_int_equal(complaints, complaints_); \
	} while (0)
	assert_int_equal(OPENED(empty), -ENOENT);
	EXPECT(0, 1, 0, 1);
	assert_int_equal(OPENED(other), -ENOENT);
	EXPECT(0, 1, 0, 1);
	assert_int_equal(OPENED(file), -ENOENT);
	EXPECT(0, 1, 0, 1);
	assert_int_equal(OPENED("/nonexistent", empty), -ENOENT);
	EXPECT(0, 2, 0, 2);
	assert_int_equal(OPENED(good), 0);
	EXPECT(2, 0, 0, 0);
	assert_int_equal(OPENED(inner), 0);
	EXPECT(1, 0, 0, 0);
	assert_int_equal(OPENED(empty, inner, good), 0);
	EXPECT(2, 1, 0, 1);
	assert_int_equal(OPENED(dir), 0); /* a folder for each node */
	EXPECT(2, 0, 0, 0);
	/* One that cannot be read: below, and named. */
	assert_int_equal(mkdir(bad, 0777), 0);
	snprintf(path, sizeof(path), "%s/metadata", bad);
	scratch_write(path, "rubbish", 7);
	assert_int_equal(OPENED(good), 0);
	EXPECT(2, 0, 1, 1);
	assert_int_equal(OPENED(bad), -ENOENT);
	EXPECT(0, 0, 1, 1);
	/* A file of that name beside traces is none. */
	snprintf(path, sizeof(path), "%s/metadata", good);
	scratch_write(path, "rubbish", 7);
	snprintf(path, sizeof(path), "%s/metadata", bad);
	assert_int_equal(remove(path) | remove(bad), 0);
	assert_int_equal(OPENED(good), 0);
	assert_int_equal(traces, 2);
	assert_int_equal(unreadable, 0);
	scratch_remove(dir);
}

/* ---- clocks ----------------------------------------------------------------------------------- */

/* One clock for the traces of a boot that count with the same counter: that of the first of them. */
static void test_clocks(void **state)
{
	static const struct {
		const char *boot, *source;
		uint64_t frequency, like; /* like: of which frequency its clock is taken to be */
	} traces[] = {
		{"b1", "tsc", 1000000000, 1000000000}, {"b2", "tsc", 1000300000, 1000300000},
		{"b2", "tsc", 999500000, 1000300000},  {"b1", "tsc", 1000000007, 1000000000},
		{"b2", "raw", 500000000, 500000000},   {"b2", "raw", 500000009, 500000000},
		{NULL, "tsc", 700000000, 700000000},   {"b1", NULL, 800000000, 800000000},
		{NULL, "tsc", 700000009, 700000009},
	};
	char *dir = scratch_make(), path[300], *text = NULL;
	const char *dirs[] = {dir};
	struct trace_set set;
	size_t i, size;
	FILE *log = open_memstream(&text, &size);

	(void)state;
	for (i = 0; i < ARRAY_SIZE(traces); i++) {
		fprintf(log, "trace a.%zu pid=%zu program=a start_realtime_ns=%zu", i, i + 1,
			i + 1);
		if (traces[i].boot)
			fprintf(log, " boot_id=%s", traces[i].boot);
		if (traces[i].source)
			fprintf(log, " clock_source=%s", traces[i].source);
		fprintf(log,
			"\nclock offset_s=5 frequency=%llu\nslot 1 tid=7\n10us call "
			"cudaSetDevice\n",
			(unsigned long long)traces[i].frequency);
	}
	fclose(log);
	snprintf(path, sizeof(path), "%s/log", dir);
	scratch_write(path, text, size);
	free(text);
	tt_make(path, dir);
	assert_int_equal(trace_set_open(&set, dirs, 1, NULL), 0);
	assert_int_equal(set.n_traces, ARRAY_SIZE(traces));
	for (i = 0; i < set.n_traces; i++) {
		uint64_t second = timeline_span_ns(&set.traces[i]->timeline, traces[i].like);

		assert_in_range(second, 999999999, 1000000000);
	}
	trace_set_release(&set);
	scratch_remove(dir);
}

/* ---- losses ----------------------------------------------------------------------------------- */

#define SLOTS 4

/* A trace in memory: slots 0 to 3, each with a stream of ten calls. */
struct losing {
	struct trace trace;
	struct spy_slot_page pages[SLOTS];
	struct stream streams[SLOTS], *all[SLOTS];
};

static struct losing *losing(void)
{
	static struct losing l;
	uint32_t i;

	l = (struct losing){0};
	l.trace.board = (struct board){.present = true, .slots = l.pages, .n_slots = SLOTS};
	l.trace.board.head.slots = SLOTS;
	l.trace.streams = l.all;
	l.trace.n_streams = SLOTS;
	for (i = 0; i < SLOTS; i++) {
		l.all[i] = &l.streams[i];
		l.streams[i].slot = i;
		l.streams[i].reader.records = 15;
		l.streams[i].reader.others = 5;
		l.streams[i].reader.any_packet = true;
		l.pages[i].calls = 10;
		l.pages[i].tid = 100 + i;
	}
	return &l;
}

static void test_nothing_lost(void **state)
{
	struct losing *l = losing();
	struct losses sum = losses_sum(&l->trace);

	(void)state;
	assert_int_equal(sum.calls, 40);
	assert_int_equal(sum.calls_missing, 0);
	assert_int_equal(sum.streams_missing, 0);
	assert_int_equal(losses_records(&sum, &l->trace), 0);
	assert_false(losses_all(&sum, &l->trace));
}

/* Of what the board counts and what the packets do, the larger number; all of it is added up. */
static void test_records_lost(void **state)
{
	struct losing *l = losing();
	struct losses sum;

	(void)state;
	l->pages[1].lost = 7;
	l->streams[1].reader.losses.discarded = 3;
	l->pages[2].lost = 2;
	l->streams[2].reader.losses.discarded = 11;
	l->pages[3].calls = 14;
	l->pages[0].calls = 15;
	l->streams[0].reader.losses.packets_dropped =
		1; /* what is missing there is what was dropped */
	l->trace.board.head.lost = 100;
	sum = losses_sum(&l->trace);
	assert_int_equal(sum.streams.discarded, 18);
	assert_int_equal(sum.calls_missing, 4);
	assert_int_equal(losses_records(&sum, &l->trace), 122);
	l->streams[1].reader.losses = (struct reader_losses){.packets_dropped = 1,
							     .packets_missing = 2,
							     .unreadable_bytes = 3,
							     .disordered = 4,
							     .unreadable_files = 5};
	l->streams[2].reader.losses = (struct reader_losses){.packets_dropped = 10,
							     .packets_missing = 20,
							     .unreadable_bytes = 30,
							     .disordered = 40,
							     .unreadable_files = 50};
	sum = losses_sum(&l->trace);
	assert_int_equal(sum.streams.packets_dropped, 12);
	assert_int_equal(sum.streams.packets_missing, 22);
	assert_int_equal(sum.streams.unreadable_bytes, 33);
	assert_int_equal(sum.streams.disordered, 44);
	assert_int_equal(sum.streams.unreadable_files, 55);
	assert_int_equal(sum.streams.discarded, 9);
	l->streams[1].reader.losses.discarded = UINT64_MAX;
	sum = losses_sum(&l->trace);
	assert_int_equal(sum.streams.discarded, NUMBER_MOST);
	assert_int_equal(losses_records(&sum, &l->trace), NUMBER_MOST);
}

/* The recorder has deleted the first parts: what all slots had together, less what these had, is here or lost. */
static void test_parts_removed(void **state)
{
	struct losing *l = losing();
	struct trace_part parts[2] = {{.number = 4}, {.number = 5}};
	struct spy_board *board = &l->trace.board.head;
	struct losses sum;

	(void)state;
	l->trace.parts = parts;
	l->trace.n_parts = 2;
	l->streams[1].reader.losses.discarded = 2;
	l->pages[1].calls = 1000;
	l->pages[1].lost = 50;
	l->pages[3].lost = 9;
	sum = losses_sum(&l->trace); /* nobody says what they had */
	assert_int_equal(sum.calls_missing, 0);
	assert_int_equal(sum.streams.discarded, 2);
	board->parts_removed = 3;
	board->removed_cycles = 1;
	board->removed_calls = 990;
	board->removed_lost = 40;
	sum = losses_sum(&l->trace);
	assert_int_equal(sum.calls_missing, 0);
	assert_int_equal(sum.streams.discarded, 19);
	l->streams[2].reader.losses.discarded = 30; /* the packets say more */
	board->removed_calls = 986; /* one of each slot */
	sum = losses_sum(&l->trace);
	assert_int_equal(sum.calls_missing, 0);
	assert_int_equal(sum.streams.discarded, 32);
	board->removed_calls = 985;
	sum = losses_sum(&l->trace);
	assert_int_equal(sum.calls_missing, 5);
	board->parts_removed = 2; /* somebody else has removed one */
	assert_int_equal(losses_sum(&l->trace).calls_missing, 0);
	board->parts_removed = 3;
	parts[1].number = 6;
	assert_int_equal(losses_sum(&l->trace).calls_missing, 0);
	parts[1].number = 5;
	board->removed_calls = board->removed_lost = UINT64_MAX;
	sum = losses_sum(&l->trace);
	assert_int_equal(sum.calls_missing, 0);
	assert_int_equal(sum.streams.discarded, 32);
}

/* Is the stream of that slot missing, when it has no packet? */
static uint64_t missing(struct losing *l, size_t slot)
{
	l->streams[slot].reader.any_packet = false;
	return losses_sum(&l->trace).streams_missing;
}

/* A slot without packets may never have had one: that of a thread that has just taken it, or that found the disk full. */
static void test_missing_streams(void **state)
{
	struct losing *l = losing();
	struct losses sum;

	(void)state;
	assert_int_equal(missing(l, 1), 1);
	assert_int_equal(missing(l, 2), 2);
	assert_int_equal(missing(l, 0), 3);
	l = losing();
	l->pages[0].calls = 0;
	assert_int_equal(missing(l, 0), 1); /* it has one before any other slot is used */
	l = losing();
	l->pages[1].calls = 0;
	l->pages[1].tid = 0;
	assert_int_equal(missing(l, 1), 0);
	l->trace.board.head.ended = 1;
	assert_int_equal(missing(l, 1), 1);
	l->pages[1].lost = 1;
	assert_int_equal(missing(l, 1), 0);
	l->pages[1].lost = 0;
	l->pages[1].tid = 5;
	assert_int_equal(missing(l, 1), 0);
	l = losing();
	l->trace.board.head.slots = 1; /* it was never used */
	assert_int_equal(missing(l, 1), 0);
	l = losing();
	l->trace.board.head.slots = SLOTS + 2; /* the board was cut off */
	l->trace.n_streams = 2;
	sum = losses_sum(&l->trace);
	assert_int_equal(sum.streams_missing, 4);
	assert_int_equal(sum.calls_missing, 20);
}

/* Without calls: is that because they are lost? */
static void test_all_lost(void **state)
{
	static const struct reader_losses losses[] = {
		{.unreadable_files = 1}, {.unreadable_bytes = 1}, {.packets_missing = 1},
		{.packets_dropped = 1},  {.discarded = 1},
	};
	struct losses sum = {0};
	struct trace trace = {.board = {.present = true}};
	size_t i;

	(void)state;
	assert_false(losses_all(&sum, &trace)); /* it made none */
	for (i = 0; i < ARRAY_SIZE(losses); i++) {
		sum = (struct losses){.streams = losses[i]};
		assert_true(losses_all(&sum, &trace));
		sum.calls = 1;
		assert_false(losses_all(&sum, &trace));
	}
	sum = (struct losses){.streams = {.disordered = 9}};
	assert_false(losses_all(&sum, &trace));
	sum = (struct losses){.streams_missing = 1};
	assert_true(losses_all(&sum, &trace));
	sum = (struct losses){.calls_missing = 1};
	assert_true(losses_all(&sum, &trace));
	sum = (struct losses){0};
	trace.board.head.lost = 1;
	assert_true(losses_all(&sum, &trace));
	trace.board.head.lost = 0;
	trace.board.present = false;
	assert_true(losses_all(&sum, &trace));
}

#define PARTS 4

/* Parts 2, 3, 5 and 6 of a recording, and another one's; each with its own stream of slot 1. */
static void test_parts_joined(void **state)
{
	static const uint32_t numbers[PARTS] = {5, 2, 6, 3}, runs[PARTS] = {2, 2, 5, 5};
	static struct reader_file files[PARTS + 1];
	static struct stream streams[PARTS + 1], *stream[PARTS + 1];
	static struct trace traces[PARTS + 1], *trace[PARTS + 1];
	struct trace_set set = {
		.traces = trace, .n_traces = PARTS + 1, .streams = stream, .n_streams = PARTS + 1};
	unsigned int i;

	(void)state;
	for (i = 0; i <= PARTS; i++) {
		trace[i] = &traces[i];
		stream[i] = &streams[i];
		traces[i].metadata.has_uuid = true;
		traces[i].metadata.uuid[0] = i < PARTS ? 7 : 8;
		traces[i].part = i < PARTS ? numbers[i] : 1;
		traces[i].dir = (char *)"a";
		traces[i].board.head.lost = 1u << i;
		streams[i].trace = &traces[i];
		streams[i].slot = i + 1;
		files[i].part = traces[i].part;
		streams[i].reader.files = &files[i];
		streams[i].reader.n_files = 1;
	}
	trace_parts_join(&set);
	for (i = 0; i <= PARTS; i++) {
		assert_int_equal(traces[i].joined, i < 2 || i == 3);
		assert_ptr_equal(streams[i].trace, &traces[i < PARTS ? 2 : i]);
	}
	assert_int_equal(traces[2].board.head.lost, 1 + 2 + 4 + 8);
	assert_int_equal(traces[4].board.head.lost, 16);
	assert_int_equal(traces[2].n_parts, PARTS);
	assert_int_equal(traces[4].n_parts, 0);
	for (i = 0; i < PARTS; i++) {
		uint32_t number = traces[2].parts[i].number;
		unsigned int k = 0;

		while (numbers[k] != number)
			k++;
		assert_int_equal(files[k].run,
				 runs[i]); /* what is read without a break begins there */
		assert_true(!i || number > traces[2].parts[i - 1].number);
	}
	assert_int_equal(trace_parts_missing(&traces[2]).first, 1);
	assert_int_equal(trace_parts_missing(&traces[2]).between, 1);
	trace_parts_release(&traces[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_directories),     cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_nothing_lost),    cmocka_unit_test(test_records_lost),
		cmocka_unit_test(test_missing_streams), cmocka_unit_test(test_all_lost),
		cmocka_unit_test(test_parts_removed),   cmocka_unit_test(test_parts_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
