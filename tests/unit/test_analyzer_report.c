/*
 * tests/unit/test_analyzer_report.c: whole directories: what is found, what is refused, and numbers
 * that must come out of the JSON report.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <jansson.h>
#include "cmd_files/cmd_digest.h"
#include "cmd_files/cmd_job.h"
#include "cmd_read/cmd_report.h"
#include "scratch.h"
#include "trace_text.h"
#include "render/render.h"
#include "model/model.h"

struct fixture {
	char *dir, log[256];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->dir = scratch_make();
	snprintf(f->log, sizeof(f->log), "%s/log", f->dir);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	scratch_remove(f->dir);
	free(f);
	return 0;
}

static void make(const struct fixture *f, const char *log)
{
	scratch_write(f->log, log, strlen(log));
	tt_make(f->log, f->dir);
}

/* Report of a directory below the fixture's; NULL if there is none. The caller frees. */
static char *report_as(const struct fixture *f, const char *below, const char *run,
		       const char *format)
{
	struct report_options options = {.renderer = renderer_find(format), .nested = true};
	char path[512], *text = NULL;
	const char *dirs[] = {path};
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool shown;

	snprintf(path, sizeof(path), "%s/%s", f->dir, below);
	shown = !report_show(dirs, 1, &(struct trace_filter){.run = run}, &options, out);
	fclose(out);
	if (!shown) {
		free(text);
		return NULL;
	}
	return text;
}

/* How much is lost of that kind. */
static int64_t loss(json_t *root, const char *kind)
{
	json_t *row;
	int64_t sum = 0;
	size_t i;

	json_array_foreach(json_object_get(root, "losses"), i, row)
	{
		if (!strcmp(json_string_value(json_object_get(row, "kind")), kind))
			sum += json_integer_value(json_object_get(row, "count"));
	}
	return sum;
}

static void same(json_t *a, const char *a_key, json_t *b, const char *b_key)
{
	assert_int_equal(json_integer_value(json_object_get(a, a_key)),
			 json_integer_value(json_object_get(b, b_key)));
}

/* The digest of the same traces lacks the same, and has as much. */
static void digest_agrees(json_t *root, const char *path)
{
	static const char *const kinds[] = {"no_metadata", "no_board", "streams",   "calls",
					    "files",       "records",  "no_stream", "dropped",
					    "packets",     "damaged",  "disordered"};
	json_t *summary = json_object_get(root, "summary"), *job;
	struct digest *digest = digest_new();
	char *text = NULL;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(digest_traces(digest, &path, 1, NULL, NULL), 0);
	assert_int_equal(job_show_digest(digest, renderer_find("json"), true, out), 0);
	fclose(out);
	digest_free(digest);
	job = json_loads(text, 0, NULL);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (loss(job, kinds[i]) != loss(root, kinds[i]))
			fail_msg("losses '%s': %lld and %lld", kinds[i],
				 (long long)loss(job, kinds[i]), (long long)loss(root, kinds[i]));
	same(summary, "calls", json_object_get(job, "job"), "calls");
	same(summary, "call_ns", json_object_get(job, "job"), "calls_ns");
	same(summary, "records", json_object_get(job, "job"), "records");
	same(summary, "lost_records", json_object_get(job, "job"), "lost_records");
	same(json_object_get(root, "waits"), "lost_ns", json_object_get(job, "job"), "lost_ns");
	json_decref(job);
	free(text);
}

/* One whose processes digests read one by one, so that they need not agree. */
static json_t *report_on_set(const struct fixture *f, const char *below, const char *run)
{
	char *text = report_as(f, below, run, "json");
	json_t *root = NULL;

	if (text) {
		root = json_loads(text, 0, NULL);
		assert_non_null(root);
		assert_string_equal(json_string_value(json_object_get(root, "schema")),
				    "cudaspy-report-2");
	}
	free(text);
	return root;
}

static json_t *report_on(const struct fixture *f, const char *below, const char *run)
{
	json_t *root = report_on_set(f, below, run);
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", f->dir, below);
	if (root && !run)
		digest_agrees(root, path);
	return root;
}

/* The number at table[row].key, or at table.key if row is negative. */
static int64_t number(json_t *root, const char *table, int row, const char *key)
{
	json_t *t = json_object_get(root, table);
	json_t *value = json_object_get(row < 0 ? t : json_array_get(t, (size_t)row), key);

	if (!json_is_integer(value))
		fail_msg("no number %s[%d].%s", table, row, key);
	return json_integer_value(value);
}

static const char *text(json_t *root, const char *table, int row, const char *key)
{
	const char *value = json_string_value(
		json_object_get(json_array_get(json_object_get(root, table), (size_t)row), key));

	return value ? value : "(none)";
}

