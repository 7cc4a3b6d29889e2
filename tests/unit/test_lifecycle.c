/* links: shim/entry/lifecycle.c */
/*
 * tests/unit/test_lifecycle.c: how a recording begins, fails to begin, begins in a forked child, and ends: what the subsystems
 * are told and in which order, with made-up ones, and what is counted in the line at the end.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "describe/describe.h"
#include "entry/lifecycle.h"
#include "entry/subsystems.h"
#include "hook/slots.h"
#include "no_guard.h"
#include "process/folder.h"
#include "process/options.h"
#include "process/own_stack.h"
#include "record/board.h"
#include "record/message.h"
#include "record/notes.h"
#include "record/truncation.h"
#include "state/recorded.h"

#include "thread_stubs.h" /* last: its `thread` is a parameter elsewhere */

#define SECOND 1000000000ull

/* ---- the rest of the shim ---- */

struct spy_options spy_options;
struct spy_thread *spy_threads;
const struct spy_subsystem *spy_subsystems;
int (*spy_begin_recording)(void);
bool spy_probing;
uint64_t spy_lock_timeouts;
struct spy_clock_pair spy_loaded;
static struct spy_thread threads[4];
static struct spy_slot_page pages[4];
static char done[1000]; /* what was done, in order */
static char message[1000], parent[2 * SPY_PATH_MAX], note[300];
static struct spy_clock_pair pair;
static uint64_t frequency;
static int too_early; /* how often the clocks are too close */
static bool no_tables, fork_pending, keeps_parents, not_backed[4], deleted[4], cut_short[4];
static int folder_error, board_error, metadata_error;
static uint64_t lost_elsewhere;

static void add(const char *what, long number)
{
	size_t at = strlen(done);

	snprintf(done + at, sizeof(done) - at, number < 0 ? "%s " : "%s%ld ", what, number);
}

#define DOES(name, what) \
	void name(void) \
	{ \
		add(what, -1); \
	}
DOES(spy_folder_forget, "folder_forgotten")
DOES(spy_fork_before, "")
DOES(spy_fork_after, "")
DOES(spy_fork_child, "child")
DOES(spy_options_read, "options")
DOES(spy_session_wipe, "wipe")
DOES(spy_slots_disable, "disabled")
DOES(spy_thread_init, "threads")
DOES(spy_truncation_forked, "truncation_forked")
DOES(spy_truncation_watch, "watch")
DOES(spy_warn_damaged, "warn")
DOES(spy_message_init, "message")

bool spy_session_init(void)
{
	begin_session();
	session.state = SPY_SESSION_NONE;
	return true;
}

bool spy_session_map_tables(void)
{
	spy_threads = threads;
	return !no_tables;
}

void spy_clock_init(bool force_monotonic)
{
	add(force_monotonic ? "monotonic" : "clock", -1);
}

void spy_clock_read_pair(struct spy_clock_pair *now_is)
{
	*now_is = pair;
}

uint64_t spy_clock_frequency(const struct spy_clock_pair *since, const struct spy_clock_pair *to)
{
	assert_int_equal(to->clock, pair.clock);
	assert_true(since->clock <= to->clock);
	return too_early-- > 0 ? 0 : frequency;
}

int spy_folder_create(char *path, size_t size, const char *in, int pid)
{
	assert_int_equal(pid, getpid());
	assert_int_equal(size, sizeof(session.directory));
	strcpy(path, "/made");
	snprintf(parent, sizeof(parent), "%s", in);
	return folder_error;
}

int spy_board_create(struct spy_board **made)
{
	*made = &board;
	return board_error;
}

void spy_board_fill(struct spy_board *of)
{
	assert_ptr_equal(of, &board);
	assert_int_equal(session.slots, 1);
	add("fill", -1);
}

bool spy_board_backs(const struct spy_board *of, const void *memory)
{
	assert_ptr_equal(of, &board);
	return !not_backed[(const struct spy_slot_page *)memory - pages];
}

int spy_metadata_write(struct spy_session *of, uint32_t part)
{
	assert_ptr_equal(of, &session);
	add("metadata", part);
	return metadata_error;
}

int spy_stream_make_room(struct spy_thread *of)
{
	assert_ptr_equal(of, threads);
	add("room", -1);
	return 0;
}

bool spy_fork_is_handled(void)
{
	return !fork_pending;
}

void spy_message(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
}

const char *spy_message_reason(int error)
{
	return error == -ENOMEM         ? "no memory"
	       : error == -EACCES       ? "no rights"
	       : error == -ENAMETOOLONG ? "too long"
					: "?";
}

void spy_note(enum spy_note what, const char *format, ...)
{
	va_list args;

	assert_int_equal(what, SPY_NOTE_OTHER);
	va_start(args, format);
	vsnprintf(note, sizeof(note), format, args);
	va_end(args);
}

void spy_own_stack_run(void (*work)(void *data), void *data)
{
	work(data);
}

uint64_t spy_session_take_lost(void)
{
	uint64_t lost = lost_elsewhere;

	lost_elsewhere = 0;
	return lost;
}

void spy_stream_give_back(struct spy_thread *of)
{
	add("back", of - threads);
}

bool spy_stream_is_deleted(const struct spy_stream_file *file)
{
	for (size_t i = 0; i < 4; i++)
		if (file == &threads[i].file)
			return deleted[i];
	return false;
}

bool spy_stream_is_whole(const struct spy_thread *of)
{
	return !cut_short[of - threads];
}

void spy_thread_flush_counts(struct spy_thread *of)
{
	add("flush", of - threads);
}

void spy_thread_wake(struct spy_thread *of)
{
	add("wake", of - threads);
}

void spy_truncation_repair(const struct spy_thread *of)
{
	assert_null(of);
	add("repair", -1);
}

/* ---- subsystems ---- */