static size_t rows(json_t *root, const char *table)
{
	return json_array_size(json_object_get(root, table));
}

static const char three_copies[] =
	"trace a.1 pid=1 program=\"a\" boot_id=b clock_source=tsc cudaspy_run=one\n"
	"slot 1 tid=7\n"
	"10us thread tid=7 name=\"main\"\n"
	"20us copy cudaMemcpyAsync duration=5us direction=h2d src=pageable dst=device bytes=100\n"
	"30us copy cudaMemcpyAsync duration=7us direction=h2d src=pageable dst=device bytes=200\n"
	"40us copy cudaMemcpyAsync duration=3us direction=h2d src=pinned dst=device bytes=400\n"
	"50us nested cuLaunchKernel duration=1us depth=1 result=700\n";

static void test_numbers(void **state)
{
	json_t *root;

	make(*state, three_copies);
	root = report_on(*state, "a.1", NULL);
	assert_int_equal(rows(root, "losses"), 0);
	assert_int_equal(number(root, "summary", -1, "processes"), 1);
	assert_int_equal(number(root, "summary", -1, "records"), 5);
	assert_int_equal(number(root, "summary", -1, "calls"), 3);
	assert_int_equal(number(root, "summary", -1, "call_ns"), 15000);
	assert_int_equal(number(root, "summary", -1, "duration_ns"), 40000);
	assert_int_equal(number(root, "summary", -1, "copied_bytes"), 700);
	assert_int_equal(rows(root, "calls"), 1);
	assert_string_equal(text(root, "calls", 0, "function"), "cudaMemcpyAsync");
	assert_int_equal(number(root, "calls", 0, "max_ns"), 7000);
	assert_int_equal(number(root, "nested_calls", 0, "failed"), 1);
	assert_int_equal(rows(root, "findings"), 1);
	assert_int_equal(number(root, "findings", 0, "count"), 2);
	assert_int_equal(number(root, "findings", 0, "bytes"), 300);
	assert_int_equal(number(root, "findings", 0, "total_ns"), 12000);
	assert_int_equal(number(root, "threads", 0, "tid"), 7);
	json_decref(root);
}

/* The same program twice: one call site; a run can be singled out. */
static void test_processes(void **state)
{
	json_t *root;

	make(*state, three_copies);
	make(*state, "trace a.2 pid=2 program=\"a\" boot_id=b clock_source=tsc cudaspy_run=two\n"
		     "slot 1 tid=8\n"
		     "15us copy cudaMemcpyAsync duration=1us direction=h2d src=pageable dst=device "
		     "bytes=1\n");
	root = report_on(*state, "", NULL);
	assert_int_equal(number(root, "summary", -1, "processes"), 2);
	assert_int_equal(number(root, "summary", -1, "runs"), 2);
	assert_int_equal(rows(root, "threads"), 2);
	assert_int_equal(rows(root, "findings"), 1);
	assert_int_equal(number(root, "findings", 0, "count"), 3);
	assert_int_equal(number(root, "findings", 0, "processes"), 2);
	json_decref(root);
	root = report_on(*state, "", "two");
	assert_int_equal(number(root, "summary", -1, "processes"), 1);
	assert_int_equal(number(root, "summary", -1, "calls"), 1);
	json_decref(root);
	assert_null(report_on(*state, "", "three"));
}

/* Copies that are no case: each alone must leave the detector silent. */
static void test_pageable_silence(void **state)
{
	static const char *const silent[] = {
		"copy cudaMemcpyAsync direction=h2d src=pageable dst=device bytes=64 result=1",
		"copy cudaMemcpyAsync direction=h2d src=pageable dst=device bytes=64 captured=1",
		"copy cudaMemcpyAsync direction=h2d src=pageable dst=device bytes=0",
		"copy cudaMemcpyAsync direction=h2d src=pinned dst=device bytes=64",
		"copy cudaMemcpyAsync direction=h2d src=managed dst=device bytes=64",
		"copy cudaMemcpyAsync direction=h2d src=unknown dst=device bytes=64",
		"copy cudaMemcpyAsync direction=d2d src=device dst=device bytes=64",
		"copy cudaMemcpy direction=h2d src=pageable dst=device bytes=64",
		"copy cuMemcpyHtoD_v2 direction=h2d src=pageable dst=device bytes=64",
	};

	for (size_t i = 0; i < ARRAY_SIZE(silent); i++) {
		char log[512];
		json_t *root;

		snprintf(log, sizeof(log), "trace a.1 pid=1 program=\"a\"\nslot 1 tid=1\n9us %s\n",
			 silent[i]);
		make(*state, log);
		root = report_on(*state, "a.1", NULL);
		if (rows(root, "findings"))
			fail_msg("reported: %s", silent[i]);
		assert_int_equal(number(root, "summary", -1, "calls"), 1);
		assert_int_equal(number(root, "summary", -1, "copied_bytes"), i > 2 ? 64 : 0);
		json_decref(root);
	}
}

/* A call site whose copies lie before and after the unloading of some object is one place still, and
 * a process counts once, in whatever order the parts are met. */
static void test_processes_count_once(void **state)
{
	json_t *root;

	for (int pid = 1; pid <= 4; pid++) {
		char log[2048];

		snprintf(log, sizeof(log),
			 "trace a.%d pid=%d program=\"a\" boot_id=b clock_source=tsc\n"
			 "slot 1 tid=%d\n"
			 "1us module base=0x1000 begin=0x1000 end=0x2000 path=\"/x\"\n"
			 "%dus copy cudaMemcpyAsync duration=5us direction=h2d src=pageable "
			 "dst=device bytes=100\n"
			 "30us module base=0x1000 begin=0x1000 end=0x2000 gone=1 path=\"/x\"\n"
			 "%dus copy cudaMemcpyAsync duration=5us direction=h2d src=pageable "
			 "dst=device bytes=100\n",
			 pid, pid, pid + 10, 10 + pid, 40 - pid);
		make(*state, log);
	}
	root = report_on(*state, "", NULL);
	assert_int_equal(rows(root, "findings"), 1);
	assert_int_equal(number(root, "findings", 0, "count"), 8);
	assert_int_equal(number(root, "findings", 0, "processes"), 4);
	json_decref(root);
}

static void test_keep_the_last(void **state)
{
	const struct fixture *f = *state;
	char log[8192], path[512];
	size_t used;
	json_t *root;
	int i;

	used = (size_t)snprintf(log, sizeof(log), "trace a.1 packet=256 bounded=1\nslot 1 tid=7\n");
	for (i = 0; i < 30; i++)
		used += (size_t)snprintf(log + used, sizeof(log) - used,
					 "%dus call cudaSetDevice duration=1us\n", 10 + i);
	make(f, log);
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/a.1/stream_0001_%06d", f->dir, i);
		assert_int_equal(unlink(path), 0);
	}
	root = report_on(f, "a.1", NULL);
	assert_int_equal(rows(root, "losses"), 1);
	assert_string_equal(text(root, "losses", 0, "kind"), "dropped");
	assert_int_equal(number(root, "losses", 0, "count"), 3);
	assert_int_equal(number(root, "calls", 0, "count"), 30 - 3 * 5);
	/* The thread's own record is gone; the packets still say who it was. */
	assert_int_equal(number(root, "threads", 0, "tid"), 7);
	json_decref(root);
}

/* Slots and thread numbers are used again by other threads. */
static void test_threads(void **state)
{
	json_t *root;

	make(*state, "trace a.1\n"
		     "slot 1 tid=7\n"
		     "10us thread tid=7 name=\"first\"\n"
		     "20us call cudaSetDevice duration=1us\n"
		     "30us thread tid=8 name=\"second\"\n"
		     "40us call cudaSetDevice duration=2us\n"
		     "50us thread tid=7 name=\"third\"\n"
		     "60us call cudaSetDevice duration=3us\n"
		     "70us count tid=8 function=cudaGetDevice count=9\n");
	root = report_on(*state, "a.1", NULL);
	assert_int_equal(rows(root, "threads"), 3);
	assert_string_equal(text(root, "threads", 0, "name"), "third");
	assert_string_equal(text(root, "threads", 1, "name"), "second");
	assert_int_equal(number(root, "threads", 1, "counted"), 9);
	json_decref(root);
}

/* Replaces the first `old` in the trace's metadata by `new`, of the same length. */
static void edit_metadata(const struct fixture *f, const char *old, const char *new)
{
	char path[512], *text, *at;
	size_t size = 0;

	snprintf(path, sizeof(path), "%s/a.1/metadata", f->dir);
	text = scratch_read(path, &size);
	at = memmem(text, size, old, strlen(old));
	assert_non_null(at);
	memcpy(at, new, strlen(new));
	scratch_write(path, text, size);
	free(text);
}

/* A trace of another version: names count, not numbers. */
static void test_other_version(void **state)
{
	json_t *root;

	make(*state, three_copies);
	edit_metadata(*state, "\"cudaMemcpyAsync\"", "\"cudaMemcpyQuick\"");
	root = report_on(*state, "a.1", NULL);
	assert_string_equal(text(root, "calls", 0, "function"), "cudaMemcpyQuick");
	/* No contract is known, hence no verdict. */
	assert_int_equal(rows(root, "findings"), 0);
	json_decref(root);
	edit_metadata(*state, "trace_version = ", "trace_version = 9");
	assert_null(report_on(*state, "a.1", NULL));
}