#define FIRST(what) \
	static void first_##what(void) \
	{ \
		add(#what, 1); \
	}
#define SECOND_TOO(what) \
	FIRST(what) \
	static void second_##what(void) \
	{ \
		add(#what, 2); \
	}
SECOND_TOO(load)
SECOND_TOO(end)
SECOND_TOO(final)
SECOND_TOO(stop)
FIRST(init)
FIRST(arrange)
FIRST(forked)

static void first_records(void)
{
	assert_true(spy_session_active());
	add("first_records", -1);
}

static void first_begin(uint64_t of)
{
	assert_int_equal(of, frequency);
	assert_ptr_equal(session.board, &board);
	assert_false(spy_session_active());
	add("begin", -1);
}

static bool forget_parent(void)
{
	add("forget", -1);
	return !keeps_parents;
}

const struct spy_subsystem spy_all_subsystems[] = {
	{.name = "first",
	 .load = first_load,
	 .init = first_init,
	 .arrange = first_arrange,
	 .forked = first_forked,
	 .forget_parent = forget_parent,
	 .begin = first_begin,
	 .first_records = first_records,
	 .stop = first_stop,
	 .end = first_end,
	 .final = first_final},
	{.name = "second",
	 .load = second_load,
	 .stop = second_stop,
	 .end = second_end,
	 .final = second_final},
	{0},
};

/* ---- the tests ---- */

static char loaded[sizeof(done)];

static int begin(void **state)
{
	(void)state;
	if (!*loaded)
		strcpy(loaded, done);
	begin_session();
	session.state = SPY_SESSION_NONE;
	memset(threads, 0, sizeof(threads));
	memset(pages, 0, sizeof(pages));
	memset(not_backed, 0, sizeof(not_backed));
	memset(deleted, 0, sizeof(deleted));
	memset(cut_short, 0, sizeof(cut_short));
	for (uint32_t i = 0; i < 4; i++) {
		threads[i].slot = i;
		threads[i].page = &pages[i];
	}
	spy_self = &empty;
	spy_options = (struct spy_options){0};
	done[0] = message[0] = parent[0] = note[0] = '\0';
	pair = (struct spy_clock_pair){1000, 2000, 3000};
	frequency = SECOND;
	too_early = folder_error = board_error = metadata_error = 0;
	no_tables = fork_pending = keeps_parents = spy_probing = false;
	lost_elsewhere = spy_lock_timeouts = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	session.state = SPY_SESSION_NONE; /* nothing is left for this program's end */
	return 0;
}

static void expect_done(const char *what)
{
	assert_string_equal(done, what);
	done[0] = '\0';
}

static void test_load(void **state)
{
	(void)state;
	assert_string_equal(loaded, "options threads load1 load2 clock message init1 arrange1 ");
	spy_lifecycle_init(); /* once */
	expect_done("");
	assert_ptr_equal(spy_subsystems, spy_all_subsystems);
}

static void test_begin(void **state)
{
	const struct spy_rec_clock *clock = (void *)session_records;
	char where[SPY_PATH_MAX], long_path[SPY_PATH_MAX + 1], path[2 * SPY_PATH_MAX];

	assert_non_null(getcwd(where, sizeof(where)));
	too_early = 3;
	assert_int_equal(spy_begin_recording(), SPY_SESSION_ACTIVE);
	assert_int_equal(session.state, SPY_SESSION_ACTIVE);
	expect_done("watch fill metadata1 begin room first_records ");
	assert_string_equal(parent, where);
	assert_int_equal(too_early, -1);
	assert_int_equal(session.pid, getpid());
	assert_int_equal(threads[0].tid, getpid());
	assert_int_equal(session.part, 1);
	assert_int_equal(session.frequency, SECOND);
	assert_int_equal(session.begun.clock, 1000);
	assert_int_equal(session.uuid[6] >> 4, 4);
	assert_int_equal(session.uuid[8] >> 6, 2);
	assert_true(spy_probing);
	assert_int_equal(session_bytes, sizeof(*clock));
	assert_int_equal(clock->head.event, SPY_EV_CLOCK);
	assert_int_equal(clock->head.time, 1000);
	assert_int_equal(clock->monotonic_ns, 2000);
	assert_int_equal(clock->realtime_ns, 3000);
	assert_int_equal(clock->reserved + clock->reserved2, 0);
	assert_string_equal(message, "");
	assert_int_equal(spy_begin_recording(), SPY_SESSION_ACTIVE); /* it has */
	session.state = SPY_SESSION_BEGINNING; /* another thread is at it */
	assert_int_equal(spy_begin_recording(), SPY_SESSION_BEGINNING);
	expect_done("");
	/* Where the user wants it. */
	begin(state);
	spy_options.out = "/tmp/x";
	spy_options.noprobes = "1";
	session_full = true;
	assert_int_equal(spy_begin_recording(), SPY_SESSION_ACTIVE);
	assert_false(spy_probing);
	assert_string_equal(parent, "/tmp/x");
	begin(state);
	spy_options.out = "x/y";
	assert_int_equal(spy_begin_recording(), SPY_SESSION_ACTIVE);
	snprintf(path, sizeof(path), "%s/x/y", where);
	assert_string_equal(parent, path);
	/* The longest path, and a longer one. */
	memset(long_path, 'x', sizeof(long_path));
	long_path[0] = '/';
	long_path[SPY_PATH_MAX - 1] = '\0';
	begin(state);
	spy_options.out = long_path;
	assert_int_equal(spy_begin_recording(), SPY_SESSION_ACTIVE);
	assert_string_equal(parent, long_path);
	long_path[SPY_PATH_MAX - 1] = 'x';
	long_path[SPY_PATH_MAX] = '\0';
	begin(state);
	spy_options.out = long_path;
	assert_int_equal(spy_begin_recording(), SPY_SESSION_FAILED);
	assert_non_null(strstr(message, ": too long; the program goes on"));
}

static void test_begin_fails(void **state)
{
	static const char *const done_before[] = {"watch disabled ", "watch disabled ",
						  "watch disabled ",
						  "watch fill metadata1 disabled "};

	for (int i = 0; i < 4; i++) {
		begin(state);
		no_tables = i == 0;
		folder_error = i == 1 ? -EACCES : 0;
		board_error = i == 2 ? -EACCES : 0;
		metadata_error = i == 3 ? -EACCES : 0;
		assert_int_equal(spy_begin_recording(), SPY_SESSION_FAILED);
		assert_int_equal(session.state, SPY_SESSION_FAILED);
		expect_done(done_before[i]);
		assert_non_null(strstr(message, i ? "cannot write a trace to /made: no rights;"
						  : ": no memory;"));
		assert_int_equal(session_bytes, 0);
		assert_int_equal(spy_begin_recording(), SPY_SESSION_FAILED); /* not again */
	}
}

/* In a child: what does it do, up to its first call? */
static int begin_in_child(void)
{
	done[0] = '\0';
	fork_pending = true;
	if (spy_begin_recording() != SPY_SESSION_NONE || session.state != SPY_SESSION_NONE || *done)
		return 1;
	fork_pending = false;
	keeps_parents = true;
	if (spy_begin_recording() != SPY_SESSION_NONE || strcmp(done, "forget ") != 0)
		return 2;
	keeps_parents = false;
	done[0] = '\0';
	if (spy_begin_recording() != SPY_SESSION_ACTIVE ||
	    strcmp(done, "forget watch fill metadata1 begin room first_records ") != 0)
		return 3;
	session.state = SPY_SESSION_NONE;
	done[0] = '\0';
	if (spy_begin_recording() != SPY_SESSION_ACTIVE || strncmp(done, "watch ", 6) != 0)
		return 4; /* once */
	return session.pid == getpid() ? 0 : 5;
}

static void test_forked(void **state)
{
	static const char forked[] = "child folder_forgotten truncation_forked forked1 ";
	pid_t child;
	int status;

	(void)state;
	child = fork();
	if (!child) {
		status = strcmp(strchr(done, 'c'), forked) == 0 ? begin_in_child() : 6;
		session.state = SPY_SESSION_NONE;
		_exit(status);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	/* Without the C library's fork: the first call does it. */
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!child) {
		done[0] = '\0';
		keeps_parents = true;
		status = spy_begin_recording() != SPY_SESSION_NONE ||
			 strncmp(done, forked, strlen(forked)) != 0;
		session.state = SPY_SESSION_NONE;
		_exit(status ?: begin_in_child());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void start(void **state)
{
	begin(state);
	assert_int_equal(spy_begin_recording(), SPY_SESSION_ACTIVE);
	done[0] = '\0';
	session_bytes = 0;
	pair.clock = 1000 + 10 * SECOND;
	session.slots = 4;
}

static void test_end(void **state)
{
	start(state);
	session.pid++; /* it is not ours */
	spy_lifecycle_end(false);
	expect_done("");
	session.pid--;
	spy_lifecycle_end(false);
	expect_done("stop1 stop2 end2 end1 warn repair final1 final2 back0 repair ");
	assert_int_equal(board.ended, 1);
	assert_int_equal(session.ender, spy_lock_self());
	assert_int_equal(session_bytes, sizeof(struct spy_rec_clock));
	assert_false(session.damaged);
	assert_string_equal(note, "");
	spy_lifecycle_end(false); /* once */
	expect_done("");
	/* By a signal handler: no records. */
	start(state);
	spy_self = &threads[2];
	cut_short[3] = true;
	session.given = true;
	frequency = 2 * SECOND;
	spy_lifecycle_end(true);
	expect_done("stop1 stop2 repair final1 final2 back2 back0 repair ");
	assert_int_equal(session_bytes, 0);
	assert_false(session.damaged);
	assert_int_equal(board.frequency, 2 * SECOND);
	/* The thread that ends it has calls that were not counted; a lock that others have is not waited for. */
	start(state);
	spy_self = &threads[1];
	session.lock.owner = 1;
	session_full = true;
	cut_short[3] = true;
	spy_lock_timeouts = 5;
	session.given = true; /* to another user, who may not write what the old one has */
	session.part = 6;
	spy_lifecycle_end(false);
	session.lock.owner = 0;
	expect_done(
		"stop1 stop2 end2 end1 warn flush1 metadata6 repair final1 final2 back1 repair ");
	assert_true(session.damaged);
	assert_non_null(strstr(note, "its own 5 times"));
	/* One that only counts is awakened; one that is asleep or in a call is not asked. */
	for (int i = 0; i < 3; i++) {
		start(state);
		spy_self = &threads[1];
		threads[1].counts_turn = i != 1;
		threads[1].asleep = true;
		threads[1].depth = i == 2;
		spy_lifecycle_end(false);
		assert_int_equal(strstr(done, "wake1 ") != NULL, i == 0);
		assert_null(strstr(done, "flush"));
	}
}

/* The clock's frequency over the whole run, if it moves a time by more than 1000 ns: here by 100 in 10 s. */
static void test_frequency(void **state)
{
	static const struct {
		uint64_t frequency;
		bool refined;
	} cases[] = {{0, false},           {SECOND, false},      {SECOND + 99, false},
		     {SECOND + 101, true}, {SECOND - 99, false}, {SECOND - 101, true}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		start(state);
		frequency = cases[i].frequency;
		spy_lifecycle_end(false);
		assert_int_equal(session.frequency, cases[i].refined ? frequency : SECOND);
		assert_int_equal(board.frequency, cases[i].refined ? frequency : 0);
		assert_int_equal(strstr(done, "metadata1") != NULL, cases[i].refined);
	}
}

static void test_line(void **state)
{
	start(state);
	for (uint32_t i = 0; i < 4; i++) { /* the session's own is none of those */
		pages[i].calls = i ? 1000 * i : 7;
		pages[i].pageable = i ? 10 * i : 7;
		pages[i].lost = i ? i : 7;
	}
	session.parts.lost = 100;
	board.lost = 20000;
	lost_elsewhere = 300000;
	spy_lifecycle_end(true);
	assert_string_equal(message, "/made: 6000 calls (nested ones included), 60 pageable async "
				     "copies, 320106 lost");
	assert_int_equal(board.lost, 320000);
	start(state);
	session.slots = 2;
	pages[1].calls = 5;
	pages[1].pageable = 1;
	pages[2].calls = 100;
	session.untold = 3;
	spy_lifecycle_end(true);
	assert_string_equal(message, "/made: 5 calls (nested ones included), 1 pageable async "
				     "copy, 0 lost, and 3 records that are no calls");
	/* Pages that have no file behind them: what they count is lost, unless a packet says it. */
	start(state);
	for (uint32_t i = 1; i < 4; i++) {
		not_backed[i] = true;
		pages[i].counts[0] = 1;
		pages[i].counts[SPY_BOARD_COUNTERS - 1] = 2;
		pages[i].lost = 100 * i;
		threads[i].packet = i > 1 ? (void *)packets[0] : NULL;
	}
	deleted[3] = true;
	spy_lifecycle_end(true);
	assert_int_equal(board.lost, 9 + 100 + 300);
	assert_int_equal(pages[2].lost, 200);
	assert_int_equal(pages[1].lost + pages[3].lost, 0);
	assert_int_equal(pages[1].counts[0] + pages[2].counts[SPY_BOARD_COUNTERS - 1], 0);
	assert_non_null(strstr(message, " 609 lost"));
}

/* A thread stores a packet: it is waited for, but not for ever. */
static void test_stores(void **state)
{
	struct timespec before, after;

	for (int i = 0; i < 2; i++) {
		start(state);
		session.parts.inside[i] = 1;
		clock_gettime(CLOCK_MONOTONIC, &before);
		spy_lifecycle_end(true);
		clock_gettime(CLOCK_MONOTONIC, &after);
		assert_true((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec -
				    before.tv_nsec >=
			    500 * 100000);
		assert_int_equal(board.ended, 1);
	}
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_load), TEST(test_begin),     TEST(test_begin_fails), TEST(test_forked),
		TEST(test_end),  TEST(test_frequency), TEST(test_line),        TEST(test_stores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