static void test_no_metadata(void **state)
{
	const struct fixture *f = *state;
	char path[512];
	json_t *root;

	make(f, three_copies);
	snprintf(path, sizeof(path), "%s/a.1/metadata", f->dir);
	assert_int_equal(unlink(path), 0);
	root = report_on(f, "a.1", NULL);
	assert_string_equal(text(root, "losses", 0, "kind"), "no_metadata");
	assert_int_equal(number(root, "calls", 0, "count"), 3);
	json_decref(root);
}

static void test_no_board(void **state)
{
	const struct fixture *f = *state;
	char path[512], page[SPY_BOARD_PAGE];
	json_t *root;

	make(f, three_copies);
	snprintf(path, sizeof(path), "%s/a.1/.board", f->dir);
	scratch_write(path, "short", 5);
	root = report_on(f, "a.1", NULL);
	assert_string_equal(text(root, "losses", 0, "kind"), "no_board");
	assert_int_equal(number(root, "calls", 0, "count"), 3);
	json_decref(root);
	/* What is no board at all counts nothing, whatever it holds. */
	memset(page, 0xa5, sizeof(page));
	scratch_write(path, page, sizeof(page));
	root = report_on(f, "a.1", NULL);
	assert_int_equal(rows(root, "losses"), 1);
	assert_string_equal(text(root, "losses", 0, "kind"), "no_board");
	json_decref(root);
}

static void test_nothing_there(void **state)
{
	const struct fixture *f = *state;
	char path[512];

	assert_null(report_on(f, "", NULL));
	assert_null(report_on(f, "no such directory", NULL));
	scratch_write(f->log, "x", 1);
	assert_null(report_on(f, "log", NULL));
	/* Another tracer's. */
	snprintf(path, sizeof(path), "%s/foreign", f->dir);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/foreign/metadata", f->dir);
	scratch_write(path, "/* CTF 1.8 */ env { tracer_name = \"lttng\"; };", 46);
	assert_null(report_on(f, "foreign", NULL));
	assert_null(report_on(f, "", NULL));
}

/* A damaged neighbour costs itself, and the report says so. */
static void test_partial(void **state)
{
	const struct fixture *f = *state;
	char path[512];
	json_t *root;

	make(f, three_copies);
	snprintf(path, sizeof(path), "%s/b.2", f->dir);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/b.2/metadata", f->dir);
	scratch_write(path, "rubbish", 7);
	root = report_on(f, "", NULL);
	assert_string_equal(text(root, "losses", 0, "kind"), "unreadable");
	assert_int_equal(number(root, "calls", 0, "count"), 3);
	json_decref(root);
}

/* Named twice, read once. */
static void test_named_twice(void **state)
{
	const struct fixture *f = *state;
	char child[512];
	const char *dirs[] = {f->dir, child};
	struct trace_set set;

	make(f, three_copies);
	snprintf(child, sizeof(child), "%s/a.1/.", f->dir);
	assert_int_equal(trace_set_open(&set, dirs, 2, NULL), 0);
	assert_int_equal(set.n_traces, 1);
	trace_set_release(&set);
}

/* The count of that kind of loss; 0 if there is none. */
static void in_trace(const struct fixture *f, const char *name, char path[512])
{
	snprintf(path, 512, "%s/a.1/%s", f->dir, name);
}

static const char two_threads[] = "trace a.1 pid=1 program=a packet=256\n"
				  "slot 1 tid=7\n"
				  "10us call cudaSetDevice\n"
				  "20us call cudaSetDevice\n"
				  "slot 2 tid=8\n"
				  "10us call cudaSetDevice\n"
				  "20us call cudaSetDevice\n"
				  "30us call cudaSetDevice\n";

/* A stream's file that is not there, empty or unreadable is a loss, and its calls are. */
static void test_missing_streams(void **state)
{
	const struct fixture *f = *state;
	char path[512], *text;
	json_t *root;

	make(f, two_threads);
	root = report_on(f, "a.1", NULL);
	assert_int_equal(rows(root, "losses"), 0);
	json_decref(root);

	in_trace(f, "stream_0002_tail", path);
	assert_int_equal(truncate(path, 0), 0);
	root = report_on(f, "a.1", NULL);
	assert_int_equal(loss(root, "streams"), 1);
	assert_int_equal(loss(root, "calls"), 3);
	assert_int_equal(loss(root, "files"), 0);
	assert_int_equal(number(root, "summary", -1, "lost_records"), 3);
	json_decref(root);

	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0777), 0);
	root = report_on(f, "a.1", NULL);
	assert_int_equal(loss(root, "streams"), 1);
	assert_int_equal(loss(root, "files"), 1);
	json_decref(root);

	assert_int_equal(rmdir(path), 0);
	in_trace(f, "stream_0001_tail", path);
	assert_int_equal(unlink(path), 0);
	in_trace(f, "stream_0000_tail", path);
	assert_int_equal(unlink(path), 0);
	root = report_on(f, "a.1", NULL);
	assert_int_equal(loss(root, "streams"), 3);
	assert_int_equal(loss(root, "calls"), 5);
	json_decref(root);
	/* Of what nobody could read it is not said that nothing is wrong with it, nor what would help. */
	text = report_as(f, "a.1", NULL, "text");
	assert_null(strstr(text, "no problem"));
	assert_non_null(strstr(text, "no calls to look at"));
	assert_null(strstr(text, "processes?"));
	free(text);
}

/* The board knows how many records of calls there were, but under keep-the-last not how many are
 * left. */
static void test_missing_records(void **state)
{
	const struct fixture *f = *state;
	uint64_t bits = (sizeof(struct spy_packet) + sizeof(struct spy_rec_call)) * 8;
	char path[512], *tail;
	size_t size;
	json_t *root;

	make(f, two_threads);
	in_trace(f, "stream_0002_tail", path);
	tail = scratch_read(path, &size);
	memcpy(tail + offsetof(struct spy_packet, content_bits), &bits, sizeof(bits));
	scratch_write(path, tail, size);
	free(tail);
	root = report_on(f, "a.1", NULL);
	assert_int_equal(rows(root, "losses"), 1);
	assert_int_equal(loss(root, "calls"), 2);
	json_decref(root);
}

/* Slots that never had a packet: the disk was full, or the process was killed before. */
static void test_slots_without_packets(void **state)
{
	struct fixture *f = *state;
	struct spy_slot_page page = {.lost = 5};
	char path[512], *board;
	size_t size;
	json_t *root;

	make(f, "trace a.1\nslot 2\n");
	in_trace(f, ".board", path);
	board = scratch_read(path, &size);
	memcpy(board + 2 * SPY_BOARD_PAGE, &page, sizeof(page));
	page = (struct spy_slot_page){.tid = 9};
	memcpy(board + 3 * SPY_BOARD_PAGE, &page, sizeof(page));
	scratch_write(path, board, size);
	free(board);
	root = report_on(f, "a.1", NULL);
	assert_int_equal(loss(root, "streams"), 0);
	assert_int_equal(loss(root, "records"), 5);
	json_decref(root);
}

/* Read while it is written: the stream's file is behind the tail, or ends inside a packet. */
static void test_live(void **state)
{
	const struct fixture *f = *state;
	const uint64_t calls = 5;
	char log[4096], path[512], *board;
	size_t used, size;
	json_t *root;
	int i, ended;

	for (ended = 0; ended < 2; ended++) {
		used = (size_t)snprintf(log, sizeof(log),
					"trace a.1 packet=256\nboard ended=%d\nslot 1\n", ended);
		for (i = 0; i < 23; i++)
			used += (size_t)snprintf(log + used, sizeof(log) - used,
						 "%dus call cudaSetDevice\n", 10 + i);
		make(f, log);
		/* The board was looked at when the second packet began. */
		in_trace(f, ".board", path);
		board = scratch_read(path, &size);
		memcpy(board + 2 * SPY_BOARD_PAGE + offsetof(struct spy_slot_page, calls), &calls,
		       sizeof(calls));
		scratch_write(path, board, size);
		free(board);
		in_trace(f, "stream_0001", path);
		assert_int_equal(truncate(path, 256 + 100), 0);
		root = report_on(f, "a.1", NULL);
		if (!ended) {
			assert_int_equal(rows(root, "losses"), 0);
			assert_int_equal(number(root, "summary", -1, "calls"), 5);
		} else {
			assert_true(loss(root, "packets") > 0);
			assert_true(loss(root, "damaged") > 0);
		}
		json_decref(root);
	}
}

/* An empty metadata file, or one that was cut, is as good as none; the names are the directory's. */
static void test_cut_metadata(void **state)
{
	static const struct {
		const char *dir, *pid, *program;
		int64_t wanted;
	} names[] = {
		{"my-app-77.cudaspy", "77", "my-app", 77},
		{"my-app-77-2.cudaspy", "77", "my-app", 77},
		{"step-3-78.cudaspy", "78", "step-3", 78},
	};
	const struct fixture *f = *state;
	char log[512], path[600], *metadata, *env;
	size_t i, j, size;
	json_t *root;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(log, sizeof(log),
			 "trace %s pid=%s program=other\nslot 1 tid=7\n10us call cudaSetDevice\n",
			 names[i].dir, names[i].pid);
		make(f, log);
		snprintf(path, sizeof(path), "%s/%s/metadata", f->dir, names[i].dir);
		metadata = scratch_read(path, &size);
		env = strstr(metadata, "env {");
		assert_non_null(env);
		const size_t cuts[] = {0, 5, 100, (size_t)(env - metadata),
				       (size_t)(env - metadata) + 20};
		for (j = 0; j < ARRAY_SIZE(cuts); j++) {
			scratch_write(path, metadata, cuts[j]);
			root = report_on(f, names[i].dir, NULL);
			assert_non_null(root);
			assert_int_equal(loss(root, "no_metadata"), 1);
			assert_int_equal(number(root, "summary", -1, "calls"), 1);
			assert_int_equal(number(root, "threads", 0, "pid"), names[i].wanted);
			snprintf(log, sizeof(log), "%s.%s", names[i].program, names[i].pid);
			assert_string_equal(text(root, "threads", 0, "process"), log);
			json_decref(root);
		}
		free(metadata);
	}
	/* Without a board: the streams' names, and what is in them, are ours. */
	snprintf(path, sizeof(path), "%s/%s/.board", f->dir, names[0].dir);
	assert_int_equal(unlink(path), 0);
	root = report_on(f, names[0].dir, NULL);
	assert_int_equal(loss(root, "no_metadata"), 1);
	assert_int_equal(number(root, "summary", -1, "calls"), 1);
	json_decref(root);
	/* No metadata and no board: the directory's name is all there is. */
	snprintf(path, sizeof(path), "%s/%s/metadata", f->dir, names[0].dir);
	assert_int_equal(unlink(path), 0);
	root = report_on(f, names[0].dir, NULL);
	assert_string_equal(text(root, "threads", 0, "process"), "my-app.77");
	json_decref(root);
}

/* The headline names the root of the tree, whoever called CUDA first. */
static void test_root(void **state)
{
	json_t *root;

	make(*state, "trace c.12 pid=12 ppid=11 program=child start_realtime_ns=1\n"
		     "slot 1\n10us call cudaSetDevice\n"
		     "trace b.11 pid=11 ppid=10 program=parent start_realtime_ns=2\n"
		     "slot 1\n10us call cudaSetDevice\n"
		     "trace d.13 pid=13 ppid=12 program=grandchild start_realtime_ns=3\n"
		     "slot 1\n10us call cudaSetDevice\n");
	root = report_on(*state, "", NULL);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(root, "summary"), "program")),
		"parent.11 and 2 more processes");
	json_decref(root);
}

/* What records claim beyond all reason: sums end at the largest number, and none is negative. */
static void test_absurd_numbers(void **state)
{
	static const char log[] =
		"trace a.1 pid=1 program=\"a\"\n"
		"discarded 0xffffffffffffffff\n"
		"slot 1 tid=7\n"
		"discarded 0xffffffffffffffff\n"
		"1us thread tid=7 name=\"main\"\n"
		"2us count function=cudaGetDevice tid=7 count=0xfffffffffffffffe\n"
		"3us count function=cudaGetDevice tid=7 count=5\n"
		"4us count function=cudaGetLastError tid=7 count=0xffffffffffffffff\n"
		"20us copy cudaMemcpy duration=1us direction=h2d bytes=0xfffffffffffffff\n";
	char *many = calloc(1, sizeof(log) + 20 * 100);
	json_t *root;
	int i;

	strcpy(many, log);
	for (i = 0; i < 20; i++)
		sprintf(many + strlen(many),
			"%dus copy cudaMemcpy duration=1us direction=h2d bytes=0xfffffffffffffff\n",
			30 + i);
	make(*state, many);
	free(many);
	root = report_on(*state, "a.1", NULL);
	assert_int_equal(number(root, "summary", -1, "counted"), INT64_MAX);
	assert_int_equal(number(root, "summary", -1, "copied_bytes"), INT64_MAX);
	assert_int_equal(number(root, "summary", -1, "lost_records"), INT64_MAX);
	assert_int_equal(number(root, "threads", 0, "counted"), INT64_MAX);
	assert_int_equal(number(root, "threads", 0, "copied_bytes"), INT64_MAX);
	assert_int_equal(number(root, "devices", 0, "copied_bytes"), INT64_MAX);
	assert_int_equal(number(root, "counted", 0, "count"), INT64_MAX);
	assert_int_equal(number(root, "counted", 1, "count"), INT64_MAX);
	json_decref(root);
}

/* A call longer than its clock has run, one that began inside the one before it, and one of the same in a row that is
 * counted a short way: all sums say the same. */
static void test_absurd_durations(void **state)
{
	json_t *root;
	int64_t by_thread;

	make(*state, "trace a.1 pid=1 program=\"a\"\nslot 1 tid=7\n"
		     "10us launch cudaLaunchKernel duration=3s stream=8 kernel=1\n"
		     "11us nested cuLaunchKernel duration=4s depth=1\n"
		     "20us launch cudaLaunchKernel duration=15us stream=8 kernel=1\n"
		     "30us launch cudaLaunchKernel duration=2us stream=8 kernel=1\n");
	root = report_on(*state, "a.1", NULL);
	by_thread = number(root, "threads", 0, "total_ns");
	assert_int_equal(by_thread, 22000);
	assert_int_equal(number(root, "summary", -1, "call_ns"), by_thread);
	assert_int_equal(number(root, "calls", 0, "total_ns"), by_thread);
	assert_int_equal(number(root, "calls", 0, "max_ns"), 10000);
	assert_int_equal(number(root, "waits", -1, "total_ns"), by_thread);
	assert_int_equal(number(root, "devices", 0, "total_ns"), by_thread);
	assert_int_equal(number(root, "accounts", 0, "total_ns"), by_thread);
	assert_int_equal(number(root, "nested_calls", 0, "total_ns"), 11000);
	json_decref(root);
}

/* A clock that no processor has is not believed: the board's is, if it is one; else times are cycles. */
static void test_absurd_clock(void **state)
{
	static const char *const clocks[] = {
		"clock frequency=1\n",
		"clock frequency=0xffffffffffffffff\n",
		"clock offset_s=0xffffffffffff\n",
		"clock offset=0xffffffffffffffff\n",
	};
	char log[512];
	json_t *root;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		unsigned int before = warnings_count();

		snprintf(log, sizeof(log),
			 "trace a.1 pid=1 program=\"a\"\n%sslot 1 tid=7\n"
			 "10us call cudaDeviceSynchronize duration=5us\n"
			 "900us call cudaDeviceSynchronize duration=5us\n",
			 clocks[i]);
		make(*state, log);
		root = report_on(*state, "a.1", NULL);
		assert_true(warnings_count() > before);
		assert_int_equal(number(root, "summary", -1, "duration_ns"), 890000);
		assert_int_equal(number(root, "summary", -1, "call_ns"), 10000);
		json_decref(root);
	}
}

/* A record that lies centuries ahead is damage, also where the packet's header says the same. */
static void test_absurd_time(void **state)
{
	json_t *root;

	make(*state, "trace a.1 pid=1 program=\"a\"\nslot 1 tid=7\n"
		     "10us call cudaDeviceSynchronize duration=5us\n"
		     "0x7fffffffffffffff call cudaDeviceSynchronize duration=5us\n");
	root = report_on(*state, "a.1", NULL);
	assert_int_equal(number(root, "summary", -1, "calls"), 1);
	assert_int_equal(loss(root, "damaged"), 32);
	json_decref(root);

	/* On the clock of the process that began first a cycle is a microsecond. */
	make(*state,
	     "trace a.1 pid=1 program=\"a\" boot_id=b clock_source=tsc start_realtime_ns=1\n"
	     "clock frequency=1000000\nslot 1 tid=7\n10us call cudaDeviceSynchronize\n"
	     "trace b.2 pid=2 program=\"b\" boot_id=b clock_source=tsc start_realtime_ns=2\n"
	     "slot 1 tid=8\n0x20000000000000 call cudaDeviceSynchronize\n");
	root = report_on_set(*state, "", NULL);
	assert_int_equal(number(root, "summary", -1, "calls"), 1);
	json_decref(root);
}

/* A copy inside a call that never returned: the thread has no other call, and a row. */
static void test_only_nested(void **state)
{
	json_t *root;

	make(*state,
	     "trace a.1 pid=1 program=\"a\"\nslot 1 tid=7\n"
	     "10us copy cuMemcpyHtoD_v2 depth=1 duration=5us device=0 direction=h2d bytes=100\n");
	root = report_on(*state, "a.1", NULL);
	assert_int_equal(number(root, "summary", -1, "copied_bytes"), 100);
	assert_int_equal(number(root, "threads", 0, "copied_bytes"), 100);
	assert_int_equal(number(root, "devices", 0, "copied_bytes"), 100);
	json_decref(root);
}

static int64_t calls_in(const char *a, const char *b)
{
	struct report_options options = {.renderer = renderer_find("json")};
	const char *dirs[] = {a, b};
	char *shown = NULL;
	size_t size;
	FILE *out = open_memstream(&shown, &size);
	json_t *root;
	int64_t calls;

	assert_int_equal(report_show(dirs, 2, NULL, &options, out), 0);
	fclose(out);
	root = json_loads(shown, 0, NULL);
	assert_non_null(root);
	assert_int_equal(number(root, "summary", -1, "processes"), 1);
	assert_int_equal(number(root, "summary", -1, "unfinished"), 0);
	calls = number(root, "summary", -1, "calls");
	free(shown);
	json_decref(root);
	return calls;
}

/* A copy that was made while the process ran, and the whole: one process, and all its calls, whichever is named first. */
static void test_copies(void **state)
{
	static const char begun[] = "board ended=0\nslot 1 tid=7\n10us call cudaSetDevice\n";
	static const char later[] = "20us call cudaSetDevice\n";
	const struct fixture *f = *state;
	char log[512], copy[512], whole[512];
	unsigned int before;

	snprintf(copy, sizeof(copy), "%s/copy", f->dir);
	snprintf(whole, sizeof(whole), "%s/a.1", f->dir);
	snprintf(log, sizeof(log), "trace a.1 pid=1 program=a\n%s", begun);
	make(f, log);
	assert_int_equal(rename(whole, copy), 0);
	snprintf(log, sizeof(log), "trace a.1 pid=1 program=a\n%s%s", begun, later);
	log[strlen("trace a.1 pid=1 program=a\nboard ended=")] = '1';
	make(f, log);
	before = warnings_count();
	assert_int_equal(calls_in(copy, whole), 2);
	assert_int_equal(warnings_count(), before + 1);
	assert_int_equal(calls_in(whole, copy), 2);
}

/* What of its time a process recorded, by windows that open and close at these times, in ms; it is there from 0 to 100 ms. */
static void test_windows(void **state)
{
	static const struct {
		const char *windows;
		unsigned int processes;
		const char *recorded;
		int64_t n, recorded_ns;
	} cases[] = {
		{"", 1, NULL, 0, 0},
		{"0us window state=closed\n", 1,
		 "nothing: no window was opened (--capture-range, --delay, cudaspy start)", 0, 0},
		{"0us window state=closed\n20ms window state=open number=1\n50ms window state=closed number=1\n",
		 1, "30.00 ms of 100.0 ms, in 1 window", 1, 30000000},
		{"0us window state=closed\n20ms window state=open number=1\n50ms window state=closed number=1\n"
		 "90ms window state=open number=2\n",
		 1, "40.00 ms of 100.0 ms, in 2 windows", 2, 40000000},
		{"0us window state=closed\n20ms window state=open number=1\n50ms window state=closed number=1\n",
		 2, "60.00 ms of 200.0 ms, in 2 windows of 2 processes", 2, 60000000},
		{"20ms window state=counting\n50ms window state=recording\n", 1,
		 "70.00 ms of 100.0 ms; in the rest calls were only counted (cost windows)", 0,
		 70000000},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char log[2048] = "";
		json_t *root;

		for (unsigned int k = 1; k <= cases[i].processes; k++)
			snprintf(
				log + strlen(log), sizeof(log) - strlen(log),
				"trace w.%u pid=%u program=\"w\" boot_id=b clock_source=tsc\n"
				"slot 0\n0us note note=version text=\"x\"\n%s100ms note note=version text=\"x\"\n"
				"slot 1 tid=%u\n",
				k, k, cases[i].windows, k);
		make(*state, log);
		root = report_on(*state, cases[i].processes > 1 ? "" : "w.1", NULL);
		if (strcmp(json_string_value(
				   json_object_get(json_object_get(root, "summary"), "recorded"))
				   ?: "",
			   cases[i].recorded ?: ""))
			fail_msg("'%s', not '%s'",
				 json_string_value(json_object_get(json_object_get(root, "summary"),
								   "recorded")),
				 cases[i].recorded);
		assert_int_equal(number(root, "summary", -1, "windows"), cases[i].n);
		assert_int_equal(number(root, "summary", -1, "recorded_ns"), cases[i].recorded_ns);
		json_decref(root);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_numbers),
		TEST(test_processes),
		TEST(test_processes_count_once),
		TEST(test_pageable_silence),
		TEST(test_keep_the_last),
		TEST(test_threads),
		TEST(test_other_version),
		TEST(test_no_metadata),
		TEST(test_no_board),
		TEST(test_nothing_there),
		TEST(test_partial),
		TEST(test_named_twice),
		TEST(test_missing_streams),
		TEST(test_missing_records),
		TEST(test_slots_without_packets),
		TEST(test_live),
		TEST(test_cut_metadata),
		TEST(test_root),
		TEST(test_absurd_numbers),
		TEST(test_absurd_durations),
		TEST(test_absurd_clock),
		TEST(test_absurd_time),
		TEST(test_only_nested),
		TEST(test_copies),
		TEST(test_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
